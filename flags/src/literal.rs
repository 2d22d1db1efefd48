//! Duty: numbers and truth values as Go's flag package reads them.

/// Why a text is no number or truth value. The texts are Go's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiteralError {
    /// Not a literal of the wanted type.
    #[error("parse error")]
    Syntax,
    /// Does not fit into 64 bits.
    #[error("value out of range")]
    Range,
}

/// A truth value: `1 t T true TRUE True` or `0 f F false FALSE False`. Source: nsq-http-and-tools 4.1.
pub fn boolean(text: &str) -> Result<bool, LiteralError> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(LiteralError::Syntax),
    }
}

/// A Go integer literal: decimal, `0x`, `0o`, `0b`, leading `0` = octal, `_` between digits.
pub(crate) fn integer(text: &str) -> Result<i64, LiteralError> {
    let (sign, literal) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = radix(literal);
    if !underscores_separate(digits, radix) {
        return Err(LiteralError::Syntax);
    }
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(LiteralError::Syntax);
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).map_err(|_| LiteralError::Range)
}

/// A decimal floating-point number.
pub(crate) fn float(text: &str) -> Result<f64, LiteralError> {
    let number: f64 = text.parse().map_err(|_| LiteralError::Syntax)?;
    // Rust reads a number that is too large as infinity, Go refuses it.
    if number.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) {
        return Err(LiteralError::Range);
    }
    Ok(number)
}

fn radix(literal: &str) -> (u32, &str) {
    let Some(rest) = literal.strip_prefix('0').filter(|rest| !rest.is_empty()) else {
        return (10, literal);
    };
    match rest.split_at_checked(1) {
        Some(("x" | "X", digits)) => (16, digits),
        Some(("o" | "O", digits)) => (8, digits),
        Some(("b" | "B", digits)) => (2, digits),
        _ => (8, literal),
    }
}

/// Go allows one `_` between two digits and between the prefix and the first digit.
fn underscores_separate(digits: &str, radix: u32) -> bool {
    let prefixed = radix != 10 && !digits.starts_with('0');
    let leading = digits.starts_with('_') && !prefixed;
    !leading && !digits.ends_with('_') && !digits.contains("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_integer_literals_are_read() {
        for (text, value) in [
            ("0", 0),
            ("-7", -7),
            ("+7", 7),
            ("0x1F", 31),
            ("0x_1f", 31),
            ("0o17", 15),
            ("017", 15),
            ("0_17", 15),
            ("0b101", 5),
            ("1_000_000", 1_000_000),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(integer(text), Ok(value), "{text}");
        }
        for text in [
            "", "-", "x", "1.0", "08", "1__0", "_1", "1_", "0x", "--1", "+-1", "1e3", " 1",
        ] {
            assert_eq!(integer(text), Err(LiteralError::Syntax), "{text}");
        }
        assert_eq!(integer("9223372036854775808"), Err(LiteralError::Range));
    }

    #[test]
    fn only_gos_words_are_truth_values() {
        assert_eq!(boolean("T"), Ok(true));
        assert_eq!(boolean("False"), Ok(false));
        assert_eq!(boolean("yes"), Err(LiteralError::Syntax));
        assert_eq!(boolean(""), Err(LiteralError::Syntax));
    }

    #[test]
    fn a_float_that_does_not_fit_is_out_of_range() {
        assert_eq!(float("0.99"), Ok(0.99));
        assert_eq!(float("1e999"), Err(LiteralError::Range));
        assert_eq!(float("abc"), Err(LiteralError::Syntax));
        assert_eq!(float(" 1"), Err(LiteralError::Syntax));
    }
}
