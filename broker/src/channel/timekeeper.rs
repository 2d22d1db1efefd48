//! Duty: calls each channel when its next deadline is due. Comes in: deadlines. Goes out: ticks. Must not know what a
//! deadline is for.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::shared::SharedChannel;
use crate::clock::{Clock, Moment};

/// Deadlines of all channels of a broker, nearest first; at most one a channel.
#[derive(Default)]
pub struct Timekeeper {
    deadlines: Mutex<Deadlines>,
    nearer: Notify,
}

/// A channel's place among the deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Armed {
    /// When the channel is ticked.
    pub deadline: Moment,
    number: u64,
}

#[derive(Default)]
struct Deadlines {
    queue: BTreeMap<Armed, Weak<SharedChannel>>,
    armed: u64,
}

impl Timekeeper {
    /// `channel` wants a tick at `deadline` or up to [`SLOT`] later, so that what is due close together costs one wake-up.
    /// `before` is its place so far, which it loses.
    pub fn arm(&self, deadline: Moment, before: Option<Armed>, channel: Weak<SharedChannel>) -> Armed {
        let slot = SLOT.as_nanos() as u64;
        let deadline = Moment::from_nanos(deadline.as_nanos().div_ceil(slot).saturating_mul(slot));
        let mut deadlines = self.deadlines.lock();
        if let Some(before) = before {
            deadlines.queue.remove(&before);
        }
        let nearest = deadlines
            .queue
            .first_key_value()
            .is_none_or(|(first, _)| deadline < first.deadline);
        deadlines.armed += 1;
        let armed = Armed {
            deadline,
            number: deadlines.armed,
        };
        deadlines.queue.insert(armed, channel);
        drop(deadlines);
        if nearest {
            self.nearer.notify_one();
        }
        armed
    }

    /// Ticks channels for as long as it is polled. Cancel safe.
    pub async fn run(&self, clock: Clock) {
        loop {
            let now = clock.now();
            let (due, next) = self.due(now);
            for channel in due.iter().filter_map(Weak::upgrade) {
                channel.tick(now);
            }
            let wait = next.map_or(IDLE, |next| next.since(clock.now()));
            tokio::select! {
                () = self.nearer.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn due(&self, now: Moment) -> (Vec<Weak<SharedChannel>>, Option<Moment>) {
        let mut deadlines = self.deadlines.lock();
        let later = deadlines.queue.split_off(&Armed {
            deadline: now,
            number: u64::MAX,
        });
        let due = std::mem::replace(&mut deadlines.queue, later)
            .into_values()
            .collect();
        (
            due,
            deadlines.queue.first_key_value().map(|(next, _)| next.deadline),
        )
    }
}

/// Deadlines are met up to this late, never early.
pub const SLOT: Duration = Duration::from_millis(10);
/// How long to sleep when nothing is armed; a new deadline ends the sleep.
const IDLE: Duration = Duration::from_hours(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_has_one_place_however_often_it_is_armed() {
        let timekeeper = Timekeeper::default();
        let mut place = None;
        for milli in [60_000, 1_000, 60_000, 2_000, 500] {
            let deadline = Moment::default() + Duration::from_millis(milli);
            place = Some(timekeeper.arm(deadline, place, Weak::new()));
        }
        assert_eq!(timekeeper.deadlines.lock().queue.len(), 1);
        let due_at = Moment::default() + Duration::from_millis(500);
        assert_eq!(timekeeper.due(due_at - Duration::from_nanos(1)).0.len(), 0);
        assert_eq!(timekeeper.due(due_at).0.len(), 1);
    }
}
