//! Duty: the doors of the broker, from socket to command.
//!
//! | file | duty |
//! |---|---|
//! | `http` | the HTTP door |

pub mod http;
