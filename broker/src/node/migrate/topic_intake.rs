//! Duty: imports into one topic. A topic is one log for all its channels, so what stock kept in a channel's queue is
//! finished for the topic's other channels from the start. Comes in: queues. Goes out: records in the log, cursors.
//! Must not know which queues are new.
//!
//! Records are appended, synced and noted batch by batch; nobody is given any before [`TopicIntake::settle`]. After a
//! crash what is not noted becomes void and is read again: no message is lost, none comes twice.

use std::sync::Arc;

use super::super::{NodeError, restore};
use super::batch::{BATCH_BYTES, Batch};
use super::intake::Intake;
use super::notes::{self, Piece, UnderWay};
use crate::import::mark::Mark;
use crate::import::name;
use crate::import::plan::TopicPlan;
use crate::import::stock_files::StockQueue;
use crate::import::stock_queue::QueueReader;
use crate::log::engine::{Durability, Retention, TopicLog};
use crate::log::record::{NewRecord, Record};
use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::catalogue::{Catalogue, ChannelState, HandedOver, Hold, TopicState};
use crate::store::cursor::{ChannelNumber, CursorDelta, TopicNumber};
use crate::store::cursors::CursorStore;
use crate::store::{Store, StoreError};
use crate::topic::founding::first_sequence;
use crate::topic::relay::Relay;

/// An import into one topic.
pub(super) struct TopicIntake<'a> {
    intake: &'a Intake<'a>,
    name: &'a str,
    number: TopicNumber,
    log: Arc<dyn TopicLog>,
    /// Everything below was handed over before the import.
    handed_over: Sequence,
    under_way: UnderWay,
}

impl<'a> TopicIntake<'a> {
    /// Begins an import, or goes on with one that was interrupted. Creates the topic and the channels that `plan`
    /// names if they are missing, and pauses what it says is paused.
    ///
    /// # Errors
    /// What log and store say.
    pub(super) fn begin(intake: &'a Intake<'a>, name: &'a str, plan: &TopicPlan) -> Result<Self, NodeError> {
        let store = &intake.data.store;
        let known = store.look(|catalogue| {
            let known = catalogue.topics().find(|(_, topic)| topic.name == name);
            known.map(|(number, topic)| (number, topic.state.clone()))
        });
        let (number, state) = match known {
            Some(known) => known,
            None => create(intake, name, plan.paused)?,
        };
        let mut at_least = Sequence::default();
        for (channel, _) in channels_of(store, number) {
            at_least = at_least.max(store.load(channel)?.unwrap_or_default().end());
        }
        let start = restore::log_start(state.handed_over, at_least);
        let relay = Relay::silent();
        let log = intake
            .data
            .engines
            .open(number, start, Durability::Always, Retention::default(), relay)?;
        let under_way = match store.look(|catalogue| notes::under_way(catalogue, name))? {
            Some(under_way) => {
                let unnoted = SequenceRange::new(under_way.end, log.end());
                if !unnoted.is_empty() {
                    log.void(unnoted)?;
                }
                under_way
            }
            None => UnderWay::new(log.end()),
        };
        let handed_over = match state.handed_over {
            HandedOver::Flowing => under_way.begin,
            HandedOver::At(position) => position.min(under_way.begin),
        };
        let this = Self {
            intake,
            name,
            number,
            log,
            handed_over,
            under_way,
        };
        this.create_channels(plan)?;
        Ok(this)
    }

    /// Takes the messages of one queue. `taken` is told how many, again and again.
    ///
    /// # Errors
    /// What files, log and store say.
    pub(super) fn take(
        &mut self,
        origin: &str,
        queue: &StockQueue,
        mut taken: impl FnMut(u64),
    ) -> Result<(), NodeError> {
        let mut reader = QueueReader::new(queue, queue.start, self.intake.max_body);
        let mut batch = Batch::default();
        let mut more = true;
        while more {
            more = batch.refill(&mut reader)?;
            let records = batch.records();
            if !records.is_empty() {
                let range = self.append(&records)?;
                self.under_way.add(queue.channel.as_deref(), range);
            }
            let mark = Mark::at(queue, reader.position())?;
            self.intake.data.store.transact(|transaction| {
                notes::set_mark(transaction, origin, queue, &mark)?;
                notes::set_under_way(transaction, self.name, Some(&self.under_way))
            })?;
            taken(records.len() as u64);
        }
        Ok(())
    }

    /// Ends the import: from now on the records belong to whom they are for.
    ///
    /// # Errors
    /// What log and store say.
    pub(super) fn settle(self) -> Result<(), NodeError> {
        let store = &self.intake.data.store;
        let topic_is_paused = |catalogue: &Catalogue| {
            catalogue
                .topic(self.number)
                .is_some_and(|topic| topic.state.paused)
        };
        let paused = store.look(topic_is_paused);
        let channels = channels_of(store, self.number);
        let held = SequenceRange::new(self.handed_over, self.under_way.begin);
        let flows = !paused && !channels.is_empty();
        let (handed_over, moved) = if flows {
            (HandedOver::Flowing, Vec::new())
        } else {
            self.stand_still(held)?
        };
        // What the topic held is handed over with the import: its delays begin now (C-51).
        let hold = (flows && !self.log.delayed(held)?.is_empty()).then(|| Hold {
            range: held,
            ended: self.intake.clock.wall(),
        });
        for channels in channels.chunks(CHANNELS_AT_ONCE) {
            let deltas: Vec<_> = channels
                .iter()
                .map(|(number, channel)| self.cursor(*number, channel, &moved))
                .collect::<Result<_, StoreError>>()?;
            store.save(&deltas)?;
        }
        store.transact(|transaction| {
            transaction.update_topic(self.number, |state| {
                state.handed_over = handed_over;
                state.holds.extend(hold);
            })?;
            notes::set_under_way(transaction, self.name, None)
        })?;
        Ok(self.log.close()?)
    }

    /// Where the hand-over of a topic stands that hands nothing over. Its channels are given what was in their queues,
    /// which lies behind what the topic itself holds: that is moved further back. Answers what was moved.
    fn stand_still(&self, held: SequenceRange) -> Result<(HandedOver, Vec<SequenceRange>), NodeError> {
        let pieces = &self.under_way.pieces;
        let of_channels = pieces.iter().filter(|piece| piece.channel.is_some());
        let Some(end) = of_channels.map(|piece| piece.range.end).max() else {
            return Ok((HandedOver::At(self.handed_over), Vec::new()));
        };
        let of_topic = pieces
            .iter()
            .filter(|piece| piece.channel.is_none())
            .map(|piece| piece.range);
        let mut moved = Vec::new();
        for range in std::iter::once(held)
            .chain(of_topic)
            .filter(|range| range.start < end)
        {
            self.move_back(range, &mut moved)?;
        }
        Ok((HandedOver::At(end), moved))
    }

    /// Appends the records of `range` again; the old ones go to `moved`.
    fn move_back(&self, range: SequenceRange, moved: &mut Vec<SequenceRange>) -> Result<(), NodeError> {
        let mut from = range.start;
        while from < range.end
            && let Some(chunk) = self.log.read(from, BATCH_BYTES)?
            && chunk.first < range.end
        {
            let chunk = chunk.ending_at(range.end);
            from = chunk.end();
            moved.push(SequenceRange::new(chunk.first, from));
            let records: Vec<_> = chunk.records().map(again).collect();
            self.append(&records)?;
        }
        Ok(())
    }

    /// A channel's cursor, for which everything is finished that does not belong to the channel.
    fn cursor(
        &self,
        number: ChannelNumber,
        name: &str,
        moved: &[SequenceRange],
    ) -> Result<(ChannelNumber, CursorDelta), StoreError> {
        let mut cursor = self.intake.data.store.load(number)?.unwrap_or_default();
        let is_foreign = |piece: &&Piece| piece.channel.as_deref().is_some_and(|channel| channel != name);
        let foreign = self
            .under_way
            .pieces
            .iter()
            .filter(is_foreign)
            .map(|piece| piece.range);
        joined(foreign)
            .iter()
            .chain(moved)
            .for_each(|range| cursor.finish(*range));
        Ok((
            number,
            CursorDelta {
                floor: cursor.floor,
                blocks: cursor.blocks,
                ..CursorDelta::default()
            },
        ))
    }

    fn create_channels(&self, plan: &TopicPlan) -> Result<(), NodeError> {
        let store = &self.intake.data.store;
        let known = channels_of(store, self.number);
        let lasting = plan.channels.iter().filter(|(name, _)| !name::is_ephemeral(name));
        store.transact(|transaction| {
            if plan.paused {
                transaction.update_topic(self.number, |state| state.paused = true)?;
            }
            for (name, plan) in lasting {
                let number = if let Some((number, _)) = known.iter().find(|(_, known)| known == name) {
                    *number
                } else {
                    let state = ChannelState::default();
                    transaction.create_channel(self.number, name, state, self.handed_over)?
                };
                if plan.paused {
                    transaction.update_channel(number, |state| state.paused = true)?;
                }
            }
            notes::set_under_way(transaction, self.name, Some(&self.under_way))
        })?;
        Ok(())
    }

    /// Appends records; they are on the disk when this returns.
    fn append(&self, records: &[NewRecord<'_>]) -> Result<SequenceRange, NodeError> {
        let appended = self.log.append(records)?;
        self.log.flush();
        self.intake.runtime.block_on(appended.ticket)?;
        Ok(appended.range)
    }
}

fn channels_of(store: &Store, topic: TopicNumber) -> Vec<(ChannelNumber, String)> {
    store.look(|catalogue| {
        let channels = catalogue.channels_of(topic);
        channels
            .map(|(number, channel)| (number, channel.name.clone()))
            .collect()
    })
}

fn create(intake: &Intake<'_>, name: &str, paused: bool) -> Result<(TopicNumber, TopicState), StoreError> {
    let fresh = first_sequence(intake.clock.wall());
    intake.data.store.transact(|transaction| {
        let start = fresh.max(transaction.catalogue().fresh_from());
        let handed_over = HandedOver::At(start);
        let state = TopicState {
            extend: intake.extend,
            paused,
            handed_over,
            ..TopicState::default()
        };
        Ok((transaction.create_topic(name, state.clone())?, state))
    })
}

/// Ranges in ascending order, those that touch made one.
fn joined(ranges: impl Iterator<Item = SequenceRange>) -> Vec<SequenceRange> {
    let mut joined: Vec<SequenceRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// A record to be appended once more.
fn again(record: Record<'_>) -> NewRecord<'_> {
    NewRecord {
        timestamp: record.timestamp,
        delay_ms: record.delay_ms,
        trace_id: record.trace_id,
        own_id: record.own_id,
        attempts: record.attempts,
        load_test: record.load_test,
        tagged: record.tagged,
        ext_version: record.ext_version,
        ext: record.ext,
        body: record.body,
    }
}

/// Channels whose cursors are changed in one transaction.
const CHANNELS_AT_ONCE: usize = 100;

#[cfg(test)]
mod tests;
