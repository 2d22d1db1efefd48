//! Duty: what of a channel is stored, and a channel from what was stored. Comes in: both clocks. Goes out: deltas.
//! Must not know the store.

use std::time::Duration;

use super::changes::{Change, Changes, Waiting};
use super::cursor::Cursor;
use super::delay::Deferred;
use super::finished::Finished;
use super::{Channel, ChannelRules, Moment, Sequence};
use crate::log::sequence::SequenceRange;
use crate::store::cursor::{CursorDelta, StoredCursor, Unsettled};

impl Channel {
    /// A channel as it was stored, for a log handed over up to `handed_over`. `count` answers how many records lie
    /// in a range. `now` and `wall` (nanoseconds since the Unix epoch) are the same moment: what is left of a
    /// delay is clamped to 0..its length. Delayed records from the floor on must be announced again by
    /// [`Channel::hand_over`].
    pub fn restore(
        rules: ChannelRules,
        stored: &StoredCursor,
        handed_over: Sequence,
        count: impl Fn(SequenceRange) -> u64,
        now: Moment,
        wall: i64,
    ) -> Self {
        let end = handed_over.max(stored.floor);
        let finished = Finished::restore(stored.floor, &stored.blocks, end);
        let floor = finished.floor();
        let records = count(SequenceRange::new(floor, end)).saturating_sub(finished.above());
        let mut channel = Self::new(rules, floor);
        channel.cursor = Cursor::new(floor, end, records);
        channel.cursor.set_finished_aside(finished.set());
        channel.finished = finished;
        channel.changes = Changes::new(rules.durable, stored.floor);
        let mut unsettled: Vec<&Unsettled> = stored.unsettled.iter().collect();
        unsettled.sort_unstable_by_key(|unsettled| unsettled.sequence);
        // None of them is fresh any more when the first one gets its turn.
        unsettled.retain(|unsettled| channel.reclaim(unsettled.sequence));
        for unsettled in unsettled {
            channel.restore_unsettled(unsettled, now, wall);
        }
        channel
    }

    /// What changed since the last checkpoint, for the store to apply; `None` when nothing did. `wall` and `now`
    /// are the same moment.
    pub fn checkpoint(&mut self, wall: i64, now: Moment) -> Option<CursorDelta> {
        if !self.changes.kept() {
            return None;
        }
        let floor = self.finished.floor();
        let mut delta = CursorDelta {
            floor,
            reset: std::mem::take(&mut self.changes.reset),
            blocks: self.finished.take_changed(),
            ..CursorDelta::default()
        };
        for (sequence, change) in self.changes.take() {
            match change {
                Change::New(waiting) | Change::Changed(waiting) => {
                    delta.unsettled.push(unsettled(sequence, waiting, wall, now));
                }
                Change::Gone => delta.settled.push(sequence),
            }
        }
        self.changes.finishes = 0;
        let floor_moved = std::mem::replace(&mut self.changes.floor, floor) != floor;
        let anything = floor_moved
            || delta.reset
            || !delta.blocks.is_empty()
            || !delta.unsettled.is_empty()
            || !delta.settled.is_empty();
        anything.then_some(delta)
    }

    /// The checkpoint of a clean stop: what is in flight comes again with attempts one higher (C-86). The channel
    /// is not to be used afterwards.
    pub fn final_checkpoint(&mut self, wall: i64, now: Moment) -> Option<CursorDelta> {
        for flight in self.in_flight.iter() {
            let waiting = Waiting {
                attempts: flight.attempts,
                due: None,
            };
            self.changes.waits(flight.sequence, flight.stored, waiting);
        }
        self.checkpoint(wall, now)
    }

    /// The whole state, replacing whatever the store has of this channel: for a store that lost writes.
    pub fn full_checkpoint(&mut self, wall: i64, now: Moment) -> Option<CursorDelta> {
        self.changes.reset();
        self.finished.mark_all_changed();
        let returned = self
            .returned
            .iter()
            .map(|returned| (returned.sequence, returned.attempts, None, returned.stored));
        let deferred = self.due.iter().map(|deferred| {
            (
                deferred.sequence,
                deferred.attempts,
                Some(deferred.due),
                deferred.stored,
            )
        });
        let in_flight = self
            .in_flight
            .iter()
            .map(|flight| (flight.sequence, flight.attempts, None, flight.stored));
        for (sequence, attempts, due, stored) in returned.chain(deferred).chain(in_flight) {
            if stored {
                self.changes.waits(sequence, true, Waiting { attempts, due });
            }
        }
        self.checkpoint(wall, now)
    }

    /// Messages finished since the last checkpoint: what a crash now would repeat.
    pub const fn dirty_finishes(&self) -> u64 {
        self.changes.finishes
    }

    /// Sets a message that was stored as unsettled aside; false when it was finished since or is not in the log,
    /// so that the store need not keep it.
    fn reclaim(&mut self, sequence: Sequence) -> bool {
        let waits =
            sequence < self.cursor.end() && sequence >= self.floor() && self.cursor.set_aside(sequence);
        if !waits {
            self.changes.is_gone(sequence);
        }
        waits
    }

    fn restore_unsettled(&mut self, unsettled: &Unsettled, now: Moment, wall: i64) {
        let Unsettled {
            sequence, attempts, ..
        } = *unsettled;
        let left = time_left(unsettled, wall);
        if left.is_zero() {
            self.wait_for_turn(sequence, attempts, true);
        } else {
            self.due.insert(Deferred {
                sequence,
                due: now + left,
                attempts,
                stored: true,
            });
        }
    }
}

fn time_left(unsettled: &Unsettled, wall: i64) -> Duration {
    let left = Duration::from_nanos(u64::try_from(unsettled.due.saturating_sub(wall)).unwrap_or(0));
    left.min(Duration::from_millis(unsettled.delay_ms))
}

fn unsettled(sequence: Sequence, waiting: Waiting, wall: i64, now: Moment) -> Unsettled {
    let left = waiting.due.map_or(Duration::ZERO, |due| due.since(now));
    if left.is_zero() {
        return Unsettled {
            sequence,
            attempts: waiting.attempts,
            due: 0,
            delay_ms: 0,
        };
    }
    let nanos = i64::try_from(left.as_nanos()).unwrap_or(i64::MAX);
    Unsettled {
        sequence,
        attempts: waiting.attempts,
        due: wall.saturating_add(nanos),
        delay_ms: u64::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX),
    }
}
