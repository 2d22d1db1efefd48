//! Duty: a channel: a cursor over a topic's log and everything about the delivery of its messages. Comes in:
//! hand-overs, subscriptions, RDY, settling, time. Goes out: deliveries, whom to wake, when to call again, what
//! to read and what to store. Must not know sockets, files, clocks, locks or names: a pure machine.
//!
//! | file | duty |
//! |---|---|
//! | `cursor`, `reader` | fresh records in log order; one chunk record by record |
//! | `take` | the hot way: record to consumer |
//! | `in_flight`, `flight_table` | what consumers hold and until when; the table it lies in |
//! | `own_ids` | messages in flight by ids of their own (imported ones) |
//! | `settle` | FIN, REQ, TOUCH, timeouts, leaving consumers |
//! | `order`, `delay` | what came back; what waits for a time |
//! | `deadline` | the timer wheel below both kinds of waiting |
//! | `finished`, `bitmap` | floor and finished set; sets of sequences |
//! | `consumers`, `delivery` | credit and turns; what passes to a connection |
//! | `handover` | hand-over, empty, seek, the bound of ephemeral channels |
//! | `checkpoint`, `changes` | what is stored, and what of it is new |
//! | `peek` | a look without changing anything |
//! | `latency` | how long messages take from publish to finish |
//! | `shared` | the machine behind its lock, as the rest of the broker sees it |
//! | `timekeeper`, `saver` | tasks: call machines when they are due; store what changed |
//!
//! # How to drive it
//! Inputs may come in any order, `now` never decreasing but for races of a few milliseconds. After any input call
//! [`Channel::wake_next`] until it answers `None` and let each connection named call [`Channel::take`]; then look
//! at [`Channel::wanted`] and [`Channel::next_deadline`].

use std::time::Duration;

use self::changes::Changes;
use self::consumers::Consumers;
pub use self::consumers::{ConsumerCounts, ConsumerRules};
use self::cursor::Cursor;
use self::delay::DueIndex;
pub use self::delivery::{Deliveries, Delivery, RecordSource, TakeLimit, Taken};
use self::finished::Finished;
use self::in_flight::InFlight;
use self::order::ReturnedQueue;
use self::own_ids::OwnIds;
use self::reader::Reader;
pub use self::settle::SettleError;
use crate::clock::Moment;
use crate::ids::ConnectionId;
use crate::log::engine::Chunk;
use crate::log::sequence::Sequence;

mod bitmap;
mod changes;
mod checkpoint;
mod consumers;
mod cursor;
mod deadline;
mod delay;
mod delivery;
mod finished;
mod flight_table;
mod handover;
mod in_flight;
mod latency;
mod order;
mod own_ids;
pub mod peek;
mod reader;
pub mod saver;
mod settle;
pub mod shared;
mod take;
#[cfg(test)]
mod tests;
pub mod timekeeper;

/// What holds for all messages of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelRules {
    /// `--mem-queue-size`: how many fresh messages go before one that came back (architecture, "Order").
    pub mem_queue_size: u64,
    /// Longest time in flight however often touched (C-65); above 240 days counts as that.
    pub max_msg_timeout: Duration,
    /// Longest delay that REQ can ask for (C-61).
    pub max_req_timeout: Duration,
    /// Set for ephemeral queues: at most so many messages, or the sum of all RDY if that is more, wait; beyond
    /// that the oldest goes.
    pub drop_oldest_beyond: Option<u64>,
    /// False for channels that are never stored: they remember nothing for checkpoints.
    pub durable: bool,
}

/// A channel's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that wait for a delivery: handed over, less finished, in flight and deferred.
    pub depth: u64,
    /// Messages that consumers hold.
    pub in_flight: u64,
    /// Messages that wait for a time.
    pub deferred: u64,
    /// Messages that ever entered the channel, each once.
    pub message_count: u64,
    /// Successful REQs.
    pub requeue_count: u64,
    /// Flights that ended by timeout.
    pub timeout_count: u64,
    /// Messages given to consumers, each time anew.
    pub delivered: u64,
    /// Messages finished by FIN.
    pub finish_count: u64,
    /// Messages that a consumer's sampling removed.
    pub sampled_out: u64,
    /// Messages that gave way to newer ones.
    pub dropped: u64,
    /// Messages that were handed over and then were not in the log (damage).
    pub lost: u64,
}

/// One channel. See the module for how it is driven.
#[derive(Debug)]
pub struct Channel {
    rules: ChannelRules,
    paused: bool,
    cursor: Cursor,
    finished: Finished,
    in_flight: InFlight,
    own_ids: OwnIds,
    returned: ReturnedQueue,
    /// Where the returned message in front is read from.
    reread: Reader,
    /// The returned message in front whose record memory does not hold.
    reread_wanted: Option<Sequence>,
    due: DueIndex,
    consumers: Consumers,
    changes: Changes,
    /// Only the counters that never go down; what waits is counted where it waits.
    totals: Counts,
}

impl Channel {
    /// A channel that gets every record from `start` on.
    pub fn new(rules: ChannelRules, start: Sequence) -> Self {
        Self {
            rules,
            paused: false,
            cursor: Cursor::new(start, start, 0),
            finished: Finished::new(start),
            in_flight: InFlight::new(),
            own_ids: OwnIds::default(),
            returned: ReturnedQueue::default(),
            reread: Reader::default(),
            reread_wanted: None,
            due: DueIndex::new(),
            consumers: Consumers::default(),
            changes: Changes::new(rules.durable, start),
            totals: Counts::default(),
        }
    }

    /// Adds a consumer with RDY 0.
    pub fn subscribe(&mut self, consumer: ConnectionId, rules: ConsumerRules) {
        self.consumers.subscribe(consumer, rules);
    }

    /// Sets how many messages the consumer may have in flight. A lower level recalls nothing (nsq-tcp 4.3).
    pub fn set_ready(&mut self, consumer: ConnectionId, count: u64) {
        if let Some(row) = self.consumers.row(consumer) {
            self.consumers.set_ready(row, count);
            self.drop_excess();
        }
    }

    /// Stops deliveries. Everything else goes on (nsq-tcp 4.10).
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Lets deliveries go on.
    pub fn unpause(&mut self) {
        self.paused = false;
    }

    /// True between [`Channel::pause`] and [`Channel::unpause`].
    pub const fn is_paused(&self) -> bool {
        self.paused
    }

    /// A consumer that found nothing at its last look, has credit, and for which there is something now. It is
    /// offered what is there up to its credit until it calls [`Channel::take`], and nobody else is woken for
    /// that; a connection that cannot take now says so with a limit of zero messages.
    pub fn wake_next(&mut self) -> Option<ConnectionId> {
        let available = self.available();
        self.consumers.wake_next(available)
    }

    /// True when some parked consumer has free credit, so that a message would go out at once.
    pub const fn is_hungry(&self) -> bool {
        self.consumers.is_hungry()
    }

    /// When [`Channel::advance`] is to be called next. It may then find that there is nothing to do yet.
    pub fn next_deadline(&self) -> Option<Moment> {
        match (self.in_flight.next_deadline(), self.due.next_deadline()) {
            (Some(timeout), Some(due)) => Some(timeout.min(due)),
            (timeout, due) => timeout.or(due),
        }
    }

    /// A place in the log that memory does not hold and that is needed now. Whoever drives the channel reads
    /// there and answers with [`Channel::supply`]; until then the same place is wanted. After a failed read it
    /// simply reads again.
    pub fn wanted(&self) -> Option<Sequence> {
        self.reread_wanted.or_else(|| self.cursor.wanted())
    }

    /// Answers [`Channel::wanted`] with what the log has at or after `asked`; `None` = nothing. An answer that
    /// nobody waits for any more is ignored.
    pub fn supply(&mut self, asked: Sequence, chunk: Option<Chunk>) {
        if self.reread_wanted == Some(asked) {
            self.reread_wanted = None;
            match chunk {
                Some(chunk) if chunk.first <= asked && asked < chunk.end() => self.reread.load(chunk),
                _ => self.lose_returned(),
            }
        } else if let Some(gap) = self.cursor.supply(asked, chunk) {
            self.finished.insert_gap(gap);
        }
    }

    /// Everything below is finished: the log may forget it.
    pub const fn floor(&self) -> Sequence {
        self.finished.floor()
    }

    /// First sequence that was not handed over.
    pub const fn handed_over(&self) -> Sequence {
        self.cursor.end()
    }

    /// The channel's figures.
    pub fn counts(&self) -> Counts {
        Counts {
            depth: self.depth(),
            in_flight: self.in_flight.len() as u64,
            deferred: self.due.len() as u64,
            lost: self.totals.lost + self.cursor.lost(),
            ..self.totals
        }
    }

    /// A consumer's figures; `None` when it is not subscribed.
    pub fn consumer_counts(&self, consumer: ConnectionId) -> Option<ConsumerCounts> {
        self.consumers
            .row(consumer)
            .map(|row| self.consumers.get(row).counts)
    }

    /// The message in flight whose record carries this id of its own.
    pub fn sequence_of(&self, own_id: [u8; 16]) -> Option<Sequence> {
        self.own_ids.get(own_id)
    }

    /// True when a message is in flight whose record carries an id of its own.
    pub fn shows_own_ids(&self) -> bool {
        !self.own_ids.is_empty()
    }

    /// Bytes allocated for messages, but for shared records and the nodes of small maps.
    pub fn memory_bytes(&self) -> usize {
        self.cursor.memory_bytes()
            + self.finished.memory_bytes()
            + self.in_flight.memory_bytes()
            + self.own_ids.memory_bytes()
            + self.returned.memory_bytes()
            + self.due.memory_bytes()
            + self.changes.memory_bytes()
    }

    fn depth(&self) -> u64 {
        self.cursor.fresh() + self.returned.len() as u64
    }

    /// How many messages could be delivered now, as far as is known without looking.
    fn available(&self) -> u64 {
        if self.paused {
            return 0;
        }
        let returned = if self.next_returned().is_some() {
            self.returned.len()
        } else {
            0
        };
        self.cursor.within_reach() + returned as u64
    }

    /// The message is out of the channel for good.
    fn finish_message(&mut self, sequence: Sequence, stored: bool) {
        self.finished.insert(sequence);
        self.cursor.pass(self.finished.floor());
        self.changes.finishes += 1;
        if stored {
            self.changes.is_gone(sequence);
        }
    }
}
