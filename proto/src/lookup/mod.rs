//! Duty: the protocol between a broker and nsqlookupd (nsq-tcp 7, youzan-extension 6.5), both sides. Order of use for a
//! lookupd: magic `  V1`, then [`Session::next`] until it needs more, [`put_response`] for each answer. For a broker:
//! [`client`]. Must not know registrations.

pub mod client;
pub mod peer;

mod command;
mod session;
#[cfg(test)]
mod tests;

pub use command::{Command, Registration};
pub use peer::PeerInfo;
pub use session::{Session, Step};

use bytes::BufMut;

/// Data of the answer to PING, REGISTER and UNREGISTER.
pub const OK: &[u8] = b"OK";

/// Appends a response: the length, then `data`. An error looks the same; [`crate::WireError::text`] is its data.
pub fn put_response(out: &mut impl BufMut, data: &[u8]) {
    out.put_u32(data.len() as u32);
    out.put_slice(data);
}
