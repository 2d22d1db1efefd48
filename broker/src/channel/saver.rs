//! Duty: stores what changed in channels: all dirty ones in one batch and one flush (architecture 3, metadata store b).
//! Comes in: dirty channels. Goes out: deltas to the store, news of what is stored. Must not know what a delta holds.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::shared::SharedChannel;
use crate::store::StoreError;
use crate::store::catalogue::Catalogue;
use crate::store::cursor::{ChannelNumber, CursorDelta};
use crate::store::handle::{Answer, StoreHandle};

/// Channels that have something to store.
pub struct Saver {
    store: StoreHandle,
    interval: Duration,
    dirty: Mutex<Vec<Weak<SharedChannel>>>,
    wanted: Notify,
    /// Held from reading deltas until they are on their way, so that a later one can not overtake, and none that was
    /// read before a broken store is written anew comes after that.
    order: Mutex<()>,
}

impl Saver {
    /// Stores in `store`, at latest `interval` after a change (`--checkpoint-interval`).
    pub fn new(store: StoreHandle, interval: Duration) -> Self {
        Self {
            store,
            interval,
            dirty: Mutex::default(),
            wanted: Notify::new(),
            order: Mutex::new(()),
        }
    }

    /// `channel` has something to store.
    pub fn note(&self, channel: Weak<SharedChannel>) {
        let mut dirty = self.dirty.lock();
        dirty.push(channel);
        if dirty.len() == 1 {
            self.wanted.notify_one();
        }
    }

    /// Stores for as long as it is polled. `after` is told of the channels whose cursors are stored. Cancel safe: what
    /// was on its way is stored all the same.
    pub async fn run(&self, after: impl Fn(&[Arc<SharedChannel>])) {
        loop {
            self.wanted.notified().await;
            tokio::time::sleep(self.interval).await;
            let noted = std::mem::take(&mut *self.dirty.lock());
            let channels: Vec<_> = noted.iter().filter_map(Weak::upgrade).collect();
            match self.save(&channels, false).await {
                Ok(()) => after(&channels),
                Err(error) => {
                    tracing::debug!(%error, "can not store cursors");
                    tokio::time::sleep(PAUSE_WHILE_BROKEN).await;
                    self.dirty.lock().extend(noted);
                    self.wanted.notify_one();
                }
            }
        }
    }

    /// Stores the channels now. With `last` also what only a clean stop keeps.
    ///
    /// # Errors
    /// What the store says. A store that refuses is broken: what was to be stored is written when it is opened again.
    pub async fn save(&self, channels: &[Arc<SharedChannel>], last: bool) -> Result<(), StoreError> {
        let (answer, floors) = {
            let _order = self.order.lock();
            if let Some(fault) = self.store.fault() {
                return Err(fault);
            }
            let mut floors = Vec::new();
            let mut batch = Vec::new();
            for channel in channels {
                if let Some(number) = channel.number()
                    && let Some(delta) = channel.checkpoint(last)
                {
                    floors.push((channel, delta.floor));
                    batch.push((number, delta));
                }
            }
            if batch.is_empty() {
                return Ok(());
            }
            (self.store.save_cursors(batch), floors)
        };
        answer.await?;
        for (channel, floor) in floors {
            channel.floor_is_stored(floor);
        }
        Ok(())
    }

    /// Opens a broken store again and writes everything to it (see [`crate::store::Store::reopen`]).
    pub fn reopen(
        &self,
        cursors: impl FnOnce(&Catalogue) -> Vec<(ChannelNumber, CursorDelta)> + Send + 'static,
    ) -> Answer<()> {
        let _order = self.order.lock();
        self.store.reopen(cursors)
    }
}

/// How long nothing is tried after the store has refused.
const PAUSE_WHILE_BROKEN: Duration = Duration::from_secs(1);
