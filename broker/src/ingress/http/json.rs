//! Duty: JSON as Go's encoder writes it (nsq-http, preface): compact, `<`, `>`, `&` and the two line separators of
//! Unicode escaped, floats in Go's shortest form.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::error::HttpError;

/// The JSON text of `value`.
pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, HttpError> {
    let mut out = Vec::with_capacity(128);
    value
        .serialize(&mut Serializer::with_formatter(&mut out, Go))
        .map_err(|error| HttpError::Internal(error.to_string()))?;
    Ok(out)
}

struct Go;

impl Formatter for Go {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size == 0.0 || (1e-6..1e21).contains(&size) {
            return write!(writer, "{value}");
        }
        // Rust writes 1e21 and 1e-7 where Go writes 1e+21 and 1e-7.
        let text = format!("{value:e}");
        if size >= 1e21 {
            writer.write_all(text.replace('e', "e+").as_bytes())
        } else {
            writer.write_all(text.as_bytes())
        }
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, special)) = rest.char_indices().find(|(_, char)| is_special(*char)) {
            let escape = u32::from(special);
            write!(writer, "{}\\u{escape:04x}", &rest[..at])?;
            rest = &rest[at + special.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

fn is_special(char: char) -> bool {
    matches!(char, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: impl Serialize) -> String {
        String::from_utf8(encode(&value).unwrap()).unwrap()
    }

    #[test]
    fn strings_are_escaped_as_go_escapes_them() {
        assert_eq!(
            json("a<b>&\u{2028}é\"\\\n\u{1}\u{8}"),
            r#""a\u003cb\u003e\u0026\u2028é\"\\\n\u0001\b""#
        );
    }

    #[test]
    fn floats_are_written_as_go_writes_them() {
        assert_eq!(
            json([1.0, 0.99, 132_921_213.0, 0.5, 1e21, 1.5e22, 1e-7, 1e-6, 0.0]),
            "[1,0.99,132921213,0.5,1e+21,1.5e+22,1e-7,0.000001,0]"
        );
    }
}
