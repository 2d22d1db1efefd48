//! Duty: the contract between the queue rooms and whatever keeps the records. Must not know any engine.
//!
//! # Contract
//! 1. `append` gives every record its sequence at once and in call order; the records are *pending* until the
//!    returned [`Ticket`] completes. Nothing pending is ever read or handed over.
//! 2. `flush` moves what is pending towards its durability. Whoever appended calls it once at the end of its
//!    turn; when another caller has already taken the records along it returns at once.
//! 3. A ticket completes with `Ok` when the records are as durable as the topic asks: `interval` = the write
//!    has returned, `always` = a sync that began after the write has returned. It completes with `Err` when none
//!    of its records will ever be read (`Refused`), or when that cannot be known (`Unknown`).
//! 4. A sequence whose append failed is never used again; it becomes a gap that every reader steps over.
//! 5. `end` grows only when tickets complete, in sequence order, and the [`TailWatch`] is told afterwards.
//! 6. `read` answers records in sequence order; within one [`Chunk`] sequences are dense.
//! 7. Order is promised per topic only.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use parking_lot::Mutex;

use super::record::{self, NewRecord, Record, Records};
use super::sequence::{Sequence, SequenceRange};

/// When an append is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// After the write has returned; synced in the background (`--sync-every`, `--sync-timeout`).
    #[default]
    Interval,
    /// After a sync; one sync answers everyone who waited for it.
    Always,
}

/// How long finished records are kept. None of both: not at all. Both: as long as both allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Finished records are kept for this long after they were published.
    pub time: Option<Duration>,
    /// Finished records are kept up to this many bytes.
    pub bytes: Option<u64>,
}

impl Retention {
    /// True when a segment whose newest record was stamped `newest` stays, where it and what follows it below
    /// the floor have `finished` bytes.
    pub(in crate::log) fn keeps(self, newest: i64, finished: u64, wall: i64) -> bool {
        let age = Duration::from_nanos(u64::try_from(wall.saturating_sub(newest)).unwrap_or(0));
        let young = self.time.is_none_or(|time| age < time);
        let small = self.bytes.is_none_or(|bytes| finished <= bytes);
        (self.time.is_some() || self.bytes.is_some()) && young && small
    }
}

/// Why a log operation failed. The text is for the log and for `/ping`, never for a client.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// None of the records of this append will ever be read.
    #[error("append refused: {0}")]
    Refused(Arc<str>),
    /// The records may or may not be in the log.
    #[error("append outcome unknown: {0}")]
    Unknown(Arc<str>),
    /// Records could not be read.
    #[error("read failed: {0}")]
    Read(Arc<str>),
    /// The disk failed in something that is neither an append nor a read.
    #[error("disk failed: {0}")]
    Disk(Arc<str>),
    /// The log is closed or deleted.
    #[error("exiting")]
    Closed,
}

/// A run of records with dense sequences, shared by reference by everyone who reads it.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Sequence of the first record.
    pub first: Sequence,
    /// Number of records, at least 1.
    pub count: u32,
    /// The encoded records one after another (see [`super::record`]), already verified.
    pub bytes: Bytes,
}

impl Chunk {
    /// First sequence after the chunk.
    pub fn end(&self) -> Sequence {
        self.first + u64::from(self.count)
    }

    /// The records from `sequence` on; the whole chunk when it starts there or later. `sequence` lies below the
    /// chunk's end.
    #[must_use]
    pub fn starting_at(mut self, sequence: Sequence) -> Self {
        let skipped = sequence.since(self.first);
        if skipped > 0 {
            self.bytes.advance(record::span(&self.bytes, skipped));
            self.first = sequence;
            self.count -= skipped as u32;
        }
        self
    }

    /// The records below `sequence`; the whole chunk when it ends there or earlier. `sequence` lies above the
    /// chunk's first.
    #[must_use]
    pub fn ending_at(mut self, sequence: Sequence) -> Self {
        if sequence < self.end() {
            self.count = sequence.since(self.first) as u32;
            self.bytes
                .truncate(record::span(&self.bytes, u64::from(self.count)));
        }
        self
    }

    /// The first records, about `max_bytes` of them but at least one.
    #[must_use]
    pub fn within(self, max_bytes: usize) -> Self {
        if self.bytes.len() <= max_bytes {
            return self;
        }
        let (count, _) = record::fitting(&self.bytes, max_bytes);
        let end = self.first + count.max(1);
        self.ending_at(end)
    }

    /// Walks the records from the first one.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.bytes)
    }
}

/// Told, outside of all locks of the log, that `end` has grown. Must be quick and must not block.
pub trait TailWatch: Send + Sync {
    /// Records below `end` can be read now. `batch` lists what the queue rooms must know at hand-over without
    /// reading: the records with a delay.
    fn advanced(&self, end: Sequence, delayed: &[DelayedRecord]);
    /// Health of the log's disk: `Err` with the reason after a failed write, `Ok` when it works again.
    fn health(&self, state: Result<(), &LogError>);
}

/// A record that must be held back for a while after its hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedRecord {
    /// The record.
    pub sequence: Sequence,
    /// When it was published, in nanoseconds since the Unix epoch.
    pub published: i64,
    /// The delay in milliseconds, above 0.
    pub delay_ms: u64,
}

impl DelayedRecord {
    /// What is to be known of `record`, which has a delay.
    pub fn of(record: &Record<'_>) -> Self {
        Self {
            sequence: record.sequence,
            published: record.timestamp,
            delay_ms: record.delay_ms,
        }
    }

    /// What is left at `wall` of a delay that began at `from`, both in nanoseconds since the Unix epoch. Whatever a clock
    /// does: never more than the whole delay.
    pub fn left(&self, from: i64, wall: i64) -> Duration {
        let delay = Duration::from_millis(self.delay_ms);
        let passed = Duration::from_nanos(u64::try_from(wall.saturating_sub(from)).unwrap_or(0));
        delay.saturating_sub(passed)
    }
}

/// One topic's log. All methods are safe to call from any thread. `append`, `flush` and `read_cached` are quick
/// (at most one write to the page cache) and may run on a data thread; `read` and the rest may wait for the disk.
pub trait TopicLog: Send + Sync {
    /// Takes the records over, in order. At least one record.
    fn append(&self, records: &[NewRecord<'_>]) -> Result<Appended, LogError>;

    /// Ends the caller's turn: pushes everything pending on its way, completes what can be completed now.
    fn flush(&self);

    /// First sequence after the last record that can be read.
    fn end(&self) -> Sequence;

    /// The oldest record that is still there; equal to `end` in an empty log.
    fn oldest(&self) -> Sequence;

    /// The first records at or after `from` that are in memory, or `None` when `from` is at the end or memory
    /// does not hold that place.
    fn read_cached(&self, from: Sequence) -> Option<Chunk>;

    /// The first records at or after `from`, about `max_bytes` of them (at least one record when there is one).
    /// `None` when there is nothing at or after `from`.
    fn read(&self, from: Sequence, max_bytes: usize) -> Result<Option<Chunk>, LogError>;

    /// Every delayed record in `range`, found without reading blocks that hold none.
    fn delayed(&self, range: SequenceRange) -> Result<Vec<DelayedRecord>, LogError>;

    /// The first record at or after `unix_ns` in log order: every earlier record was stamped before it.
    fn seek_time(&self, unix_ns: i64) -> Result<Sequence, LogError>;

    /// Number of records in `range`: its length without gaps and void ranges.
    fn count(&self, range: SequenceRange) -> u64;

    /// Makes the records in `range` void: no read, seek or count ever sees them. Durable when this returns.
    fn void(&self, range: SequenceRange) -> Result<(), LogError>;

    /// Nobody needs records below `floor`; they go as retention allows.
    fn trim(&self, floor: Sequence);

    /// Changes the durability of appends from now on.
    fn set_durability(&self, durability: Durability);

    /// Changes how long finished records are kept.
    fn set_retention(&self, retention: Retention);

    /// Bytes on disk and bytes in memory.
    fn footprint(&self) -> Footprint;

    /// Finishes what is pending, syncs, refuses further appends.
    fn close(&self) -> Result<(), LogError>;
}

/// What a log occupies, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes of its files.
    pub disk: u64,
    /// Bytes of records held in memory.
    pub memory: u64,
}

/// What `append` answers.
#[derive(Debug)]
pub struct Appended {
    /// The sequences given, in order of the records.
    pub range: SequenceRange,
    /// Completes when the records are durable enough.
    pub ticket: Ticket,
}

/// Completes when the append it came from has. Cheap to clone; cancel safe.
#[derive(Clone, Debug)]
pub struct Ticket {
    commit: Arc<Commit>,
}

impl Ticket {
    /// The outcome, if it is known already.
    pub fn outcome(&self) -> Option<Result<(), LogError>> {
        self.commit.state.lock().outcome.clone()
    }
}

impl Future for Ticket {
    type Output = Result<(), LogError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.commit.state.lock();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        if !state.waiting.iter().any(|known| known.will_wake(cx.waker())) {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// The engine's side of the tickets of one group of appends that succeed or fail together.
#[derive(Debug, Default)]
pub struct Commit {
    state: Mutex<CommitState>,
}

#[derive(Debug, Default)]
struct CommitState {
    outcome: Option<Result<(), LogError>>,
    waiting: Vec<Waker>,
}

impl Commit {
    /// A ticket for one append of the group.
    pub fn ticket(self: &Arc<Self>) -> Ticket {
        Ticket {
            commit: Arc::clone(self),
        }
    }

    /// Completes every ticket of the group. The first outcome stays.
    pub fn complete(&self, outcome: Result<(), LogError>) {
        let waiting = {
            let mut state = self.state.lock();
            state.outcome.get_or_insert(outcome);
            std::mem::take(&mut state.waiting)
        };
        for waker in waiting {
            waker.wake();
        }
    }
}
