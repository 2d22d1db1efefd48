//! Duty: cuts frames out of received bytes and messages out of frames (nsq-tcp 1.2 and 3.3).

use std::fmt;

/// One frame from the broker.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    /// 0 response, 1 error, 2 message.
    pub kind: u32,
    /// Everything behind the frame type.
    pub data: Vec<u8>,
}

/// The content of a message frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Nanoseconds since the Unix epoch.
    pub timestamp: i64,
    /// Which delivery this is, 1 for the first.
    pub attempts: u16,
    /// The sixteen characters of the id.
    pub id: String,
    /// What was published.
    pub body: Vec<u8>,
}

impl Frame {
    /// Takes the first frame from `bytes`, or `None` while it is incomplete.
    ///
    /// # Panics
    /// When the size or the type cannot be one of a broker.
    pub fn take_from(bytes: &mut Vec<u8>) -> Option<Self> {
        let size = u32::from_be_bytes(*bytes.first_chunk::<4>()?) as usize;
        assert!((4..=LARGEST).contains(&size), "frame size {size}");
        if bytes.len() < 4 + size {
            return None;
        }
        let frame: Vec<u8> = bytes.drain(..4 + size).collect();
        let kind = u32::from_be_bytes(*frame[4..].first_chunk::<4>().expect("four bytes of type"));
        assert!(kind <= MESSAGE, "frame type {kind}");
        Some(Self {
            kind,
            data: frame[8..].to_vec(),
        })
    }

    /// A response frame.
    pub fn response(data: &str) -> Self {
        Self {
            kind: RESPONSE,
            data: data.as_bytes().to_vec(),
        }
    }

    /// An error frame.
    pub fn error(data: &str) -> Self {
        Self {
            kind: ERROR,
            data: data.as_bytes().to_vec(),
        }
    }

    /// The data as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.data).into_owned()
    }

    /// True for an error frame.
    pub fn is_error(&self) -> bool {
        self.kind == ERROR
    }

    /// True for a message frame.
    pub fn is_message(&self) -> bool {
        self.kind == MESSAGE
    }

    /// True for a heartbeat.
    pub fn is_heartbeat(&self) -> bool {
        *self == Self::response("_heartbeat_")
    }

    /// The message in this frame.
    ///
    /// # Panics
    /// When this is not a message frame.
    pub fn message(&self) -> Message {
        assert!(
            self.is_message() && self.data.len() >= 26,
            "expected a message, got {self:?}"
        );
        Message {
            timestamp: i64::from_be_bytes(*self.data.first_chunk().expect("timestamp")),
            attempts: u16::from_be_bytes(*self.data[8..].first_chunk().expect("attempts")),
            id: String::from_utf8(self.data[10..26].to_vec()).expect("id in text"),
            body: self.data[26..].to_vec(),
        }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = ["response", "error", "message"][self.kind as usize];
        let shown = &self.data[..self.data.len().min(200)];
        write!(
            out,
            "{kind} \"{}\" of {} bytes",
            shown.escape_ascii(),
            self.data.len()
        )
    }
}

const RESPONSE: u32 = 0;
const ERROR: u32 = 1;
const MESSAGE: u32 = 2;
const LARGEST: usize = 16 << 20;
