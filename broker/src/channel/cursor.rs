//! Duty: the way through the log: what was handed over and not yet met. Comes in: hand-overs, announcements of
//! delayed records, chunks. Goes out: one fresh record after another, gaps, the place that must be read from
//! disk. Must not know consumers or what becomes of a record.

use std::collections::BTreeSet;

use super::bitmap::Bitmap;
use super::delivery::RecordSource;
use super::reader::{Found, Reader};
use crate::log::engine::Chunk;
use crate::log::sequence::{Sequence, SequenceRange};

/// The cursor of a channel.
#[derive(Debug)]
pub(super) struct Cursor {
    /// Every record below was met; this one was not set aside.
    next: Sequence,
    /// Every record below was handed over.
    end: Sequence,
    /// Records that were handed over and neither met nor set aside, and those in `unannounced`.
    fresh: u64,
    /// Records at or above `next` that were set aside: the cursor steps over them.
    aside: Bitmap,
    /// Nothing at or above this was ever set aside.
    aside_end: Sequence,
    /// Delayed records that were met before somebody told when they are due.
    unannounced: BTreeSet<Sequence>,
    /// From here to `end` there are no gaps.
    dense_from: Sequence,
    reader: Reader,
    wanted: Option<Wanted>,
    lost: u64,
}

/// A place that memory does not hold.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    from: Sequence,
    /// The cursor's end when it was asked for; what was handed over later may be missing in the answer.
    end: Sequence,
}

/// What the cursor meets.
#[derive(Debug)]
pub(super) enum Met {
    /// The record at [`Cursor::next`], to be accepted or awaited.
    Record(Found),
    /// No records here; the cursor is past them.
    Gap(SequenceRange),
    /// Nothing that can be read now.
    Nothing,
}

/// What gave way to newer messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// This message.
    One(Sequence),
    /// So many messages: all fresh ones of a range.
    Many(SequenceRange, u64),
}

impl Cursor {
    /// A cursor at `next` with `fresh` records between it and `end`.
    pub(super) fn new(next: Sequence, end: Sequence, fresh: u64) -> Self {
        let dense = fresh >= end.since(next);
        Self {
            next,
            end,
            fresh,
            aside: Bitmap::default(),
            aside_end: next,
            unannounced: BTreeSet::new(),
            dense_from: if dense { next } else { end },
            reader: Reader::default(),
            wanted: None,
            lost: 0,
        }
    }

    /// The record that is met next, if it is there.
    pub(super) const fn next(&self) -> Sequence {
        self.next
    }

    pub(super) const fn end(&self) -> Sequence {
        self.end
    }

    /// Records that wait for their first delivery.
    pub(super) const fn fresh(&self) -> u64 {
        self.fresh
    }

    /// Fresh records that can be met without waiting for the disk or an announcement, as far as is known.
    pub(super) fn within_reach(&self) -> u64 {
        if self.wanted.is_some() { 0 } else { self.unmet() }
    }

    /// Fresh records ahead of the cursor.
    pub(super) fn unmet(&self) -> u64 {
        self.fresh.saturating_sub(self.unannounced.len() as u64)
    }

    /// Records that were handed over and then were not in the log.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// The bytes of the record that was met last.
    pub(super) fn bytes(&self) -> &bytes::Bytes {
        self.reader.bytes()
    }

    /// `records` more lie below the new `end`.
    pub(super) fn hand_over(&mut self, end: Sequence, records: u64) {
        if end <= self.end {
            return;
        }
        if records < end.since(self.end) {
            self.dense_from = end;
        }
        self.end = end;
        self.fresh += records;
    }

    /// Sets a fresh record aside: it is fresh no longer. False when it was not.
    pub(super) fn set_aside(&mut self, sequence: Sequence) -> bool {
        debug_assert!(sequence < self.end, "only what was handed over can be set aside");
        let was_fresh = if sequence < self.next {
            self.unannounced.remove(&sequence)
        } else {
            let inserted = self.aside.insert(sequence);
            self.aside_end = self.aside_end.max(sequence.next());
            self.move_to(self.next);
            inserted
        };
        if was_fresh {
            self.fresh = self.fresh.saturating_sub(1);
        }
        was_fresh
    }

    /// True when the cursor will step over `sequence`, or has.
    pub(super) fn is_aside(&self, sequence: Sequence) -> bool {
        sequence < self.next || self.aside.members_from(sequence) > 0
    }

    /// Sets aside what is finished already, without counting: `fresh` never held it.
    pub(super) fn set_finished_aside(&mut self, finished: &Bitmap) {
        self.aside = finished.clone();
        self.aside_end = self.end;
        self.move_to(self.next);
    }

    /// Nothing below `floor` is fresh.
    pub(super) fn pass(&mut self, floor: Sequence) {
        if floor > self.next {
            self.move_to(floor.min(self.end));
        }
    }

    /// The next fresh record.
    pub(super) fn meet<S: RecordSource + ?Sized>(&mut self, source: &S) -> Met {
        loop {
            if self.next >= self.end {
                self.forget_lost();
                return Met::Nothing;
            }
            if let Some(found) = self.reader.find(self.next) {
                return Met::Record(found);
            }
            if self.wanted.is_some() {
                return Met::Nothing;
            }
            match source.cached(self.next) {
                Some(chunk) if chunk.end() > self.next => {
                    if let Some(gap) = self.load(chunk) {
                        return Met::Gap(gap);
                    }
                }
                _ => {
                    self.wanted = Some(Wanted {
                        from: self.next,
                        end: self.end,
                    });
                    return Met::Nothing;
                }
            }
        }
    }

    /// Passes the record that was met: it is fresh no longer.
    pub(super) fn accept(&mut self, found: Found) {
        self.reader.step(found);
        self.fresh = self.fresh.saturating_sub(1);
        self.move_to(self.next.next());
    }

    /// Passes a delayed record that was met before its announcement; it stays fresh until then.
    pub(super) fn await_announcement(&mut self, found: Found) {
        self.reader.step(found);
        self.unannounced.insert(self.next);
        self.move_to(self.next.next());
    }

    /// The place that must be read from disk before the cursor can go on.
    pub(super) fn wanted(&self) -> Option<Sequence> {
        self.wanted.map(|wanted| wanted.from)
    }

    /// Takes what the disk holds at or after `asked`, if that is what was wanted. Answers the gap before it.
    pub(super) fn supply(&mut self, asked: Sequence, chunk: Option<Chunk>) -> Option<SequenceRange> {
        let wanted = self.wanted.take_if(|wanted| wanted.from == asked)?;
        match chunk {
            Some(chunk) if chunk.end() > self.next => self.load(chunk),
            Some(_) => None,
            None => self.skip_to(wanted.end),
        }
    }

    /// Gives up the oldest fresh record.
    pub(super) fn drop_oldest(&mut self) -> Option<Dropped> {
        if self.unmet() == 0 || self.next >= self.end {
            return None;
        }
        if self.next >= self.dense_from {
            let oldest = self.next;
            self.fresh -= 1;
            self.move_to(oldest.next());
            return Some(Dropped::One(oldest));
        }
        // Which of these sequences have a record is not known: all of them go.
        let range = SequenceRange::new(self.next, self.dense_from);
        let newer = SequenceRange::new(self.dense_from, self.end);
        let kept = newer.len() - self.aside.count(newer) + self.unannounced.len() as u64;
        let dropped = self.fresh.saturating_sub(kept);
        self.fresh -= dropped;
        self.move_to(range.end);
        Some(Dropped::Many(range, dropped))
    }

    /// Gives up the chunk that is being read.
    pub(super) fn release(&mut self) {
        self.reader.clear();
    }

    /// Bytes allocated, but for shared records.
    pub(super) fn memory_bytes(&self) -> usize {
        self.aside.memory_bytes() + self.unannounced.len() * size_of::<Sequence>()
    }

    /// Goes to `to`, and on over what was set aside.
    fn move_to(&mut self, to: Sequence) {
        self.next = to;
        if to >= self.aside_end {
            return;
        }
        loop {
            let run = self.aside.members_from(self.next);
            if run == 0 {
                break;
            }
            self.next = self.next + run;
        }
        self.aside.drop_below(self.next);
    }

    /// Starts to read `chunk`, which reaches beyond the cursor. Answers the gap before it.
    fn load(&mut self, chunk: Chunk) -> Option<SequenceRange> {
        let (first, end) = (chunk.first, chunk.end());
        self.reader.load(chunk);
        if first > self.next {
            return self.skip_to(first);
        }
        if self.reader.find(self.next).is_none() {
            // The bytes are not records: nothing in them can ever be delivered.
            return self.skip_to(end);
        }
        None
    }

    fn skip_to(&mut self, to: Sequence) -> Option<SequenceRange> {
        let gap = SequenceRange::new(self.next, to.min(self.end));
        if gap.is_empty() {
            return None;
        }
        self.move_to(gap.end);
        Some(gap)
    }

    /// At the end every record was met: what is still counted was not in the log.
    fn forget_lost(&mut self) {
        let lost = self.unmet();
        self.lost += lost;
        self.fresh -= lost;
    }
}
