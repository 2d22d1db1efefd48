//! Duty: records between `append` and the write: encoded into arenas, numbered, grouped into one commit.
//! Comes in: new records. Goes out: a [`Batch`] of pieces that share their arenas' memory with the readers.
//! Must not know files, readers or who decides how much memory there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;

use super::engine::{Appended, Commit, DelayedRecord};
use super::record::NewRecord;
use super::sequence::{Sequence, SequenceRange};

/// Right of an arena to be kept in memory; whoever owns the memory budget may revoke it.
#[derive(Debug, Default)]
pub(super) struct Lease {
    revoked: AtomicBool,
}

impl Lease {
    /// From now on the arena's records are not kept.
    pub(super) fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
    }

    /// True when the arena's records must not be kept.
    pub(super) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }
}

/// Encoded records with dense sequences that lie in one arena.
#[derive(Debug)]
pub(super) struct Piece {
    /// Sequence of the first record.
    pub(super) first: Sequence,
    /// First sequence after the last record.
    pub(super) end: Sequence,
    /// The records one after another.
    pub(super) bytes: BytesMut,
    /// The lease of the arena they lie in.
    pub(super) lease: Arc<Lease>,
}

/// Everything that was pending at one moment; succeeds or fails as a whole.
#[derive(Debug)]
pub(super) struct Batch {
    /// The records in order, at least one piece; sequences are dense across pieces.
    pub(super) pieces: Vec<Piece>,
    /// Those of the records that have a delay.
    pub(super) delayed: Vec<DelayedRecord>,
    /// Completes the tickets of the appends.
    pub(super) commit: Arc<Commit>,
    /// The sequences of the records.
    pub(super) range: SequenceRange,
}

/// Records that wait for the next flush.
#[derive(Debug)]
pub(super) struct Pending {
    next: Sequence,
    arena: BytesMut,
    lease: Arc<Lease>,
    /// Size of the current arena in bytes; the next one is larger when this one fills up.
    size: usize,
    /// First sequence in `arena`.
    first: Sequence,
    full: Vec<Piece>,
    delayed: Vec<DelayedRecord>,
    commit: Option<Arc<Commit>>,
}

impl Pending {
    /// Nothing pending; the next record gets the sequence `next`.
    pub(super) fn new(next: Sequence) -> Self {
        Self {
            next,
            arena: BytesMut::new(),
            lease: Arc::default(),
            size: 0,
            first: next,
            full: Vec::new(),
            delayed: Vec::new(),
            commit: None,
        }
    }

    /// Takes the records over. `grant` is asked for the lease of each new arena, given its size in bytes.
    pub(super) fn append(
        &mut self,
        records: &[NewRecord<'_>],
        grant: impl Fn(usize) -> Arc<Lease>,
    ) -> Appended {
        let start = self.next;
        if self.lease.is_revoked() {
            self.size = 0;
            self.close_arena();
        }
        for record in records {
            let length = record.encoded_len();
            if self.arena.capacity() - self.arena.len() < length {
                self.renew_arena(length, &grant);
            }
            record.encode(self.next, &mut self.arena);
            if record.delay_ms > 0 {
                self.delayed.push(DelayedRecord {
                    sequence: self.next,
                    published: record.timestamp,
                    delay_ms: record.delay_ms,
                });
            }
            self.next = self.next.next();
        }
        Appended {
            range: SequenceRange::new(start, self.next),
            ticket: self.commit.get_or_insert_default().ticket(),
        }
    }

    /// Takes everything that is pending.
    pub(super) fn take(&mut self) -> Option<Batch> {
        let commit = self.commit.take()?;
        let mut pieces = std::mem::take(&mut self.full);
        pieces.extend(self.split_piece());
        let start = pieces.first().map_or(self.next, |piece| piece.first);
        Some(Batch {
            pieces,
            delayed: std::mem::take(&mut self.delayed),
            commit,
            range: SequenceRange::new(start, self.next),
        })
    }

    /// True when nothing is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.commit.is_none()
    }

    fn renew_arena(&mut self, length: usize, grant: impl Fn(usize) -> Arc<Lease>) {
        self.close_arena();
        self.size = (self.size * 2).clamp(ARENA_MIN, ARENA_MAX);
        let size = self.size.max(length);
        self.lease = grant(size);
        self.arena = BytesMut::with_capacity(size);
    }

    fn close_arena(&mut self) {
        let piece = self.split_piece();
        self.full.extend(piece);
        self.arena = BytesMut::new();
    }

    fn split_piece(&mut self) -> Option<Piece> {
        if self.arena.is_empty() {
            return None;
        }
        let piece = Piece {
            first: self.first,
            end: self.next,
            bytes: self.arena.split(),
            lease: Arc::clone(&self.lease),
        };
        self.first = self.next;
        Some(piece)
    }
}

/// Size of a quiet topic's arenas, in bytes.
const ARENA_MIN: usize = 4 << 10;
/// Size of a busy topic's arenas, in bytes.
const ARENA_MAX: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(count: usize, body: &[u8]) -> Vec<NewRecord<'_>> {
        vec![
            NewRecord {
                timestamp: 1,
                body,
                ..NewRecord::default()
            };
            count
        ]
    }

    #[test]
    fn appends_between_two_flushes_are_one_dense_batch() {
        let mut pending = Pending::new(Sequence::new(7));
        assert!(pending.take().is_none());
        pending.append(&bodies(3, b"a"), |_| Arc::default());
        let second = pending.append(&bodies(2, b"b"), |_| Arc::default());
        assert_eq!(
            second.range,
            SequenceRange::new(Sequence::new(10), Sequence::new(12))
        );
        let batch = pending.take().unwrap();
        assert_eq!(
            batch.range,
            SequenceRange::new(Sequence::new(7), Sequence::new(12))
        );
        assert_eq!(batch.pieces.len(), 1);
        assert!(pending.is_empty());
    }

    #[test]
    fn arenas_grow_with_traffic_and_shrink_when_revoked() {
        let mut pending = Pending::new(Sequence::default());
        let sizes = parking_lot::Mutex::new(Vec::new());
        let grant = |size| {
            sizes.lock().push(size);
            Arc::default()
        };
        for _ in 0..200 {
            pending.append(&bodies(10, &[0; 1000]), grant);
        }
        pending.lease.revoke();
        pending.append(&bodies(1, b""), grant);
        let sizes = sizes.into_inner();
        assert_eq!(sizes[..3], [4 << 10, 8 << 10, 16 << 10]);
        assert_eq!(sizes[sizes.len() - 2..], [ARENA_MAX, ARENA_MIN]);
        let batch = pending.take().unwrap();
        assert!(batch.pieces.windows(2).all(|pair| pair[0].end == pair[1].first));
        assert_eq!(batch.range.len(), 2001);
    }

    #[test]
    fn a_record_larger_than_an_arena_gets_one_of_its_own() {
        let mut pending = Pending::new(Sequence::default());
        pending.append(&bodies(1, &vec![0; 1 << 20]), |size| {
            assert!(size > 1 << 20);
            Arc::default()
        });
        assert_eq!(pending.take().unwrap().pieces.len(), 1);
    }
}
