//! Duty: which topics and channels exist and what is set for them. A plain value: the store keeps it in memory
//! as the truth and writes every change of it to disk. Must not know disks, cursors or live objects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cursor::{ChannelNumber, TopicNumber};
use crate::log::sequence::{Sequence, SequenceRange};

/// Everything that is stored, cursors aside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    numbers: Numbers,
    topics: BTreeMap<TopicNumber, Topic>,
    channels: BTreeMap<ChannelNumber, Channel>,
    facts: BTreeMap<String, Vec<u8>>,
}

/// A topic. Ephemeral ones are never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Topic {
    /// Its name, unique in the catalogue.
    pub name: String,
    /// What may change about it.
    #[serde(flatten)]
    pub state: TopicState,
}

/// What may change about a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicState {
    /// True when its messages may carry the extended header.
    pub extend: bool,
    /// True while nothing is handed over to channels.
    pub paused: bool,
    /// How far records have been given to channels.
    pub handed_over: HandedOver,
    /// The holds that ended, oldest first, as long as their records exist.
    #[serde(default)]
    pub holds: Vec<Hold>,
    /// Settings made over our own routes, JSON; empty = none.
    #[serde(default)]
    pub settings: String,
}

/// How far a topic's records have been given to its channels (architecture 3, hand-over).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandedOver {
    /// It follows the end of the log: not paused and at least one channel.
    #[default]
    Flowing,
    /// It stands still: everything below has been given.
    At(Sequence),
}

/// Records that were held back and then handed over together; their delays count from that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The records.
    pub range: SequenceRange,
    /// When they were handed over, nanoseconds since the Unix epoch.
    pub ended: i64,
}

/// A channel. Ephemeral ones are never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// The topic it reads.
    pub topic: TopicNumber,
    /// Its name, unique among the topic's channels.
    pub name: String,
    /// What may change about it.
    #[serde(flatten)]
    pub state: ChannelState,
}

/// What may change about a channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelState {
    /// True while nothing is delivered.
    pub paused: bool,
    /// Settings made over our own routes, JSON; empty = none.
    #[serde(default)]
    pub settings: String,
}

impl Catalogue {
    /// All topics by number.
    pub fn topics(&self) -> impl Iterator<Item = (TopicNumber, &Topic)> {
        self.topics.iter().map(|(number, topic)| (*number, topic))
    }

    /// All channels by number, whatever their topic.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelNumber, &Channel)> {
        self.channels.iter().map(|(number, channel)| (*number, channel))
    }

    /// The channels of one topic by number.
    pub fn channels_of(&self, topic: TopicNumber) -> impl Iterator<Item = (ChannelNumber, &Channel)> {
        self.channels().filter(move |(_, channel)| channel.topic == topic)
    }

    /// One topic.
    pub fn topic(&self, number: TopicNumber) -> Option<&Topic> {
        self.topics.get(&number)
    }

    /// One channel.
    pub fn channel(&self, number: ChannelNumber) -> Option<&Channel> {
        self.channels.get(&number)
    }

    /// A fact about this node that some other room keeps here.
    pub fn fact(&self, name: &str) -> Option<&[u8]> {
        self.facts.get(name).map(Vec::as_slice)
    }

    /// No new log may start below: above every sequence that a deleted topic reached, so that ids do not repeat
    /// when a topic is created again (architecture 4, ids).
    pub fn fresh_from(&self) -> Sequence {
        self.numbers.fresh_from
    }

    pub(super) fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Number of topics and channels together.
    pub(super) fn entry_count(&self) -> u64 {
        (self.topics.len() + self.channels.len()) as u64
    }

    /// Everything as entries; putting them into an empty catalogue gives this one.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let topics = self
            .topics
            .iter()
            .map(|(number, topic)| Entry::Topic(*number, Some(topic.clone())));
        let channels = self
            .channels
            .iter()
            .map(|(number, channel)| Entry::Channel(*number, Some(channel.clone())));
        let facts = self
            .facts
            .iter()
            .map(|(name, value)| Entry::Fact(name.clone(), Some(value.clone())));
        [Entry::Numbers(self.numbers)]
            .into_iter()
            .chain(topics)
            .chain(channels)
            .chain(facts)
            .collect()
    }

    /// Undoes changes: puts back what [`Catalogue::put`] answered, last first.
    pub(super) fn take_back(&mut self, answers: Vec<Entry>) {
        for entry in answers.into_iter().rev() {
            self.put(entry);
        }
    }

    /// What was counted stays counted although its change was undone: how much of it the disk has seen is unknown.
    pub(super) fn keep_counted(&mut self, Numbers { next, changes, .. }: Numbers) {
        self.numbers = Numbers {
            next,
            changes,
            ..self.numbers
        };
    }

    /// Replaces one entry; answers what was there, so that putting the answer undoes the change.
    pub(super) fn put(&mut self, entry: Entry) -> Entry {
        match entry {
            Entry::Numbers(numbers) => Entry::Numbers(std::mem::replace(&mut self.numbers, numbers)),
            Entry::Topic(number, topic) => Entry::Topic(number, replace(&mut self.topics, number, topic)),
            Entry::Channel(number, channel) => {
                Entry::Channel(number, replace(&mut self.channels, number, channel))
            }
            Entry::Fact(name, value) => {
                let before = replace(&mut self.facts, name.clone(), value);
                Entry::Fact(name, before)
            }
        }
    }
}

/// One piece of the catalogue and what it becomes; `None` = it goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    Numbers(Numbers),
    Topic(TopicNumber, Option<Topic>),
    Channel(ChannelNumber, Option<Channel>),
    Fact(String, Option<Vec<u8>>),
}

/// What numbers and sequences are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The number of the next topic or channel.
    pub(super) next: u64,
    /// See [`Catalogue::fresh_from`].
    pub(super) fresh_from: Sequence,
    /// How many transactions have changed the catalogue.
    pub(super) changes: u64,
    /// How many topics and channels there are; tells on start whether all rows are there.
    pub(super) entries: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            next: 1,
            fresh_from: Sequence::default(),
            changes: 0,
            entries: 0,
        }
    }
}

fn replace<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}
