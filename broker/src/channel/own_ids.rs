//! Duty: finds messages in flight by an id of their own (imported ones). Must not know how ids look on the wire.

use std::collections::BTreeMap;

use crate::log::sequence::Sequence;

/// The messages in flight whose records carry an id of their own.
#[derive(Debug, Default)]
pub(super) struct OwnIds {
    by_id: BTreeMap<[u8; 16], Sequence>,
    by_sequence: BTreeMap<Sequence, [u8; 16]>,
}

impl OwnIds {
    /// Of two messages with the same id the later one answers to it.
    pub(super) fn insert(&mut self, id: [u8; 16], sequence: Sequence) {
        self.by_id.insert(id, sequence);
        self.by_sequence.insert(sequence, id);
    }

    pub(super) fn get(&self, id: [u8; 16]) -> Option<Sequence> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_sequence.is_empty()
    }

    pub(super) fn remove(&mut self, sequence: Sequence) {
        if let Some(id) = self.by_sequence.remove(&sequence)
            && self.by_id.get(&id) == Some(&sequence)
        {
            self.by_id.remove(&id);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes of the entries.
    pub(super) fn memory_bytes(&self) -> usize {
        (self.by_id.len() + self.by_sequence.len()) * size_of::<(Sequence, [u8; 16])>()
    }
}
