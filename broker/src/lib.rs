//! Duty: the broker behind the `nsqd` binary, as rooms in the order a message meets them.
//!
//! `ingress` (socket to command) -> `admit` (may this happen) -> `topic` (stamp and append) -> `log`
//! (the floor everything stands on) -> `channel` (cursor to consumer) -> `egress` (delivery to socket).
//! `store` keeps the durable settings and cursors. No room calls back into an earlier one.

pub mod channel;
pub mod clock;
pub mod ids;
pub mod log;
pub mod store;
