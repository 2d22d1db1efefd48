//! Duty: messages that came back and wait for their next delivery, and when it is their turn among the fresh
//! ones. Must not know why they came back.
//!
//! First in, first out. The one in front becomes next once the cursor has passed the place it was given at its
//! return; these places never decrease, so nobody behind it can be ready earlier (architecture, "Order").

use std::collections::VecDeque;

use crate::log::sequence::Sequence;

/// A message that came back. 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Returned {
    pub(super) sequence: Sequence,
    /// Its turn comes when the cursor has reached this.
    pub(super) turn: Sequence,
    /// Deliveries so far.
    pub(super) attempts: u16,
    /// True when the store knows it, or will with the next checkpoint, as unsettled.
    pub(super) stored: bool,
}

/// The queue of returned messages, in pages so that it never holds twice what it needs.
#[derive(Debug, Default)]
pub(super) struct ReturnedQueue {
    pages: VecDeque<Vec<Returned>>,
    /// How many of the first page are gone.
    gone: usize,
    len: usize,
}

impl ReturnedQueue {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn front(&self) -> Option<Returned> {
        self.pages.front().and_then(|page| page.get(self.gone)).copied()
    }

    pub(super) fn push(&mut self, returned: Returned) {
        match self.pages.back_mut() {
            Some(page) if page.len() < PAGE => page.push(returned),
            _ => {
                let mut page = Vec::with_capacity(PAGE);
                page.push(returned);
                self.pages.push_back(page);
            }
        }
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<Returned> {
        let page = self.pages.front()?;
        let front = page.get(self.gone).copied()?;
        self.gone += 1;
        self.len -= 1;
        if self.gone == page.len() {
            self.pages.pop_front();
            self.gone = 0;
        }
        Some(front)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Returned> + '_ {
        self.pages.iter().flatten().skip(self.gone).copied()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pages.len() * PAGE * size_of::<Returned>() + self.pages.capacity() * size_of::<Vec<Returned>>()
    }
}

/// Messages that are allocated together.
const PAGE: usize = 64;
