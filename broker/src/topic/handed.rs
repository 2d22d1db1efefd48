//! Duty: how far a topic has handed its records over, readable by its channels without the topic's lock.

use parking_lot::Mutex;

use crate::log::sequence::Sequence;

/// First sequence not handed over, and the number of records handed over since the topic was opened (without gaps).
#[derive(Debug)]
pub struct Handed {
    state: Mutex<(Sequence, u64)>,
}

impl Handed {
    /// Everything below `end` was handed over before.
    pub fn new(end: Sequence) -> Self {
        Self {
            state: Mutex::new((end, 0)),
        }
    }

    /// The position and the running count of records.
    pub fn get(&self) -> (Sequence, u64) {
        *self.state.lock()
    }

    /// `records` more were handed over, up to `end`.
    pub fn advance(&self, end: Sequence, records: u64) {
        let mut state = self.state.lock();
        state.0 = end;
        state.1 += records;
    }

    /// The position moves over records that nobody gets.
    pub fn skip(&self, end: Sequence) {
        self.state.lock().0 = end;
    }
}
