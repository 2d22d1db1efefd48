//! Duty: why the store did not do what it was asked for.

use std::fmt::Display;
use std::sync::Arc;

use super::cursor::{ChannelNumber, TopicNumber};

/// Why the store did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk refused; what was asked for is not done. [`super::Store::reopen`] is the cure.
    #[error("metadata store failed: {0}")]
    Broken(Arc<str>),
    /// What lies on the disk can not be understood.
    #[error("metadata store is damaged: {0}")]
    Damaged(Arc<str>),
    /// There is a topic of this name.
    #[error("topic {0} exists")]
    TopicExists(String),
    /// The topic has a channel of this name.
    #[error("channel {0} exists")]
    ChannelExists(String),
    /// There is no such topic; it was deleted.
    #[error("topic number {} is unknown", .0.0)]
    UnknownTopic(TopicNumber),
    /// There is no such channel; it was deleted.
    #[error("channel number {} is unknown", .0.0)]
    UnknownChannel(ChannelNumber),
    /// The whole state was to be written again, but this channel's cursor was not given.
    #[error("cursor of channel number {} is missing", .0.0)]
    MissingCursor(ChannelNumber),
    /// The store's thread has ended.
    #[error("exiting")]
    Closed,
}

impl StoreError {
    pub(super) fn broken(cause: impl Display) -> Self {
        Self::Broken(cause.to_string().into())
    }

    pub(super) fn damaged(cause: impl Display) -> Self {
        Self::Damaged(cause.to_string().into())
    }

    /// True when the disk is to blame, not the caller.
    pub fn is_of_disk(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Damaged(_))
    }
}
