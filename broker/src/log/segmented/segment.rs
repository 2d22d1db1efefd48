//! Duty: one segment of a log: its two files, how far they are written, synced and indexed. Comes in: written
//! records, syncs. Goes out: offsets to read from, blocks, marks. Must not know other segments or commits.

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::handles::{Handles, Slot};
use super::index::{Block, Entries, Entry, Mark, Unwritten};
use super::walk::{Step, Walk};
use crate::log::disk::{Disk, DiskFile};
use crate::log::record::Record;
use crate::log::sequence::{Sequence, SequenceRange};

/// One segment. Its name is the sequence below which it holds nothing.
pub(super) struct Segment {
    /// No record below this sequence is in the segment.
    pub(super) base: Sequence,
    folder: Arc<Path>,
    disk: Arc<dyn Disk>,
    handles: Arc<Handles>,
    records: Arc<Slot>,
    index: Arc<Slot>,
    /// Held while the index file is written.
    index_turn: Mutex<()>,
    state: Mutex<State>,
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

struct State {
    len: u64,
    end: Sequence,
    synced_len: u64,
    synced_end: Sequence,
    sealed: bool,
    removed: bool,
    /// The last mark in the index file.
    mark: Mark,
    index_len: u64,
    /// True when what is in the index file cannot be relied on.
    index_broken: bool,
    unwritten: Unwritten,
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
        let path = segment.path(if aside { ASIDE } else { RECORDS });
        segment.handles.create(&segment.records, &path)?;
        Ok(segment)
    }

    /// A segment whose files are there.
    pub(super) fn recovered(home: &Home, base: Sequence, findings: Findings) -> Self {
        Self {
            base,
            folder: Arc::clone(&home.folder),
            disk: Arc::clone(&home.disk),
            handles: Arc::clone(&home.handles),
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
        self.handles.get(&self.records, || self.path(RECORDS))
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
        self.disk.rename(&self.path(ASIDE), &self.path(RECORDS))
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
        self.disk.unlink(&self.path(ASIDE))
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
        self.disk.unlink(&self.path(RECORDS))?;
        self.disk.unlink(&self.path(INDEX))
    }

    /// Writes the index up to what is synced, with a mark, and syncs it.
    pub(super) fn write_index(&self) -> io::Result<()> {
        let _turn = self.index_turn.lock();
        if self.state.lock().index_broken {
            self.rebuild_file()?;
        }
        let (bytes, blocks, mark, at) = {
            let mut state = self.state.lock();
            let sealed = state.sealed && state.synced_len == state.len;
            if sealed {
                state.unwritten.close();
            }
            let (blocks, mark) = state
                .unwritten
                .synced_to(state.synced_end, state.synced_len, sealed);
            if state.removed || mark == state.mark {
                return Ok(());
            }
            (encode(blocks, mark), blocks.len(), mark, state.index_len)
        };
        let file = self.index_file(at)?;
        file.write_at(&bytes, at)?;
        if let Err(error) = file.sync() {
            // What a failed sync leaves in the file cannot be known.
            self.state.lock().index_broken = true;
            return Err(error);
        }
        let mut state = self.state.lock();
        state.unwritten.written(blocks);
        state.index_len = at + bytes.len() as u64;
        state.mark = mark;
        Ok(())
    }

    /// Offset of a record at or before `sequence`, a few KiB before it at most.
    pub(super) fn locate(&self, sequence: Sequence) -> io::Result<u64> {
        self.with_index(
            |unwritten| unwritten.block_before(sequence).map(|block| block.offset),
            |entries, in_memory| {
                if let Some(offset) = in_memory {
                    return Ok(offset);
                }
                match entries.partition_point(|entry| entry.first() <= sequence)? {
                    0 => Ok(0),
                    after => Ok(entries.read(after - 1, 1)?.first().map_or(0, Entry::offset)),
                }
            },
        )
    }

    /// The blocks that reach into `range` and are `wanted`.
    pub(super) fn blocks(
        &self,
        range: SequenceRange,
        wanted: impl Fn(&Block) -> bool,
    ) -> io::Result<Vec<Block>> {
        let wanted = |block: &&Block| block.first < range.end && wanted(block);
        self.with_index(
            |unwritten| unwritten.blocks().filter(wanted).copied().collect::<Vec<_>>(),
            |entries, in_memory| {
                let mut found = Vec::new();
                let after = entries.partition_point(|entry| entry.first() <= range.start)?;
                let end = entries.partition_point(|entry| entry.first() < range.end)?;
                let mut at = after.saturating_sub(1);
                while at < end {
                    let read = entries.read(at, ENTRIES_AT_ONCE.min(end - at))?;
                    at += read.len() as u64;
                    found.extend(read.iter().filter_map(Entry::block).filter(wanted));
                }
                found.extend(in_memory);
                Ok(found)
            },
        )
    }

    /// A sequence at or before the first record stamped at or after `unix_ns`.
    pub(super) fn reaching(&self, unix_ns: i64) -> io::Result<Sequence> {
        self.with_index(
            |unwritten| {
                unwritten
                    .blocks()
                    .find(|block| block.highest >= unix_ns)
                    .map(|block| block.first)
            },
            |entries, in_memory| {
                let at = entries.partition_point(|entry| entry.highest() < unix_ns)?;
                let entry = entries.read(at, 1)?.first().map(Entry::first);
                Ok(entry.or(in_memory).unwrap_or(self.base))
            },
        )
    }

    /// Answers from the index, given what `in_memory` found in the part that is not in the file yet. When the
    /// file is missing or damaged it is made anew first.
    fn with_index<M, T>(
        &self,
        in_memory: impl Fn(&Unwritten) -> M,
        answer: impl Fn(&Entries<'_>, M) -> io::Result<T>,
    ) -> io::Result<T> {
        let attempt = || {
            let (len, found) = {
                let state = self.state.lock();
                (state.index_len, in_memory(&state.unwritten))
            };
            if len == 0 {
                return answer(&Entries::none(), found);
            }
            answer(&Entries::new(&*self.index_file(len)?, len), found)
        };
        match attempt() {
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {
                tracing::error!(segment = %self.base, folder = %self.folder.display(), "index damaged, made anew");
                let turn = self.index_turn.lock();
                self.rebuild_file()?;
                drop(turn);
                attempt()
            }
            outcome => outcome,
        }
    }

    /// Writes a new index file for what the file, not memory, has to cover. The caller holds the index's turn.
    fn rebuild_file(&self) -> io::Result<()> {
        let (covered, end) = {
            let state = self.state.lock();
            let next = state.unwritten.blocks().next();
            next.map_or((state.len, state.end), |block| (block.offset, block.first))
        };
        let mut index = Unwritten::default();
        let file = self.file()?;
        let mut walk = Walk::new(&*file, 0, covered);
        let mut expected = SequenceRange::new(self.base, end);
        loop {
            let at_end = match walk.step(expected)? {
                Step::Record(record, offset, length) => {
                    index.add(&record, offset, length);
                    expected.start = record.sequence.next();
                    continue;
                }
                step => matches!(step, Step::End),
            };
            if at_end || !walk.resync(expected)? {
                break;
            }
        }
        index.close();
        let (blocks, mut mark) = index.synced_to(end, covered, false);
        {
            let state = self.state.lock();
            (mark.end, mark.len) = (state.synced_end, state.synced_len);
            mark.sealed = state.sealed && state.synced_len == state.len && covered == state.len;
        }
        let bytes = encode(blocks, mark);
        self.index.close();
        let aside = self.path(INDEX_ASIDE);
        let file = self.handles.create(&self.index, &aside)?;
        file.write_at(&bytes, 0)?;
        file.sync()?;
        self.disk.rename(&aside, &self.path(INDEX))?;
        let mut state = self.state.lock();
        state.index_len = bytes.len() as u64;
        state.index_broken = false;
        state.mark = mark;
        Ok(())
    }

    fn index_file(&self, len: u64) -> io::Result<Arc<dyn DiskFile>> {
        if len == 0 {
            self.handles.create(&self.index, &self.path(INDEX))
        } else {
            self.handles.get(&self.index, || self.path(INDEX))
        }
    }

    fn path(&self, ending: &str) -> Box<Path> {
        self.folder
            .join(format!("{:020}{ending}", self.base.get()))
            .into()
    }
}

fn encode(blocks: &[Block], mark: Mark) -> Vec<u8> {
    let entries = blocks
        .iter()
        .copied()
        .map(Entry::Block)
        .chain([Entry::Mark(mark)]);
    entries.flat_map(|entry| entry.encode()).collect()
}

/// Ending of a file of records.
pub(super) const RECORDS: &str = ".log";
/// Ending of an index file.
pub(super) const INDEX: &str = ".idx";
/// Ending of names that recovery removes.
pub(super) const UNFINISHED: &str = ".new";
const ASIDE: &str = ".log.new";
const INDEX_ASIDE: &str = ".idx.new";
const ENTRIES_AT_ONCE: u64 = 1024;
