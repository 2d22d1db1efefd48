//! Duty: the newest records of a log in memory, as chunks that readers share. Comes in: committed pieces, void
//! ranges, evictions. Goes out: chunks. Must not know files, nor what is pending.
//!
//! Pieces that lie side by side in one arena are kept as one growing run and become a chunk when the first
//! reader arrives, so a reader that is behind gets large chunks without a copy. What a fast reader has cut into
//! small chunks is copied together once, for those who come after it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;

use super::engine::Chunk;
use super::pending::{Lease, Piece};
use super::sequence::{Sequence, SequenceRange};

/// The newest records of one log. Every record from `from` up to the log's end is here, but for absent ones.
#[derive(Debug)]
pub(super) struct Tail {
    from: Sequence,
    end: Sequence,
    chunks: VecDeque<Held>,
    /// The run that still grows; it follows all chunks.
    run: Option<Piece>,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    chunk: Chunk,
    lease: Arc<Lease>,
}

impl Tail {
    /// Nothing in memory of a log that ends at `end`.
    pub(super) fn new(end: Sequence) -> Self {
        Self {
            from: end,
            end,
            chunks: VecDeque::new(),
            run: None,
            bytes: 0,
        }
    }

    /// Keeps `piece`, which follows everything here; sequences left out before it are absent. A piece whose
    /// lease is revoked is not kept, and with it nothing before it.
    pub(super) fn push(&mut self, piece: Piece) {
        self.end = piece.end;
        if piece.lease.is_revoked() {
            self.clear();
            return;
        }
        self.bytes += piece.bytes.len();
        let rest = match &mut self.run {
            Some(run) if run.end == piece.first => match run.bytes.try_unsplit(piece.bytes) {
                Ok(()) => {
                    run.end = piece.end;
                    return;
                }
                Err(bytes) => Piece { bytes, ..piece },
            },
            _ => piece,
        };
        self.close_run();
        self.run = Some(rest);
    }

    /// The first records at or after `from`; `None` when there are none or memory does not reach back so far.
    pub(super) fn read(&mut self, from: Sequence) -> Option<Chunk> {
        if from < self.from || from >= self.end {
            return None;
        }
        let at = self.chunks.partition_point(|held| held.chunk.end() <= from);
        if at == self.chunks.len() {
            self.close_run();
        }
        self.merge(at);
        let chunk = self.chunks.get(at)?.chunk.clone();
        (from < chunk.end()).then(|| chunk.starting_at(from))
    }

    /// Takes the records in `range` out of memory.
    pub(super) fn void(&mut self, range: SequenceRange) {
        self.close_run();
        let chunks = std::mem::take(&mut self.chunks);
        self.bytes = 0;
        for Held { chunk, lease } in chunks {
            let before = (chunk.first < range.start).then(|| chunk.clone().ending_at(range.start));
            let after = (range.end < chunk.end()).then(|| chunk.clone().starting_at(range.end));
            let parts = if chunk.end() <= range.start || range.end <= chunk.first {
                [Some(chunk), None]
            } else {
                [before, after]
            };
            for chunk in parts.into_iter().flatten() {
                self.bytes += chunk.bytes.len();
                let lease = Arc::clone(&lease);
                self.chunks.push_back(Held { chunk, lease });
            }
        }
    }

    /// Drops the oldest records: those of the arena with this lease.
    pub(super) fn evict(&mut self, lease: &Arc<Lease>) {
        while let Some(held) = self.chunks.front()
            && Arc::ptr_eq(&held.lease, lease)
        {
            self.drop_oldest();
        }
        if self.chunks.is_empty()
            && self
                .run
                .as_ref()
                .is_some_and(|run| Arc::ptr_eq(&run.lease, lease))
        {
            self.clear();
        }
    }

    /// Drops chunks that lie wholly below `floor`.
    pub(super) fn forget_below(&mut self, floor: Sequence) {
        if self.run.as_ref().is_some_and(|run| run.first < floor) {
            self.close_run();
        }
        while self.chunks.front().is_some_and(|held| held.chunk.end() <= floor) {
            self.drop_oldest();
        }
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.run = None;
        self.bytes = 0;
        self.from = self.end;
    }

    /// Bytes of the records here.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn drop_oldest(&mut self) {
        if let Some(held) = self.chunks.pop_front() {
            self.bytes -= held.chunk.bytes.len();
            self.from = held.chunk.end();
        }
    }

    fn close_run(&mut self) {
        if let Some(run) = self.run.take() {
            self.chunks.push_back(Held {
                chunk: Chunk {
                    first: run.first,
                    count: run.end.since(run.first) as u32,
                    bytes: run.bytes.freeze(),
                },
                lease: run.lease,
            });
        }
    }

    /// Copies the small chunks from `at` on into one, when there are several of the same arena side by side.
    fn merge(&mut self, at: usize) {
        let Some(first) = self.chunks.get(at).filter(|held| held.chunk.bytes.len() < SMALL) else {
            return;
        };
        let mut end = first.chunk.end();
        let mut bytes = 0;
        let alike = self
            .chunks
            .range(at..)
            .take_while(|held| {
                let joins = held.chunk.first == end || std::ptr::eq(*held, first);
                end = held.chunk.end();
                bytes += held.chunk.bytes.len();
                joins && Arc::ptr_eq(&held.lease, &first.lease) && bytes <= MERGED
            })
            .count();
        if alike < WORTHWHILE {
            return;
        }
        let mut merged = BytesMut::with_capacity(bytes.min(MERGED));
        let mut count = 0;
        for held in self.chunks.range(at..at + alike) {
            merged.extend_from_slice(&held.chunk.bytes);
            count += held.chunk.count;
        }
        self.chunks.drain(at + 1..at + alike);
        if let Some(held) = self.chunks.get_mut(at) {
            held.chunk.count = count;
            held.chunk.bytes = merged.freeze();
        }
    }
}

/// Chunks below this many bytes are merged with their neighbours when they are read.
const SMALL: usize = 16 << 10;
/// Upper bound of a merged chunk, in bytes.
const MERGED: usize = 64 << 10;
/// Fewer chunks than these are not worth a copy.
const WORTHWHILE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::pending::Pending;
    use crate::log::record::NewRecord;

    struct Log {
        pending: Pending,
        tail: Tail,
    }

    impl Log {
        fn new() -> Self {
            Self {
                pending: Pending::new(Sequence::default()),
                tail: Tail::new(Sequence::default()),
            }
        }

        fn commit(&mut self, count: usize) {
            let body = [7; 100];
            let record = NewRecord {
                body: &body,
                ..NewRecord::default()
            };
            self.pending.append(&vec![record; count], |_| Arc::default());
            for piece in self.pending.take().unwrap().pieces {
                self.tail.push(piece);
            }
        }

        fn read(&mut self, from: u64) -> Option<(u64, u64)> {
            let chunk = self.tail.read(Sequence::new(from))?;
            assert_eq!(chunk.records().count(), chunk.count as usize);
            assert_eq!(chunk.records().next().unwrap().sequence, chunk.first);
            Some((chunk.first.get(), chunk.end().get()))
        }
    }

    #[test]
    fn commits_side_by_side_are_read_as_one_chunk_without_a_copy() {
        let mut log = Log::new();
        for _ in 0..20 {
            log.commit(1);
        }
        assert_eq!(log.read(0), Some((0, 20)));
        assert_eq!(log.read(5), Some((5, 20)));
        assert_eq!(log.read(20), None);
    }

    #[test]
    fn chunks_cut_small_by_a_fast_reader_are_large_for_a_slow_one() {
        let mut log = Log::new();
        for sequence in 0..30 {
            log.commit(1);
            assert_eq!(log.read(sequence), Some((sequence, sequence + 1)));
        }
        assert_eq!(log.read(0), Some((0, 30)));
    }

    #[test]
    fn what_was_evicted_is_not_answered() {
        let mut log = Log::new();
        log.commit(30);
        let oldest = Arc::clone(&log.tail.run.as_ref().unwrap().lease);
        log.commit(30);
        log.tail.evict(&oldest);
        assert_eq!(log.read(0), None);
        let from = log.tail.from.get();
        assert!(from > 0 && from < 60);
        assert_eq!(log.read(from), Some((from, 60)));
        assert_eq!(log.tail.bytes() as u64, (60 - from) * 128);
    }

    #[test]
    fn void_records_leave_memory() {
        let mut log = Log::new();
        log.commit(10);
        log.tail
            .void(SequenceRange::new(Sequence::new(3), Sequence::new(6)));
        assert_eq!(log.read(0), Some((0, 3)));
        assert_eq!(log.read(4), Some((6, 10)));
        assert_eq!(log.tail.bytes(), 7 * 128);
    }

    #[test]
    fn a_piece_without_a_lease_ends_what_memory_holds() {
        let mut log = Log::new();
        log.commit(2);
        log.tail.run.as_ref().unwrap().lease.revoke();
        let record = NewRecord::default();
        log.pending.append(&[record], |_| {
            let lease = Lease::default();
            lease.revoke();
            Arc::new(lease)
        });
        for piece in log.pending.take().unwrap().pieces {
            log.tail.push(piece);
        }
        assert_eq!(log.read(0), None);
        assert_eq!(log.tail.from.get(), 3);
        log.commit(1);
        assert_eq!(log.read(3), Some((3, 4)));
    }
}
