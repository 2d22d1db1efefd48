//! Duty: writes what stock nsqd can read. Comes in: messages of a topic or a channel. Goes out: the files of a
//! stock disk queue. Must not know where the messages come from.
//!
//! | file | duty |
//! |---|---|
//! | `stock_queue` | data files and position file of one disk queue |
//!
//! A whole export is one [`stock_queue::QueueWriter`] per topic and channel with messages, then
//! [`crate::import::nsqd_dat::write`].

pub mod stock_queue;

use std::io;
use std::path::PathBuf;

/// Why a queue can not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The name can not be part of a file name of stock nsqd.
    #[error("{0:?} is not a legal name")]
    Name(String),
    /// There is a queue of this name; it is not overwritten.
    #[error("{} exists and is not overwritten", .0.display())]
    Exists(PathBuf),
    /// The folder to write to holds something.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The message is longer than stock's format can say.
    #[error("a body of {0} bytes does not fit the format")]
    TooBig(usize),
    /// A file can not be written.
    #[error("failed to write {} - {source}", path.display())]
    Write {
        /// What was written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests;
