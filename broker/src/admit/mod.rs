//! Duty: whether a command may happen now. Comes in: what a connection has shown, what it wants. Goes out: yes,
//! or the refusal the client gets. Must not know sockets, topics or frames.
//!
//! | file | duty |
//! |---|---|
//! | `pattern` | one regular expression of a grant |
//! | `grant` | the answer of an auth server, what it allows and until when |
//! | `authorise` | does a connection's grant cover a command |
//! | `auth_query` | asks the auth servers |

pub mod auth_query;
pub mod authorise;
pub mod grant;
mod pattern;

pub use pattern::PatternError;

use nsqx_proto::{ErrorCode, WireError};

/// Why a command is refused, in the words the client gets after the code (nsq-tcp 2.12, 5.1). All are fatal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthRefusal {
    /// The command needs an AUTH before it.
    #[error("AUTH required before {command}")]
    First {
        /// The command.
        command: &'static str,
    },
    /// No auth server gave a usable answer; why is in the log only.
    #[error("AUTH failed")]
    Failed,
    /// The answer grants nothing at all.
    #[error("AUTH no authorizations found")]
    NoAuthorizations,
    /// The grant does not cover the command.
    #[error("AUTH failed for {command} on \"{topic}\" \"{channel}\"")]
    Unauthorized {
        /// The command.
        command: &'static str,
        /// The topic it names.
        topic: String,
        /// The channel it names, empty for publishes.
        channel: String,
    },
    /// No auth server is configured.
    #[error("AUTH disabled")]
    Disabled,
    /// The connection has authenticated before.
    #[error("AUTH already set")]
    AlreadySet,
}

impl AuthRefusal {
    /// The error code that goes before the text.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::First { .. } => ErrorCode::AuthFirst,
            Self::Failed => ErrorCode::AuthFailed,
            Self::NoAuthorizations | Self::Unauthorized { .. } => ErrorCode::Unauthorized,
            Self::Disabled => ErrorCode::AuthDisabled,
            Self::AlreadySet => ErrorCode::Invalid,
        }
    }
}

impl From<AuthRefusal> for WireError {
    fn from(refusal: AuthRefusal) -> Self {
        Self::new(refusal.code(), refusal.to_string())
    }
}
