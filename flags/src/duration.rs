//! Duty: durations as Go writes them: `1m30s`, `1.5h`, `250ms`. Exact nanoseconds, never a clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// A length of time in nanoseconds, negative ones included (about 292 years either way).
///
/// Serialises as the number of nanoseconds, as stock's JSON does.
/// Source: nsq-http-and-tools 4.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

/// The text is no duration or does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse error")]
pub struct DurationError;

impl GoDuration {
    /// A duration of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The whole duration in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The same as std knows it; `None` when negative.
    pub fn to_std(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_nanos)
    }
}

/// Times above 292 years become the longest duration there is.
impl From<Duration> for GoDuration {
    fn from(time: Duration) -> Self {
        Self(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// An optional sign, then numbers with a unit (`ns us µs ms s m h`) each; the unit may be left out of a
/// bare `0` only.
impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let magnitude = if digits == "0" { 0 } else { magnitude(digits)? };
        let signed = if negative { -magnitude } else { magnitude };
        i64::try_from(signed).map(Self).map_err(|_| DurationError)
    }
}

/// Go's shortest form: `1h0m0s`, `1m30s`, `1.5s`, `2.214µs`, `0s`.
impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let nanos = self.0.unsigned_abs();
        match nanos {
            0 => f.write_str("0s"),
            1..MICROSECOND => write!(f, "{nanos}ns"),
            MICROSECOND..MILLISECOND => write!(f, "{}µs", Decimal::new(nanos, MICROSECOND)),
            MILLISECOND..SECOND => write!(f, "{}ms", Decimal::new(nanos, MILLISECOND)),
            _ => write_clock(f, nanos),
        }
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

/// The sum of all `number unit` parts, at least one.
fn magnitude(text: &str) -> Result<i128, DurationError> {
    let mut total = 0_i128;
    let mut rest = text;
    loop {
        let (whole, after_whole) = leading_digits(rest);
        let (fraction, after_number) = match after_whole.strip_prefix('.') {
            Some(tail) => leading_digits(tail),
            None => ("", after_whole),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(DurationError);
        }
        let unit_end = after_number
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after_number.len());
        let (unit, tail) = after_number.split_at(unit_end);
        let unit = unit_nanos(unit).ok_or(DurationError)?;
        total = total.saturating_add(part(whole, fraction, unit)?);
        if tail.is_empty() {
            return Ok(total);
        }
        rest = tail;
    }
}

/// `whole.fraction` units in nanoseconds; what is below one nanosecond is cut.
fn part(whole: &str, fraction: &str, unit: u64) -> Result<i128, DurationError> {
    let mut nanos = 0;
    if !whole.is_empty() {
        let count: u64 = whole.parse().map_err(|_| DurationError)?;
        nanos = i128::from(count) * i128::from(unit);
    }
    let mut weight = i128::from(unit) * FRACTION_SCALE;
    let mut scaled = 0;
    for digit in fraction.bytes().map(|byte| i128::from(byte - b'0')) {
        weight /= 10;
        scaled += digit * weight;
    }
    Ok(nanos + scaled / FRACTION_SCALE)
}

fn leading_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // Both letters are in use: the micro sign and the Greek mu.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    })
}

/// Hours and minutes as far as needed, then seconds with their fraction.
fn write_clock(f: &mut fmt::Formatter<'_>, nanos: u64) -> fmt::Result {
    let (hours, minutes) = (nanos / HOUR, nanos % HOUR / MINUTE);
    if hours > 0 {
        write!(f, "{hours}h")?;
    }
    if nanos >= MINUTE {
        write!(f, "{minutes}m")?;
    }
    write!(f, "{}s", Decimal::new(nanos % MINUTE, SECOND))
}

/// `nanos / unit` as a decimal number without trailing zeros.
struct Decimal {
    whole: u64,
    fraction: u64,
    unit: u64,
}

impl Decimal {
    const fn new(nanos: u64, unit: u64) -> Self {
        Self {
            whole: nanos / unit,
            fraction: nanos % unit,
            unit,
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.whole)?;
        if self.fraction == 0 {
            return Ok(());
        }
        let width = self.unit.ilog10() as usize;
        let digits = format!("{:0width$}", self.fraction);
        write!(f, ".{}", digits.trim_end_matches('0'))
    }
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// Digits of a fraction are summed as so many parts of a nanosecond.
const FRACTION_SCALE: i128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn go_texts_are_read_exactly() {
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("1m30s", 90_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("250ms", 250_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("-2us", -2_000),
            ("+3ns", 3),
            ("1h0.000000001s", 3_600_000_000_001),
            ("0.9999999999s", 999_999_999),
            ("0.333333333333333333333h", 1_199_999_999_999),
            ("2.214\u{b5}s", 2_214),
            ("2\u{3bc}s", 2_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(text.parse(), Ok(GoDuration(nanos)), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in [
            "",
            "60",
            "-",
            ".",
            ".s",
            "1",
            "1x",
            "1 s",
            "s",
            "1m30",
            "1e3s",
            "--1s",
            "00",
            "1d",
            "9223372036854775808ns",
            "300000000h",
            "99999999999999999999ns",
        ] {
            assert_eq!(text.parse::<GoDuration>(), Err(DurationError), "{text}");
        }
    }

    #[test]
    fn the_form_shown_is_gos() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (2_214, "2.214\u{b5}s"),
            (25_000_000, "25ms"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m0s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (3_600_000_000_001, "1h0m0.000000001s"),
            (-1_500_000, "-1.5ms"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(GoDuration(nanos).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(nanos: i64) {
            prop_assert_eq!(GoDuration(nanos).to_string().parse(), Ok(GoDuration(nanos)));
        }
    }
}
