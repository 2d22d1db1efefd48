//! Duty: what an auth server grants an identity, and until when (nsq-tcp 5.3 to 5.5). Comes in: the answer's
//! body, now. Goes out: grants, or why the answer is rejected. Must not know who asked or how.

use std::time::Duration;

use serde_json::{Map, Value};

use super::pattern::{Pattern, PatternError};
use crate::clock::Moment;

/// What a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// SUB.
    Subscribe,
    /// PUB, MPUB, DPUB and their kin.
    Publish,
}

/// The accepted answer of an auth server.
#[derive(Clone, Debug)]
pub struct Grants {
    identity: String,
    identity_url: String,
    authorizations: Vec<Authorization>,
    expires: Moment,
}

/// Why an answer is rejected.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// Not JSON.
    #[error("answer is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A field that is not of its type.
    #[error("{field} is not {wanted}")]
    Type {
        /// The field.
        field: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// A time to live below one second.
    #[error("ttl is {0}, want at least 1 s")]
    Ttl(i64),
    /// A permission that does not exist.
    #[error("unknown permission {0:?}")]
    Permission(String),
    /// A topic or channel pattern that does not compile.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

/// One entry: these permissions on these channels of these topics.
#[derive(Clone, Debug)]
struct Authorization {
    topic: Pattern,
    channels: Vec<Pattern>,
    subscribe: bool,
    publish: bool,
}

impl Grants {
    /// Reads the body of an answer that arrived at `now`. An answer that grants nothing is accepted: see
    /// [`Grants::permission_count`].
    ///
    /// # Errors
    /// When one part of the answer is wrong; nothing of it counts then.
    pub fn parse(body: &[u8], now: Moment) -> Result<Self, GrantError> {
        let answer = Fields(serde_json::from_slice::<Option<Map<String, Value>>>(body)?.unwrap_or_default());
        let ttl = answer.integer("ttl")?;
        let authorizations = answer
            .list("authorizations")?
            .iter()
            .map(Authorization::parse)
            .collect::<Result<_, _>>()?;
        let seconds = u64::try_from(ttl).ok().filter(|seconds| *seconds > 0);
        Ok(Self {
            identity: answer.text("identity")?,
            identity_url: answer.text("identity_url")?,
            authorizations,
            expires: now + Duration::from_secs(seconds.ok_or(GrantError::Ttl(ttl))?),
        })
    }

    /// True when one entry has the permission, matches the topic, and one of its channel patterns matches the
    /// channel, which for publishes is the empty name and has to match all the same.
    pub fn allows(&self, permission: Permission, topic: &str, channel: &str) -> bool {
        self.authorizations.iter().any(|authorization| {
            authorization.has(permission)
                && authorization.topic.matches(topic)
                && authorization
                    .channels
                    .iter()
                    .any(|pattern| pattern.matches(channel))
        })
    }

    /// True when the answer is older than its time to live and the auth server must be asked again.
    pub fn has_expired(&self, now: Moment) -> bool {
        self.expires < now
    }

    /// The name behind the secret, as the auth server calls it.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Where to read about that identity.
    pub fn identity_url(&self) -> &str {
        &self.identity_url
    }

    /// Number of entries. With 0 an AUTH is refused as "no authorizations found".
    pub fn permission_count(&self) -> usize {
        self.authorizations.len()
    }
}

impl Authorization {
    fn parse(entry: &Value) -> Result<Self, GrantError> {
        let entry = match entry {
            Value::Object(fields) => Fields(fields.clone()),
            Value::Null => Fields(Map::new()),
            _ => return Err(wrong_type("authorizations", "a list of objects")),
        };
        let mut authorization = Self {
            topic: Pattern::parse(&entry.text("topic")?)?,
            channels: Vec::new(),
            subscribe: false,
            publish: false,
        };
        for channel in entry.texts("channels")? {
            authorization.channels.push(Pattern::parse(channel)?);
        }
        for permission in entry.texts("permissions")? {
            match permission {
                "subscribe" => authorization.subscribe = true,
                "publish" => authorization.publish = true,
                other => return Err(GrantError::Permission(other.to_owned())),
            }
        }
        Ok(authorization)
    }

    fn has(&self, permission: Permission) -> bool {
        match permission {
            Permission::Subscribe => self.subscribe,
            Permission::Publish => self.publish,
        }
    }
}

/// The fields of a JSON object by the rules that auth servers have been able to rely on with stock nsqd: names
/// match in any case, a field that is missing or null has its type's zero value, numbers are whole.
struct Fields(Map<String, Value>);

impl Fields {
    fn get(&self, name: &str) -> Option<&Value> {
        let any_case = || {
            self.0
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
        };
        self.0
            .get(name)
            .or_else(any_case)
            .filter(|value| !value.is_null())
    }

    fn integer(&self, name: &'static str) -> Result<i64, GrantError> {
        let value = self.get(name).map_or(Some(0), Value::as_i64);
        value.ok_or_else(|| wrong_type(name, "a whole number"))
    }

    fn text(&self, name: &'static str) -> Result<String, GrantError> {
        let value = self.get(name).map_or(Some(""), Value::as_str);
        value
            .map(str::to_owned)
            .ok_or_else(|| wrong_type(name, "a string"))
    }

    fn list(&self, name: &'static str) -> Result<&[Value], GrantError> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(wrong_type(name, "a list")),
        }
    }

    fn texts(&self, name: &'static str) -> Result<Vec<&str>, GrantError> {
        let texts = self.list(name)?.iter().map(|value| match value {
            Value::Null => Some(""),
            value => value.as_str(),
        });
        texts
            .collect::<Option<_>>()
            .ok_or_else(|| wrong_type(name, "a list of strings"))
    }
}

fn wrong_type(field: &'static str, wanted: &'static str) -> GrantError {
    GrantError::Type { field, wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_nanos(5_000_000_000);

    fn granted(authorizations: &str) -> Grants {
        let body = format!(r#"{{"ttl":60,"identity":"i","authorizations":{authorizations}}}"#);
        Grants::parse(body.as_bytes(), NOW).unwrap()
    }

    #[test]
    fn an_answer_is_read_whole() {
        let grants = Grants::parse(
            br#"{"ttl":3600,"identity":"name","identity_url":"http://u","extra":1,
                "authorizations":[{"topic":"t","channels":["c"],"permissions":["subscribe","publish"]},{}]}"#,
            NOW,
        )
        .unwrap();
        assert_eq!((grants.identity(), grants.identity_url()), ("name", "http://u"));
        assert_eq!(grants.permission_count(), 2);
    }

    #[test]
    fn every_wrong_answer_is_rejected() {
        let wrong = [
            "",
            "nonsense",
            "[]",
            r#"{"ttl":60} trailing"#,
            "{}",
            "null",
            r#"{"ttl":0}"#,
            r#"{"ttl":-1}"#,
            r#"{"ttl":"60"}"#,
            r#"{"ttl":60.5}"#,
            r#"{"data":{"ttl":60}}"#,
            r#"{"ttl":60,"identity":1}"#,
            r#"{"ttl":60,"authorizations":{}}"#,
            r#"{"ttl":60,"authorizations":["t"]}"#,
            r#"{"ttl":60,"authorizations":[{"topic":"("}]}"#,
            r#"{"ttl":60,"authorizations":[{"topic":"t","channels":["["]}]}"#,
            r#"{"ttl":60,"authorizations":[{"topic":"t","channels":[1]}]}"#,
            r#"{"ttl":60,"authorizations":[{"topic":"t","permissions":["admin"]}]}"#,
            r#"{"ttl":60,"authorizations":[{"topic":"t","permissions":["Publish"]}]}"#,
        ];
        for body in wrong {
            assert!(Grants::parse(body.as_bytes(), NOW).is_err(), "{body}");
        }
    }

    #[test]
    fn an_answer_without_authorizations_is_accepted_and_empty() {
        for body in [r#"{"ttl":1}"#, r#"{"TTL":1,"authorizations":null}"#] {
            let grants = Grants::parse(body.as_bytes(), NOW).unwrap();
            assert_eq!(grants.permission_count(), 0);
            assert!(!grants.allows(Permission::Publish, "t", ""));
        }
    }

    #[test]
    fn publishing_needs_a_channel_pattern_that_matches_the_empty_name() {
        let with_channels = |channels: &str| {
            granted(&format!(
                r#"[{{"topic":"t","channels":{channels},"permissions":["publish"]}}]"#
            ))
            .allows(Permission::Publish, "t", "")
        };
        assert!(with_channels(r#"[".*"]"#) && with_channels(r#"[""]"#));
        assert!(!with_channels(r#"["ch"]"#) && !with_channels("[]"));
    }

    #[test]
    fn one_entry_must_satisfy_everything() {
        let grants = granted(
            r#"[{"topic":"^a$","channels":["^x$"],"permissions":["subscribe"]},
                {"topic":"^b$","channels":[".*"],"permissions":["publish"]}]"#,
        );
        assert!(grants.allows(Permission::Subscribe, "a", "x"));
        assert!(grants.allows(Permission::Publish, "b", ""));
        assert!(!grants.allows(Permission::Subscribe, "a", "y"));
        assert!(!grants.allows(Permission::Subscribe, "b", "x"));
        assert!(!grants.allows(Permission::Publish, "a", ""));
    }

    #[test]
    fn an_answer_is_valid_for_its_time_to_live() {
        let grants = Grants::parse(br#"{"ttl":2}"#, NOW).unwrap();
        assert!(!grants.has_expired(NOW + Duration::from_secs(2)));
        assert!(grants.has_expired(NOW + Duration::from_millis(2001)));
    }

    #[test]
    fn the_longest_time_to_live_does_not_overflow() {
        let grants = Grants::parse(format!(r#"{{"ttl":{}}}"#, i64::MAX).as_bytes(), NOW).unwrap();
        assert!(!grants.has_expired(NOW + Duration::from_secs(1 << 32)));
    }
}
