//! Duty: what a server sends: size, type, data (nsq-tcp 1.2). Values come in, bytes go out, and back for clients.
//! Must not know why something is sent.

use bytes::BufMut;

use crate::code::ErrorCode;
use crate::coding::i32_at;
use crate::error::ProtoError;
use crate::refusal::WireError;

/// Data of the answer to SUB, PUB, MPUB, DPUB and each upgrade.
pub const OK: &[u8] = b"OK";
/// Data of the answer to CLS.
pub const CLOSE_WAIT: &[u8] = b"CLOSE_WAIT";
/// Data of a heartbeat.
pub const HEARTBEAT: &[u8] = b"_heartbeat_";

/// The number between size and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameType {
    /// Answer to a command, or heartbeat.
    Response = 0,
    /// Error text.
    Error = 1,
    /// Message.
    Message = 2,
}

/// Appends a response frame: [`OK`], [`CLOSE_WAIT`], [`HEARTBEAT`] or JSON.
pub fn put_response(out: &mut impl BufMut, data: &[u8]) {
    put_head(out, FrameType::Response, data.len());
    out.put_slice(data);
}

/// Appends an error frame.
pub fn put_error(out: &mut impl BufMut, error: &WireError) {
    put_head(out, FrameType::Error, error.text_len());
    error.put(out);
}

fn put_head(out: &mut impl BufMut, kind: FrameType, data_len: usize) {
    out.put_u32(4 + data_len as u32);
    out.put_u32(kind as u32);
}

/// Answer to a traced publish: 30 bytes instead of `OK` (youzan-extension 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Internal id of the message, of the first one after MPUB_TRACE.
    pub internal_id: u64,
    /// Trace id; 0 after MPUB_TRACE.
    pub trace_id: u64,
    /// Offset of the record in bytes.
    pub offset: u64,
    /// Length of the record, of all records after MPUB_TRACE; offset + this = offset of the next record.
    pub raw_size: u32,
}

impl Receipt {
    /// Appends the response frame.
    pub fn put(&self, out: &mut impl BufMut) {
        put_head(out, FrameType::Response, RECEIPT_LEN);
        out.put_slice(OK);
        out.put_u64(self.internal_id);
        out.put_u64(self.trace_id);
        out.put_u64(self.offset);
        out.put_u32(self.raw_size);
    }

    /// Reads the data of a response; nothing when it is not a receipt.
    pub fn decode(data: &[u8]) -> Option<Self> {
        let fields = data.strip_prefix(OK).filter(|_| data.len() == RECEIPT_LEN)?;
        Some(Self {
            internal_id: crate::coding::u64_at(fields, 0)?,
            trace_id: crate::coding::u64_at(fields, 8)?,
            offset: crate::coding::u64_at(fields, 16)?,
            raw_size: crate::coding::array_at(fields, 24).map(u32::from_be_bytes)?,
        })
    }
}

/// A frame as a client receives it; the data lies in the bytes it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Answer to a command, or [`HEARTBEAT`].
    Response(&'a [u8]),
    /// An error text; [`split_error`] takes it apart.
    Error(&'a [u8]),
    /// A message for [`crate::message::Delivery::decode`].
    Message(&'a [u8]),
}

impl<'a> Frame<'a> {
    /// Reads the frame at the start of `input` and tells how many bytes it took; nothing while it is not all there.
    ///
    /// # Errors
    /// When the size is below 4 or above `max_size`, or the type is unknown. A bad size is noticed as soon as its four
    /// bytes are there.
    pub fn decode(input: &'a [u8], max_size: u32) -> Result<Option<(Self, usize)>, ProtoError> {
        let Some(size) = i32_at(input, 0) else {
            return Ok(None);
        };
        let size = i64::from(size);
        if size < 4 || size > i64::from(max_size) {
            return Err(ProtoError::Size {
                size,
                min: 4,
                max: u64::from(max_size),
            });
        }
        let whole = 4 + size as usize;
        let (Some(kind), Some(data)) = (i32_at(input, 4), input.get(8..whole)) else {
            return Ok(None);
        };
        let frame = match kind {
            0 => Self::Response(data),
            1 => Self::Error(data),
            2 => Self::Message(data),
            other => return Err(ProtoError::FrameType(other)),
        };
        Ok(Some((frame, whole)))
    }
}

/// Code and description of an error text; no code when it is one that this version does not know.
pub fn split_error(data: &[u8]) -> (Option<ErrorCode>, &[u8]) {
    let end = memchr::memchr(b' ', data).unwrap_or(data.len());
    let (code, description) = data.split_at(end);
    (
        ErrorCode::from_text(code),
        description.get(1..).unwrap_or_default(),
    )
}

const RECEIPT_LEN: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_is_a_response_of_11_bytes() {
        let mut out = Vec::new();
        put_response(&mut out, HEARTBEAT);
        assert_eq!(out, b"\0\0\0\x0f\0\0\0\0_heartbeat_");
    }

    #[test]
    fn y_17_a_receipt_has_30_bytes() {
        let receipt = Receipt {
            internal_id: 1,
            trace_id: 2,
            offset: 3,
            raw_size: 4,
        };
        let mut out = Vec::new();
        receipt.put(&mut out);
        let (frame, whole) = Frame::decode(&out, 100).unwrap().unwrap();
        assert_eq!((frame, whole), (Frame::Response(&out[8..]), 38));
        assert_eq!(Receipt::decode(&out[8..]), Some(receipt));
        assert_eq!(Receipt::decode(OK), None);
    }

    #[test]
    fn a_frame_is_read_when_it_is_whole_and_refused_when_its_size_is_wild() {
        let mut out = Vec::new();
        put_error(&mut out, &WireError::topic_not_exist());
        for end in 0..out.len() {
            assert_eq!(Frame::decode(&out[..end], 100), Ok(None));
        }
        let (frame, _) = Frame::decode(&out, 100).unwrap().unwrap();
        let Frame::Error(text) = frame else {
            panic!("{frame:?}")
        };
        assert_eq!(split_error(text), (Some(ErrorCode::TopicNotExist), &b""[..]));
        assert!(matches!(
            Frame::decode(&[0xff; 4], 100),
            Err(ProtoError::Size { size: -1, .. })
        ));
        assert!(matches!(
            Frame::decode(&[0, 0, 0, 101], 100),
            Err(ProtoError::Size { size: 101, .. })
        ));
        assert_eq!(
            Frame::decode(&[0, 0, 0, 4, 0, 0, 0, 9], 100),
            Err(ProtoError::FrameType(9))
        );
    }
}
