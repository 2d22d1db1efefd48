//! Duty: messages that wait for a time: published with a delay, or requeued with one. Comes in: a message and
//! when it is due. Goes out: what is due, in order of due times. Must not know where its delay came from.
//!
//! 16 bytes an entry, in pages that belong to one slot of the wheel each, so that an hour of delayed messages
//! costs no sorting and no doubling. Everything outside sees [`DueIndex`] only: keeping far entries in files
//! changes nothing but this file.

use std::cmp::Reverse;
use std::time::Duration;

use super::deadline::{List, NONE, TICK, Wheel, tick_before};
use crate::clock::Moment;
use crate::log::sequence::Sequence;

/// A message that waits for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deferred {
    pub(super) sequence: Sequence,
    /// Kept to the millisecond, rounded up.
    pub(super) due: Moment,
    /// Deliveries so far.
    pub(super) attempts: u16,
    /// True when the store knows it, or will with the next checkpoint, as unsettled.
    pub(super) stored: bool,
}

/// Everything of one channel that waits for a time.
#[derive(Debug, Default)]
pub(super) struct DueIndex {
    wheel: Wheel,
    #[expect(
        clippy::vec_box,
        reason = "a page is never moved, and growing never doubles the pages"
    )]
    pages: Vec<Box<Page>>,
    /// First unused page.
    free: u32,
    len: usize,
    /// What is due in the tick at hand, last first.
    due: Vec<Packed>,
}

impl DueIndex {
    pub(super) fn new() -> Self {
        Self {
            free: NONE,
            ..Self::default()
        }
    }

    /// Number of messages that wait.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn insert(&mut self, deferred: Deferred) {
        self.place(Packed::new(deferred));
        self.len += 1;
    }

    /// Takes out what is due first, of all that is due at `now`; at one time the first that was inserted. To be
    /// called until it answers `None`.
    pub(super) fn pop_due(&mut self, now: Moment) -> Option<Deferred> {
        while self.due.is_empty() {
            let Some(list) = self.wheel.take_until(tick_before(now)) else {
                if self.len == 0 {
                    self.release();
                }
                return None;
            };
            self.deal_out(list.head);
            self.due.sort_by_key(|packed| Reverse(packed.due_ms()));
        }
        self.len -= 1;
        self.due.pop().map(Packed::unpack)
    }

    /// Everything that waits, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Deferred> + '_ {
        let mut in_use = vec![true; self.pages.len()];
        let mut free = self.free;
        while let Some(page) = self.pages.get(free as usize) {
            in_use[free as usize] = false;
            free = page.next;
        }
        std::iter::zip(&self.pages, in_use)
            .filter(|(_, in_use)| *in_use)
            .flat_map(|(page, _)| &page.entries[..page.len])
            .map(|packed| packed.unpack())
    }

    /// When [`DueIndex::pop_due`] has something to do again.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        self.wheel.next()
    }

    /// Forgets everything and gives the memory back.
    pub(super) fn clear(&mut self) {
        self.wheel = Wheel::starting_at(self.wheel.elapsed());
        self.len = 0;
        self.release();
    }

    /// Bytes allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pages.len() * size_of::<Page>()
            + self.pages.capacity() * size_of::<Box<Page>>()
            + self.due.capacity() * size_of::<Packed>()
            + self.wheel.memory_bytes()
    }

    fn place(&mut self, packed: Packed) {
        let slot = self.wheel.slot(packed.tick());
        let list = self.wheel.get(slot);
        if !list.is_empty() && self.pages[list.tail as usize].push(packed) {
            return;
        }
        let at = self.page();
        self.pages[at as usize].push(packed);
        if list.is_empty() {
            self.wheel.set(slot, List { head: at, tail: at });
        } else {
            self.pages[list.tail as usize].next = at;
            self.wheel.set(slot, List { tail: at, ..list });
        }
    }

    /// Parts a slot's pages into what is due, last first, and what goes to a later slot, order kept.
    fn deal_out(&mut self, head: u32) {
        let mut at = head;
        while at != NONE {
            let page = (*self.pages[at as usize]).clone();
            self.pages[at as usize].next = self.free;
            self.free = at;
            for packed in &page.entries[..page.len] {
                if packed.tick() <= self.wheel.elapsed() {
                    self.due.push(*packed);
                } else {
                    self.place(*packed);
                }
            }
            at = page.next;
        }
        self.due.reverse();
    }

    fn page(&mut self) -> u32 {
        if self.free == NONE {
            self.pages.push(Box::default());
            return self.pages.len() as u32 - 1;
        }
        let at = self.free;
        let page = &mut self.pages[at as usize];
        self.free = page.next;
        page.next = NONE;
        page.len = 0;
        at
    }

    fn release(&mut self) {
        self.pages = Vec::new();
        self.due = Vec::new();
        self.free = NONE;
    }
}

/// 48 bits of milliseconds and 16 of attempts; 50 bits of sequence and a flag.
#[derive(Clone, Copy, Debug, Default)]
struct Packed {
    due_and_attempts: u64,
    sequence_and_flag: u64,
}

impl Packed {
    fn new(deferred: Deferred) -> Self {
        let stored = if deferred.stored { STORED } else { 0 };
        Self {
            due_and_attempts: deferred.due.as_nanos().div_ceil(MILLISECOND) << 16
                | u64::from(deferred.attempts),
            sequence_and_flag: deferred.sequence.get() | stored,
        }
    }

    fn unpack(self) -> Deferred {
        Deferred {
            sequence: Sequence::new(self.sequence_and_flag & !STORED),
            due: Moment::from_nanos(self.due_ms().saturating_mul(MILLISECOND)),
            attempts: self.due_and_attempts as u16,
            stored: self.sequence_and_flag & STORED != 0,
        }
    }

    const fn due_ms(self) -> u64 {
        self.due_and_attempts >> 16
    }

    const fn tick(self) -> u64 {
        self.due_ms().div_ceil(TICK.as_millis() as u64)
    }
}

#[derive(Clone, Debug)]
struct Page {
    entries: [Packed; PAGE],
    len: usize,
    /// Next page of the slot, or next unused one.
    next: u32,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            entries: [Packed::default(); PAGE],
            len: 0,
            next: NONE,
        }
    }
}

impl Page {
    fn push(&mut self, packed: Packed) -> bool {
        let Some(entry) = self.entries.get_mut(self.len) else {
            return false;
        };
        *entry = packed;
        self.len += 1;
        true
    }
}

/// Entries that are allocated together: a page is half a kilobyte.
const PAGE: usize = 31;
const STORED: u64 = 1 << 63;
const MILLISECOND: u64 = Duration::from_millis(1).as_nanos() as u64;
