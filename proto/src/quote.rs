//! Duty: text inside error descriptions the way Go's `%q` writes it (nsq-tcp 1.3). Raw bytes come in, printable text
//! goes out. Must not know which error it is for.

use std::fmt::Write;

/// `raw` in double quotes with everything unprintable escaped.
pub(crate) fn quoted(raw: &[u8]) -> String {
    let mut out = String::with_capacity(raw.len() + 2);
    out.push('"');
    for chunk in raw.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push_escaped(&mut out, c));
        chunk.invalid().iter().for_each(|byte| push_hex(&mut out, *byte));
    }
    out.push('"');
    out
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        '\0'..='\x1f' | '\x7f' => push_hex(out, c as u8),
        // Go escapes what Unicode does not call printable; controls and blanks are the part that could confuse a log.
        c if !c.is_ascii() && (c.is_control() || c.is_whitespace()) => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        c => out.push(c),
    }
}

fn push_hex(out: &mut String, byte: u8) {
    let _ = write!(out, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn quotes_as_go_does() {
        assert_eq!(quoted(b""), r#""""#);
        assert_eq!(quoted(b"a b"), r#""a b""#);
        assert_eq!(quoted(b"a\"\\"), r#""a\"\\""#);
        assert_eq!(
            quoted(b"\x07\x08\x0c\n\r\t\x0b\0\x7f"),
            r#""\a\b\f\n\r\t\v\x00\x7f""#
        );
        assert_eq!(quoted("ä€".as_bytes()), "\"ä€\"");
        assert_eq!(quoted(b"\xff\xc3"), r#""\xff\xc3""#);
        assert_eq!(quoted("\u{a0}\u{85}".as_bytes()), r#""\u00a0\u0085""#);
    }
}
