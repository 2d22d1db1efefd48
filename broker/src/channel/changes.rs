//! Duty: remembers what of the unsettled messages the store does not know yet. Must not know clocks or blocks.

use std::collections::BTreeMap;

use crate::clock::Moment;
use crate::log::sequence::Sequence;

/// How an unsettled message waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Deliveries so far.
    pub(super) attempts: u16,
    /// `None` = at once.
    pub(super) due: Option<Moment>,
}

/// One step of the store towards what is true now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The store has not heard of it.
    New(Waiting),
    /// The store has an older state.
    Changed(Waiting),
    /// The store has it and must forget it.
    Gone,
}

/// What happened since the last checkpoint.
#[derive(Debug)]
pub(super) struct Changes {
    /// False for channels that are never stored.
    kept: bool,
    unsettled: BTreeMap<Sequence, Change>,
    /// Messages finished.
    pub(super) finishes: u64,
    /// Everything stored before is void.
    pub(super) reset: bool,
    /// The floor the store knows.
    pub(super) floor: Sequence,
}

impl Changes {
    pub(super) fn new(kept: bool, floor: Sequence) -> Self {
        Self {
            kept,
            unsettled: BTreeMap::new(),
            finishes: 0,
            reset: false,
            floor,
        }
    }

    pub(super) const fn kept(&self) -> bool {
        self.kept
    }

    /// The message waits for another delivery. `stored` tells whether the store knows it; answers whether it
    /// will.
    pub(super) fn waits(&mut self, sequence: Sequence, stored: bool, waiting: Waiting) -> bool {
        if self.kept {
            let change = match self.unsettled.get(&sequence) {
                Some(Change::New(_)) => Change::New(waiting),
                _ if stored => Change::Changed(waiting),
                _ => Change::New(waiting),
            };
            self.unsettled.insert(sequence, change);
        }
        self.kept
    }

    /// A message that the store knows, or was about to know, is settled or is fresh again.
    pub(super) fn is_gone(&mut self, sequence: Sequence) {
        match self.unsettled.get(&sequence) {
            Some(Change::New(_)) => {
                self.unsettled.remove(&sequence);
            }
            _ => {
                self.unsettled.insert(sequence, Change::Gone);
            }
        }
    }

    /// Everything was dropped.
    pub(super) fn reset(&mut self) {
        self.unsettled.clear();
        self.reset = self.kept;
    }

    pub(super) fn take(&mut self) -> BTreeMap<Sequence, Change> {
        std::mem::take(&mut self.unsettled)
    }

    /// Bytes of the entries.
    pub(super) fn memory_bytes(&self) -> usize {
        self.unsettled.len() * size_of::<(Sequence, Change)>()
    }
}
