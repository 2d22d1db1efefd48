//! Duty: JSON the way Go's `encoding/json` reads and writes it where that is visible to clients (nsq-tcp 2.1.2). Text
//! comes in, members and plain values go out. Must not know which fields a command has.
//!
//! Differences to a derive with serde: keys match without regard to case, the last of two equal keys wins, `null`
//! leaves a value as it was, `null` instead of an object is an empty object, numbers for integers must be written
//! without fraction and exponent, broken UTF-8 and lone surrogates become U+FFFD.

use std::borrow::Cow;
use std::fmt::{self, Write};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// JSON that does not fit what was asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch;

/// Gives every member of the object `text` to `each`: its key in lower case, its value unread.
pub(crate) fn members<'a, F>(text: &'a str, each: F) -> Result<(), Mismatch>
where
    F: FnMut(&str, Value<'a>) -> Result<(), Mismatch>,
{
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_any(Members(each)).map_err(|_| Mismatch)?;
    json.end().map_err(|_| Mismatch)
}

/// Gives `field` the value; `null` leaves it as it was.
pub(crate) fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// `text` as a JSON string the way Go writes it: `<`, `>`, `&` and the two line separators are escaped.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The value of a member. `None` means `null`: the field stays as it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a>(&'a str);

impl<'a> Value<'a> {
    /// An integer without fraction and exponent that fits `T`.
    pub(crate) fn integer<T: std::str::FromStr>(self) -> Result<Option<T>, Mismatch> {
        self.present(|text| text.parse().ok())
    }

    /// `true` or `false`.
    pub(crate) fn boolean(self) -> Result<Option<bool>, Mismatch> {
        self.present(|text| text.parse().ok())
    }

    /// A string.
    pub(crate) fn string(self) -> Result<Option<String>, Mismatch> {
        self.present(|text| {
            let mut json = serde_json::Deserializer::from_str(text);
            json.deserialize_bytes(LossyText).ok()
        })
    }

    /// The members of an object.
    pub(crate) fn object<F>(self, each: F) -> Result<(), Mismatch>
    where
        F: FnMut(&str, Value<'a>) -> Result<(), Mismatch>,
    {
        members(self.0, each)
    }

    /// The items of an array.
    pub(crate) fn array(self) -> Result<Option<Vec<Value<'a>>>, Mismatch> {
        self.present(|text| {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            Some(items.into_iter().map(|item| Value(item.get())).collect())
        })
    }

    fn present<T>(self, read: impl FnOnce(&'a str) -> Option<T>) -> Result<Option<T>, Mismatch> {
        if self.0 == "null" {
            return Ok(None);
        }
        read(self.0).map(Some).ok_or(Mismatch)
    }
}

struct Members<F>(F);

impl<'de, F> Visitor<'de> for Members<F>
where
    F: FnMut(&str, Value<'de>) -> Result<(), Mismatch>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut failed = false;
        while let Some(key) = map.next_key_seed(LossyText)? {
            let value = map.next_value::<&RawValue>()?;
            // Go reads on after a value of the wrong type, so a syntax error further on is found either way.
            failed |= (self.0)(&fold(&key), Value(value.get())).is_err();
        }
        if failed {
            Err(Error::custom("a value has the wrong type"))
        } else {
            Ok(())
        }
    }
}

/// The letters that Unicode folds to ASCII ones fold here too: U+017F to `s`, U+212A to `k`.
fn fold(key: &str) -> String {
    key.chars()
        .map(|c| match c {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

/// A JSON string taken as bytes first, since serde_json refuses lone surrogates in text but not there.
struct LossyText;

impl<'de> DeserializeSeed<'de> for LossyText {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for LossyText {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(lossy(bytes).into_owned())
    }
}

/// Text with U+FFFD for whatever is not UTF-8.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        Value(text)
    }

    #[test]
    fn c_22_integers_have_no_fraction_and_no_exponent() {
        assert_eq!(value("1000").integer(), Ok(Some(1000_i64)));
        assert_eq!(value("-0").integer(), Ok(Some(0_i64)));
        assert_eq!(value("null").integer::<i64>(), Ok(None));
        for bad in ["1000.0", "1e4", "\"1\"", "true", "9223372036854775808", "{}"] {
            assert_eq!(value(bad).integer::<i64>(), Err(Mismatch), "{bad}");
        }
        assert_eq!(value("2147483648").integer::<i32>(), Err(Mismatch));
    }

    #[test]
    fn keys_fold_and_the_last_one_wins() {
        let mut seen = Vec::new();
        members(r#"{"Aa":1,"\u212aey":2,"AA":3}"#, |key, value| {
            seen.push((key.to_owned(), value.integer::<i64>()?));
            Ok(())
        })
        .unwrap();
        assert_eq!(
            seen,
            [
                ("aa".into(), Some(1)),
                ("key".into(), Some(2)),
                ("aa".into(), Some(3))
            ]
        );
    }

    #[test]
    fn c_14_only_one_object_or_null_is_an_object() {
        let read = |text| members(text, |_, _| Ok(()));
        for good in ["{}", " {} ", "null", "{\"a\":[{}]}"] {
            assert_eq!(read(good), Ok(()), "{good}");
        }
        for bad in ["", "[]", "{", "{} x", "1", "\"\"", "{\"a\":1,}", "{a:1}", "nul"] {
            assert_eq!(read(bad), Err(Mismatch), "{bad}");
        }
    }

    #[test]
    fn a_syntax_error_after_a_wrong_type_is_an_error() {
        assert_eq!(
            members("{\"a\":\"x\",}", |_, value| value.integer::<i64>().map(drop)),
            Err(Mismatch)
        );
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        let text = value(r#""a\ud800b""#).string().unwrap().unwrap();
        assert!(text.starts_with('a') && text.ends_with('b') && text.contains('\u{fffd}'));
        assert_eq!(value(r#""\u00e4""#).string(), Ok(Some("ä".into())));
        assert_eq!(value("1").string(), Err(Mismatch));
    }
}
