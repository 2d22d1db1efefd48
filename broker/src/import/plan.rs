//! Duty: everything that can be taken from a stock data folder, counted, before anything is taken. Must not know
//! where it is put.

use std::collections::BTreeMap;
use std::path::Path;

use super::stock_files::{self, StockQueue};
use super::stock_meta::Position;
use super::stock_queue::QueueReader;
use super::{ImportError, Warning, name, nsqd_dat};

/// What a stock data folder holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Topics by name.
    pub topics: BTreeMap<String, TopicPlan>,
    /// What is passed over.
    pub warnings: Vec<Warning>,
}

/// A topic to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPlan {
    /// True when `nsqd.dat` names it. Stock would not create it otherwise, but would find its files when somebody
    /// else does.
    pub listed: bool,
    /// True when it is paused.
    pub paused: bool,
    /// Messages that no channel has got yet; they belong to all channels of the topic.
    pub queue: Option<QueuePlan>,
    /// Channels by name.
    pub channels: BTreeMap<String, ChannelPlan>,
}

/// A channel to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelPlan {
    /// As [`TopicPlan::listed`].
    pub listed: bool,
    /// True when it is paused.
    pub paused: bool,
    /// Messages that wait in it.
    pub queue: Option<QueuePlan>,
}

/// A queue to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePlan {
    /// Its files.
    pub queue: StockQueue,
    /// Messages that can be read.
    pub messages: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

impl Plan {
    /// Looks through `dir`: `nsqd.dat`, if there is one, and every queue, whose records are counted one by one.
    /// `max_body` as in [`QueueReader::new`].
    ///
    /// # Errors
    /// [`ImportError::Read`], [`ImportError::NsqdDat`].
    pub fn make(dir: &Path, max_body: u32) -> Result<Self, ImportError> {
        Self::resume(dir, max_body, |queue| Ok(queue.start))
    }

    /// As [`Plan::make`], but each queue is read from where `begin` says, which becomes its [`StockQueue::start`]:
    /// what lies before was imported earlier.
    ///
    /// # Errors
    /// Those of [`Plan::make`] and of `begin`.
    pub fn resume<E: From<ImportError>>(
        dir: &Path,
        max_body: u32,
        begin: impl Fn(&StockQueue) -> Result<Position, E>,
    ) -> Result<Self, E> {
        let mut plan = Self::default();
        if let Some((topics, warnings)) = nsqd_dat::read(dir)? {
            plan.warnings = warnings;
            for topic in topics {
                plan.list(topic);
            }
        }
        let (queues, warnings) = stock_files::find(dir)?;
        plan.warnings.extend(warnings);
        for mut queue in queues {
            let channel = queue.channel.as_deref();
            if name::is_ephemeral(&queue.topic) || channel.is_some_and(name::is_ephemeral) {
                let prefix = stock_files::file_prefix(&queue.topic, queue.channel.as_deref());
                plan.warnings.push(Warning::Orphan(prefix));
            } else {
                queue.start = begin(&queue)?;
                plan.add(queue, max_body)?;
            }
        }
        Ok(plan)
    }

    /// Messages in all queues.
    pub fn messages(&self) -> u64 {
        self.topics.values().map(TopicPlan::messages).sum()
    }

    fn list(&mut self, entry: nsqd_dat::TopicEntry) {
        let topic = self.topics.entry(entry.name).or_default();
        topic.listed = true;
        topic.paused |= entry.paused;
        for entry in entry.channels {
            let channel = topic.channels.entry(entry.name).or_default();
            channel.listed = true;
            channel.paused |= entry.paused;
        }
    }

    fn add(&mut self, queue: StockQueue, max_body: u32) -> Result<(), ImportError> {
        let mut reader = QueueReader::new(&queue, queue.start, max_body);
        let (mut messages, mut bytes) = (0, 0);
        while let Some(body) = reader.skip_message()? {
            messages += 1;
            bytes += body as u64;
        }
        self.warnings.extend_from_slice(reader.warnings());
        let topic = self.topics.entry(queue.topic.clone()).or_default();
        let place = match &queue.channel {
            Some(channel) => &mut topic.channels.entry(channel.clone()).or_default().queue,
            None => &mut topic.queue,
        };
        *place = Some(QueuePlan {
            queue,
            messages,
            bytes,
        });
        Ok(())
    }
}

impl TopicPlan {
    /// The queues that hold messages: those of the channels, then that of the topic.
    pub fn queues(&self) -> impl Iterator<Item = &QueuePlan> {
        let channels = self
            .channels
            .values()
            .filter_map(|channel| channel.queue.as_ref());
        channels.chain(&self.queue).filter(|queue| queue.messages > 0)
    }

    /// Messages in its queues.
    pub fn messages(&self) -> u64 {
        self.queues().map(|queue| queue.messages).sum()
    }
}
