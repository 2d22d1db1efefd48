//! Duty: the broker behind the `nsqd` binary, as rooms in the order a message meets them.
//!
//! `ingress` (socket to command) -> `admit` (may this happen) -> `topic` (stamp and append) -> `log`
//! (the floor everything stands on) -> `channel` (cursor to consumer) -> `egress` (delivery to socket).
//! `store` keeps the durable settings and cursors. No room calls back into an earlier one.
//! Side rooms: `registration` tells lookupds what is here; `tls` and `http_client` serve every door.
//! `store` keeps the durable settings and cursors; `import` reads
//! and `export` writes the files of stock nsqd. No room calls back into an earlier one.

pub mod admit;
pub mod clock;
pub mod http_client;
pub mod args;
pub mod clock;
pub mod config;
pub mod ids;
pub mod ingress;
pub mod export;
pub mod ids;
pub mod import;
pub mod log;
pub mod registration;
pub mod logging;
pub mod store;
pub mod tls;
