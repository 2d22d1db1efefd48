//! Duty: what a channel needs from its log and what may wait for the disk: records that memory does not hold, delays to be
//! found again. Comes in: places in the log. Goes out: records and delays to the machine. Must not know consumers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::SharedChannel;
use crate::channel::Channel;
use crate::log::engine::DelayedRecord;
use crate::log::sequence::{Sequence, SequenceRange};

impl SharedChannel {
    pub(super) fn read(&self, from: Sequence) {
        let Some(this) = self.this.upgrade() else { return };
        self.rooms.blocking.spawn_blocking(move || match this.log.read(from, READ_BYTES) {
            Ok(chunk) => this.has_read(|machine| machine.supply(from, chunk)),
            Err(error) => {
                tracing::error!(channel = %this.name, sequence = %from, %error, "can not read records now");
                // No message is lost by a disk that fails for a while: the channel asks again.
                this.after_a_pause(|this| this.has_read(|_| ()));
            }
        });
    }

    fn has_read(&self, supply: impl FnOnce(&mut Channel)) {
        let mut inner = self.caught_up();
        inner.reading = false;
        supply(&mut inner.machine);
        self.settled(inner);
    }

    /// Finds the delayed records in `range` and has them wait for what is left of their delays.
    pub(super) fn announce(
        &self,
        range: SequenceRange,
        delay_start: Arc<dyn Fn(&DelayedRecord) -> i64 + Send + Sync>,
    ) {
        let Some(this) = self.this.upgrade() else { return };
        self.rooms
            .blocking
            .spawn_blocking(move || match this.log.delayed(range) {
                Ok(records) => {
                    let (wall, now) = (this.rooms.clock.wall(), this.rooms.clock.now());
                    let left = |record: &DelayedRecord| record.left(delay_start(record), wall);
                    let due: Vec<_> = records
                        .iter()
                        .map(|record| (record.sequence, now + left(record)))
                        .collect();
                    this.delayed(&due);
                }
                Err(error) => {
                    tracing::error!(channel = %this.name, %error, "can not look for delayed records now");
                    this.after_a_pause(move |this| this.announce(range, delay_start));
                }
            });
    }

    fn after_a_pause(&self, work: impl FnOnce(&Self) + Send + 'static) {
        let this = Weak::clone(&self.this);
        self.rooms.blocking.spawn(async move {
            tokio::time::sleep(READ_PAUSE).await;
            if let Some(this) = this.upgrade() {
                work(&this);
            }
        });
    }
}

/// How much one read of the files fetches for a channel, in bytes.
const READ_BYTES: usize = 256 * 1024;

/// Time between a read that failed and the next try.
const READ_PAUSE: Duration = Duration::from_secs(1);
