//! Duty: what a black-box test needs to run a real broker and to look at it from outside.
//!
//! A suite gets a [`Broker`] (which program is under test), starts a [`Node`] of it and speaks to the node
//! with raw bytes ([`wire`]), HTTP ([`http`]) or the fakes of the services that a broker calls
//! ([`auth_server`], [`fake_lookupd`], [`statsd`]). The harness knows programs, flags and wires only; it must
//! not know any crate of the broker, because the same suite judges stock nsqd.
//!
//! Everything here panics with a description when an expectation fails: its callers are tests.

pub mod auth_server;
pub mod broker;
pub mod eventually;
pub mod fake_lookupd;
pub mod http;
pub mod http_stub;
pub mod ledger;
pub mod load;
pub mod lookupd;
pub mod node;
pub mod own_program;
pub mod pki;
pub mod port;
pub mod process;
pub mod small_disk;
pub mod statements;
pub mod stats;
pub mod statsd;
pub mod tree;
pub mod wire;

pub use broker::Broker;
pub use eventually::eventually;
pub use node::Node;
