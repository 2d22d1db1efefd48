//! Duty: the doors, from socket to command. Comes in: connections. Goes out: commands for `admit` and the rooms
//! after it. Must not know how messages are kept.
//!
//! | file | duty |
//! |---|---|
//! | `listener` | listening sockets and what they accept |
//! | `workers` | the data threads |
//! | `connection` | the life of one TCP client |
//! | `layers` | TLS and compression between a socket's bytes and the protocol's |
//! | `doors` | what all connections share |
//! | `client` | what `/stats` tells of each connection |
//! | `http` | the HTTP door |

pub mod client;
pub mod connection;
pub mod doors;
pub mod http;
pub mod layers;
pub mod listener;
pub mod workers;
