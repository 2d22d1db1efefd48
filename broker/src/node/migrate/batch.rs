//! Duty: messages on their way from a stock queue to a log: about one append at a time, whatever the queue's length.
//! Must not know where they go.

use std::ops::Range;

use crate::import::ImportError;
use crate::import::stock_queue::QueueReader;
use crate::log::record::NewRecord;

/// Messages for one append. Its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Batch {
    heads: Vec<Head>,
    bodies: Vec<u8>,
}

#[derive(Debug)]
struct Head {
    timestamp: i64,
    attempts: u16,
    id: [u8; 16],
    body: Range<usize>,
}

impl Batch {
    /// Drops what it holds and takes the next messages; false when the queue has no more.
    ///
    /// # Errors
    /// When the queue can not be read.
    pub(super) fn refill(&mut self, queue: &mut QueueReader) -> Result<bool, ImportError> {
        self.heads.clear();
        self.bodies.clear();
        while self.bodies.len() < BATCH_BYTES && self.heads.len() < BATCH_MESSAGES {
            let Some(message) = queue.next_message()? else {
                return Ok(false);
            };
            let start = self.bodies.len();
            self.bodies.extend_from_slice(message.body);
            self.heads.push(Head {
                timestamp: message.timestamp,
                attempts: message.attempts,
                id: message.id,
                body: start..self.bodies.len(),
            });
        }
        Ok(true)
    }

    /// The messages as a log takes them: with the id and the attempts that they have.
    pub(super) fn records(&self) -> Vec<NewRecord<'_>> {
        let record = |head: &Head| NewRecord {
            timestamp: head.timestamp,
            attempts: head.attempts,
            own_id: Some(head.id),
            body: &self.bodies[head.body.clone()],
            ..NewRecord::default()
        };
        self.heads.iter().map(record).collect()
    }
}

/// Bytes of bodies that make a batch full.
pub(super) const BATCH_BYTES: usize = 1 << 20;
/// Messages that make a batch full, so that small ones do not take more memory.
const BATCH_MESSAGES: usize = 1 << 14;
