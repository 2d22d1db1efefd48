//! Duty: a routing tag: what a consumer asks for in `desired_tag` and a message carries in its header.
//! Must not know who routes by it.

use std::fmt;
use std::sync::Arc;

use crate::limits::TAG_MAX;

/// A valid tag: 1 to 100 bytes of `[0-9a-zA-Z_-]` (youzan-extension 1.5); cloning it does not copy the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(Arc<str>);

/// Why text is not a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTag {
    /// Empty or longer than 100 bytes.
    #[error("tag length {0} is outside 1..=100")]
    Length(usize),
    /// A character outside the allowed set.
    #[error("tag has a character outside 0-9, a-z, A-Z, _ and -")]
    Character,
}

impl Tag {
    /// Checks `text`.
    ///
    /// # Errors
    /// When the length or a character is not allowed; the length is looked at first.
    pub fn parse(text: &str) -> Result<Self, InvalidTag> {
        if text.is_empty() || text.len() > TAG_MAX {
            return Err(InvalidTag::Length(text.len()));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !text.bytes().all(allowed) {
            return Err(InvalidTag::Character);
        }
        Ok(Self(text.into()))
    }

    /// The tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::borrow::Borrow<str> for Tag {
    fn borrow(&self) -> &str {
        &self.0
    }
}
