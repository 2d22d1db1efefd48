//! Duty: writes topics and channels as the data folder of a stock nsqd. Comes in: logs and cursors at rest. Goes out:
//! stock queues and `nsqd.dat`. Must not know how stock files look.
//!
//! What stock's format has no place for is lost and counted: what is left of delays, as when stock itself stops
//! (C-86), and extended headers.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use nsqx_proto::MessageId;
use nsqx_proto::message::id::internal_id;

use super::super::data::Data;
use super::super::{NodeError, restore};
use crate::clock::Clock;
use crate::config::Config;
use crate::export::ExportError;
use crate::export::stock_queue::QueueWriter;
use crate::import::nsqd_dat::{self, ChannelEntry, TopicEntry};
use crate::import::stock_queue::StockMessage;
use crate::log::engine::{DelayedRecord, Durability, Retention, TopicLog};
use crate::log::record::Record;
use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::catalogue::{Catalogue, HandedOver, Topic};
use crate::store::cursor::{StoredCursor, TopicNumber};
use crate::store::cursors::CursorStore;
use crate::topic::relay::Relay;

/// What was exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Topics, empty ones included.
    pub topics: usize,
    /// Messages written; one counts for each channel that has it.
    pub messages: u64,
    /// Those of them that were to wait longer.
    pub delayed: u64,
    /// Those of them that had an extended header.
    pub extended: u64,
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            topics,
            messages,
            delayed,
            extended,
        } = self;
        write!(
            f,
            "exported messages: {messages}, topics: {topics}, delays lost: {delayed}, headers lost: {extended}"
        )
    }
}

/// Writes everything that is not finished to `to`, which must be empty or missing. `nsqd.dat` comes last: a folder
/// without one is not whole.
///
/// # Errors
/// What files, logs and store say.
pub(super) fn export(data: &Data, config: &Config, to: &Path, clock: Clock) -> Result<Exported, NodeError> {
    make_empty(to)?;
    let catalogue = data.store.catalogue();
    let mut outlet = Outlet {
        data,
        to,
        node: config.node.id,
        max_bytes_per_file: config.log.max_bytes_per_file,
        wall: clock.wall(),
        exported: Exported::default(),
    };
    for (number, topic) in catalogue.topics() {
        outlet.topic(&catalogue, number, topic)?;
    }
    let content = nsqd_dat::encode(&entries(&catalogue)).map_err(std::io::Error::from)?;
    nsqd_dat::write(to, &content)?;
    Ok(outlet.exported)
}

struct Outlet<'a> {
    data: &'a Data,
    to: &'a Path,
    node: u16,
    max_bytes_per_file: u64,
    wall: i64,
    exported: Exported,
}

impl Outlet<'_> {
    fn topic(&mut self, catalogue: &Catalogue, number: TopicNumber, topic: &Topic) -> Result<(), NodeError> {
        let mut cursors = Vec::new();
        for (channel, stored) in catalogue.channels_of(number) {
            cursors.push((&stored.name, self.data.store.load(channel)?.unwrap_or_default()));
        }
        let at_least = cursors
            .iter()
            .map(|(_, cursor)| cursor.end())
            .max()
            .unwrap_or_default();
        let start = restore::log_start(topic.state.handed_over, at_least);
        let relay = Relay::silent();
        let log = self
            .data
            .engines
            .open(number, start, Durability::Interval, Retention::default(), relay)?;
        let handed_over = match topic.state.handed_over {
            HandedOver::Flowing => log.end(),
            HandedOver::At(position) => position.min(log.end()),
        };
        for (channel, cursor) in &cursors {
            self.queue(
                topic,
                Some(channel),
                &*log,
                SequenceRange::new(cursor.floor, handed_over),
                cursor,
            )?;
        }
        let held = SequenceRange::new(handed_over, log.end());
        self.queue(topic, None, &*log, held, &StoredCursor::default())?;
        self.exported.topics += 1;
        Ok(log.close()?)
    }

    /// Writes the records in `range` that are not finished as one queue, if there are any.
    fn queue(
        &mut self,
        topic: &Topic,
        channel: Option<&str>,
        log: &dyn TopicLog,
        range: SequenceRange,
        cursor: &StoredCursor,
    ) -> Result<(), NodeError> {
        let mut writer: Option<QueueWriter> = None;
        let mut from = range.start;
        while from < range.end
            && let Some(chunk) = log.read(from, READ_BYTES)?
        {
            from = chunk.end();
            let is_open =
                |record: &Record<'_>| range.contains(record.sequence) && !cursor.is_finished(record.sequence);
            for record in chunk.records().filter(is_open) {
                let writer = if let Some(writer) = &mut writer {
                    writer
                } else {
                    let bytes = self.max_bytes_per_file;
                    writer.insert(QueueWriter::create(self.to, &topic.name, channel, bytes)?)
                };
                writer.append(&self.message(topic, &record, cursor))?;
            }
        }
        if let Some(writer) = writer {
            writer.finish()?;
        }
        Ok(())
    }

    fn message<'r>(&mut self, topic: &Topic, record: &Record<'r>, cursor: &StoredCursor) -> StockMessage<'r> {
        let at = cursor
            .unsettled
            .binary_search_by_key(&record.sequence, |unsettled| unsettled.sequence);
        let unsettled = at.ok().map(|at| cursor.unsettled[at]);
        let due = match unsettled {
            Some(unsettled) => unsettled.due,
            None if record.delay_ms > 0 => restore::due(&DelayedRecord::of(record), &topic.state.holds),
            None => 0,
        };
        self.exported.messages += 1;
        if due > self.wall {
            self.exported.delayed += 1;
        }
        if record.ext_version > 0 {
            self.exported.extended += 1;
        }
        StockMessage {
            timestamp: record.timestamp,
            attempts: unsettled
                .map_or(0, |unsettled| unsettled.attempts)
                .max(record.attempts),
            id: record.own_id.unwrap_or_else(|| self.id(record.sequence)),
            body: record.body,
        }
    }

    fn id(&self, sequence: Sequence) -> [u8; 16] {
        *MessageId::hex(internal_id(self.node, sequence.get())).as_bytes()
    }
}

fn make_empty(folder: &Path) -> Result<(), ExportError> {
    let failed = |source| ExportError::Write {
        path: folder.to_owned(),
        source,
    };
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    match fs::read_dir(folder).map_err(failed)?.next() {
        Some(_) => Err(ExportError::NotEmpty(folder.to_owned())),
        None => Ok(()),
    }
}

fn entries(catalogue: &Catalogue) -> Vec<TopicEntry> {
    let channels = |number| {
        let channels = catalogue.channels_of(number);
        channels
            .map(|(_, channel)| ChannelEntry {
                name: channel.name.clone(),
                paused: channel.state.paused,
            })
            .collect()
    };
    let entry = |(number, topic): (TopicNumber, &Topic)| TopicEntry {
        name: topic.name.clone(),
        paused: topic.state.paused,
        channels: channels(number),
    };
    catalogue.topics().map(entry).collect()
}

/// How much one read of a log fetches.
const READ_BYTES: usize = 1 << 20;
