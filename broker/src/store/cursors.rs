//! Duty: the contract of whoever keeps cursors, and the engine that keeps them in memory. Must not know disks.
//!
//! # Contract
//! 1. A channel exists between `create` and `remove`. What is saved for one that does not exist is dropped
//!    without an error: it was deleted while its checkpoint was under way. `load` answers `None` for it.
//! 2. When a call returns `Ok`, what it did is as durable as the engine is.
//! 3. Of a delta these are applied in order: `reset`, `floor`, `blocks`, `settled`, `unsettled`.
//! 4. Without `reset` the floor never falls: a lower one is ignored.
//! 5. Blocks wholly below the floor and unsettled messages below it are not kept.
//! 6. A saved block replaces the one of its number. A block without bits need not come back, one with all bits set
//!    may come back as [`FinishedBits::Full`].

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;

use super::StoreError;
use super::cursor::{
    BLOCK, ChannelNumber, CursorDelta, FinishedBits, FinishedBlock, StoredCursor, Unsettled,
};
use crate::log::sequence::Sequence;

/// Keeps the cursors of channels. Calls block until they are done.
pub trait CursorStore: Send + Sync {
    /// Makes a channel exist, everything below `floor` finished. Its number was never used before.
    fn create(&self, channel: ChannelNumber, floor: Sequence) -> Result<(), StoreError>;

    /// Applies deltas of many channels, all or none.
    fn save(&self, batch: &[(ChannelNumber, CursorDelta)]) -> Result<(), StoreError>;

    /// What the deltas of a channel add up to.
    fn load(&self, channel: ChannelNumber) -> Result<Option<StoredCursor>, StoreError>;

    /// Forgets channels; unknown ones are ignored.
    fn remove(&self, channels: &[ChannelNumber]) -> Result<(), StoreError>;
}

/// Cursors that end with the process: for tests, and for channels that are never stored.
#[derive(Debug, Default)]
pub struct MemoryCursors {
    channels: Mutex<HashMap<ChannelNumber, MemoryCursor>>,
}

#[derive(Debug, Default)]
struct MemoryCursor {
    floor: Sequence,
    blocks: BTreeMap<u64, FinishedBits>,
    unsettled: BTreeMap<Sequence, Unsettled>,
}

impl CursorStore for MemoryCursors {
    fn create(&self, channel: ChannelNumber, floor: Sequence) -> Result<(), StoreError> {
        let cursor = MemoryCursor {
            floor,
            ..MemoryCursor::default()
        };
        self.channels.lock().insert(channel, cursor);
        Ok(())
    }

    fn save(&self, batch: &[(ChannelNumber, CursorDelta)]) -> Result<(), StoreError> {
        let mut channels = self.channels.lock();
        for (channel, delta) in batch {
            if let Some(cursor) = channels.get_mut(channel) {
                cursor.apply(delta);
            }
        }
        Ok(())
    }

    fn load(&self, channel: ChannelNumber) -> Result<Option<StoredCursor>, StoreError> {
        Ok(self.channels.lock().get(&channel).map(MemoryCursor::stored))
    }

    fn remove(&self, channels: &[ChannelNumber]) -> Result<(), StoreError> {
        let mut known = self.channels.lock();
        for channel in channels {
            known.remove(channel);
        }
        Ok(())
    }
}

impl MemoryCursor {
    fn apply(&mut self, delta: &CursorDelta) {
        if delta.reset {
            *self = Self {
                floor: delta.floor,
                ..Self::default()
            };
        }
        self.floor = self.floor.max(delta.floor);
        for block in &delta.blocks {
            self.blocks.insert(block.number, block.bits.clone());
        }
        for sequence in &delta.settled {
            self.unsettled.remove(sequence);
        }
        for message in &delta.unsettled {
            self.unsettled.insert(message.sequence, *message);
        }
        self.blocks = self.blocks.split_off(&(self.floor.get() / BLOCK));
        self.unsettled = self.unsettled.split_off(&self.floor);
    }

    fn stored(&self) -> StoredCursor {
        let blocks = self.blocks.iter();
        StoredCursor {
            floor: self.floor,
            blocks: blocks
                .map(|(number, bits)| FinishedBlock {
                    number: *number,
                    bits: bits.clone(),
                })
                .collect(),
            unsettled: self.unsettled.values().copied().collect(),
        }
    }
}
