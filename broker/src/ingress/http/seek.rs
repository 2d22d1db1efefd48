//! Duty: `/channel/seek` (nsqx-interface 3): replay or skip.

use serde::Deserialize;

use super::body;
use super::error::HttpError;
use super::query::Query;
use super::routes::Call;
use super::style::Reply;
use crate::desk::SeekTo;

/// Moves a channel; answers its place and depth.
pub(super) async fn seek(call: Call<'_>) -> Result<Reply, HttpError> {
    let (topic, channel) = Query::parse(call.query)?.channel()?;
    let request: Request = body::read_json(call.body).await?;
    let place = call.desk.seek(topic, channel, request.to.resolve()?).await?;
    Reply::json(&place)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    to: To,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum To {
    Beginning,
    End,
    Time(Time),
    Sequence(u64),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Time {
    Seconds(i64),
    Fraction(f64),
    Text(String),
}

impl To {
    fn resolve(self) -> Result<SeekTo, HttpError> {
        Ok(match self {
            Self::Beginning => SeekTo::Beginning,
            Self::End => SeekTo::End,
            Self::Sequence(sequence) => SeekTo::Sequence(sequence),
            Self::Time(time) => SeekTo::Time(time.unix_ns().ok_or_else(no_time)?),
        })
    }
}

impl Time {
    fn unix_ns(self) -> Option<i64> {
        match self {
            Self::Seconds(seconds) => seconds.checked_mul(NANOS),
            Self::Fraction(seconds) => {
                let nanos = seconds * NANOS as f64;
                (nanos.abs() < i64::MAX as f64).then_some(nanos as i64)
            }
            Self::Text(text) => {
                if let Ok(seconds) = text.parse() {
                    return Self::Seconds(seconds).unix_ns();
                }
                let time: jiff::Timestamp = text.parse().ok()?;
                i64::try_from(time.as_nanosecond()).ok()
            }
        }
    }
}

fn no_time() -> HttpError {
    HttpError::InvalidBody("time is neither RFC 3339 nor Unix seconds".to_owned())
}

const NANOS: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn to(text: &str) -> Option<SeekTo> {
        let request: Request = serde_json::from_str(text).ok()?;
        request.to.resolve().ok()
    }

    #[test]
    fn every_form_of_a_place_is_understood() {
        assert_eq!(to(r#"{"to":"beginning"}"#), Some(SeekTo::Beginning));
        assert_eq!(to(r#"{"to":"end"}"#), Some(SeekTo::End));
        assert_eq!(to(r#"{"to":{"sequence":7}}"#), Some(SeekTo::Sequence(7)));
        let time = Some(SeekTo::Time(1_796_053_195_000_000_000));
        for text in [
            r#"{"to":{"time":1796053195}}"#,
            r#"{"to":{"time":"1796053195"}}"#,
            r#"{"to":{"time":"2026-11-30T15:39:55Z"}}"#,
            r#"{"to":{"time":"2026-11-30T16:39:55+01:00"}}"#,
        ] {
            assert_eq!(to(text), time, "{text}");
        }
        assert_eq!(to(r#"{"to":{"time":1.5}}"#), Some(SeekTo::Time(1_500_000_000)));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "{}",
            r#"{"to":"middle"}"#,
            r#"{"to":{"time":"soon"}}"#,
            r#"{"to":{"time":1e300}}"#,
            r#"{"to":{"sequence":-1}}"#,
            r#"{"to":"end","from":1}"#,
        ] {
            assert_eq!(to(text), None, "{text}");
        }
    }
}
