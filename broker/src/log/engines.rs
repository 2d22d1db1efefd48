//! Duty: which engine keeps a topic's log, by its kind: segment files for durable topics, memory for ephemeral ones. Must
//! not know topics' names or channels.

use std::sync::Arc;

use super::engine::{Durability, LogError, Retention, TailWatch, TopicLog};
use super::memory::MemoryLog;
use super::segmented::{LogOptions, SegmentedEngine};
use super::sequence::Sequence;
use crate::store::cursor::TopicNumber;

/// The engines of one broker.
pub struct Engines {
    segmented: SegmentedEngine,
}

/// From where on a log gives sequences.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// First sequence of a new log.
    pub fresh: Sequence,
    /// No sequence below is given: the largest cursor that is stored for the topic.
    pub at_least: Sequence,
}

impl Engines {
    /// The engine for durable topics; ephemeral ones need none.
    pub fn new(segmented: SegmentedEngine) -> Self {
        Self { segmented }
    }

    /// Opens a durable topic's log, or creates it. May wait for the disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn open(
        &self,
        number: TopicNumber,
        start: Start,
        durability: Durability,
        retention: Retention,
        watch: Arc<dyn TailWatch>,
    ) -> Result<Arc<dyn TopicLog>, LogError> {
        let options = LogOptions {
            start: start.fresh,
            at_least: start.at_least,
            durability,
            retention,
            watch,
        };
        Ok(self.segmented.open(number.0, options)?)
    }

    /// A log that ends with the process.
    pub fn volatile(&self, start: Sequence, watch: Arc<dyn TailWatch>) -> Arc<dyn TopicLog> {
        Arc::new(MemoryLog::new(start, watch))
    }

    /// Deletes a durable topic's log. May wait for the disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn remove(&self, number: TopicNumber) -> Result<(), LogError> {
        self.segmented.remove(number.0)
    }

    /// Deletes the logs of topics that `known` does not know: what a crash left of deleted ones.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn remove_unknown(&self, known: impl Fn(TopicNumber) -> bool) -> Result<(), LogError> {
        for number in self.segmented.numbers()? {
            if !known(TopicNumber(number)) {
                tracing::info!(number, "removing the files of a topic that was deleted");
                self.segmented.remove(number)?;
            }
        }
        Ok(())
    }

    /// Looks at the disk; logs that could not be written recover when it works again. May wait for the disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn probe(&self) -> Result<(), LogError> {
        self.segmented.probe()
    }
}
