//! Duty: the extended header of a message: its versions on the wire and the facts the server itself reads from its
//! JSON. Header bytes come in, facts or the error for the publisher go out. Must not know filters or topics.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::code::ErrorCode;
use crate::refusal::WireError;

/// The extended header of a message (youzan-extension 1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header<'a> {
    /// No header: version 0, no length field.
    #[default]
    None,
    /// Version 2: the bytes are the tag itself. Read from old data only.
    Tag(&'a [u8]),
    /// The bytes are a JSON object; version 4, or what `--ext-json-version` says.
    Json(&'a [u8]),
}

impl<'a> Header<'a> {
    /// The header of a stored record.
    pub fn from_version(version: u8, bytes: &'a [u8]) -> Self {
        match version {
            0 => Self::None,
            VERSION_TAG => Self::Tag(bytes),
            _ => Self::Json(bytes),
        }
    }

    /// The version as it is stored, whatever consumers are shown.
    pub const fn version(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Tag(_) => VERSION_TAG,
            Self::Json(_) => VERSION_JSON,
        }
    }

    /// The bytes after the length field.
    pub const fn bytes(self) -> &'a [u8] {
        match self {
            Self::None => &[],
            Self::Tag(bytes) | Self::Json(bytes) => bytes,
        }
    }
}

/// Version of a header that is a bare tag.
pub const VERSION_TAG: u8 = 2;
/// Version of a JSON header as the deployed clients know it.
pub const VERSION_JSON: u8 = 4;

/// What the server reads from a JSON header when it is published (youzan-extension 1.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderFacts<'a> {
    /// `##trace_id`; its presence asks for the long receipt.
    pub trace_id: Option<u64>,
    /// `##client_dispatch_tag` when it is a string.
    pub tag: Option<Cow<'a, str>>,
    /// True when every key begins with `##` or is `zan_test`: such a header may be dropped for a topic without headers.
    pub system_only: bool,
}

impl<'a> HeaderFacts<'a> {
    /// Reads the header of a publish.
    ///
    /// # Errors
    /// Non-fatal `E_INVALID_JSON_HEADER` when `header` is not a JSON object (empty included), `INVALID_TRACE_ID` when
    /// its trace id is not a string with a decimal 64-bit number.
    pub fn read(header: &'a [u8]) -> Result<Self, WireError> {
        let malformed = |reason: &dyn fmt::Display| {
            let text = format!("fail to parse json header:{reason}");
            WireError::new(ErrorCode::InvalidJsonHeader, text)
        };
        let mut json = serde_json::Deserializer::from_slice(header);
        let found = json
            .deserialize_map(FactsVisitor)
            .map_err(|reason| malformed(&reason))?;
        json.end().map_err(|reason| malformed(&reason))?;
        let trace_id = match found.trace_id {
            None => None,
            Some(Value::Other) => return Err(invalid_trace_id("passin trace id should be string")),
            Some(Value::Text(text)) => {
                Some(trace_number(&text).ok_or_else(|| invalid_trace_id("invalid trace id"))?)
            }
        };
        let tag = match found.tag {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        };
        Ok(Self {
            trace_id,
            tag,
            system_only: found.system_only,
        })
    }
}

fn invalid_trace_id(description: &'static str) -> WireError {
    WireError::new(ErrorCode::InvalidTraceId, description)
}

fn trace_number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

struct Found<'a> {
    trace_id: Option<Value<'a>>,
    tag: Option<Value<'a>>,
    system_only: bool,
}

enum Value<'a> {
    Text(Cow<'a, str>),
    Other,
}

/// Walks the object once, keeps only the two values above and builds no tree.
struct FactsVisitor;

impl<'de> Visitor<'de> for FactsVisitor {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found<'de>, A::Error> {
        let mut found = Found {
            trace_id: None,
            tag: None,
            system_only: true,
        };
        while let Some(Text(key)) = map.next_key()? {
            found.system_only &= key.starts_with(SYSTEM_PREFIX) || key == LOAD_TEST_KEY;
            match &*key {
                TRACE_KEY => found.trace_id = Some(map.next_value()?),
                TAG_KEY => found.tag = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

/// Text that stays in the header's bytes unless it has escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        if !raw.get().starts_with('"') {
            return Ok(Self::Other);
        }
        let Text(text) = serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Self::Text(text))
    }
}

const SYSTEM_PREFIX: &str = "##";
const TRACE_KEY: &str = "##trace_id";
const TAG_KEY: &str = "##client_dispatch_tag";
const LOAD_TEST_KEY: &str = "zan_test";

#[cfg(test)]
mod tests {
    use super::*;

    fn code(header: &str) -> ErrorCode {
        let error = HeaderFacts::read(header.as_bytes()).unwrap_err();
        assert!(!error.is_fatal());
        error.code()
    }

    #[test]
    fn y_19_the_trace_id_is_a_string_with_a_decimal_number() {
        let facts = HeaderFacts::read(br###"{"##trace_id":"123","k":{"n":[1]}}"###).unwrap();
        assert_eq!((facts.trace_id, facts.system_only), (Some(123), false));
        assert_eq!(HeaderFacts::read(b"{}").unwrap().trace_id, None);
    }

    #[test]
    fn y_20_other_trace_ids_are_refused() {
        for bad in [
            "123",
            "\"\"",
            "\"x\"",
            "\"+1\"",
            "null",
            "\"18446744073709551616\"",
        ] {
            assert_eq!(
                code(&format!(r###"{{"##trace_id":{bad}}}"###)),
                ErrorCode::InvalidTraceId,
                "{bad}"
            );
        }
    }

    #[test]
    fn y_21_only_a_json_object_is_a_header() {
        for bad in ["", "{", "[]", "null", "1", "{} x", "{\"a\":}", "{\"a\":1,}"] {
            assert_eq!(code(bad), ErrorCode::InvalidJsonHeader, "{bad}");
        }
    }

    #[test]
    fn y_24_system_keys_and_the_load_test_mark_may_be_dropped() {
        let read = |text: &str| HeaderFacts::read(text.as_bytes()).unwrap().system_only;
        assert!(read(r###"{"##trace_id":"1","zan_test":true}"###));
        assert!(!read(r###"{"##trace_id":"1","zan_test":true,"custom":1}"###));
    }

    #[test]
    fn the_tag_counts_only_when_it_is_a_string() {
        let header = r###"{"##client_dispatch_tag":"qa\u002d1"}"###;
        assert_eq!(
            HeaderFacts::read(header.as_bytes()).unwrap().tag.as_deref(),
            Some("qa-1")
        );
        let header = r###"{"##client_dispatch_tag":7}"###;
        assert_eq!(HeaderFacts::read(header.as_bytes()).unwrap().tag, None);
    }
}
