//! Duty: nsqlookupd's side of a broker's connection: bytes in, commands out, one step at a time. Must not know
//! registrations. Every error ends the connection.

use super::command::{self, Command};
use super::peer::PeerInfo;
use crate::code::ErrorCode;
use crate::coding::i32_at;
use crate::limits::LINE_MAX;
use crate::refusal::WireError;

/// The command decoder of one connection.
#[derive(Clone, Debug)]
pub struct Session {
    max_body_size: u64,
    /// Set by the first IDENTIFY: true for a broker of Youzan's fork.
    partitioned: Option<bool>,
    /// Bytes below which looking again is useless.
    need: usize,
    /// Bytes known to hold no line end.
    scanned: usize,
}

/// What [`Session::next`] found at the start of its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Call again with the same bytes and more behind them.
    NeedMore,
    /// A command; the next one starts after `consumed` bytes.
    Command {
        /// The command.
        command: Command,
        /// Bytes it took.
        consumed: usize,
    },
    /// Answer with the error, then close.
    Refuse(WireError),
    /// Close without an answer: the line is longer than 16384 bytes.
    Close,
}

impl Session {
    /// A connection whose magic was read. Stock has no bound for the body of IDENTIFY; ours is `max_body_size` bytes.
    pub fn new(max_body_size: u64) -> Self {
        Self {
            max_body_size,
            partitioned: None,
            need: 1,
            scanned: 0,
        }
    }

    /// Looks at `input`, which starts with the first byte that no command has taken yet. After [`Step::Refuse`] and
    /// [`Step::Close`] there is no next step.
    pub fn next(&mut self, input: &[u8]) -> Step {
        if input.len() < self.need {
            return Step::NeedMore;
        }
        let line = &input[..input.len().min(LINE_MAX)];
        let Some(end) = memchr::memchr(b'\n', &line[self.scanned..]) else {
            if line.len() == LINE_MAX {
                return Step::Close;
            }
            self.scanned = line.len();
            return self.more(line.len() + 1);
        };
        let end = self.scanned + end;
        match self.decode(&input[..end], input) {
            Ok(Some((command, consumed))) => {
                if let Command::Identify(peer) = &command {
                    self.partitioned = Some(!peer.distributed_id.is_empty());
                }
                (self.need, self.scanned) = (1, 0);
                Step::Command { command, consumed }
            }
            Ok(None) => Step::NeedMore,
            Err(error) => Step::Refuse(error),
        }
    }

    /// What to answer when the peer ends after [`Session::next`] wanted more than `input`: nothing while a line is
    /// awaited.
    pub fn interrupted(&self, input: &[u8]) -> Option<WireError> {
        let line = memchr::memchr(b'\n', input)?;
        let part = if i32_at(input, line + 1).is_none() {
            "body size"
        } else {
            "body"
        };
        Some(WireError::new(
            ErrorCode::BadBody,
            format!("IDENTIFY failed to read {part}"),
        ))
    }

    fn decode(&mut self, line: &[u8], input: &[u8]) -> Result<Option<(Command, usize)>, WireError> {
        let consumed = line.len() + 1;
        let mut words = line.trim_ascii().split(|byte| *byte == b' ');
        let verb = words.next().unwrap_or_default();
        let command = match verb {
            b"PING" => Command::Ping,
            b"IDENTIFY" => return self.identify(consumed, input),
            b"REGISTER" => Command::Register(command::registration("REGISTER", words, self.partitioned()?)?),
            b"UNREGISTER" => {
                Command::Unregister(command::registration("UNREGISTER", words, self.partitioned()?)?)
            }
            _ => {
                return Err(WireError::quoting(
                    ErrorCode::Invalid,
                    &[b"invalid command ", verb],
                ));
            }
        };
        Ok(Some((command, consumed)))
    }

    fn partitioned(&self) -> Result<bool, WireError> {
        self.partitioned
            .ok_or_else(|| WireError::new(ErrorCode::Invalid, "client must IDENTIFY"))
    }

    fn identify(&mut self, at: usize, input: &[u8]) -> Result<Option<(Command, usize)>, WireError> {
        if self.partitioned.is_some() {
            return Err(WireError::new(ErrorCode::Invalid, "cannot IDENTIFY again"));
        }
        let Some(size) = i32_at(input, at) else {
            self.more(at + 4);
            return Ok(None);
        };
        // Stock crashes on a negative size and reads any other; neither is copied.
        let len = u32::try_from(size)
            .ok()
            .filter(|len| u64::from(*len) <= self.max_body_size);
        let Some(len) = len else {
            return Err(WireError::new(
                ErrorCode::BadBody,
                format!("IDENTIFY invalid body size {size}"),
            ));
        };
        let (start, end) = (at + 4, at + 4 + len as usize);
        let Some(body) = input.get(start..end) else {
            self.more(end);
            return Ok(None);
        };
        Ok(Some((Command::Identify(PeerInfo::decode(body)?), end)))
    }

    fn more(&mut self, need: usize) -> Step {
        self.need = need;
        Step::NeedMore
    }
}
