//! Duty: the 16 bytes that name a message, in their two forms. Numbers come in, bytes go out, and back.
//! Must not know how sequences are given out.
//!
//! The internal id is `node << 50 | sequence` (architecture 4). A plain consumer sees it as 16 lower-case hex
//! characters, a consumer in binary form as 8 bytes, big-endian, followed by 8 bytes of trace id.

use std::fmt;

/// The 16 bytes of a message id as they travel. Which form they are in depends on the connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId([u8; 16]);

/// How a connection writes ids (architecture 4.0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdForm {
    /// 16 lower-case hex characters.
    #[default]
    Hex,
    /// 8 bytes internal id, 8 bytes trace id.
    Binary,
}

impl MessageId {
    /// Wraps 16 bytes in whatever form they are.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The hex form of an internal id.
    pub fn hex(internal_id: u64) -> Self {
        let mut bytes = [0; 16];
        for (pair, byte) in bytes.chunks_exact_mut(2).zip(internal_id.to_be_bytes()) {
            pair.copy_from_slice(&HEX_PAIRS[usize::from(byte)]);
        }
        Self(bytes)
    }

    /// The binary form; a trace id of 0 means none.
    pub fn binary(internal_id: u64, trace_id: u64) -> Self {
        let both = u128::from(internal_id) << 64 | u128::from(trace_id);
        Self(both.to_be_bytes())
    }

    /// The id of a message for a connection with ids in `form`.
    pub fn in_form(form: IdForm, internal_id: u64, trace_id: u64) -> Self {
        match form {
            IdForm::Hex => Self::hex(internal_id),
            IdForm::Binary => Self::binary(internal_id, trace_id),
        }
    }

    /// The internal id; nothing when the bytes cannot be an id of `form` that this broker gave out.
    pub fn internal_id(&self, form: IdForm) -> Option<u64> {
        match form {
            IdForm::Hex => number_of_hex(u128::from_be_bytes(self.0)),
            IdForm::Binary => Some((u128::from_be_bytes(self.0) >> 64) as u64),
        }
    }

    /// The trace id of the binary form; FIN, REQ and TOUCH do not look at it.
    pub fn trace_id(&self) -> u64 {
        u128::from_be_bytes(self.0) as u64
    }

    /// The bytes as they travel.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// `node << 50 | sequence`: unique between brokers with different `--node-id` (architecture 4).
pub const fn internal_id(node: u16, sequence: u64) -> u64 {
    (node as u64) << SEQUENCE_BITS | sequence
}

/// Node and sequence of an internal id.
pub const fn node_and_sequence(internal_id: u64) -> (u16, u64) {
    (
        (internal_id >> SEQUENCE_BITS) as u16,
        internal_id & ((1 << SEQUENCE_BITS) - 1),
    )
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// The number that 16 lower-case hex characters spell, all at once and without branches: every FIN passes here.
/// Upper case is another id for clients, so it is none here.
fn number_of_hex(text: u128) -> Option<u64> {
    let letters = text >> 6 & EACH_BYTE;
    let nibbles = (text & (0x0f * EACH_BYTE)).wrapping_add(letters * 9);
    let above_nine = nibbles.wrapping_add(6 * EACH_BYTE) >> 4 & EACH_BYTE;
    let written_back = nibbles
        .wrapping_add(0x30 * EACH_BYTE)
        .wrapping_add(above_nine * 0x27);
    if written_back != text || nibbles & (0xf0 * EACH_BYTE) != 0 {
        return None;
    }
    let pairs = (nibbles | nibbles >> 4) & 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff;
    let eights = (fours | fours >> 16) & 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff;
    Some((eights | eights >> 32) as u64)
}

/// 1 in every byte.
const EACH_BYTE: u128 = u128::MAX / 255;

const SEQUENCE_BITS: u32 = 50;

/// Both hex characters of each byte; formatting through `fmt` would cost more than the rest of a frame's head.
static HEX_PAIRS: [[u8; 2]; 256] = {
    let digits = *b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hex_is_lower_case_with_the_high_nibble_first() {
        assert_eq!(
            MessageId::hex(0x0d85_e0b1_1e40_00ff).as_bytes(),
            b"0d85e0b11e4000ff"
        );
        assert_eq!(
            MessageId::from_bytes(*b"0D85E0B11E4000FF").internal_id(IdForm::Hex),
            None
        );
        assert_eq!(
            MessageId::from_bytes(*b"0d85e0b11e4000fg").internal_id(IdForm::Hex),
            None
        );
    }

    #[test]
    fn node_and_sequence_share_the_64_bits() {
        assert_eq!(internal_id(1023, (1 << 50) - 1), (1 << 60) - 1);
        assert_eq!(node_and_sequence(internal_id(7, 10)), (7, 10));
    }

    proptest! {
        #[test]
        fn both_forms_give_back_their_numbers(internal: u64, trace: u64) {
            prop_assert_eq!(MessageId::hex(internal).internal_id(IdForm::Hex), Some(internal));
            let text = format!("{internal:016x}");
            let hex = MessageId::hex(internal);
            prop_assert_eq!(&hex.as_bytes()[..], text.as_bytes());
            let binary = MessageId::binary(internal, trace);
            prop_assert_eq!(binary.internal_id(IdForm::Binary), Some(internal));
            prop_assert_eq!(binary.trace_id(), trace);
        }
    }
}
