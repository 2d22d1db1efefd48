//! Duty: the index of one segment in use: written when a sync is marked, asked where to read, made anew when it
//! is missing or damaged. Comes in: sequences, times. Goes out: offsets, blocks. Must not know other segments.

use std::io;
use std::sync::Arc;

use super::index::{Block, Entries, Entry, Mark, Unwritten};
use super::segment::{INDEX, Segment};
use super::walk::{Step, Walk};
use crate::log::disk::DiskFile;
use crate::log::sequence::{Sequence, SequenceRange};

impl Segment {
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
        let file = self.index_file(at).inspect_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                self.state.lock().index_broken = true;
            }
        })?;
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
                tracing::error!(segment = %self.base, folder = %self.home.folder.display(), "index damaged, made anew");
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
        let file = self.home.handles.create(&self.index, &aside)?;
        file.write_at(&bytes, 0)?;
        file.sync()?;
        self.home.disk.rename(&aside, &self.path(INDEX))?;
        let mut state = self.state.lock();
        state.index_len = bytes.len() as u64;
        state.index_broken = false;
        state.mark = mark;
        Ok(())
    }

    fn index_file(&self, len: u64) -> io::Result<Arc<dyn DiskFile>> {
        if len == 0 {
            self.home.handles.create(&self.index, &self.path(INDEX))
        } else {
            self.home.handles.get(&self.index, || self.path(INDEX))
        }
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

const INDEX_ASIDE: &str = ".idx.new";
const ENTRIES_AT_ONCE: u64 = 1024;
