//! Duty: calls each channel when its next deadline is due. Comes in: deadlines. Goes out: ticks. Must not know what a
//! deadline is for.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::shared::SharedChannel;
use crate::clock::{Clock, Moment};

/// Deadlines of all channels of a broker, nearest first.
#[derive(Default)]
pub struct Timekeeper {
    deadlines: Mutex<Deadlines>,
    nearer: Notify,
}

#[derive(Default)]
struct Deadlines {
    queue: BTreeMap<(Moment, u64), Weak<SharedChannel>>,
    armed: u64,
}

impl Timekeeper {
    /// `channel` wants a tick at `deadline` or up to [`SLOT`] later, so that what is due close together costs one wake-up.
    /// A channel may be armed more than once; it is ticked each time.
    pub fn arm(&self, deadline: Moment, channel: Weak<SharedChannel>) {
        let slot = SLOT.as_nanos() as u64;
        let deadline = Moment::from_nanos(deadline.as_nanos().div_ceil(slot).saturating_mul(slot));
        let mut deadlines = self.deadlines.lock();
        let nearest = deadlines
            .queue
            .first_key_value()
            .is_none_or(|((first, _), _)| deadline < *first);
        deadlines.armed += 1;
        let number = deadlines.armed;
        deadlines.queue.insert((deadline, number), channel);
        drop(deadlines);
        if nearest {
            self.nearer.notify_one();
        }
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
        let later = deadlines.queue.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut deadlines.queue, later)
            .into_values()
            .collect();
        (due, deadlines.queue.first_key_value().map(|((next, _), _)| *next))
    }
}

/// Deadlines are met up to this late, never early.
pub const SLOT: Duration = Duration::from_millis(10);
/// How long to sleep when nothing is armed; a new deadline ends the sleep.
const IDLE: Duration = Duration::from_hours(1);
