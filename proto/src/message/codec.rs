//! Duty: a message as a consumer receives it, to bytes and back, in the layout its connection settled. Must not know
//! channels or stores.
//!
//! Frame data (nsq-tcp 3.3, youzan-extension 1.1):
//! `timestamp i64 | attempts u16 | id 16 bytes | [version u8 | [length u16 | header]] | [offset u64, raw size u32] | body`

use bytes::BufMut;

use super::header::{Header, VERSION_JSON};
use super::id::MessageId;
use crate::coding::{array_at, u16_at, u64_at};
use crate::dialect::Dialect;
use crate::error::ProtoError;
use crate::frame::FrameType;

/// Which parts of a message a consumer sees, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// True after `extend_support`: version, and the header when there is one.
    pub extended: bool,
    /// True after SUB_ADVANCED or SUB_ORDERED: the 12 detail bytes.
    pub detail: bool,
    /// Bounds the attempts that are shown.
    pub dialect: Dialect,
    /// `--ext-json-version`: the version that stands for a JSON header.
    pub json_version: u8,
}

impl Default for Layout {
    /// The classic layout.
    fn default() -> Self {
        Self {
            extended: false,
            detail: false,
            dialect: Dialect::Stock,
            json_version: VERSION_JSON,
        }
    }
}

/// A message on its way to a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// Nanoseconds since the Unix epoch when the broker received it.
    pub timestamp: i64,
    /// 1 on first delivery; wraps after 65535.
    pub attempts: u16,
    /// In the form of the connection.
    pub id: MessageId,
    /// Sent only in the extended layout.
    pub header: Header<'a>,
    /// Sent only in the detail layout.
    pub detail: Detail,
    /// What the publisher gave.
    pub body: &'a [u8],
}

/// Place of a message in its queue, for consumers that asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Offset of the record in bytes.
    pub offset: u64,
    /// Length of the record in bytes.
    pub raw_size: u32,
}

/// Appends the whole message frame.
pub fn put_message(out: &mut impl BufMut, layout: Layout, message: &Delivery<'_>) {
    put_message_head(out, layout, message);
    out.put_slice(message.body);
}

/// Appends the frame up to the body, so that a large body can be written from where it lies. The size field already
/// counts `message.body`.
pub fn put_message_head(out: &mut impl BufMut, layout: Layout, message: &Delivery<'_>) {
    let header = message.header.bytes();
    let mut extra = 0;
    if layout.extended {
        extra += match message.header {
            Header::None => 1,
            _ => 3 + header.len(),
        };
    }
    if layout.detail {
        extra += DETAIL_LEN;
    }
    let mut fixed = [0; 8 + FIXED_LEN];
    let size = 4 + FIXED_LEN + extra + message.body.len();
    fixed[..4].copy_from_slice(&(size as u32).to_be_bytes());
    fixed[4..8].copy_from_slice(&(FrameType::Message as u32).to_be_bytes());
    fixed[8..16].copy_from_slice(&message.timestamp.to_be_bytes());
    fixed[16..18].copy_from_slice(&layout.dialect.attempts_shown(message.attempts).to_be_bytes());
    fixed[18..].copy_from_slice(message.id.as_bytes());
    out.put_slice(&fixed);
    if layout.extended {
        match message.header {
            Header::None => out.put_u8(0),
            Header::Tag(_) => put_header(out, message.header.version(), header),
            Header::Json(_) => put_header(out, layout.json_version, header),
        }
    }
    if layout.detail {
        out.put_u64(message.detail.offset);
        out.put_u32(message.detail.raw_size);
    }
}

fn put_header(out: &mut impl BufMut, version: u8, header: &[u8]) {
    out.put_u8(version);
    out.put_u16(header.len() as u16);
    out.put_slice(header);
}

impl<'a> Delivery<'a> {
    /// Reads the data part of a message frame, for a client that knows what it subscribed to.
    ///
    /// # Errors
    /// When `data` is shorter than the layout.
    pub fn decode(data: &'a [u8], layout: Layout) -> Result<Self, ProtoError> {
        Self::read(data, layout).ok_or(ProtoError::MessageCutShort { len: data.len() })
    }

    fn read(data: &'a [u8], layout: Layout) -> Option<Self> {
        let mut rest = data.get(FIXED_LEN..)?;
        let mut header = Header::None;
        if layout.extended {
            let (version, after) = rest.split_first()?;
            rest = after;
            if *version != 0 {
                let (bytes, after) = rest.get(2..)?.split_at_checked(usize::from(u16_at(rest, 0)?))?;
                let version = if *version == layout.json_version {
                    VERSION_JSON
                } else {
                    *version
                };
                header = Header::from_version(version, bytes);
                rest = after;
            }
        }
        let mut detail = Detail::default();
        if layout.detail {
            detail.offset = u64_at(rest, 0)?;
            detail.raw_size = u32::from_be_bytes(array_at(rest, 8)?);
            rest = rest.get(DETAIL_LEN..)?;
        }
        Some(Self {
            timestamp: i64::from_be_bytes(array_at(data, 0)?),
            attempts: u16_at(data, 8)?,
            id: MessageId::from_bytes(array_at(data, 10)?),
            header,
            detail,
            body: rest,
        })
    }
}

/// Timestamp, attempts and id.
const FIXED_LEN: usize = 26;
const DETAIL_LEN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(header: Header<'static>) -> Delivery<'static> {
        Delivery {
            timestamp: 0x0102_0304_0506_0708,
            attempts: 1,
            id: MessageId::from_bytes(*b"0123456789abcdef"),
            header,
            detail: Detail {
                offset: 9,
                raw_size: 10,
            },
            body: b"body",
        }
    }

    fn after_id(layout: Layout, header: Header<'static>) -> Vec<u8> {
        let mut out = Vec::new();
        put_message(&mut out, layout, &message(header));
        assert_eq!(
            out[..4],
            ((out.len() - 4) as u32).to_be_bytes(),
            "C-11: size is 4 + data"
        );
        out.split_off(8 + FIXED_LEN)
    }

    #[test]
    fn the_plain_layout_is_the_classic_one() {
        let mut out = Vec::new();
        put_message(&mut out, Layout::default(), &message(Header::Json(b"{}")));
        assert_eq!(
            out,
            b"\0\0\0\x22\0\0\0\x02\x01\x02\x03\x04\x05\x06\x07\x08\0\x010123456789abcdefbody"
        );
    }

    #[test]
    fn y_01_y_02_the_extended_layout_has_a_version_and_a_length_only_with_a_header() {
        let layout = Layout {
            extended: true,
            ..Layout::default()
        };
        assert_eq!(after_id(layout, Header::None), b"\0body");
        assert_eq!(after_id(layout, Header::Json(b"{}")), b"\x04\0\x02{}body");
        assert_eq!(after_id(layout, Header::Tag(b"qa")), b"\x02\0\x02qabody");
        let renumbered = Layout {
            json_version: 1,
            ..layout
        };
        assert_eq!(after_id(renumbered, Header::Json(b"{}")), b"\x01\0\x02{}body");
    }

    #[test]
    fn y_04_y_05_detail_comes_right_before_the_body() {
        let detail = b"\0\0\0\0\0\0\0\x09\0\0\0\x0abody";
        let layout = Layout {
            detail: true,
            ..Layout::default()
        };
        assert_eq!(after_id(layout, Header::Json(b"{}")), detail);
        let layout = Layout {
            extended: true,
            ..layout
        };
        assert_eq!(
            after_id(layout, Header::Json(b"{}")),
            [&b"\x04\0\x02{}"[..], detail].concat()
        );
    }

    #[test]
    fn c_67_and_y_11_attempts_are_bounded_for_youzan_consumers_only() {
        let mut out = Vec::new();
        let message = Delivery {
            attempts: u16::MAX,
            ..message(Header::None)
        };
        put_message(&mut out, Layout::default(), &message);
        assert_eq!(
            Delivery::decode(&out[8..], Layout::default()).unwrap().attempts,
            u16::MAX
        );
        out.clear();
        put_message(
            &mut out,
            Layout {
                dialect: Dialect::Youzan,
                ..Layout::default()
            },
            &message,
        );
        assert_eq!(
            Delivery::decode(&out[8..], Layout::default()).unwrap().attempts,
            4_000
        );
    }
}
