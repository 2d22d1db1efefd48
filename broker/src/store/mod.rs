//! Duty: what must survive a restart and is not a message: topics, channels, their settings and cursors. Comes
//! in: transactions. Goes out: the same state after a restart. Must not know files of the log, consumers or the
//! wire.
//!
//! | file | duty |
//! |---|---|
//! | `cursor` | what of a channel is stored, as deltas |
//! | `cursors` | the `CursorStore` contract and the engine in memory |
//! | `catalogue` | which topics and channels exist and what is set for them |
//! | `transaction` | the changes that can be made |
//! | `handle` | the store for async callers: one thread, one flush for everyone who waits |
//! | `state` | catalogue and database together, and what to undo when the disk fails |
//! | `error` | why something was not done |
//! | `catalogue_rows`, `cursor_rows` | both as keys and values |
//! | `database` | keys and values on disk |
//! | `watermark` | tells a database that lost its newest changes |
//!
//! # Contract
//! 1. A call that changes something is durable when it has returned `Ok`: it survives a crash of the process
//!    and of the machine.
//! 2. A transaction is stored whole or not at all.
//! 3. Numbers of topics and channels are never used twice, not even those of a transaction that failed on disk.
//! 4. When the disk fails, the store is *broken*: what was not answered is undone in memory, every further change
//!    is refused, and [`Store::reopen`] writes the whole state anew.

pub mod catalogue;
mod catalogue_rows;
pub mod cursor;
mod cursor_rows;
pub mod cursors;
mod database;
mod error;
pub mod handle;
mod state;
pub mod transaction;
mod watermark;

use std::path::Path;

use parking_lot::Mutex;

use self::catalogue::Catalogue;
use self::cursor::{ChannelNumber, CursorDelta, StoredCursor};
use self::cursors::CursorStore;
pub use self::error::StoreError;
use self::state::State;
use self::transaction::Transaction;
use crate::log::sequence::Sequence;

/// The metadata store. Every method blocks until the disk has answered; async callers use
/// [`handle::StoreHandle`].
#[derive(Debug)]
pub struct Store {
    state: Mutex<State>,
}

impl Store {
    /// Opens the store in `dir`, or creates it there. Its content is in [`Store::catalogue`] and, per channel,
    /// [`CursorStore::load`].
    ///
    /// # Errors
    /// [`StoreError::Broken`] when the disk refuses or another process has the store open,
    /// [`StoreError::Damaged`] when what lies there is incomplete or can not be understood.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let state = State::open(dir)?;
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// What is stored now, cursors aside.
    pub fn catalogue(&self) -> Catalogue {
        self.state.lock().catalogue().clone()
    }

    /// Looks at what is stored now without copying it. `look` must not call the store.
    pub fn look<R>(&self, look: impl FnOnce(&Catalogue) -> R) -> R {
        look(self.state.lock().catalogue())
    }

    /// Runs `work` and stores what it changed. When `work` answers an error nothing is changed.
    ///
    /// # Errors
    /// That of `work`, or [`StoreError::Broken`] when the disk refuses.
    pub fn transact<R>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let mut state = self.state.lock();
        let answer = state.apply(work)?;
        state.flush()?;
        Ok(answer)
    }

    /// Why the store is broken; `None` = it works.
    pub fn fault(&self) -> Option<StoreError> {
        self.state.lock().database().err()
    }

    /// Opens a broken store again and writes the whole state to it: the catalogue it kept and the cursors that
    /// `cursors` answers for it: one for every channel of the catalogue, with everything a channel has to say (what
    /// was stored before counts for nothing); those of other channels are left out. Once they have proved to be
    /// damaged, the old files are set aside, by the next call. Does nothing when the store works; `cursors` is called
    /// only once the disk has answered, and must not call the store.
    ///
    /// # Errors
    /// The store stays broken: [`StoreError::Broken`], or [`StoreError::MissingCursor`] for a channel left out.
    pub fn reopen(
        &self,
        cursors: impl FnOnce(&Catalogue) -> Vec<(ChannelNumber, CursorDelta)>,
    ) -> Result<(), StoreError> {
        self.state.lock().reopen(cursors)
    }
}

impl CursorStore for Store {
    fn create(&self, channel: ChannelNumber, floor: Sequence) -> Result<(), StoreError> {
        self.transact(|transaction| {
            transaction.create_cursor(channel, floor);
            Ok(())
        })
    }

    fn save(&self, batch: &[(ChannelNumber, CursorDelta)]) -> Result<(), StoreError> {
        self.transact(|transaction| {
            batch
                .iter()
                .try_for_each(|(channel, delta)| transaction.save_cursor(*channel, delta))
        })
    }

    fn load(&self, channel: ChannelNumber) -> Result<Option<StoredCursor>, StoreError> {
        cursor_rows::load(self.state.lock().database()?, channel)
    }

    fn remove(&self, channels: &[ChannelNumber]) -> Result<(), StoreError> {
        self.transact(|transaction| {
            channels
                .iter()
                .try_for_each(|channel| transaction.remove_cursor(*channel))
        })
    }
}

#[cfg(test)]
mod contract;
#[cfg(test)]
mod tests;
