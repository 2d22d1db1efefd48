//! Duty: topics and channels as they were when the broker last ran. Comes in: the store's catalogue and cursors, the
//! logs. Goes out: live topics. Must not know doors.

use std::sync::Arc;

use nsqx_proto::name::{ChannelName, TopicName};

use super::NodeError;
use crate::channel::Channel;
use crate::clock::Moment;
use crate::desk::settings::TopicSettings;
use crate::log::engine::DelayedRecord;
use crate::log::engines::Start;
use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::Store;
use crate::store::catalogue::{self, Catalogue, HandedOver, Hold};
use crate::store::cursor::{StoredCursor, TopicNumber};
use crate::store::cursors::CursorStore;
use crate::topic::directory::Directory;
use crate::topic::flow::delay_start;
use crate::topic::founding::Founding;
use crate::topic::relay::Relay;
use crate::topic::{self, Topic};

/// Brings all stored topics to life. All channels of a topic are there before it hands anything over.
///
/// # Errors
/// When the store is damaged or a log can not be opened.
pub(super) fn topics(
    directory: &Directory,
    catalogue: &Catalogue,
    cursors: &[(
        catalogue::Channel,
        crate::store::cursor::ChannelNumber,
        StoredCursor,
    )],
) -> Result<(), NodeError> {
    let founding = directory.founding();
    founding
        .engines
        .remove_unknown(|number| catalogue.topic(number).is_some())?;
    let mut standing = Vec::new();
    for (number, stored) in catalogue.topics() {
        let own: Vec<_> = cursors
            .iter()
            .filter(|(channel, _, _)| channel.topic == number)
            .collect();
        let at_least = own
            .iter()
            .map(|(_, _, cursor)| cursor.end())
            .max()
            .unwrap_or_default();
        let topic = open(founding, number, stored, at_least)?;
        let delayed = delayed_records(&topic, stored, own.iter().map(|(_, _, cursor)| cursor.floor))?;
        for (channel, channel_number, cursor) in own {
            let name =
                ChannelName::parse(&channel.name).map_err(|_| NodeError::StoredName(channel.name.clone()))?;
            let machine = machine(founding, &topic, &name, cursor, &delayed);
            let floor = cursor.floor;
            let live = topic.add_channel(|_| {
                founding.restored_channel(&topic, &name, Some(*channel_number), machine, floor)
            });
            if let Some(live) = live
                && channel.state.paused
            {
                live.set_paused(true);
            }
        }
        if topic.channels().is_empty() && stored.state.handed_over == HandedOver::Flowing {
            standing.push((number, topic.handed_over()));
        }
        topic.start();
        directory.restore(topic);
    }
    stand_still(founding, standing)
}

/// Stores where topics stand still whose last channels were ephemeral and ended with the process.
fn stand_still(founding: &Founding, topics: Vec<(TopicNumber, Sequence)>) -> Result<(), NodeError> {
    if topics.is_empty() {
        return Ok(());
    }
    let stored = founding.store.transact(move |transaction| {
        topics.into_iter().try_for_each(|(number, position)| {
            transaction.update_topic(number, |state| state.handed_over = HandedOver::At(position))
        })
    });
    Ok(stored.wait()?)
}

/// Reads every stored cursor.
///
/// # Errors
/// When the store is damaged.
pub(super) fn cursors(
    store: &Store,
    catalogue: &Catalogue,
) -> Result<
    Vec<(
        catalogue::Channel,
        crate::store::cursor::ChannelNumber,
        StoredCursor,
    )>,
    NodeError,
> {
    let mut cursors = Vec::new();
    for (number, channel) in catalogue.channels() {
        let cursor = store.load(number)?.unwrap_or_default();
        cursors.push((channel.clone(), number, cursor));
    }
    Ok(cursors)
}

/// Where a stored topic's log starts when it is empty, and from where on it goes on; `at_least` is the end of all
/// cursors.
pub(super) fn log_start(handed_over: HandedOver, at_least: Sequence) -> Start {
    let position = match handed_over {
        HandedOver::Flowing => Sequence::default(),
        HandedOver::At(position) => position,
    };
    Start {
        fresh: position,
        at_least: at_least.max(position),
    }
}

fn open(
    founding: &Founding,
    number: TopicNumber,
    stored: &catalogue::Topic,
    at_least: Sequence,
) -> Result<Arc<Topic>, NodeError> {
    let name = TopicName::parse(&stored.name).map_err(|_| NodeError::StoredName(stored.name.clone()))?;
    let relay = Relay::new(Arc::clone(&founding.health), Some(number));
    let start = log_start(stored.state.handed_over, at_least);
    let settings = TopicSettings::from_json(&stored.state.settings, founding.topic_settings);
    let (durability, retention) = (settings.durability, settings.retention());
    let log = founding
        .engines
        .open(number, start, durability, retention, Arc::clone(&relay) as _)?;
    let handed_over = match stored.state.handed_over {
        HandedOver::Flowing => log.end(),
        HandedOver::At(position) => position.min(log.end()),
    };
    let held = log.delayed(SequenceRange::new(handed_over, log.end()))?;
    let parts = topic::Parts {
        name,
        number: Some(number),
        handed_over,
        log,
        paused: stored.state.paused,
        held,
        incarnation: founding.next_incarnation(),
        settings,
        bound: None,
        holds: stored.state.holds.clone(),
    };
    let topic = Arc::new(Topic::new(parts, founding.rooms.clock));
    relay.connect(&topic);
    Ok(topic)
}

/// The delayed records that some channel may still have to hold back, with the wall time at which each delay began.
fn delayed_records(
    topic: &Topic,
    stored: &catalogue::Topic,
    floors: impl Iterator<Item = Sequence>,
) -> Result<Vec<(DelayedRecord, i64)>, NodeError> {
    let Some(lowest) = floors.min() else {
        return Ok(Vec::new());
    };
    let range = SequenceRange::new(lowest, topic.handed_over());
    let records = topic.log().delayed(range)?;
    Ok(records
        .into_iter()
        .map(|record| (record, delay_start(&record, &stored.state.holds)))
        .collect())
}

/// When a record is due by the wall clock, nanoseconds since the Unix epoch.
pub(super) fn due(record: &DelayedRecord, holds: &[Hold]) -> i64 {
    let length = i64::try_from(record.delay_ms)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000_000);
    delay_start(record, holds).saturating_add(length)
}

fn machine(
    founding: &Founding,
    topic: &Topic,
    name: &ChannelName,
    cursor: &StoredCursor,
    delayed: &[(DelayedRecord, i64)],
) -> Channel {
    let (now, wall) = (founding.rooms.clock.now(), founding.rooms.clock.wall());
    let log = topic.log();
    let handed_over = topic.handed_over();
    let mut machine = Channel::restore(
        founding.rules_of(name, true),
        cursor,
        handed_over,
        |range| log.count(range),
        now,
        wall,
    );
    let due: Vec<(Sequence, Moment)> = delayed
        .iter()
        .map(|(record, from)| (record.sequence, now + record.left(*from, wall)))
        .collect();
    machine.hand_over(handed_over, 0, &due);
    machine
}
