//! Duty: bounds-checked big-endian reads. Bytes and an offset come in, a number or "not there yet" goes out.
//! Must not know what the numbers mean.

/// The signed 32-bit number at `at`, if all of it is there.
pub(crate) fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    array_at(bytes, at).map(i32::from_be_bytes)
}

/// The unsigned 16-bit number at `at`, if all of it is there.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_be_bytes)
}

/// The unsigned 64-bit number at `at`, if all of it is there.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_be_bytes)
}

/// The `N` bytes at `at`, if all of them are there.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Decimal digits as NSQ reads them in command lines: nothing is 0, no sign, no spaces (nsq-tcp 0). What does not fit
/// becomes `u64::MAX`, which every range check refuses or cuts down.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| sum.saturating_mul(10).saturating_add(u64::from(digit)))
    })
}

/// An integer as Go's `Atoi` reads it: optional sign, at least one digit, no overflow.
pub(crate) fn integer<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_takes_digits_only_and_stops_at_the_top() {
        assert_eq!(decimal(b""), Some(0));
        assert_eq!(decimal(b"007"), Some(7));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(decimal(b"18446744073709551616"), Some(u64::MAX));
        for text in ["-1", "+1", " 1", "1s", "1.0", "\u{0661}"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_only_when_all_their_bytes_are_there() {
        assert_eq!(i32_at(&[0xff; 4], 0), Some(-1));
        assert_eq!(i32_at(&[0; 7], 4), None);
        assert_eq!(u16_at(&[1, 2, 3], 1), Some(0x0203));
        assert_eq!(u64_at(&[0; 8], usize::MAX), None);
    }
}
