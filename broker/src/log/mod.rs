//! Duty: a topic's records, appended once, read by every channel. Comes in: batches of new records. Goes
//! out: sequences, chunks of records. Must not know topics' names, channels, consumers or the wire.
//!
//! | file | duty |
//! |---|---|
//! | `engine` | the contract that every engine keeps |
//! | `sequence` | a record's place in its log |
//! | `record` | one record as bytes |

pub mod engine;
pub mod record;
pub mod sequence;
