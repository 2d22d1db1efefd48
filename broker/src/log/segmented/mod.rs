//! Duty: the default engine: each topic is a row of segment files in a folder of its own.
//!
//! | file | duty |
//! |---|---|
//! | `engine` | opens, checks and deletes logs; what they share |
//! | `topic` | one log, as the contract asks for it |
//! | `commit` | one batch: written, then published or refused |
//! | `writer` | records into segments, undone when it fails |
//! | `segment` | one segment: its two files and how far they go |
//! | `index` | the entries of a segment's sparse index |
//! | `indexed` | the index in use |
//! | `walk` | from record to record through a file, verified |
//! | `view` | segments and gaps: what there is to read |
//! | `reader` | reads, seeks, damage |
//! | `sync`, `durable` | when files are synced; what follows for a log |
//! | `recovery`, `marks` | from a folder to an open log; what can be trusted in it |
//! | `retention` | which segments go |
//! | `budget`, `handles` | bounds for memory and open files, for all logs together |
//!
//! In a topic's folder: `<first sequence>.log` holds records (see [`super::record`]), `<first sequence>.idx`
//! its index, `absent` the sequences without records. A segment ends where the next one begins, whatever its
//! file holds. Names that end in `.new` are unfinished.

mod budget;
mod commit;
mod durable;
mod engine;
mod handles;
mod index;
mod indexed;
mod marks;
mod reader;
mod recovery;
mod retention;
mod segment;
mod sync;
mod topic;
mod view;
mod walk;
mod writer;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;

pub use engine::{EngineOptions, LogOptions, SegmentedEngine};
pub use topic::SegmentedLog;
