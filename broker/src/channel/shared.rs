//! Duty: one channel as the rest of the broker sees it: the machine behind its lock, fed from the topic's log and
//! waking the connections that can take something. Comes in: hand-over news, consumers' commands, ticks. Goes out:
//! deliveries, wake-ups, dirty marks for the checkpoint. Must not know sockets, frames or the directory.

mod fetch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use nsqx_proto::name::ChannelName;
use parking_lot::{Mutex, MutexGuard};

use super::latency::Latency;
use super::peek::{Peeked, Place};
use super::saver::Saver;
use super::timekeeper::{Armed, Timekeeper};
use super::{Channel, ConsumerCounts, ConsumerRules, Counts, Deliveries, SettleError, TakeLimit, Taken};
use crate::clock::{Clock, Moment};
use crate::egress::signal::Signal;
use crate::ids::ConnectionId;
use crate::log::engine::{DelayedRecord, TopicLog};
use crate::log::sequence::{Sequence, SequenceRange};
use crate::metrics::latency::LatencyWindow;
use crate::store::cursor::{ChannelNumber, CursorDelta};
use crate::topic::handed::Handed;

/// A channel shared by its consumers' connections, the topic and the side rooms.
pub struct SharedChannel {
    name: ChannelName,
    number: Option<ChannelNumber>,
    log: Arc<dyn TopicLog>,
    handed: Arc<Handed>,
    rooms: Rooms,
    max_consumers: usize,
    latency: Option<Mutex<Latency>>,
    incarnation: u64,
    stored_floor: AtomicU64,
    hungry: AtomicBool,
    shows_own_ids: AtomicBool,
    dirty: AtomicBool,
    inner: Mutex<Inner>,
    this: Weak<SharedChannel>,
}

/// The side rooms that every channel of a broker shares.
#[derive(Clone)]
pub struct Rooms {
    /// The clocks.
    pub clock: Clock,
    /// Calls [`SharedChannel::tick`] when a deadline is due.
    pub timekeeper: Arc<Timekeeper>,
    /// Stores what changed.
    pub saver: Arc<Saver>,
    /// Where reads that may wait for the disk run.
    pub blocking: tokio::runtime::Handle,
    /// Window of the latency percentiles; `None` = they are not wanted.
    pub latency_window: Option<Duration>,
}

struct Inner {
    machine: Channel,
    /// The topic's running count of records when the machine was last told.
    told: u64,
    consumers: HashMap<ConnectionId, Arc<Signal>>,
    armed: Option<Armed>,
    reading: bool,
    closed: bool,
}

/// What a new [`SharedChannel`] is made of.
pub struct Parts {
    /// Its name.
    pub name: ChannelName,
    /// Its number in the store; `None` for an ephemeral channel, which is never stored.
    pub number: Option<ChannelNumber>,
    /// The delivery machine, new or restored.
    pub machine: Channel,
    /// The topic's log.
    pub log: Arc<dyn TopicLog>,
    /// What the topic has handed over.
    pub handed: Arc<Handed>,
    /// `--max-channel-consumers`; 0 = no limit.
    pub max_consumers: usize,
    /// Everything below is stored as finished.
    pub stored_floor: Sequence,
    /// Tells this life of the name from earlier ones.
    pub incarnation: u64,
}

/// Why a subscription is refused (nsq-tcp 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The channel has as many consumers as it may have.
    #[error("consumers exceed the limit of {0}")]
    Full(usize),
    /// The channel is being deleted.
    #[error("exiting")]
    Exiting,
}

/// One settling command of a consumer.
#[derive(Clone, Copy, Debug)]
pub enum Settle {
    /// FIN
    Finish(Sequence),
    /// REQ with a delay
    Requeue(Sequence, Duration),
    /// TOUCH
    Touch(Sequence),
}

impl SharedChannel {
    /// A channel that is ready for consumers.
    pub fn new(parts: Parts, rooms: Rooms) -> Arc<Self> {
        let channel = Arc::new_cyclic(|this| Self {
            name: parts.name,
            number: parts.number,
            log: parts.log,
            handed: Arc::clone(&parts.handed),
            max_consumers: parts.max_consumers,
            latency: rooms
                .latency_window
                .map(|window| Mutex::new(Latency::new(window, rooms.clock.now()))),
            rooms,
            incarnation: parts.incarnation,
            stored_floor: AtomicU64::new(parts.stored_floor.get()),
            hungry: AtomicBool::new(false),
            shows_own_ids: AtomicBool::new(false),
            dirty: AtomicBool::new(false),
            inner: Mutex::new(Inner {
                machine: parts.machine,
                told: parts.handed.get().1,
                consumers: HashMap::new(),
                armed: None,
                reading: false,
                closed: false,
            }),
            this: Weak::clone(this),
        });
        channel.settled(channel.inner.lock());
        channel
    }

    /// Its name.
    pub fn name(&self) -> &ChannelName {
        &self.name
    }

    /// Tells this life of the name from earlier ones.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Its number in the store; `None` for an ephemeral channel.
    pub fn number(&self) -> Option<ChannelNumber> {
        self.number
    }

    /// The topic has handed over more records, none of them delayed. Cheap when no consumer waits for one.
    pub fn tail_advanced(&self) {
        if self.hungry.load(Ordering::SeqCst) {
            self.settled(self.caught_up());
        }
    }

    /// The topic has handed over records, some of which wait until their moment.
    pub fn delayed(&self, due: &[(Sequence, Moment)]) {
        let mut inner = self.inner.lock();
        inner.catch_up(&self.handed, due);
        self.mark_dirty();
        self.settled(inner);
    }

    /// Adds a consumer, which starts with RDY 0.
    pub fn subscribe(
        &self,
        id: ConnectionId,
        rules: ConsumerRules,
        signal: Arc<Signal>,
    ) -> Result<(), SubscribeError> {
        let mut inner = self.caught_up();
        if inner.closed {
            return Err(SubscribeError::Exiting);
        }
        if self.max_consumers > 0 && inner.consumers.len() >= self.max_consumers {
            return Err(SubscribeError::Full(self.max_consumers));
        }
        inner.machine.subscribe(id, rules);
        inner.consumers.insert(id, signal);
        Ok(())
    }

    /// Removes a consumer; answers how many are left.
    pub fn unsubscribe(&self, id: ConnectionId) -> usize {
        let mut inner = self.inner.lock();
        inner.consumers.remove(&id);
        inner.machine.unsubscribe(id);
        self.mark_dirty();
        let left = inner.consumers.len();
        self.settled(inner);
        left
    }

    /// RDY.
    pub fn set_ready(&self, id: ConnectionId, count: u64) {
        self.inner.lock().machine.set_ready(id, count);
    }

    /// Takes messages for a consumer.
    pub fn take(&self, id: ConnectionId, now: Moment, limit: TakeLimit, out: &mut Deliveries) -> Taken {
        let mut inner = self.caught_up();
        let taken = inner.machine.take(id, now, limit, &*self.log, out);
        self.shows_own_ids
            .store(inner.machine.shows_own_ids(), Ordering::Relaxed);
        if let Some(latency) = &self.latency {
            latency.lock().delivered(out, inner.machine.counts().in_flight);
        }
        self.settled(inner);
        taken
    }

    /// Settles messages in order; `failed` is told the index and cause of each command that had no effect.
    pub fn settle(
        &self,
        id: ConnectionId,
        now: Moment,
        commands: &[Settle],
        mut failed: impl FnMut(usize, SettleError),
    ) {
        let mut inner = self.inner.lock();
        let mut latency = self
            .latency
            .as_ref()
            .map(|latency| (latency.lock(), self.rooms.clock.wall()));
        for (index, command) in commands.iter().enumerate() {
            let outcome = match *command {
                Settle::Finish(sequence) => inner.machine.finish(id, sequence),
                Settle::Requeue(sequence, delay) => inner.machine.requeue(id, sequence, delay, now),
                Settle::Touch(sequence) => inner.machine.touch(id, sequence, now),
            };
            match (outcome, command) {
                (Err(error), _) => failed(index, error),
                (Ok(()), Settle::Finish(sequence)) => {
                    if let Some((latency, wall)) = &mut latency {
                        latency.finished(*sequence, now, *wall);
                    }
                }
                (Ok(()), _) => {}
            }
        }
        drop(latency);
        self.mark_dirty();
        self.settled(inner);
    }

    /// Fires what is due. Called by the timekeeper.
    pub fn tick(&self, now: Moment) {
        let mut inner = self.inner.lock();
        // It may have been armed anew since the timekeeper looked.
        inner.armed.take_if(|armed| armed.deadline <= now);
        if inner.machine.advance(now) {
            self.mark_dirty();
        }
        self.settled(inner);
    }

    /// Stops or resumes delivery.
    pub fn set_paused(&self, paused: bool) {
        let mut inner = self.caught_up();
        if paused {
            inner.machine.pause();
        } else {
            inner.machine.unpause();
        }
        self.settled(inner);
    }

    /// True while delivery is stopped.
    pub fn is_paused(&self) -> bool {
        self.inner.lock().machine.is_paused()
    }

    /// Discards everything queued, in flight and deferred.
    pub fn empty(&self) {
        let mut inner = self.caught_up();
        inner.machine.empty();
        self.latency.iter().for_each(|latency| latency.lock().forget());
        self.mark_dirty();
        self.settled(inner);
    }

    /// Continues at `to`; what was in flight or deferred is dropped. Delayed records from there on wait for what is left
    /// of their delay since `delay_start`, once they are found: until then they are not delivered.
    pub fn seek(&self, to: Sequence, delay_start: impl Fn(&DelayedRecord) -> i64 + Send + Sync + 'static) {
        let mut inner = self.caught_up();
        let range = SequenceRange::new(to, inner.machine.handed_over());
        inner.machine.seek(to, self.log.count(range));
        self.latency.iter().for_each(|latency| latency.lock().forget());
        self.mark_dirty();
        self.settled(inner);
        self.announce(range, Arc::new(delay_start));
    }

    /// Refuses new consumers if there are none; answers whether that is so.
    pub fn close_if_unused(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.closed |= inner.consumers.is_empty();
        inner.closed
    }

    /// At most `limit` messages that came back, are in flight or deferred (see [`Channel::peek`]).
    pub fn peek(&self, place: Place, limit: usize) -> Vec<Peeked> {
        self.caught_up().machine.peek(place, limit)
    }

    /// The next sequence that was never looked at.
    pub fn next_fresh(&self) -> Sequence {
        self.inner.lock().machine.next_fresh()
    }

    /// False when the message is finished, deferred or returned already, or not handed over.
    pub fn is_fresh(&self, sequence: Sequence) -> bool {
        self.inner.lock().machine.is_fresh(sequence)
    }

    /// True below the topic's hand-over position.
    pub fn is_handed_over(&self, sequence: Sequence) -> bool {
        sequence < self.handed.get().0
    }

    /// Tells whose channel it is, by the address of the topic's log.
    pub fn log_address(&self) -> *const () {
        Arc::as_ptr(&self.log).cast()
    }

    /// Publish-to-finish times of the recent past; `None` when nobody wants them.
    pub fn latency(&self) -> Option<LatencyWindow> {
        self.latency.as_ref().map(|latency| latency.lock().window())
    }

    /// The sequence of a message in flight that shows an id of its own (imported messages). Cheap while there is none.
    pub fn sequence_of(&self, own_id: [u8; 16]) -> Option<Sequence> {
        if !self.shows_own_ids.load(Ordering::Relaxed) {
            return None;
        }
        self.inner.lock().machine.sequence_of(own_id)
    }

    /// Refuses new consumers and ends the connections of the present ones without a frame.
    pub fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        for signal in inner.consumers.values() {
            signal.close();
        }
    }

    /// The counters.
    pub fn counts(&self) -> Counts {
        self.caught_up().machine.counts()
    }

    /// The counters of one consumer.
    pub fn consumer_counts(&self, id: ConnectionId) -> Option<ConsumerCounts> {
        self.inner.lock().machine.consumer_counts(id)
    }

    /// The connections that consume from the channel.
    pub fn consumers(&self) -> Vec<ConnectionId> {
        self.inner.lock().consumers.keys().copied().collect()
    }

    /// Everything below may go from the log: it is finished, and stored as such if the channel is stored.
    pub fn stored_floor(&self) -> Sequence {
        // Never above the machine's: news of a floor that was stored before a seek may come after it.
        let floor = self.caught_up().machine.floor();
        match self.number {
            Some(_) => floor.min(Sequence::new(self.stored_floor.load(Ordering::Acquire))),
            None => floor,
        }
    }

    /// The store holds everything below `floor` as finished.
    pub fn floor_is_stored(&self, floor: Sequence) {
        self.stored_floor.store(floor.get(), Ordering::Release);
    }

    /// What changed since the last call; with `last`, also what a clean stop keeps (attempts of what is in flight).
    pub fn checkpoint(&self, last: bool) -> Option<CursorDelta> {
        self.dirty.store(false, Ordering::SeqCst);
        let mut inner = self.caught_up();
        let (wall, now) = (self.rooms.clock.wall(), self.rooms.clock.now());
        if last {
            inner.machine.final_checkpoint(wall, now)
        } else {
            inner.machine.checkpoint(wall, now)
        }
    }

    /// Everything there is to store, for a store that lost writes; `None` for a channel that is never stored.
    pub fn full_checkpoint(&self) -> Option<CursorDelta> {
        let mut inner = self.caught_up();
        inner
            .machine
            .full_checkpoint(self.rooms.clock.wall(), self.rooms.clock.now())
    }

    fn caught_up(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock();
        inner.catch_up(&self.handed, &[]);
        inner
    }

    /// Ends every change: wakes one consumer that can take something, starts a read that is wanted, arms the timer.
    fn settled(&self, mut inner: MutexGuard<'_, Inner>) {
        // The topic hands over first and looks at `hungry` afterwards; so it is set before the last look at the topic.
        self.hungry.store(inner.machine.is_hungry(), Ordering::SeqCst);
        inner.catch_up(&self.handed, &[]);
        let mut woken = Vec::new();
        while let Some(id) = inner.machine.wake_next() {
            woken.extend(inner.consumers.get(&id).cloned());
        }
        if let Some(next) = inner.machine.next_deadline()
            && inner.armed.is_none_or(|armed| next < armed.deadline)
        {
            let armed = self
                .rooms
                .timekeeper
                .arm(next, inner.armed, Weak::clone(&self.this));
            inner.armed = Some(armed);
        }
        let wanted = if inner.reading {
            None
        } else {
            inner.machine.wanted()
        };
        inner.reading |= wanted.is_some();
        drop(inner);
        for signal in woken {
            signal.deliver();
        }
        if let Some(from) = wanted {
            self.read(from);
        }
    }

    fn mark_dirty(&self) {
        if !self.dirty.swap(true, Ordering::SeqCst) {
            self.rooms.saver.note(Weak::clone(&self.this));
        }
    }
}

impl Inner {
    fn catch_up(&mut self, handed: &Handed, delayed: &[(Sequence, Moment)]) {
        let (end, records) = handed.get();
        if records > self.told || !delayed.is_empty() {
            self.machine.hand_over(end, records - self.told, delayed);
            self.told = records;
        }
    }
}
