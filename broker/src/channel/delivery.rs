//! Duty: what passes between a channel and a connection when messages are taken. Must not know frames.

use bytes::Bytes;

use crate::log::engine::{Chunk, TopicLog};
use crate::log::sequence::Sequence;

/// Where the channel finds records without waiting. Every [`TopicLog`] is one.
pub trait RecordSource {
    /// The first records at or after `from` that are in memory; `None` when memory does not hold that place.
    fn cached(&self, from: Sequence) -> Option<Chunk>;
}

impl<L: TopicLog + ?Sized> RecordSource for L {
    fn cached(&self, from: Sequence) -> Option<Chunk> {
        self.read_cached(from)
    }
}

/// How much one call of [`super::Channel::take`] may hand out. Zero messages gives back a turn that was offered
/// by [`super::Channel::wake_next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeLimit {
    /// At most this many messages.
    pub messages: usize,
    /// No further message once so many bytes of records were handed out; the first always is.
    pub bytes: usize,
}

/// What one call of [`super::Channel::take`] handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Messages.
    pub messages: usize,
    /// Bytes of their records.
    pub bytes: usize,
    /// The limit ended the call and credit is left: the consumer is not parked and is to take again.
    pub more: bool,
    /// The consumer gets nothing more for now whatever comes: no credit is left, or the channel is paused.
    pub full: bool,
}

/// The messages for one connection, reused from turn to turn.
#[derive(Clone, Debug, Default)]
pub struct Deliveries {
    /// Encoded records, shared with the log.
    pub chunks: Vec<Bytes>,
    /// One per message, in the order of sending.
    pub items: Vec<Delivery>,
}

/// One message: [`crate::log::record::Record::decode`] reads it at `offset` of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Index of the bytes in [`Deliveries::chunks`].
    pub chunk: u32,
    /// Where in the chunk the record starts.
    pub offset: u32,
    /// Deliveries including this one; wraps (C-67).
    pub attempts: u16,
}

impl Deliveries {
    /// Forgets the messages and keeps the memory.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.items.clear();
    }

    /// Adds the record at `offset` of `bytes`.
    pub(super) fn push(&mut self, bytes: &Bytes, offset: u32, attempts: u16) {
        let same = self
            .chunks
            .last()
            .is_some_and(|last| last.as_ptr() == bytes.as_ptr() && last.len() == bytes.len());
        if !same {
            self.chunks.push(bytes.clone());
        }
        let chunk = self.chunks.len() as u32 - 1;
        self.items.push(Delivery {
            chunk,
            offset,
            attempts,
        });
    }
}
