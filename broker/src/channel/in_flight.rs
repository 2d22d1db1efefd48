//! Duty: the messages that consumers hold right now, found by sequence, each with its owner, attempts and
//! timeout. Must not know consumers' rules, the log or what becomes of a message that leaves.
//!
//! Entries lie in fixed pages and are linked three ways by index: the free list or the index chain, and the
//! timer list. 36 bytes an entry and at most 8 for its place in the index.

use std::time::Duration;

use super::deadline::{List, NONE, Wheel, tick_after, tick_before, tick_start};
use super::settle::SettleError;
use crate::clock::Moment;
use crate::log::sequence::Sequence;

/// A message in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flight {
    /// The message.
    pub(super) sequence: Sequence,
    /// Deliveries including this one.
    pub(super) attempts: u16,
    /// The table row of its owner.
    pub(super) consumer: u32,
    /// True when the store knows it, or will with the next checkpoint, as unsettled.
    pub(super) stored: bool,
    /// True when it has an id of its own in the side table.
    pub(super) own_id: bool,
}

/// What all messages of one turn have in common: the moment of delivery and the deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    delivered: u64,
    due: u64,
}

impl Departure {
    /// Delivered at `now`, back after `timeout`; above [`LONGEST`] counts as that.
    pub(super) fn new(now: Moment, timeout: Duration) -> Self {
        Self {
            delivered: tick_after(now),
            due: tick_after(now + timeout.min(LONGEST)),
        }
    }
}

/// The longest time in flight, 240 days: times are kept as the low 32 bits of their tick.
pub(super) const LONGEST: Duration = Duration::from_hours(240 * 24);

/// All messages in flight of one channel.
#[derive(Debug)]
pub(super) struct InFlight {
    #[expect(
        clippy::vec_box,
        reason = "a page is never moved, and growing never doubles the pages"
    )]
    pages: Vec<Box<[Entry; PAGE]>>,
    /// First unused entry; unused entries are chained.
    free: u32,
    len: usize,
    /// Heads of the chains of entries whose sequences share a hash; a power of two.
    index: Vec<u32>,
    wheel: Wheel,
    /// First of the entries that have timed out and were not asked for yet; out of the wheel already.
    expired: u32,
}

impl InFlight {
    pub(super) fn new() -> Self {
        Self {
            pages: Vec::new(),
            free: NONE,
            len: 0,
            index: Vec::new(),
            wheel: Wheel::default(),
            expired: NONE,
        }
    }

    /// Number of messages in flight.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Takes a message that is not in flight.
    pub(super) fn insert(&mut self, flight: Flight, departure: Departure) {
        if self.len >= self.index.len() {
            self.grow_index();
        }
        if self.free == NONE {
            self.add_page();
        }
        let at = self.free;
        let bucket = self.bucket(flight.sequence.get());
        let chain = std::mem::replace(&mut self.index[bucket], at);
        let entry = self.entry_mut(at);
        let free = entry.chain;
        *entry = Entry {
            sequence: flight.sequence.get(),
            attempts: flight.attempts,
            stored: flight.stored,
            own_id: flight.own_id,
            consumer: flight.consumer,
            delivered: departure.delivered as u32,
            chain,
            ..Entry::UNUSED
        };
        self.free = free;
        self.len += 1;
        self.link(at, departure.due);
    }

    /// The message `sequence`, if it is in flight.
    pub(super) fn get(&self, sequence: Sequence) -> Option<Flight> {
        self.find(sequence).map(|at| self.entry(at).flight())
    }

    /// Ends the flight of `sequence` if it is `consumer`'s.
    pub(super) fn remove(
        &mut self,
        sequence: Sequence,
        consumer: Option<u32>,
    ) -> Result<Flight, SettleError> {
        let at = self.find(sequence).ok_or(SettleError::NotInFlight)?;
        if Some(self.entry(at).consumer) != consumer {
            return Err(SettleError::NotOwner);
        }
        self.unlink(at);
        self.unchain(at);
        Ok(self.release(at))
    }

    /// Puts the deadline of `sequence` off to `timeout` from `now`, at most to `longest` from the delivery.
    pub(super) fn postpone(&mut self, sequence: Sequence, now: Moment, timeout: Duration, longest: Duration) {
        let Some(at) = self.find(sequence) else {
            return;
        };
        let now_tick = tick_after(now);
        let age = (now_tick as u32).wrapping_sub(self.entry(at).delivered) as i32;
        let cap = tick_after(tick_start(now_tick) + longest.min(LONGEST)).saturating_sub(age.max(0) as u64);
        let due = tick_after(now + timeout.min(LONGEST)).min(cap);
        self.unlink(at);
        self.link(at, due);
    }

    /// Ends the flight whose deadline came first, of those that have come until `now`; to be called until it
    /// answers `None`.
    pub(super) fn pop_expired(&mut self, now: Moment) -> Option<Flight> {
        while self.expired == NONE {
            let list = self.wheel.take_until(tick_before(now))?;
            self.deal_out(list.head);
        }
        let at = self.expired;
        self.expired = self.entry(at).next;
        self.unchain(at);
        Some(self.release(at))
    }

    /// Lets the wheel's time follow while nothing is in flight, so that new deadlines start on low levels.
    pub(super) fn keep_time(&mut self, now: Moment) {
        if self.len == 0 {
            let _ = self.wheel.take_until(tick_before(now));
        }
    }

    /// When [`InFlight::pop_expired`] has something to do again.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        self.wheel.next()
    }

    /// Every message in flight, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Flight> + '_ {
        self.pages
            .iter()
            .flat_map(|page| page.iter())
            .filter(|entry| entry.consumer != NONE)
            .map(Entry::flight)
    }

    /// Forgets everything and gives the memory back.
    pub(super) fn clear(&mut self) {
        let elapsed = self.wheel.elapsed();
        *self = Self::new();
        self.wheel = Wheel::starting_at(elapsed);
    }

    /// Bytes allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pages.len() * size_of::<[Entry; PAGE]>()
            + self.pages.capacity() * size_of::<Box<[Entry; PAGE]>>()
            + self.index.capacity() * size_of::<u32>()
            + self.wheel.memory_bytes()
    }

    fn entry(&self, at: u32) -> &Entry {
        &self.pages[at as usize / PAGE][at as usize % PAGE]
    }

    fn entry_mut(&mut self, at: u32) -> &mut Entry {
        &mut self.pages[at as usize / PAGE][at as usize % PAGE]
    }

    fn find(&self, sequence: Sequence) -> Option<u32> {
        let sequence = sequence.get();
        let mut at = *self.index.get(self.bucket(sequence))?;
        while at != NONE {
            let entry = self.entry(at);
            if entry.sequence == sequence {
                return Some(at);
            }
            at = entry.chain;
        }
        None
    }

    fn bucket(&self, sequence: u64) -> usize {
        // Fibonacci hashing: neighbours spread as well as multiples of any power of two do.
        let hash = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize & self.index.len().wrapping_sub(1)
    }

    /// Takes the entry out of its index chain.
    fn unchain(&mut self, at: u32) {
        let entry = *self.entry(at);
        let bucket = self.bucket(entry.sequence);
        if self.index[bucket] == at {
            self.index[bucket] = entry.chain;
            return;
        }
        let mut before = self.index[bucket];
        loop {
            let chain = self.entry(before).chain;
            if chain == at {
                break;
            }
            before = chain;
        }
        self.entry_mut(before).chain = entry.chain;
    }

    /// Puts the entry, out of all lists by now, on the free list.
    fn release(&mut self, at: u32) -> Flight {
        let free = std::mem::replace(&mut self.free, at);
        let entry = self.entry_mut(at);
        let flight = entry.flight();
        *entry = Entry {
            chain: free,
            ..Entry::UNUSED
        };
        self.len -= 1;
        if self.len == 0 && self.pages.len() > KEPT_PAGES {
            self.give_back();
        }
        flight
    }

    /// Puts the entry at the end of its slot's list.
    fn link(&mut self, at: u32, due: u64) {
        let due = due.max(self.wheel.elapsed());
        let slot = self.wheel.slot(due);
        let list = self.wheel.get(slot);
        let entry = self.entry_mut(at);
        entry.due = due as u32;
        entry.previous = list.tail;
        entry.next = NONE;
        if list.is_empty() {
            self.wheel.set(slot, List { head: at, tail: at });
        } else {
            self.entry_mut(list.tail).next = at;
            self.wheel.set(slot, List { tail: at, ..list });
        }
    }

    /// Parts a slot's list into what has expired and what goes to a later slot, order kept.
    fn deal_out(&mut self, head: u32) {
        let mut at = head;
        let mut last = NONE;
        while at != NONE {
            let next = self.entry(at).next;
            let due = self.due(at);
            if due > self.wheel.elapsed() {
                self.link(at, due);
            } else if last == NONE {
                self.expired = at;
                last = at;
            } else {
                self.entry_mut(last).next = at;
                last = at;
            }
            at = next;
        }
        if last != NONE {
            self.entry_mut(last).next = NONE;
        }
    }

    /// Takes the entry out of its slot's list.
    fn unlink(&mut self, at: u32) {
        let Entry { previous, next, .. } = *self.entry(at);
        if previous != NONE {
            self.entry_mut(previous).next = next;
        }
        if next != NONE {
            self.entry_mut(next).previous = previous;
        }
        if previous == NONE || next == NONE {
            let slot = self.wheel.slot(self.due(at));
            let list = self.wheel.get(slot);
            self.wheel.set(
                slot,
                List {
                    head: if previous == NONE { next } else { list.head },
                    tail: if next == NONE { previous } else { list.tail },
                },
            );
        }
    }

    /// The whole tick of which the entry keeps 32 bits; it is not before the wheel's time.
    fn due(&self, at: u32) -> u64 {
        let elapsed = self.wheel.elapsed();
        elapsed + u64::from(self.entry(at).due.wrapping_sub(elapsed as u32))
    }

    /// Nothing is in flight: frees pages and index.
    fn give_back(&mut self) {
        self.pages = Vec::new();
        self.index = Vec::new();
        self.free = NONE;
    }

    fn add_page(&mut self) {
        let first = (self.pages.len() * PAGE) as u32;
        let mut page = Box::new([Entry::UNUSED; PAGE]);
        for (entry, next) in page.iter_mut().zip(first + 1..) {
            entry.chain = next;
        }
        page[PAGE - 1].chain = self.free;
        self.free = first;
        self.pages.push(page);
    }

    fn grow_index(&mut self) {
        self.index = vec![NONE; (self.index.len() * 2).max(MIN_INDEX)];
        for at in 0..(self.pages.len() * PAGE) as u32 {
            let Entry {
                sequence, consumer, ..
            } = *self.entry(at);
            if consumer != NONE {
                let bucket = self.bucket(sequence);
                let chain = std::mem::replace(&mut self.index[bucket], at);
                self.entry_mut(at).chain = chain;
            }
        }
    }
}

/// Packed to four bytes: padding would cost a tenth of it.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed(4))]
struct Entry {
    sequence: u64,
    attempts: u16,
    stored: bool,
    own_id: bool,
    /// [`NONE`] in an unused entry.
    consumer: u32,
    /// Low 32 bits of the tick of delivery.
    delivered: u32,
    /// Low 32 bits of the tick of the deadline.
    due: u32,
    /// Next entry with the same hash, or next unused one.
    chain: u32,
    /// Neighbours in the timer list.
    previous: u32,
    next: u32,
}

impl Entry {
    const UNUSED: Self = Self {
        sequence: 0,
        attempts: 0,
        stored: false,
        own_id: false,
        consumer: NONE,
        delivered: 0,
        due: 0,
        chain: NONE,
        previous: NONE,
        next: NONE,
    };

    fn flight(&self) -> Flight {
        Flight {
            sequence: Sequence::new(self.sequence),
            attempts: self.attempts,
            consumer: self.consumer,
            stored: self.stored,
            own_id: self.own_id,
        }
    }
}

/// Entries that are allocated together.
const PAGE: usize = 64;
/// An empty table keeps so much for the next turn: 36 KiB.
const KEPT_PAGES: usize = 16;
const MIN_INDEX: usize = 16;
