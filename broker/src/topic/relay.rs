//! Duty: passes a log's news on to its topic, which is made after the log. Must not know what the news mean.

use std::sync::{Arc, OnceLock, Weak};

use super::Topic;
use super::health::{Health, Source};
use crate::log::engine::{DelayedRecord, LogError, TailWatch};
use crate::log::sequence::Sequence;
use crate::store::cursor::TopicNumber;

/// Stands between a log and its topic.
pub struct Relay {
    topic: OnceLock<Weak<Topic>>,
    /// `None` for a log in memory, which never fails, and where nobody asks for health.
    health: Option<(Arc<Health>, Source)>,
}

impl Relay {
    /// A relay without a topic; until it has one there is no news, since nobody appends. `number` is that of a durable
    /// topic.
    pub fn new(health: Arc<Health>, number: Option<TopicNumber>) -> Arc<Self> {
        let health = number.map(|number| (health, Source::Log(number)));
        Arc::new(Self {
            topic: OnceLock::new(),
            health,
        })
    }

    /// A relay that passes nothing on: for work on logs while no topic lives.
    pub fn silent() -> Arc<Self> {
        Arc::new(Self {
            topic: OnceLock::new(),
            health: None,
        })
    }

    /// News go to `topic` from now on.
    pub fn connect(&self, topic: &Arc<Topic>) {
        let _ = self.topic.set(Arc::downgrade(topic));
    }
}

impl TailWatch for Relay {
    fn advanced(&self, end: Sequence, delayed: &[DelayedRecord]) {
        if let Some(topic) = self.topic.get().and_then(Weak::upgrade) {
            topic.advanced(end, delayed);
        }
    }

    fn health(&self, state: Result<(), &LogError>) {
        if let Some((health, source)) = &self.health {
            health.report(*source, state);
        }
    }
}

impl Drop for Relay {
    /// A log that is gone fails no more.
    fn drop(&mut self) {
        self.health(Ok(()));
    }
}
