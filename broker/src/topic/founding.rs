//! Duty: what topics and channels are made of: numbers from the store, logs from the engines, machines with the node's
//! rules, and how all of it is undone. Must not know which topics exist.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nsqx_proto::name::{ChannelName, TopicName};
use tokio::runtime::Handle;

use super::directory::DirectoryError;
use super::health::Health;
use super::relay::Relay;
use super::{Parts, Topic};
use crate::channel::shared::{self, Rooms, SharedChannel};
use crate::channel::{Channel, ChannelRules};
use crate::desk::settings::TopicSettings;
use crate::log::engine::{LogError, TopicLog};
use crate::log::engines::{Engines, Start};
use crate::log::sequence::{Sequence, SequenceRange};
use crate::registration::Registration;
use crate::store::StoreError;
use crate::store::catalogue::{ChannelState, HandedOver, TopicState};
use crate::store::cursor::{ChannelNumber, TopicNumber};
use crate::store::handle::StoreHandle;

/// Makes and unmakes topics and channels.
pub struct Founding {
    /// The metadata store.
    pub store: StoreHandle,
    /// Where logs come from.
    pub engines: Arc<Engines>,
    /// The side rooms of every channel.
    pub rooms: Rooms,
    /// Whether writes work.
    pub health: Arc<Health>,
    /// Rules of every channel.
    pub rules: ChannelRules,
    /// `--max-channel-consumers`; 0 = no limit.
    pub max_consumers: usize,
    /// `--default-extend`: new topics may carry extended headers.
    pub default_extend: bool,
    /// The rest of the cluster; set once the broker knows its own addresses.
    pub registration: OnceLock<Registration>,
    /// How new topics are set.
    pub topic_settings: TopicSettings,
    /// Lives of topics and channels so far.
    pub incarnations: AtomicU64,
}

impl Founding {
    /// Where changes run.
    pub fn runtime(&self) -> &Handle {
        &self.rooms.blocking
    }

    /// A number for the next life of a topic or channel.
    pub fn next_incarnation(&self) -> u64 {
        self.incarnations.fetch_add(1, Ordering::Relaxed)
    }

    /// A new topic; it hands nothing over before [`Topic::start`].
    ///
    /// # Errors
    /// What store and log say.
    pub async fn topic(&self, name: &TopicName) -> Result<Arc<Topic>, DirectoryError> {
        let fresh = first_sequence(self.rooms.clock.wall());
        let (number, relay, log) = if name.is_ephemeral() {
            let relay = Relay::new(Arc::clone(&self.health), None);
            let log = self.engines.volatile(fresh, Arc::clone(&relay) as _);
            (None, relay, log)
        } else {
            let (number, start) = self.topic_number(name, fresh).await?;
            let relay = Relay::new(Arc::clone(&self.health), Some(number));
            let log = match self.open(number, start, &relay).await {
                Ok(log) => log,
                Err(error) => {
                    self.unmake(number).await;
                    return Err(error.into());
                }
            };
            (Some(number), relay, log)
        };
        let parts = Parts {
            name: name.clone(),
            number,
            handed_over: log.end(),
            log,
            paused: false,
            held: Vec::new(),
            incarnation: self.next_incarnation(),
            settings: self.topic_settings,
            holds: Vec::new(),
        };
        let topic = Arc::new(Topic::new(parts, self.rooms.clock));
        relay.connect(&topic);
        Ok(topic)
    }

    /// A number for a new channel of `topic`; `None` when the channel is not to be stored (nsq-tcp 4.11). Stores that
    /// the topic flows from now on, if it does.
    ///
    /// # Errors
    /// What the store says.
    pub async fn channel_number(
        &self,
        topic: &Topic,
        name: &ChannelName,
    ) -> Result<Option<ChannelNumber>, DirectoryError> {
        let Some(number) = topic.number() else {
            return Ok(None);
        };
        let (stored, begins_to_flow) = (
            !name.is_ephemeral(),
            !topic.is_paused() && topic.channels().is_empty(),
        );
        if !stored && !begins_to_flow {
            return Ok(None);
        }
        let (name, floor) = (name.to_string(), topic.handed_over());
        let answer = self.store.transact(move |transaction| {
            if begins_to_flow {
                transaction.update_topic(number, |state| state.handed_over = HandedOver::Flowing)?;
            }
            let create = || transaction.create_channel(number, &name, ChannelState::default(), floor);
            stored.then(create).transpose()
        });
        Ok(answer.await?)
    }

    /// A new channel of `topic` that starts at `at`.
    pub fn channel(
        &self,
        topic: &Topic,
        name: &ChannelName,
        number: Option<ChannelNumber>,
        at: Sequence,
    ) -> Arc<SharedChannel> {
        self.restored_channel(topic, name, number, Channel::new(self.rules_of(name), at), at)
    }

    /// A channel around a machine; everything below `stored_floor` is stored as finished.
    pub fn restored_channel(
        &self,
        topic: &Topic,
        name: &ChannelName,
        number: Option<ChannelNumber>,
        machine: Channel,
        stored_floor: Sequence,
    ) -> Arc<SharedChannel> {
        let parts = shared::Parts {
            name: name.clone(),
            number,
            machine,
            log: Arc::clone(topic.log()),
            handed: Arc::clone(topic.handed()),
            max_consumers: self.max_consumers,
            stored_floor,
            incarnation: self.next_incarnation(),
        };
        SharedChannel::new(parts, self.rooms.clone())
    }

    /// The rules of a channel: an ephemeral one keeps no more than `--mem-queue-size` messages (C-76).
    pub fn rules_of(&self, name: &ChannelName) -> ChannelRules {
        let bound = name.is_ephemeral().then_some(self.rules.mem_queue_size);
        ChannelRules {
            drop_oldest_beyond: bound,
            durable: !name.is_ephemeral(),
            ..self.rules
        }
    }

    /// Channels of the topic that other nodes have and that are not ephemeral (nsq-tcp 7.6).
    pub async fn channels_elsewhere(&self, topic: &TopicName) -> Vec<ChannelName> {
        let Some(registration) = self.registration.get() else {
            return Vec::new();
        };
        let names = registration.lookup_channels(topic.as_str()).await;
        names
            .iter()
            .filter_map(|name| ChannelName::parse(name).ok())
            .collect()
    }

    /// Stores whether a topic is paused and how far it has handed over.
    ///
    /// # Errors
    /// What the store says.
    pub async fn store_topic(&self, topic: &Topic, paused: bool) -> Result<(), DirectoryError> {
        let Some(number) = topic.number() else {
            return Ok(());
        };
        let holds = topic.holds();
        let handed_over = hand_over_of(topic, paused);
        let answer = self.store.transact(move |transaction| {
            transaction.update_topic(number, |state| {
                state.paused = paused;
                state.handed_over = handed_over;
                state.holds = holds;
            })
        });
        Ok(answer.await?)
    }

    /// Stores how a topic is set.
    ///
    /// # Errors
    /// What the store says.
    pub async fn store_settings(&self, topic: &Topic, settings: TopicSettings) -> Result<(), DirectoryError> {
        let Some(number) = topic.number() else {
            return Ok(());
        };
        let text = settings.to_json();
        let answer = self
            .store
            .transact(move |transaction| transaction.update_topic(number, |state| state.settings = text));
        Ok(answer.await?)
    }

    /// Stores whether a channel is paused.
    ///
    /// # Errors
    /// What the store says.
    pub async fn store_channel(&self, channel: &SharedChannel, paused: bool) -> Result<(), DirectoryError> {
        let Some(number) = channel.number() else {
            return Ok(());
        };
        let answer = self
            .store
            .transact(move |transaction| transaction.update_channel(number, |state| state.paused = paused));
        Ok(answer.await?)
    }

    /// Makes records of a topic void.
    ///
    /// # Errors
    /// What the log says.
    pub async fn void(&self, topic: &Topic, range: SequenceRange) -> Result<(), DirectoryError> {
        if range.is_empty() {
            return Ok(());
        }
        let log = Arc::clone(topic.log());
        Ok(self.blocking(move || log.void(range)).await?)
    }

    /// Forgets a channel; `stands` is where its topic's hand-over stands still from now on, if it does.
    ///
    /// # Errors
    /// What the store says.
    pub async fn forget_channel(
        &self,
        topic: &Topic,
        channel: &SharedChannel,
        stands: Option<HandedOver>,
    ) -> Result<(), DirectoryError> {
        let (topic, channel) = (topic.number(), channel.number());
        if channel.is_none() && stands.is_none() {
            return Ok(());
        }
        let answer = self.store.transact(move |transaction| {
            if let Some(channel) = channel {
                transaction.delete_channel(channel)?;
            }
            if let Some((topic, handed_over)) = topic.zip(stands) {
                transaction.update_topic(topic, |state| state.handed_over = handed_over)?;
            }
            Ok(())
        });
        Ok(answer.await?)
    }

    /// Forgets a sealed topic.
    ///
    /// # Errors
    /// What the store says.
    pub async fn forget_topic(&self, topic: &Topic) -> Result<(), DirectoryError> {
        let Some(number) = topic.number() else {
            return Ok(());
        };
        let end = topic.log().end();
        Ok(self
            .store
            .transact(move |transaction| transaction.delete_topic(number, end))
            .await?)
    }

    /// Ends the log of a forgotten topic and removes its files.
    ///
    /// # Errors
    /// What the log says.
    pub async fn raze(&self, topic: &Topic) -> Result<(), LogError> {
        let log = Arc::clone(topic.log());
        match topic.number() {
            Some(number) => self.remove_files(number).await,
            None => self.blocking(move || log.close()).await,
        }
    }

    /// Removes the files of a topic that is not stored any more.
    ///
    /// # Errors
    /// What the log says.
    pub async fn remove_files(&self, number: TopicNumber) -> Result<(), LogError> {
        let engines = Arc::clone(&self.engines);
        self.blocking(move || engines.remove(number)).await
    }

    /// Takes a topic back whose log can not be opened.
    async fn unmake(&self, number: TopicNumber) {
        let forgotten = self
            .store
            .transact(move |transaction| transaction.delete_topic(number, Sequence::default()));
        // A store that fails now forgets it when it is written anew.
        if let Err(error) = forgotten.await {
            tracing::warn!(number = number.0, %error, "a topic without a log stays in the store");
        } else if let Err(error) = self.remove_files(number).await {
            tracing::warn!(number = number.0, %error, "files of a topic that was not made stay until the next start");
        }
    }

    async fn topic_number(
        &self,
        name: &TopicName,
        fresh: Sequence,
    ) -> Result<(TopicNumber, Sequence), StoreError> {
        let (name, extend) = (name.to_string(), self.default_extend);
        let answer = self.store.transact(move |transaction| {
            let start = fresh.max(transaction.catalogue().fresh_from());
            let state = TopicState {
                extend,
                handed_over: HandedOver::At(start),
                ..TopicState::default()
            };
            Ok((transaction.create_topic(&name, state)?, start))
        });
        answer.await
    }

    async fn open(
        &self,
        number: TopicNumber,
        start: Sequence,
        relay: &Arc<Relay>,
    ) -> Result<Arc<dyn TopicLog>, LogError> {
        let (engines, relay) = (Arc::clone(&self.engines), Arc::clone(relay));
        let (start, settings) = (
            Start {
                fresh: start,
                at_least: start,
            },
            self.topic_settings,
        );
        self.blocking(move || {
            engines.open(
                number,
                start,
                settings.durability,
                settings.retention(),
                relay as _,
            )
        })
        .await
    }

    async fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<R, LogError> + Send + 'static,
    ) -> Result<R, LogError> {
        self.runtime()
            .spawn_blocking(work)
            .await
            .unwrap_or(Err(LogError::Closed))
    }
}

/// What is stored of how far `topic` has handed over.
pub(super) fn hand_over_of(topic: &Topic, paused: bool) -> HandedOver {
    let flows = !paused && !topic.channels().is_empty();
    if flows {
        HandedOver::Flowing
    } else {
        HandedOver::At(topic.handed_over())
    }
}

/// Where a new log starts, so that ids differ between lives of a topic and of a broker (architecture 4): 2^20 sequences
/// for each second since the start of 2025.
pub(crate) fn first_sequence(wall: i64) -> Sequence {
    let seconds = (wall / 1_000_000_000 - EPOCH).max(0) as u64;
    Sequence::new(seconds << 20)
}

/// 2025-01-01, in Unix seconds.
const EPOCH: i64 = 1_735_689_600;
