//! Duty: the server's side of a client connection. Order of use: [`Protocol::from_magic`] on the first four bytes;
//! [`Session::next`] on what is received until it needs more; [`Session::identified`], [`Session::subscribed`],
//! [`Session::closing`] and [`Session::tls_active`] as the server decides; [`Session::interrupted`] when the peer stops
//! sending. [`Heartbeat`] tells when to beat and when to give up.

pub mod features;
pub mod heartbeat;

mod server;
mod state;
#[cfg(test)]
mod tests;

pub use features::{Features, negotiate};
pub use heartbeat::{Due, Heartbeat};
pub use server::{Session, Step};
pub use state::State;

/// What the first four bytes of a connection ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Clients of a broker.
    V2,
    /// Brokers at nsqlookupd.
    V1,
}

impl Protocol {
    /// The protocol behind a magic; nothing for any other four bytes, which get
    /// [`crate::WireError::bad_protocol`].
    pub fn from_magic(magic: [u8; 4]) -> Option<Self> {
        [Self::V2, Self::V1]
            .into_iter()
            .find(|protocol| protocol.magic() == magic)
    }

    /// What a client sends first.
    pub const fn magic(self) -> [u8; 4] {
        match self {
            Self::V2 => *b"  V2",
            Self::V1 => *b"  V1",
        }
    }
}
