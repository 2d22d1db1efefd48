//! Duty: walks a chunk from record to record. Must not know why a record is looked for.

use bytes::Bytes;

use crate::log::engine::Chunk;
use crate::log::record::Outline;
use crate::log::sequence::Sequence;

/// A place in a run of records.
#[derive(Debug, Default)]
pub(super) struct Reader {
    chunk: Option<Chunk>,
    /// The record that starts at `offset`.
    at: Sequence,
    offset: usize,
}

/// The record a [`Reader`] stands at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Where it starts in the reader's bytes.
    pub(super) offset: usize,
    pub(super) outline: Outline,
}

impl Reader {
    /// Starts at the first record of `chunk`.
    pub(super) fn load(&mut self, chunk: Chunk) {
        self.at = chunk.first;
        self.offset = 0;
        self.chunk = Some(chunk);
    }

    /// The bytes being read; empty when there are none.
    pub(super) fn bytes(&self) -> &Bytes {
        static NOTHING: Bytes = Bytes::new();
        self.chunk.as_ref().map_or(&NOTHING, |chunk| &chunk.bytes)
    }

    /// First sequence after what is held.
    pub(super) fn end(&self) -> Option<Sequence> {
        self.chunk.as_ref().map(Chunk::end)
    }

    /// Finds the record `sequence` at or after the reader's place. `None` when it does not lie there.
    pub(super) fn find(&mut self, sequence: Sequence) -> Option<Found> {
        let chunk = self.chunk.as_ref()?;
        if sequence < self.at || sequence >= chunk.end() {
            return None;
        }
        loop {
            let outline = Outline::read(chunk.bytes.get(self.offset..)?).ok()?;
            if self.at == sequence {
                return Some(Found {
                    offset: self.offset,
                    outline,
                });
            }
            self.offset += outline.length;
            self.at = self.at.next();
        }
    }

    /// Steps over the record that was found last.
    pub(super) fn step(&mut self, found: Found) {
        self.at = self.at.next();
        self.offset = found.offset + found.outline.length;
        // What was read to its end must not keep its memory.
        if self.end().is_some_and(|end| self.at >= end) {
            self.chunk = None;
        }
    }

    pub(super) fn clear(&mut self) {
        self.chunk = None;
    }
}
