//! Duty: passes a log's news on to its topic, which is made after the log. Must not know what the news mean.

use std::sync::{Arc, OnceLock, Weak};

use super::Topic;
use crate::log::engine::{DelayedRecord, LogError, TailWatch};
use crate::log::sequence::Sequence;
use crate::topic::health::Health;

/// Stands between a log and its topic.
pub struct Relay {
    topic: OnceLock<Weak<Topic>>,
    health: Arc<Health>,
}

impl Relay {
    /// A relay without a topic; until it has one there is no news, since nobody appends.
    pub fn new(health: Arc<Health>) -> Arc<Self> {
        Arc::new(Self { topic: OnceLock::new(), health })
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
        self.health.report(state);
    }
}
