//! Duty: messages as they stand in a channel, for `/message/peek`. Comes in: where they stand, the log. Goes out: what is
//! shown. Must not know HTTP.

use bytes::Bytes;
use nsqx_proto::MessageId;
use nsqx_proto::message::id::internal_id;

use crate::channel::peek::{Peeked, Place};
use crate::channel::shared::SharedChannel;
use crate::clock::Clock;
use crate::desk::{Peek, PeekState, PeekedMessage};
use crate::log::engine::{LogError, TopicLog};
use crate::log::record::Record;

/// The messages that `peek` asks for. May wait for the disk.
///
/// # Errors
/// When the log can not be read.
pub(super) fn messages(
    channel: &SharedChannel,
    log: &dyn TopicLog,
    peek: Peek,
    node: u16,
    clock: Clock,
) -> Result<Vec<PeekedMessage>, LogError> {
    let place = match peek.state {
        PeekState::Ready => Place::Ready,
        PeekState::InFlight => Place::InFlight,
        PeekState::Deferred => Place::Deferred,
    };
    let mut found = channel.peek(place, peek.limit);
    if place == Place::Ready {
        fresh(channel, log, peek.limit, &mut found)?;
    }
    let (now, wall) = (clock.now(), clock.wall());
    let mut shown = Vec::new();
    let mut bytes = 0;
    for peeked in found {
        let Some(chunk) = log.read(peeked.sequence, 1)? else {
            continue;
        };
        let Some(record) = chunk
            .records()
            .next()
            .filter(|record| record.sequence == peeked.sequence)
        else {
            continue;
        };
        bytes += record.body.len();
        if bytes > peek.max_bytes && !shown.is_empty() {
            break;
        }
        let left = peeked
            .due
            .map(|due| i64::try_from(due.since(now).as_nanos()).unwrap_or(i64::MAX));
        shown.push(PeekedMessage {
            id: id(&record, node),
            sequence: record.sequence.get(),
            timestamp: record.timestamp,
            attempts: peeked.attempts,
            due: left.map(|left| wall.saturating_add(left)),
            body: Bytes::copy_from_slice(record.body),
        });
    }
    Ok(shown)
}

/// Adds the messages that nobody has been offered yet, up to `limit` in all.
fn fresh(
    channel: &SharedChannel,
    log: &dyn TopicLog,
    limit: usize,
    found: &mut Vec<Peeked>,
) -> Result<(), LogError> {
    let mut next = channel.next_fresh();
    while found.len() < limit {
        let Some(chunk) = log.read(next, READ_BYTES)? else {
            return Ok(());
        };
        next = chunk.end();
        for record in chunk.records() {
            if found.len() == limit || !channel.is_handed_over(record.sequence) {
                return Ok(());
            }
            if channel.is_fresh(record.sequence) {
                found.push(Peeked {
                    sequence: record.sequence,
                    attempts: record.attempts,
                    due: None,
                });
            }
        }
    }
    Ok(())
}

fn id(record: &Record<'_>, node: u16) -> [u8; 16] {
    record
        .own_id
        .unwrap_or_else(|| *MessageId::hex(internal_id(node, record.sequence.get())).as_bytes())
}

const READ_BYTES: usize = 64 * 1024;
