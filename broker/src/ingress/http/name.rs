//! Duty: names of topics and channels (nsq-tcp 0). Text comes in, checked names go out.

use std::fmt;

/// The name of a topic: 1 to 64 bytes of `.a-zA-Z0-9_-`, `#ephemeral` allowed at the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(String);

/// The name of a channel, by the same rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelName(String);

macro_rules! name {
    ($name:ident) => {
        impl $name {
            /// `None` when the text is not a name.
            pub fn parse(text: &str) -> Option<Self> {
                is_name(text).then(|| Self(text.to_owned()))
            }

            /// The name as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(TopicName);
name!(ChannelName);

fn is_name(text: &str) -> bool {
    let base = text.strip_suffix("#ephemeral").unwrap_or(text);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    text.len() <= 64 && !base.is_empty() && base.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h_28_sixty_four_bytes_are_a_name_with_the_suffix_counted() {
        assert!(TopicName::parse(&"a".repeat(64)).is_some());
        assert!(TopicName::parse(&"a".repeat(65)).is_none());
        assert!(TopicName::parse(&format!("{}#ephemeral", "a".repeat(54))).is_some());
        assert!(TopicName::parse(&format!("{}#ephemeral", "a".repeat(55))).is_none());
        for bad in [
            "",
            "#ephemeral",
            "a\n",
            "a$",
            "a#Ephemeral",
            "a#ephemeral#ephemeral",
        ] {
            assert!(ChannelName::parse(bad).is_none(), "{bad:?}");
        }
    }
}
