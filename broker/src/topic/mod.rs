//! Duty: a topic: its log, its channels, and what flows from the one to the others. Comes in: records, admin
//! commands. Goes out: hand-over news to channels. Must not know sockets, frames or files.
//!
//! | file | duty |
//! |---|---|
//! | `flow` | which records are handed over, and when (pure) |
//! | `handed` | how far that went, for channels to read |
//! | `directory` | name to topic; creating, deleting, pausing |
//! | `founding` | what topics and channels are made of |
//! | `rewrite` | what a store is told that was broken |
//! | `relay` | passes the log's news on to the topic |
//! | `health` | whether writes work |

pub mod directory;
pub mod flow;
pub mod founding;
pub mod handed;
pub mod health;
pub mod relay;
mod rewrite;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nsqx_proto::name::{ChannelName, TopicName};
use parking_lot::Mutex;

use self::flow::{Flow, HandOver};
use self::handed::Handed;
use crate::channel::shared::SharedChannel;
use crate::clock::{Clock, Moment};
use crate::desk::settings::TopicSettings;
use crate::log::engine::{DelayedRecord, LogError, Ticket, TopicLog};
use crate::log::record::NewRecord;
use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::catalogue::Hold;
use crate::store::cursor::TopicNumber;

/// A topic and its channels.
pub struct Topic {
    name: TopicName,
    number: Option<TopicNumber>,
    log: Arc<dyn TopicLog>,
    handed: Arc<Handed>,
    clock: Clock,
    incarnation: u64,
    /// Messages that an ephemeral topic holds back at most; the oldest go first.
    bound: Option<u64>,
    /// Where the log ended when a topic in memory last let go of finished records.
    trimmed: AtomicU64,
    settings: Mutex<TopicSettings>,
    state: Mutex<State>,
    /// Holds that ended with delayed records in them, as long as these exist.
    holds: Mutex<Vec<Hold>>,
    holds_are_new: AtomicBool,
    closed: AtomicBool,
    messages: AtomicU64,
    bytes: AtomicU64,
    /// Admin commands of one topic are done one after the other.
    pub(crate) admin: tokio::sync::Mutex<()>,
}

struct State {
    flow: Flow,
    channels: BTreeMap<ChannelName, Arc<SharedChannel>>,
}

/// What a new [`Topic`] is made of.
pub struct Parts {
    /// Its name.
    pub name: TopicName,
    /// Its number in the store; `None` for an ephemeral topic, which is never stored.
    pub number: Option<TopicNumber>,
    /// Its log, open.
    pub log: Arc<dyn TopicLog>,
    /// Everything below has been handed over before.
    pub handed_over: Sequence,
    /// True when the topic starts paused.
    pub paused: bool,
    /// The delayed records from `handed_over` on.
    pub held: Vec<DelayedRecord>,
    /// Tells this life of the name from earlier ones.
    pub incarnation: u64,
    /// How it is set.
    pub settings: TopicSettings,
    /// Messages held back at most; `None` = no bound.
    pub bound: Option<u64>,
    /// Holds that ended before.
    pub holds: Vec<Hold>,
}

/// Counters of a topic since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicCounts {
    /// Messages that no channel has been given.
    pub depth: u64,
    /// Messages published.
    pub messages: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

impl Topic {
    /// A topic without channels that hands nothing over before [`Topic::start`].
    pub fn new(parts: Parts, clock: Clock) -> Self {
        let flow = Flow::new(parts.handed_over, parts.log.end(), parts.paused, parts.held);
        Self {
            name: parts.name,
            number: parts.number,
            handed: Arc::new(Handed::new(parts.handed_over)),
            log: parts.log,
            clock,
            incarnation: parts.incarnation,
            bound: parts.bound,
            trimmed: AtomicU64::new(parts.handed_over.get()),
            settings: Mutex::new(parts.settings),
            state: Mutex::new(State {
                flow,
                channels: BTreeMap::new(),
            }),
            holds: Mutex::new(parts.holds),
            holds_are_new: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            admin: tokio::sync::Mutex::new(()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// Its number in the store; `None` for an ephemeral topic.
    pub fn number(&self) -> Option<TopicNumber> {
        self.number
    }

    /// Tells this life of the name from earlier ones.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// How it is set.
    pub fn settings(&self) -> TopicSettings {
        *self.settings.lock()
    }

    /// Sets it anew; its log obeys from the next append on.
    pub fn set(&self, settings: TopicSettings) {
        *self.settings.lock() = settings;
        self.log.set_durability(settings.durability);
        self.log.set_retention(settings.retention());
    }

    /// Its log.
    pub fn log(&self) -> &Arc<dyn TopicLog> {
        &self.log
    }

    /// How far it has handed records over.
    pub fn handed(&self) -> &Arc<Handed> {
        &self.handed
    }

    /// Appends records; the ticket completes when they may be answered `OK`. The caller ends its turn with
    /// [`Topic::flush`].
    ///
    /// # Errors
    /// When the topic is closed or its log refuses.
    pub fn append(&self, records: &[NewRecord<'_>]) -> Result<Ticket, LogError> {
        if self.is_closed() {
            return Err(LogError::Closed);
        }
        let appended = self.log.append(records)?;
        let bytes: usize = records.iter().map(|record| record.body.len()).sum();
        self.messages.fetch_add(records.len() as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(appended.ticket)
    }

    /// Ends a publisher's turn.
    pub fn flush(&self) {
        self.log.flush();
    }

    /// The log has grown (see [`crate::log::engine::TailWatch::advanced`]).
    pub fn advanced(&self, end: Sequence, delayed: &[DelayedRecord]) {
        self.change(|flow| flow.advance(end, delayed));
        if let Some(bound) = self.bound {
            self.keep_newest(bound);
            if end.since(Sequence::new(self.trimmed.load(Ordering::Relaxed))) >= TRIMMED_AFTER {
                self.trimmed.store(end.get(), Ordering::Relaxed);
                self.trim();
            }
        }
    }

    /// When the delay of a record began, in nanoseconds since the Unix epoch.
    pub fn delay_start(&self, record: &DelayedRecord) -> i64 {
        flow::delay_start(record, &self.holds.lock())
    }

    /// True when some of what its channels have finished is never stored, so that no checkpoint lets go of it.
    pub fn is_volatile(&self) -> bool {
        self.number.is_none() || self.channels().iter().any(|channel| channel.number().is_none())
    }

    fn keep_newest(&self, bound: u64) {
        let mut state = self.state.lock();
        if state.flow.keep_newest(bound) {
            self.handed.skip(state.flow.handed_over());
            drop(state);
            self.trim();
        }
    }

    /// All channels known so far are there: records may flow.
    pub fn start(&self) {
        self.change(Flow::start);
    }

    /// Stops or resumes the hand-over; answers the position.
    pub fn set_paused(&self, paused: bool) -> Sequence {
        self.change(|flow| flow.set_paused(paused))
    }

    /// True once after a hold has ended with delayed records in it.
    pub fn holds_are_new(&self) -> bool {
        self.holds_are_new.swap(false, Ordering::AcqRel)
    }

    /// Holds that ended with delayed records in them, whose delays count from that time.
    pub fn holds(&self) -> Vec<Hold> {
        let oldest = self.log.oldest();
        let mut holds = self.holds.lock();
        holds.retain(|hold| hold.range.end > oldest);
        holds.clone()
    }

    /// True while the topic is paused.
    pub fn is_paused(&self) -> bool {
        self.state.lock().flow.is_paused()
    }

    /// True while records go straight on to the channels.
    pub fn is_flowing(&self) -> bool {
        self.state.lock().flow.is_flowing()
    }

    /// First sequence that no channel has been given.
    pub fn handed_over(&self) -> Sequence {
        self.state.lock().flow.handed_over()
    }

    /// What no channel has been given, gaps included.
    pub fn held_back(&self) -> SequenceRange {
        self.state.lock().flow.held_back()
    }

    /// Forgets what no channel has been given below `end`, which is void.
    pub fn drop_below(&self, end: Sequence) {
        let mut state = self.state.lock();
        state.flow.drop_below(end);
        self.handed.skip(state.flow.handed_over());
    }

    /// Adds a channel; `make` gets the position at which it starts. `None` when the topic is closed.
    pub fn add_channel(
        &self,
        make: impl FnOnce(Sequence) -> Arc<SharedChannel>,
    ) -> Option<Arc<SharedChannel>> {
        let mut state = self.state.lock();
        if self.is_closed() {
            return None;
        }
        let channel = make(state.flow.handed_over());
        state
            .channels
            .insert(channel.name().clone(), Arc::clone(&channel));
        let count = state.channels.len();
        let handed = state.flow.set_channels(count);
        self.hand_over(&state, handed);
        Some(channel)
    }

    /// Removes a channel if it is still this one; answers the hand-over position.
    pub fn remove_channel(&self, channel: &Arc<SharedChannel>) -> Sequence {
        let mut state = self.state.lock();
        if state
            .channels
            .get(channel.name())
            .is_some_and(|known| Arc::ptr_eq(known, channel))
        {
            state.channels.remove(channel.name());
        }
        let count = state.channels.len();
        state.flow.set_channels(count);
        state.flow.handed_over()
    }

    /// One channel.
    pub fn channel(&self, name: &str) -> Option<Arc<SharedChannel>> {
        self.state.lock().channels.get(name).cloned()
    }

    /// All channels by name.
    pub fn channels(&self) -> Vec<Arc<SharedChannel>> {
        self.state.lock().channels.values().cloned().collect()
    }

    /// Refuses records and new channels: the topic is about to be deleted. Consumers stay.
    pub fn seal(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// The topic was not deleted after all.
    pub fn unseal(&self) {
        self.closed.store(false, Ordering::Release);
    }

    /// As [`Topic::seal`], for good; ends the connections of all consumers.
    pub fn close(&self) {
        let state = self.state.lock();
        self.closed.store(true, Ordering::Release);
        for channel in state.channels.values() {
            channel.close();
        }
    }

    /// True when the topic is deleted or the broker stops.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The counters.
    pub fn counts(&self) -> TopicCounts {
        let held_back = self.state.lock().flow.held_back();
        TopicCounts {
            depth: self.log.count(held_back),
            messages: self.messages.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Lets go of the records that every channel has finished.
    pub fn trim(&self) {
        let state = self.state.lock();
        let floor = state
            .channels
            .values()
            .map(|channel| channel.stored_floor())
            .fold(state.flow.handed_over(), Sequence::min);
        drop(state);
        self.log.trim(floor);
    }

    fn change(&self, change: impl FnOnce(&mut Flow) -> Option<HandOver>) -> Sequence {
        let mut state = self.state.lock();
        let handed = change(&mut state.flow);
        self.hand_over(&state, handed);
        state.flow.handed_over()
    }

    fn hand_over(&self, state: &State, handed: Option<HandOver>) {
        let Some(handed) = handed else { return };
        self.handed
            .advance(handed.range.end, self.log.count(handed.range));
        if handed.delayed.is_empty() {
            for channel in state.channels.values() {
                channel.tail_advanced();
            }
            return;
        }
        if handed.was_held {
            self.holds_are_new.store(true, Ordering::Release);
            self.holds.lock().push(Hold {
                range: handed.range,
                ended: self.clock.wall(),
            });
        }
        let now = self.clock.now();
        let due: Vec<(Sequence, Moment)> = handed
            .delayed
            .iter()
            .map(|record| (record.sequence, now + Duration::from_millis(record.delay_ms)))
            .collect();
        for channel in state.channels.values() {
            channel.delayed(&due);
        }
    }
}

/// Records after which a topic in memory lets go of finished ones.
const TRIMMED_AFTER: u64 = 1000;
