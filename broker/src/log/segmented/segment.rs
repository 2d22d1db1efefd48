//! Duty: one segment of a log: its files, and how far they are written and synced. Comes in: written records,
//! syncs. Goes out: the file to read, its extent. Must not know other segments or commits.

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::handles::{Handles, Slot};
use super::index::{Mark, Unwritten};
use crate::log::disk::{Disk, DiskFile};
use crate::log::record::Record;
use crate::log::sequence::Sequence;

/// One segment. Its name is the sequence below which it holds nothing.
pub(super) struct Segment {
    /// No record below this sequence is in the segment.
    pub(super) base: Sequence,
    pub(super) home: Home,
    records: Arc<Slot>,
    pub(super) index: Arc<Slot>,
    /// Held while the index file is written.
    pub(super) index_turn: Mutex<()>,
    pub(super) state: Mutex<State>,
}

/// Where a segment lives.
#[derive(Clone)]
pub(super) struct Home {
    /// The topic's folder.
    pub(super) folder: Arc<Path>,
    /// The file system.
    pub(super) disk: Arc<dyn Disk>,
    /// The open files.
    pub(super) handles: Arc<Handles>,
}

impl Home {
    /// Makes the names in the folder durable.
    pub(super) fn sync_folder(&self) -> io::Result<()> {
        self.handles.with_room(|| self.disk.sync_dir(&self.folder))
    }
}

/// How far a segment goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Bytes of records.
    pub(super) len: u64,
    /// First sequence after the last record.
    pub(super) end: Sequence,
    /// Bytes known to be synced.
    pub(super) synced_len: u64,
    /// First sequence not known to be synced.
    pub(super) synced_end: Sequence,
    /// Highest timestamp in the segment.
    pub(super) highest: i64,
    /// True when nothing will follow in this segment.
    pub(super) sealed: bool,
    /// Bytes of both files.
    pub(super) disk: u64,
}

/// What recovery found out about a segment.
pub(super) struct Findings {
    /// Bytes of records.
    pub(super) len: u64,
    /// First sequence after the last record.
    pub(super) end: Sequence,
    /// The last mark that can be trusted.
    pub(super) mark: Mark,
    /// Bytes of index entries up to that mark.
    pub(super) index_len: u64,
    /// What the index does not cover yet.
    pub(super) unwritten: Unwritten,
    /// True when nothing will follow in this segment.
    pub(super) sealed: bool,
}

/// What changes in a segment.
pub(super) struct State {
    pub(super) len: u64,
    pub(super) end: Sequence,
    pub(super) synced_len: u64,
    pub(super) synced_end: Sequence,
    pub(super) sealed: bool,
    pub(super) removed: bool,
    /// The last mark in the index file.
    pub(super) mark: Mark,
    pub(super) index_len: u64,
    /// True when what is in the index file cannot be relied on.
    pub(super) index_broken: bool,
    pub(super) unwritten: Unwritten,
}

impl Segment {
    /// Creates an empty segment. One that is made `aside` keeps a name that recovery ignores until
    /// [`Segment::take_place`].
    pub(super) fn create(home: &Home, base: Sequence, aside: bool) -> io::Result<Self> {
        let findings = Findings {
            len: 0,
            end: base,
            mark: Mark::start(base),
            index_len: 0,
            unwritten: Unwritten::default(),
            sealed: false,
        };
        let segment = Self::recovered(home, base, findings);
        // Pinned first: until it is synced it must not be closed, nor be looked for under its later name.
        segment.records.pin(true);
        let path = segment.path(if aside { ASIDE } else { RECORDS });
        home.handles.create(&segment.records, &path)?;
        Ok(segment)
    }

    /// A segment whose files are there.
    pub(super) fn recovered(home: &Home, base: Sequence, findings: Findings) -> Self {
        Self {
            base,
            home: home.clone(),
            records: Arc::default(),
            index: Arc::default(),
            index_turn: Mutex::new(()),
            state: Mutex::new(State {
                len: findings.len,
                end: findings.end,
                synced_len: findings.mark.len,
                synced_end: findings.mark.end,
                sealed: findings.sealed,
                removed: false,
                mark: findings.mark,
                index_len: findings.index_len,
                index_broken: false,
                unwritten: findings.unwritten,
            }),
        }
    }

    /// The file of records.
    pub(super) fn file(&self) -> io::Result<Arc<dyn DiskFile>> {
        self.home.handles.get(&self.records, || self.path(RECORDS))
    }

    /// How far the segment goes.
    pub(super) fn extent(&self) -> Extent {
        let state = self.state.lock();
        Extent {
            len: state.len,
            end: state.end,
            synced_len: state.synced_len,
            synced_end: state.synced_end,
            highest: state.unwritten.highest(),
            sealed: state.sealed,
            disk: state.len + state.index_len,
        }
    }

    /// The records in `bytes` were written at `offset`, the segment's end.
    pub(super) fn extend(&self, offset: u64, bytes: &[u8]) {
        self.records.pin(true);
        let mut state = self.state.lock();
        let mut at = 0;
        while let Ok((record, length)) = Record::decode(&bytes[at..]) {
            state.unwritten.add(&record, offset + at as u64, length);
            state.end = record.sequence.next();
            at += length;
        }
        state.len = offset + at as u64;
    }

    /// Nothing will follow in this segment.
    pub(super) fn seal(&self) {
        self.state.lock().sealed = true;
    }

    /// The first `len` bytes, up to the sequence `end`, are synced.
    pub(super) fn synced(&self, len: u64, end: Sequence) {
        let mut state = self.state.lock();
        state.synced_len = state.synced_len.max(len);
        state.synced_end = state.synced_end.max(end);
    }

    /// True when everything is synced and marked.
    pub(super) fn is_settled(&self) -> bool {
        let state = self.state.lock();
        state.removed
            || (state.mark.len == state.len && state.mark.sealed == state.sealed && !state.index_broken)
    }

    /// Bytes that no mark covers.
    pub(super) fn unmarked(&self) -> u64 {
        let state = self.state.lock();
        state.len.saturating_sub(state.mark.len)
    }

    /// Lets the file be closed when it is not used.
    pub(super) fn unpin(&self) {
        self.records.pin(false);
    }

    /// Puts a segment that was made aside in its place, instead of one with the same base.
    pub(super) fn take_place(&self) -> io::Result<()> {
        self.home.disk.rename(&self.path(ASIDE), &self.path(RECORDS))
    }

    /// Gives up what is not synced: it lies in another segment now.
    pub(super) fn cut_to_synced(&self) {
        let mut state = self.state.lock();
        state.len = state.synced_len;
        state.end = state.synced_end;
        state.sealed = true;
        state.index_broken = true;
        state.unwritten = Unwritten::resuming(state.unwritten.highest());
        // Only tidiness: recovery ignores what the next segment holds too.
        if let Ok(file) = self.file() {
            let _ = file.truncate(state.len);
        }
    }

    /// Removes a segment that was made aside.
    pub(super) fn discard(&self) -> io::Result<()> {
        self.records.close();
        self.home.disk.unlink(&self.path(ASIDE))
    }

    /// Closes both files.
    pub(super) fn close(&self) {
        self.records.close();
        self.index.close();
    }

    /// Removes both files. Who still holds the segment can read it.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.state.lock().removed = true;
        self.close();
        self.home.disk.unlink(&self.path(RECORDS))?;
        self.home.disk.unlink(&self.path(INDEX))
    }

    pub(super) fn path(&self, ending: &str) -> Box<Path> {
        self.home
            .folder
            .join(format!("{:020}{ending}", self.base.get()))
            .into()
    }
}

/// Ending of a file of records.
pub(super) const RECORDS: &str = ".log";
/// Ending of an index file.
pub(super) const INDEX: &str = ".idx";
/// Ending of names that recovery removes.
pub(super) const UNFINISHED: &str = ".new";
const ASIDE: &str = ".log.new";
