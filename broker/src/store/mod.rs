//! Duty: what must survive a restart and is not a message: topics, channels, their settings and cursors. Must
//! not know files of the log, consumers or the wire.
//!
//! | file | duty |
//! |---|---|
//! | `cursor` | what of a channel is stored, as deltas; the `CursorStore` contract |

pub mod cursor;
