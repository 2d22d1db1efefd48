//! Duty: the broker behind the `nsqd` binary, as rooms in the order a message meets them.
//!
//! `ingress` (socket to command) -> `admit` (may this happen) -> `topic` (stamp and append) -> `log`
//! (the floor everything stands on) -> `channel` (cursor to consumer) -> `egress` (delivery to socket).
//! Side rooms: `desk` is what the HTTP door asks for; `store` keeps the durable settings and cursors; `registration` tells
//! lookupds what is here; `metrics` tells operators; `tls` and `http_client` serve every door; `import` reads and `export`
//! writes the files of stock nsqd. No room calls back into an earlier one; only `node` knows all.

pub mod admit;
pub mod args;
pub mod channel;
pub mod clock;
pub mod config;
pub mod desk;
pub mod egress;
pub mod export;
pub mod http_client;
pub mod ids;
pub mod import;
pub mod ingress;
pub mod log;
pub mod logging;
pub mod metrics;
pub mod node;
pub mod registration;
pub mod store;
pub mod tls;
pub mod topic;
