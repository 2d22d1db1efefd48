//! Duty: which messages are finished: the floor, the exact set above it and the gaps. Comes in: finished
//! sequences. Goes out: the floor and what of the set changed. Must not know how a message came to be finished.

use std::collections::BTreeMap;

use super::bitmap::Bitmap;
use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::cursor::{BLOCK, FinishedBlock};

/// The finished set of a channel.
#[derive(Debug)]
pub(super) struct Finished {
    /// Everything below is finished or was never there; this one is neither.
    floor: Sequence,
    /// Members at or above the floor.
    above: u64,
    /// May hold what lies below the floor, and lacks what was finished exactly at it.
    set: Bitmap,
    /// Places without a record at or above the floor, start to end. They are not stored: whoever reads the log
    /// again finds them again.
    gaps: BTreeMap<Sequence, Sequence>,
}

impl Finished {
    /// Nothing at or above `floor` is finished.
    pub(super) fn new(floor: Sequence) -> Self {
        Self {
            floor,
            above: 0,
            set: Bitmap::default(),
            gaps: BTreeMap::new(),
        }
    }

    /// As it was stored, without what lies at or above `end`.
    pub(super) fn restore(floor: Sequence, blocks: &[FinishedBlock], end: Sequence) -> Self {
        let mut finished = Self::new(floor);
        for block in blocks {
            if block.number >= floor.get() / BLOCK {
                finished.set.load(block, end);
            }
        }
        finished.above = finished.set.count(SequenceRange::new(floor, end));
        finished.advance();
        finished
    }

    pub(super) const fn floor(&self) -> Sequence {
        self.floor
    }

    /// Members at or above the floor.
    pub(super) const fn above(&self) -> u64 {
        self.above
    }

    /// The set, of which only what lies at or above the floor counts.
    pub(super) const fn set(&self) -> &Bitmap {
        &self.set
    }

    /// Adds a message, once.
    pub(super) fn insert(&mut self, sequence: Sequence) {
        if sequence == self.floor {
            self.floor = sequence.next();
            self.advance();
        } else if sequence > self.floor && self.set.insert(sequence) {
            self.above += 1;
        }
    }

    /// No record lies in `range`, which does not touch a gap that is known already.
    pub(super) fn insert_gap(&mut self, range: SequenceRange) {
        if range.is_empty() || range.end <= self.floor {
            return;
        }
        if range.start <= self.floor {
            self.floor = range.end;
            self.advance();
        } else {
            self.gaps.insert(range.start, range.end);
        }
    }

    /// The blocks that changed since they were last asked for.
    pub(super) fn take_changed(&mut self) -> Vec<FinishedBlock> {
        self.set.take_changed()
    }

    /// Makes [`Finished::take_changed`] answer the whole set.
    pub(super) fn mark_all_changed(&mut self) {
        self.set.mark_all_changed();
    }

    /// Bytes allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.set.memory_bytes() + self.gaps.len() * size_of::<SequenceRange>()
    }

    /// Moves the floor over everything that is finished.
    fn advance(&mut self) {
        loop {
            if self.above > 0 {
                let run = self.set.members_from(self.floor);
                if run > 0 {
                    self.floor = self.floor + run;
                    self.above -= run;
                    continue;
                }
            }
            match self.gaps.first_key_value() {
                Some((start, end)) if *start <= self.floor => {
                    self.floor = self.floor.max(*end);
                    self.gaps.pop_first();
                }
                _ => break,
            }
        }
        self.set.drop_below(self.floor);
    }
}
