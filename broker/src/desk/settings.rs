//! Duty: what an operator may set per topic and per channel, as plain data in its JSON form (nsqx-interface 3).
//! Must not know HTTP, the store or the rooms that obey.

use std::time::Duration;

use nsqx_flags::GoDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::log::engine::{Durability, Retention};

/// The settings of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TopicSettings {
    /// When a publish is answered.
    #[serde(serialize_with = "write_durability")]
    pub durability: Durability,
    /// How long finished messages are kept for replay; 0 = no longer than needed. Written as `24h0m0s`.
    #[serde(serialize_with = "write_duration")]
    pub retention_time: Duration,
    /// How many bytes of finished messages are kept for replay; 0 = none.
    pub retention_bytes: u64,
}

/// New values for some settings of a topic. Unknown keys are an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TopicPatch {
    /// See [`TopicSettings::durability`].
    #[serde(deserialize_with = "read_durability")]
    pub durability: Option<Durability>,
    /// See [`TopicSettings::retention_time`]; `90s`, `24h`, ...
    #[serde(deserialize_with = "read_duration")]
    pub retention_time: Option<Duration>,
    /// See [`TopicSettings::retention_bytes`].
    pub retention_bytes: Option<u64>,
}

/// The settings of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChannelSettings {
    /// True while nothing is delivered.
    pub paused: bool,
}

/// New values for some settings of a channel. Unknown keys are an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChannelPatch {
    /// See [`ChannelSettings::paused`].
    pub paused: Option<bool>,
}

impl TopicSettings {
    /// The settings as the store keeps them.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What [`TopicSettings::to_json`] gave; what it does not name, or an empty text, is as in `default`.
    pub fn from_json(text: &str, default: Self) -> Self {
        let mut settings = default;
        if let Ok(patch) = serde_json::from_str::<TopicPatch>(text) {
            patch.apply(&mut settings);
        }
        settings
    }

    /// How long the log keeps finished records.
    pub fn retention(&self) -> Retention {
        Retention {
            time: Some(self.retention_time).filter(|time| !time.is_zero()),
            bytes: Some(self.retention_bytes).filter(|bytes| *bytes > 0),
        }
    }
}

impl TopicPatch {
    /// Writes the new values over the old ones.
    pub fn apply(&self, settings: &mut TopicSettings) {
        settings.durability = self.durability.unwrap_or(settings.durability);
        settings.retention_time = self.retention_time.unwrap_or(settings.retention_time);
        settings.retention_bytes = self.retention_bytes.unwrap_or(settings.retention_bytes);
    }
}

impl ChannelPatch {
    /// Writes the new values over the old ones.
    pub fn apply(&self, settings: &mut ChannelSettings) {
        settings.paused = self.paused.unwrap_or(settings.paused);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn write_durability<S: Serializer>(durability: &Durability, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match durability {
        Durability::Interval => "interval",
        Durability::Always => "always",
    })
}

fn read_durability<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Durability>, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "interval" => Ok(Some(Durability::Interval)),
        "always" => Ok(Some(Durability::Always)),
        other => Err(D::Error::unknown_variant(other, &["interval", "always"])),
    }
}

fn write_duration<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&GoDuration::from(*duration))
}

fn read_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let duration = text.parse().ok().and_then(GoDuration::to_std);
    duration
        .map(Some)
        .ok_or_else(|| D::Error::custom(format_args!("`{text}` is not a duration such as `24h`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_what_it_names_and_nothing_else() {
        let mut settings = TopicSettings {
            retention_bytes: 7,
            ..TopicSettings::default()
        };
        let patch: TopicPatch =
            serde_json::from_str(r#"{"durability":"always","retention_time":"90s"}"#).unwrap();
        patch.apply(&mut settings);
        assert_eq!(
            serde_json::to_string(&settings).unwrap(),
            r#"{"durability":"always","retention_time":"1m30s","retention_bytes":7}"#
        );
    }

    #[test]
    fn unknown_keys_and_bad_values_are_errors() {
        for text in [
            r#"{"durabilty":"always"}"#,
            r#"{"durability":"sometimes"}"#,
            r#"{"retention_time":5}"#,
            r#"{"retention_bytes":-1}"#,
        ] {
            assert!(serde_json::from_str::<TopicPatch>(text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<ChannelPatch>(r#"{"pause":true}"#).is_err());
    }
}
