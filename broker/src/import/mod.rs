//! Duty: reads what a stock nsqd left in its data folder. Comes in: a folder. Goes out: topics, channels and
//! messages, one at a time. Must not know where they are put; never changes a file it reads.
//!
//! | file | duty |
//! |---|---|
//! | `plan` | everything that can be taken from a folder, with counts |
//! | `nsqd_dat` | `nsqd.dat`: names and pauses of topics and channels, read and written |
//! | `stock_files` | which disk queues there are, by their files' names |
//! | `stock_queue` | the records of a disk queue, one by one |
//! | `stock_meta` | position file of a disk queue |
//! | `mark` | how far a queue has been imported |
//! | `name` | which names are legal |
//! | `small_file` | replaces a file whole |
//! | `directory_lock` | keeps a running nsqd and an importer apart |
//!
//! The way of an import (nsq-http-and-tools 7.6): take the [`directory_lock::DirectoryLock`], make a
//! [`plan::Plan`], create its topics and channels, then read each queue with a [`stock_queue::QueueReader`].
//! What lies in a topic's queue belongs to all channels of the topic, what lies in a channel's to that one only.

pub mod directory_lock;
pub mod mark;
pub mod name;
pub mod nsqd_dat;
pub mod plan;
pub(crate) mod small_file;
pub mod stock_files;
pub mod stock_meta;
pub mod stock_queue;

use std::io;
use std::path::PathBuf;

/// Why a folder can not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file or the folder can not be read.
    #[error("failed to read {} - {source}", path.display())]
    Read {
        /// What was read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file can not be written.
    #[error("failed to write {} - {source}", path.display())]
    Write {
        /// What was written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// `nsqd.dat` is empty or not the JSON it should be; stock nsqd refuses to start as well.
    #[error("failed to parse metadata in {} - {source}", path.display())]
    NsqdDat {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The folder can not be opened to lock it. The text begins as stock's does (nsq-http-and-tools 4.3).
    #[error("failed to lock data-path: open {}: {source}", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process uses the folder. Stock's text.
    #[error(
        "failed to lock data-path: cannot flock directory {} - resource temporarily unavailable \
         (possibly in use by another instance of nsqd)",
        .0.display()
    )]
    Locked(PathBuf),
}

/// Something that is passed over; the rest is imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// An entry of `nsqd.dat` has a name that no topic may have.
    #[error("skipping creation of invalid topic {0:?}")]
    TopicName(String),
    /// An entry of `nsqd.dat` has a name that no channel may have.
    #[error("skipping creation of invalid channel {channel:?} of topic {topic}")]
    ChannelName {
        /// The channel's topic.
        topic: String,
        /// The bad name.
        channel: String,
    },
    /// A file looks like one of a disk queue, but its name does not say of which.
    #[error("{} belongs to no queue and is not read", .0.display())]
    FileName(PathBuf),
    /// A queue of an ephemeral topic or channel, left by a run of nsqd that has ended; stock never reads it again.
    #[error("queue {0} belongs to an ephemeral topic or channel and is not read")]
    Orphan(String),
    /// There are data files but no position file; they are read from their beginning.
    #[error("{} is missing, the queue is read from its beginning", .0.display())]
    NoMeta(PathBuf),
    /// A position file makes no sense; the queue is read from its beginning.
    #[error("{} can not be understood, the queue is read from its beginning", .0.display())]
    Meta(PathBuf),
    /// A data file is missing between those that are there.
    #[error("{} is missing, its messages are lost", .0.display())]
    NoFile(PathBuf),
    /// The position to read from lies behind the end of the file.
    #[error("{} ends before byte {offset}, where it should be read from", path.display())]
    Position {
        /// The data file.
        path: PathBuf,
        /// Where reading should begin, in bytes.
        offset: u64,
    },
    /// A record has a length that no record can have; the rest of its file is passed over.
    #[error("{} byte {offset}: record length {length} is impossible, {left} bytes are not read", path.display())]
    Length {
        /// The data file.
        path: PathBuf,
        /// Where the record begins, in bytes.
        offset: u64,
        /// What its length field says.
        length: i32,
        /// Bytes from there to the end of the file.
        left: u64,
    },
    /// The file ends inside a record.
    #[error("{} byte {offset}: the last record is cut short, {left} bytes are not read", path.display())]
    Short {
        /// The data file.
        path: PathBuf,
        /// Where the record begins, in bytes.
        offset: u64,
        /// Bytes from there to the end of the file.
        left: u64,
    },
}

#[cfg(test)]
mod tests;
