//! Duty: durations as Go writes and reads them (`1m30s`, `2.214µs`). Must not know flags or HTTP.

use std::fmt;
use std::time::Duration;

/// Shows a duration as Go's `Duration.String` does: `0s`, `2.214µs`, `1.5s`, `1h0m0s`.
#[derive(Clone, Copy, Debug)]
pub struct GoDuration(pub Duration);

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if nanos < SECOND {
            let (unit, name) = UNDER_A_SECOND
                .iter()
                .find(|(unit, _)| nanos >= *unit)
                .unwrap_or(&(1, "ns"));
            return write!(f, "{}{name}", Decimal(nanos, *unit));
        }
        let hours = nanos / HOUR;
        let minutes = nanos % HOUR / MINUTE;
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", Decimal(nanos % MINUTE, SECOND))
    }
}

/// Reads a duration in Go's syntax: decimal numbers with a unit (`ns us µs ms s m h`) one after another, or `0`.
///
/// `None` for anything else: no unit, a sign, more than 2^63 ns.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (unit, after) = UNITS
            .iter()
            .find_map(|(name, unit)| Some((*unit, after.strip_prefix(name)?)))?;
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        let mut place = unit;
        for digit in fraction.bytes() {
            place /= 10;
            total += u128::from(digit - b'0') * place;
        }
        rest = after;
    }
    let nanos = i64::try_from(total).ok()?;
    (!text.is_empty()).then(|| Duration::from_nanos(nanos as u64))
}

/// `.0 / .1` with as many decimals as it needs; `.1` is a power of ten.
struct Decimal(u128, u128);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut rest, mut place) = (self.0 % self.1, self.1);
        write!(f, "{}", self.0 / self.1)?;
        if rest > 0 {
            f.write_str(".")?;
        }
        while rest > 0 {
            place /= 10;
            write!(f, "{}", rest / place)?;
            rest %= place;
        }
        Ok(())
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

const SECOND: u128 = 1_000_000_000;
const MINUTE: u128 = 60 * SECOND;
const HOUR: u128 = 60 * MINUTE;
const UNDER_A_SECOND: [(u128, &str); 3] = [(1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
// Longer names first: `m` would take the start of `ms`.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", MINUTE),
    ("h", HOUR),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for (nanos, text) in [
            (0, "0s"),
            (7, "7ns"),
            (2_214, "2.214µs"),
            (1_110_453, "1.110453ms"),
            (2_000_000_000, "2s"),
            (49_544_774_675, "49.544774675s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (90_061_000_000_001, "25h1m1.000000001s"),
        ] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(GoDuration(duration).to_string(), text);
            assert_eq!(parse(text), Some(duration), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in ["", "60", "-1s", "1", "s", "1.", ".s", "1d", "99999999999h", "1 s"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("1.5h"), Some(Duration::from_mins(90)));
        assert_eq!(parse(".5s"), Some(Duration::from_millis(500)));
    }
}
