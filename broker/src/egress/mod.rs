//! Duty: what goes out to a connection: its wake-up signal and its ordered, buffered output. Must not know
//! topics, channels or the log.
//!
//! | file | duty |
//! |---|---|
//! | `signal` | how other rooms wake a connection's task |
//! | `output` | frames waiting for the socket, and when they may leave |

pub mod output;
pub mod signal;
