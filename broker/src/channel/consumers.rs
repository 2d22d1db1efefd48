//! Duty: who is subscribed, how much each may get and whose turn it is. Comes in: RDY, deliveries, ended flights.
//! Goes out: credit, the next consumer to wake, counts. Must not know messages.
//!
//! A consumer is *parked* when it found nothing more to take, and *hungry* when it is parked with credit left.
//! Whoever is woken is offered as much as its credit, until it takes; so one message wakes one consumer.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::ids::ConnectionId;

/// What a consumer settled for its deliveries (IDENTIFY, nsq-tcp 2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerRules {
    /// How long it may keep a message without an answer.
    pub msg_timeout: Duration,
    /// 1..=99: a message is kept with a chance of one per cent more than this, else it is gone for all (nsq-tcp
    /// 4.12). 0 keeps all.
    pub sample_rate: u8,
    /// What it has in flight when it leaves is returned at once and that delivery is not counted (architecture
    /// 4.0); else each message stays in flight until its timeout (C-69).
    pub return_on_leave: bool,
    /// Where its sampling starts.
    pub seed: u64,
}

/// A consumer's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerCounts {
    /// The level it asked for with RDY.
    pub ready: u64,
    /// Messages it has in flight.
    pub in_flight: u64,
    /// Messages it was sent, every delivery counted.
    pub message_count: u64,
    /// Messages it finished.
    pub finish_count: u64,
    /// Messages it requeued.
    pub requeue_count: u64,
}

/// One row of the table.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) id: ConnectionId,
    pub(super) rules: ConsumerRules,
    pub(super) counts: ConsumerCounts,
    /// It left and the row waits for its last message to end its flight.
    pub(super) gone: bool,
    parked: bool,
    /// It stands in the queue of the hungry, perhaps no longer hungry.
    queued: bool,
    /// How many messages it was woken for and has not looked for yet.
    offered: u64,
    random: u64,
}

/// All consumers of one channel.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    rows: Vec<Consumer>,
    free: Vec<u32>,
    by_id: BTreeMap<ConnectionId, u32>,
    queue: VecDeque<u32>,
    hungry: usize,
    offered: u64,
    ready: u64,
}

impl Consumer {
    /// How many messages it may be sent now.
    pub(super) const fn credit(&self) -> u64 {
        self.counts.ready.saturating_sub(self.counts.in_flight)
    }

    /// Whether the next message is kept.
    pub(super) fn samples_in(&mut self) -> bool {
        if self.rules.sample_rate == 0 {
            return true;
        }
        // SplitMix64: one addition and three mixes; every seed gives a full period.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let percent = ((mixed >> 32) * 100) >> 32;
        percent <= u64::from(self.rules.sample_rate)
    }

    const fn is_hungry(&self) -> bool {
        self.parked && self.credit() > 0
    }
}

impl Consumers {
    /// Adds a consumer with RDY 0, parked. One that is there already gets the new rules.
    pub(super) fn subscribe(&mut self, id: ConnectionId, rules: ConsumerRules) {
        if let Some(row) = self.row(id) {
            self.rows[row as usize].rules = rules;
            return;
        }
        let consumer = Consumer {
            id,
            rules,
            counts: ConsumerCounts::default(),
            gone: false,
            parked: true,
            queued: false,
            offered: 0,
            random: rules.seed,
        };
        let row = if let Some(row) = self.free.pop() {
            self.rows[row as usize] = consumer;
            row
        } else {
            self.rows.push(consumer);
            self.rows.len() as u32 - 1
        };
        self.by_id.insert(id, row);
    }

    /// Takes a consumer from the table; its row stays while it has messages in flight.
    pub(super) fn unsubscribe(&mut self, id: ConnectionId) -> Option<u32> {
        let row = self.by_id.remove(&id)?;
        self.begin_turn(row);
        self.set_ready(row, 0);
        self.queue.retain(|queued| *queued != row);
        self.rows[row as usize].gone = true;
        self.free_when_drained(row);
        Some(row)
    }

    pub(super) fn row(&self, id: ConnectionId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn get(&self, row: u32) -> &Consumer {
        &self.rows[row as usize]
    }

    pub(super) fn get_mut(&mut self, row: u32) -> &mut Consumer {
        &mut self.rows[row as usize]
    }

    /// True when nobody is subscribed.
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Sum of all RDY levels.
    pub(super) const fn ready(&self) -> u64 {
        self.ready
    }

    /// True when some parked consumer has credit.
    pub(super) const fn is_hungry(&self) -> bool {
        self.hungry > 0
    }

    pub(super) fn set_ready(&mut self, row: u32, ready: u64) {
        self.ready = self.ready - self.rows[row as usize].counts.ready + ready;
        self.update(row, |consumer| consumer.counts.ready = ready);
    }

    /// The consumer looks for messages: no longer parked, its offer is taken up.
    pub(super) fn begin_turn(&mut self, row: u32) {
        self.offered -= std::mem::take(&mut self.rows[row as usize].offered);
        self.update(row, |consumer| consumer.parked = false);
    }

    /// The consumer found nothing more.
    pub(super) fn park(&mut self, row: u32) {
        self.update(row, |consumer| consumer.parked = true);
    }

    /// The hungry consumer that waited longest, if more messages are `available` than were offered already. It is
    /// not parked any more.
    pub(super) fn wake_next(&mut self, available: u64) -> Option<ConnectionId> {
        let unoffered = available.checked_sub(self.offered).filter(|count| *count > 0)?;
        while let Some(row) = self.queue.pop_front() {
            let consumer = &mut self.rows[row as usize];
            consumer.queued = false;
            if consumer.is_hungry() {
                consumer.offered = consumer.credit().min(unoffered);
                self.offered += consumer.offered;
                let id = consumer.id;
                self.update(row, |consumer| consumer.parked = false);
                return Some(id);
            }
        }
        None
    }

    /// One of the consumer's messages is in flight no longer.
    pub(super) fn end_flight(&mut self, row: u32) {
        self.update(row, |consumer| consumer.counts.in_flight -= 1);
        self.free_when_drained(row);
    }

    /// No message is in flight any more (nsq-tcp 4.3).
    pub(super) fn end_all_flights(&mut self) {
        for row in 0..self.rows.len() as u32 {
            if self.rows[row as usize].counts.in_flight > 0 {
                self.update(row, |consumer| consumer.counts.in_flight = 0);
                self.free_when_drained(row);
            }
        }
    }

    fn free_when_drained(&mut self, row: u32) {
        let consumer = &self.rows[row as usize];
        if consumer.gone && consumer.counts.in_flight == 0 {
            self.free.push(row);
        }
    }

    /// Changes a row and keeps count and queue of the hungry right.
    fn update(&mut self, row: u32, change: impl FnOnce(&mut Consumer)) {
        let consumer = &mut self.rows[row as usize];
        let before = consumer.is_hungry();
        change(consumer);
        let after = consumer.is_hungry();
        if before == after {
            return;
        }
        if before {
            self.hungry -= 1;
            return;
        }
        self.hungry += 1;
        if !consumer.queued {
            consumer.queued = true;
            self.queue.push_back(row);
        }
    }
}
