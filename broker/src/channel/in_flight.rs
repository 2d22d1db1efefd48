//! Duty: the messages that consumers hold right now, each with its owner, attempts and timeout. Must not know
//! consumers' rules, the log or what becomes of a message that leaves.
//!
//! The entries lie in a table; those of one slot of the timer wheel are linked to a list.

use std::time::Duration;

use super::deadline::{List, NONE, Wheel, tick_after, tick_before, tick_start};
use super::flight_table::{Entry, FlightTable};
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
    table: FlightTable,
    wheel: Wheel,
    /// First of the entries that have timed out and were not asked for yet; out of the wheel already.
    expired: u32,
}

impl InFlight {
    pub(super) fn new() -> Self {
        Self {
            table: FlightTable::new(),
            wheel: Wheel::default(),
            expired: NONE,
        }
    }

    /// Number of messages in flight.
    pub(super) const fn len(&self) -> usize {
        self.table.len()
    }

    /// Takes a message that is not in flight.
    pub(super) fn insert(&mut self, flight: Flight, departure: Departure) {
        let at = self.table.insert(Entry {
            sequence: flight.sequence.get(),
            attempts: flight.attempts,
            stored: flight.stored,
            own_id: flight.own_id,
            consumer: flight.consumer,
            delivered: departure.delivered as u32,
            ..Entry::UNUSED
        });
        self.link(at, departure.due);
    }

    /// The message `sequence`, if it is in flight.
    pub(super) fn get(&self, sequence: Sequence) -> Option<Flight> {
        self.table.find(sequence).map(|at| flight(self.table.get(at)))
    }

    /// Ends the flight of `sequence` if it is `consumer`'s.
    pub(super) fn remove(
        &mut self,
        sequence: Sequence,
        consumer: Option<u32>,
    ) -> Result<Flight, SettleError> {
        let at = self.table.find(sequence).ok_or(SettleError::NotInFlight)?;
        if Some(self.table.get(at).consumer) != consumer {
            return Err(SettleError::NotOwner);
        }
        self.unlink(at);
        Ok(flight(&self.table.remove(at)))
    }

    /// Puts the deadline of `sequence` off to `timeout` from `now`, at most to `longest` from the delivery.
    pub(super) fn postpone(&mut self, sequence: Sequence, now: Moment, timeout: Duration, longest: Duration) {
        let Some(at) = self.table.find(sequence) else {
            return;
        };
        let now_tick = tick_after(now);
        let age = (now_tick as u32).wrapping_sub(self.table.get(at).delivered) as i32;
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
        self.expired = self.table.get(at).next;
        Some(flight(&self.table.remove(at)))
    }

    /// Lets the wheel's time follow while nothing is in flight, so that new deadlines start on low levels.
    pub(super) fn keep_time(&mut self, now: Moment) {
        if self.len() == 0 {
            let _ = self.wheel.take_until(tick_before(now));
        }
    }

    /// When [`InFlight::pop_expired`] has something to do again.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        self.wheel.next()
    }

    /// Every message in flight, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Flight> + '_ {
        self.table.iter().map(flight)
    }

    /// Forgets everything and gives the memory back.
    pub(super) fn clear(&mut self) {
        let elapsed = self.wheel.elapsed();
        *self = Self::new();
        self.wheel = Wheel::starting_at(elapsed);
    }

    /// Bytes allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.wheel.memory_bytes()
    }

    /// Puts the entry at the end of its slot's list.
    fn link(&mut self, at: u32, due: u64) {
        let due = due.max(self.wheel.elapsed());
        let slot = self.wheel.slot(due);
        let list = self.wheel.get(slot);
        let entry = self.table.get_mut(at);
        entry.due = due as u32;
        entry.previous = list.tail;
        entry.next = NONE;
        if list.is_empty() {
            self.wheel.set(slot, List { head: at, tail: at });
        } else {
            self.table.get_mut(list.tail).next = at;
            self.wheel.set(slot, List { tail: at, ..list });
        }
    }

    /// Parts a slot's list into what has expired and what goes to a later slot, order kept.
    fn deal_out(&mut self, head: u32) {
        let mut at = head;
        let mut last = NONE;
        while at != NONE {
            let next = self.table.get(at).next;
            let due = self.due(at);
            if due > self.wheel.elapsed() {
                self.link(at, due);
            } else if last == NONE {
                self.expired = at;
                last = at;
            } else {
                self.table.get_mut(last).next = at;
                last = at;
            }
            at = next;
        }
        if last != NONE {
            self.table.get_mut(last).next = NONE;
        }
    }

    /// Takes the entry out of its slot's list.
    fn unlink(&mut self, at: u32) {
        let Entry { previous, next, .. } = *self.table.get(at);
        if previous != NONE {
            self.table.get_mut(previous).next = next;
        }
        if next != NONE {
            self.table.get_mut(next).previous = previous;
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
        elapsed + u64::from(self.table.get(at).due.wrapping_sub(elapsed as u32))
    }
}

fn flight(entry: &Entry) -> Flight {
    Flight {
        sequence: Sequence::new(entry.sequence),
        attempts: entry.attempts,
        consumer: entry.consumer,
        stored: entry.stored,
        own_id: entry.own_id,
    }
}
