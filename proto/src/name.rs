//! Duty: topic and channel names, checked once and then carried as types. Raw bytes come in, a borrowed or an owned
//! name goes out. Must not know which command named them.
//!
//! Rule for both (nsq-tcp 0): 1 to 64 bytes matching `^[.a-zA-Z0-9_-]+(#ephemeral)?$`.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use crate::limits::NAME_MAX;

/// Bytes that are not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid name")]
pub struct InvalidName;

macro_rules! name {
    ($owned:ident, $borrowed:ident, $what:literal) => {
        #[doc = concat!("A valid ", $what, " name; cloning it does not copy the text.")]
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $owned(Arc<str>);

        #[doc = concat!("A valid ", $what, " name that still lies in the bytes it came from.")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $borrowed<'a>(&'a str);

        impl $owned {
            /// Checks `raw`.
            ///
            /// # Errors
            /// When `raw` breaks the rule for names.
            pub fn parse(raw: impl AsRef<[u8]>) -> Result<Self, InvalidName> {
                $borrowed::parse(raw.as_ref()).map(Self::from)
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The name without its own memory.
            pub fn borrowed(&self) -> $borrowed<'_> {
                $borrowed(&self.0)
            }

            /// True when the name ends in `#ephemeral` (nsq-tcp 4.11).
            pub fn is_ephemeral(&self) -> bool {
                self.borrowed().is_ephemeral()
            }
        }

        impl<'a> $borrowed<'a> {
            /// Checks `raw`.
            ///
            /// # Errors
            /// When `raw` breaks the rule for names.
            pub fn parse(raw: &'a [u8]) -> Result<Self, InvalidName> {
                check(raw).map(Self)
            }

            /// The name as text.
            pub fn as_str(self) -> &'a str {
                self.0
            }

            /// True when the name ends in `#ephemeral` (nsq-tcp 4.11).
            pub fn is_ephemeral(self) -> bool {
                self.0.ends_with(EPHEMERAL)
            }
        }

        impl From<$borrowed<'_>> for $owned {
            fn from(name: $borrowed<'_>) -> Self {
                Self(name.0.into())
            }
        }

        impl PartialEq<$owned> for $borrowed<'_> {
            fn eq(&self, other: &$owned) -> bool {
                *self.0 == *other.0
            }
        }

        impl Borrow<str> for $owned {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $owned {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Display for $borrowed<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
        }

        impl fmt::Debug for $owned {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $borrowed<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

name!(TopicName, TopicRef, "topic");
name!(ChannelName, ChannelRef, "channel");

impl<'a> TopicRef<'a> {
    /// The name without suffix that `raw` begins with, up to the first byte that is none of a name's.
    pub(crate) fn leading(raw: &'a [u8]) -> Option<Self> {
        let mut bytes = raw.iter().take(NAME_MAX + 1);
        let len = bytes.position(|byte| !ALLOWED[usize::from(*byte)])?;
        let name = raw.get(..len).filter(|name| !name.is_empty())?;
        std::str::from_utf8(name).ok().map(Self)
    }
}

fn check(raw: &[u8]) -> Result<&str, InvalidName> {
    let base = raw.strip_suffix(EPHEMERAL.as_bytes()).unwrap_or(raw);
    if base.is_empty() || raw.len() > NAME_MAX || !base.iter().all(|byte| ALLOWED[usize::from(*byte)]) {
        return Err(InvalidName);
    }
    std::str::from_utf8(raw).map_err(|_| InvalidName)
}

const EPHEMERAL: &str = "#ephemeral";

/// A table, since names are checked for every publish.
static ALLOWED: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        allowed[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'.' | b'_' | b'-');
        byte += 1;
    }
    allowed
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_40_names_have_1_to_64_bytes_and_a_base_before_the_suffix() {
        assert!(TopicName::parse("t".repeat(64)).is_ok());
        assert!(TopicName::parse("t".repeat(65)).is_err());
        assert!(TopicName::parse("").is_err());
        assert!(ChannelName::parse("#ephemeral").is_err());
        assert!(ChannelName::parse(format!("{}#ephemeral", "c".repeat(54))).is_ok());
        assert!(ChannelName::parse(format!("{}#ephemeral", "c".repeat(55))).is_err());
    }

    #[test]
    fn names_take_letters_digits_dot_dash_and_underscore() {
        assert!(TopicName::parse(".aZ09_-").is_ok());
        assert!(TopicName::parse("..").is_ok());
        for bad in [
            "a b",
            "a/b",
            "a#",
            "a#eph",
            "a#ephemeral#ephemeral",
            "ä",
            "a\n",
            "a\0",
            "a:b",
        ] {
            assert_eq!(TopicName::parse(bad), Err(InvalidName), "{bad}");
        }
        assert_eq!(TopicName::parse([b'a', 0xff]), Err(InvalidName));
    }

    #[test]
    fn only_the_suffix_makes_a_name_ephemeral() {
        assert!(TopicName::parse("t#ephemeral").unwrap().is_ephemeral());
        assert!(!TopicName::parse("t-ephemeral").unwrap().is_ephemeral());
    }

    #[test]
    fn a_borrowed_name_compares_with_an_owned_one() {
        let owned = TopicName::parse("orders").unwrap();
        assert!(TopicRef::parse(b"orders").unwrap() == owned);
        assert!(TopicRef::parse(b"order").unwrap() != owned);
    }
}
