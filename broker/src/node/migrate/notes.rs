//! Duty: what the store remembers of imports, as facts: how far each stock queue was taken, and whose the records are
//! that were taken into a topic that is not ready yet. Must not know how either comes about.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::NodeError;
use crate::import::mark::Mark;
use crate::import::stock_files::{StockQueue, file_prefix};
use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::StoreError;
use crate::store::catalogue::Catalogue;
use crate::store::transaction::Transaction;

/// An import into a topic that is under way. Until it is settled no channel has been given its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnderWay {
    /// End of the topic's log before the import.
    pub(super) begin: Sequence,
    /// First sequence after the records that are noted. What a crash left behind it will be imported again.
    pub(super) end: Sequence,
    /// The records, oldest first.
    pub(super) pieces: Vec<Piece>,
}

/// Records of one queue, one after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    /// The channel they belong to; `None` = all channels of the topic.
    pub(super) channel: Option<String>,
    /// Their place in the log.
    pub(super) range: SequenceRange,
}

impl UnderWay {
    /// Nothing has been imported into a log that ends at `end`.
    pub(super) fn new(end: Sequence) -> Self {
        Self {
            begin: end,
            end,
            pieces: Vec::new(),
        }
    }

    /// The records in `range` were appended.
    pub(super) fn add(&mut self, channel: Option<&str>, range: SequenceRange) {
        self.end = range.end;
        match self.pieces.last_mut() {
            Some(last) if last.channel.as_deref() == channel && last.range.end == range.start => {
                last.range.end = range.end;
            }
            _ => self.pieces.push(Piece {
                channel: channel.map(str::to_owned),
                range,
            }),
        }
    }
}

/// How far a queue was imported; `origin` tells its folder.
///
/// # Errors
/// [`NodeError::Note`].
pub(super) fn mark(
    catalogue: &Catalogue,
    origin: &str,
    queue: &StockQueue,
) -> Result<Option<Mark>, NodeError> {
    read(catalogue, &mark_name(origin, queue))
}

/// Notes how far a queue was imported.
///
/// # Errors
/// Those of the disk.
pub(super) fn set_mark(
    transaction: &mut Transaction<'_>,
    origin: &str,
    queue: &StockQueue,
    mark: &Mark,
) -> Result<(), StoreError> {
    transaction.set_fact(&mark_name(origin, queue), encode(mark))
}

/// The import into a topic that is under way.
///
/// # Errors
/// [`NodeError::Note`].
pub(super) fn under_way(catalogue: &Catalogue, topic: &str) -> Result<Option<UnderWay>, NodeError> {
    read(catalogue, &topic_name(topic))
}

/// Notes the import into a topic; `None` = it is settled.
///
/// # Errors
/// Those of the disk.
pub(super) fn set_under_way(
    transaction: &mut Transaction<'_>,
    topic: &str,
    import: Option<&UnderWay>,
) -> Result<(), StoreError> {
    transaction.set_fact(&topic_name(topic), import.and_then(encode))
}

fn read<N: DeserializeOwned>(catalogue: &Catalogue, name: &str) -> Result<Option<N>, NodeError> {
    let Some(text) = catalogue.fact(name) else {
        return Ok(None);
    };
    serde_json::from_slice(text)
        .map(Some)
        .map_err(|source| NodeError::Note {
            name: name.to_owned(),
            source,
        })
}

/// Plain numbers and names always fit into JSON.
fn encode(note: &impl Serialize) -> Option<Vec<u8>> {
    serde_json::to_vec(note).ok()
}

/// A queue's file names begin with a name, the folder of another data path with a slash.
fn mark_name(origin: &str, queue: &StockQueue) -> String {
    format!(
        "imported {origin} {}",
        file_prefix(&queue.topic, queue.channel.as_deref())
    )
}

fn topic_name(topic: &str) -> String {
    format!("import under way {topic}")
}
