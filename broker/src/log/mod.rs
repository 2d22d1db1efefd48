//! Duty: a topic's records, appended once, read by every channel. Comes in: batches of new records. Goes
//! out: sequences, chunks of records. Must not know topics' names, channels, consumers or the wire.
//!
//! | file | duty |
//! |---|---|
//! | `engine` | the contract that every engine keeps |
//! | `engines` | which engine keeps a topic's log |
//! | `sequence` | a record's place in its log |
//! | `record` | one record as bytes |
//! | `memory` | the engine without files |
//! | `segmented` | the default engine |
//! | `pending`, `tail`, `absent`, `news` | what engines are built from: before the write, newest in memory, gaps, what is told |
//! | `disk` | the file system behind the files |
//! | `contract` | the suite that every engine runs |

mod absent;
pub mod disk;
pub mod engine;
pub mod engines;
pub mod memory;
mod news;
mod pending;
pub mod record;
pub mod segmented;
pub mod sequence;
mod tail;

#[cfg(test)]
mod contract;
