//! Duty: a broker's side of the connection to nsqlookupd: commands out, answers in. Must not know when to speak.

use bytes::BufMut;

use super::peer::PeerInfo;
use crate::coding::i32_at;
use crate::error::ProtoError;
use crate::name::{ChannelRef, TopicRef};

/// Appends IDENTIFY.
pub fn put_identify(out: &mut impl BufMut, peer: &PeerInfo) {
    let body = peer.to_json();
    out.put_slice(b"IDENTIFY\n");
    out.put_u32(body.len() as u32);
    out.put_slice(&body);
}

/// Appends REGISTER in the stock form.
pub fn put_register(out: &mut impl BufMut, topic: TopicRef<'_>, channel: Option<ChannelRef<'_>>) {
    put_registration(out, b"REGISTER ", topic, channel);
}

/// Appends UNREGISTER in the stock form.
pub fn put_unregister(out: &mut impl BufMut, topic: TopicRef<'_>, channel: Option<ChannelRef<'_>>) {
    put_registration(out, b"UNREGISTER ", topic, channel);
}

/// Appends PING.
pub fn put_ping(out: &mut impl BufMut) {
    out.put_slice(b"PING\n");
}

/// Reads the answer at the start of `input` and tells how many bytes it took; nothing while it is not all there.
///
/// # Errors
/// When the length is negative or above `max_size`, noticed as soon as its four bytes are there.
pub fn decode_response(input: &[u8], max_size: u32) -> Result<Option<(&[u8], usize)>, ProtoError> {
    let Some(size) = i32_at(input, 0) else {
        return Ok(None);
    };
    let size = i64::from(size);
    if size < 0 || size > i64::from(max_size) {
        return Err(ProtoError::Size {
            size,
            min: 0,
            max: u64::from(max_size),
        });
    }
    let whole = 4 + size as usize;
    Ok(input.get(4..whole).map(|data| (data, whole)))
}

fn put_registration(
    out: &mut impl BufMut,
    verb: &[u8],
    topic: TopicRef<'_>,
    channel: Option<ChannelRef<'_>>,
) {
    out.put_slice(verb);
    out.put_slice(topic.as_str().as_bytes());
    if let Some(channel) = channel {
        out.put_u8(b' ');
        out.put_slice(channel.as_str().as_bytes());
    }
    out.put_u8(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::put_response;

    #[test]
    fn an_answer_is_read_when_it_is_whole_and_refused_when_its_size_is_wild() {
        let mut bytes = Vec::new();
        put_response(&mut bytes, b"OK");
        for end in 0..bytes.len() {
            assert_eq!(decode_response(&bytes[..end], 10), Ok(None));
        }
        assert_eq!(decode_response(&bytes, 10), Ok(Some((&b"OK"[..], 6))));
        assert!(matches!(
            decode_response(&[0, 0, 0, 11], 10),
            Err(ProtoError::Size { size: 11, .. })
        ));
        assert!(matches!(
            decode_response(&[0xff; 4], 10),
            Err(ProtoError::Size { size: -1, .. })
        ));
    }

    #[test]
    fn identify_has_its_keys_sorted() {
        let peer = PeerInfo {
            broadcast_address: "a".into(),
            hostname: "h".into(),
            http_port: 1,
            tcp_port: 2,
            ..PeerInfo::default()
        };
        let mut bytes = Vec::new();
        put_identify(&mut bytes, &peer);
        let json = br#"{"broadcast_address":"a","hostname":"h","http_port":1,"tcp_port":2,"version":""}"#;
        assert_eq!(&bytes[13..], json);
        assert_eq!(PeerInfo::decode_answer(json), Ok(peer));
        assert_eq!(
            PeerInfo::decode_answer(b"E_INVALID cannot IDENTIFY again"),
            Err(ProtoError::Answer)
        );
    }
}
