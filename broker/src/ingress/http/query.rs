//! Duty: the query string as Go reads it (nsq-http 1.1): first value wins, `;` or a bad escape spoils all of it.

use std::borrow::Cow;

use nsqx_proto::name::{ChannelName, TopicName};

use super::error::HttpError;

/// The parameters of a request.
#[derive(Debug)]
pub(super) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    /// Reads a query string, or a form body.
    pub(super) fn parse(text: &'a str) -> Result<Self, HttpError> {
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            if pair.contains(';') {
                return Err(HttpError::InvalidRequest);
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let pair = unescape(key, true).zip(unescape(value, true));
            pairs.push(pair.ok_or(HttpError::InvalidRequest)?);
        }
        Ok(Self(pairs))
    }

    /// The first value of a parameter; empty when it has none.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let pair = self.0.iter().find(|(known, _)| known == key)?;
        Some(&pair.1)
    }

    /// A switch: `true`, `1`, `false`, `0`; `None` for anything else.
    pub(super) fn switch(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }

    /// The topic, refused in the words of the topic routes.
    pub(super) fn topic(&self) -> Result<TopicName, HttpError> {
        let text = self.get("topic").ok_or(HttpError::MissingTopic)?;
        TopicName::parse(text).map_err(|_| HttpError::InvalidTopic)
    }

    /// Topic and channel, refused in the order and words of the channel routes (nsq-http 1.9).
    pub(super) fn channel(&self) -> Result<(TopicName, ChannelName), HttpError> {
        let topic = self.get("topic").ok_or(HttpError::MissingTopic)?;
        let topic = TopicName::parse(topic).map_err(|_| HttpError::InvalidArgTopic)?;
        let channel = self.get("channel").ok_or(HttpError::MissingChannel)?;
        let channel = ChannelName::parse(channel).map_err(|_| HttpError::InvalidChannel)?;
        Ok((topic, channel))
    }
}

/// Resolves percent escapes, and `+` where it means a space. `None` when an escape is malformed. Bytes that are no
/// UTF-8 turn into the replacement character, which no name or number contains.
pub(super) fn unescape(text: &str, plus_is_space: bool) -> Option<Cow<'_, str>> {
    let special = |byte: u8| byte == b'%' || (plus_is_space && byte == b'+');
    if !text.bytes().any(special) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?,
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    Some(Cow::Owned(String::from_utf8_lossy(&out).into_owned()))
}

fn hex_digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_value_wins_and_an_empty_one_is_a_value() {
        let query = Query::parse("&&top%69c=a+b&topic=c&x&=").unwrap();
        assert_eq!(query.get("topic"), Some("a b"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.get("y"), None);
    }

    #[test]
    fn h_05_semicolons_and_bad_escapes_spoil_the_query() {
        for text in ["topic=t;x=1", "topic=t;", "topic=%zz", "x=a%", "x=a%2", "%zz=x"] {
            assert_eq!(
                Query::parse(text).unwrap_err(),
                HttpError::InvalidRequest,
                "{text}"
            );
        }
    }

    #[test]
    fn switches_know_four_words() {
        let query = Query::parse("a=true&b=0&c=no&d=TRUE&e").unwrap();
        let seen = ["a", "b", "c", "d", "e", "f"].map(|key| query.switch(key));
        assert_eq!(seen, [Some(true), Some(false), None, None, None, None]);
    }

    proptest! {
        #[test]
        fn any_text_ends_in_a_query_or_a_refusal(text: String) {
            let _ = Query::parse(&text);
        }
    }
}
