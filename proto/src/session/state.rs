//! Duty: the states of a connection and the legal moves between them (nsq-tcp 1.4); nothing else.
//!
//! ```text
//!   connect -> Init --SUB--> Subscribed --CLS--> Closing
//! ```

/// State of a connection. The verbs that each state allows are in [`crate::command::verb`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Since connect.
    #[default]
    Init,
    /// After a successful SUB.
    Subscribed,
    /// After CLS: no new messages, what is in flight may still be settled.
    Closing,
}

impl State {
    /// The number that `/stats` shows.
    pub const fn number(self) -> u8 {
        match self {
            Self::Init => 0,
            Self::Subscribed => 3,
            Self::Closing => 4,
        }
    }

    /// After a successful SUB; other states stay, since they allow no SUB.
    #[must_use]
    pub(super) const fn subscribed(self) -> Self {
        match self {
            Self::Init => Self::Subscribed,
            other => other,
        }
    }

    /// After CLS; other states stay, since they allow no CLS.
    #[must_use]
    pub(super) const fn closing(self) -> Self {
        match self {
            Self::Subscribed => Self::Closing,
            other => other,
        }
    }
}
