//! Duty: sizes in bytes with binary or decimal units: `16MiB`, `1GB`, `1048576`.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A number of bytes. Units are `B`, `KiB MiB GiB TiB` (powers of 1024) and `KB MB GB TB` (powers of 1000), in any
/// case; a bare number counts bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ByteSize(u64);

/// Why a text is no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not a whole number followed by a known unit.
    #[error("parse error")]
    Syntax,
    /// Above 2^63 - 1 bytes.
    #[error("value out of range")]
    Range,
}

impl ByteSize {
    /// A size of `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The size in bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        if number.is_empty() {
            return Err(SizeError::Syntax);
        }
        let unit = unit_bytes(unit.trim_start()).ok_or(SizeError::Syntax)?;
        number
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(unit))
            .filter(|bytes| i64::try_from(*bytes).is_ok())
            .map(Self)
            .ok_or(SizeError::Range)
    }
}

/// The largest binary unit that divides the size.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, bytes) in BINARY_UNITS {
            if self.0 >= bytes && self.0.is_multiple_of(bytes) {
                return write!(f, "{}{unit}", self.0 / bytes);
            }
        }
        write!(f, "{}", self.0)
    }
}

fn unit_bytes(unit: &str) -> Option<u64> {
    if unit.is_empty() {
        return Some(1);
    }
    BINARY_UNITS
        .iter()
        .chain(&DECIMAL_UNITS)
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .map(|(_, bytes)| *bytes)
}

const BINARY_UNITS: [(&str, u64); 4] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];
const DECIMAL_UNITS: [(&str, u64); 5] = [
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_plain_bytes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("16MiB", 16 << 20),
            ("16 mib", 16 << 20),
            ("2GB", 2_000_000_000),
            ("7B", 7),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn nonsense_and_overflow_are_refused() {
        for text in ["", "MiB", "-1", "1.5MiB", "16Mi", "16MiBs"] {
            assert_eq!(text.parse::<ByteSize>(), Err(SizeError::Syntax), "{text}");
        }
        for text in ["99999999999999999999", "9223372036854775808", "8388608TiB"] {
            assert_eq!(text.parse::<ByteSize>(), Err(SizeError::Range), "{text}");
        }
    }

    #[test]
    fn the_form_shown_is_short_and_exact() {
        assert_eq!(ByteSize(16 << 20).to_string(), "16MiB");
        assert_eq!(ByteSize(1500).to_string(), "1500");
        assert_eq!(ByteSize(0).to_string(), "0");
    }
}
