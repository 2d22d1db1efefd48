//! Duty: a client of the nsqd protocol that sends and sees single bytes.
//!
//! [`client`] holds the connection, [`script`] what tests say and expect on it, [`command`] builds commands, [`frame`] reads frames,
//! [`snappy`] and [`deflate`] are the compressions. Nothing is retried, answered or hidden: a heartbeat is a
//! frame like any other.

pub mod client;
pub mod command;
pub mod deflate;
pub mod frame;
pub mod script;
pub mod snappy;

pub use client::{Client, Event};
pub use frame::{Frame, Message};
