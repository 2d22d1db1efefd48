//! Duty: the doors, from socket to command. Comes in: connections. Goes out: commands for `admit` and the rooms
//! after it. Must not know how messages are kept.
//!
//! | file | duty |
//! |---|---|
//! | `layers` | TLS and compression between a socket's bytes and the protocol's |

pub mod layers;
//! Duty: the doors of the broker, from socket to command.
//!
//! | file | duty |
//! |---|---|
//! | `http` | the HTTP door |

pub mod http;
