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
pub mod handle;
pub mod transaction;
mod watermark;

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use self::catalogue::{Catalogue, Entry};
use self::cursor::{ChannelNumber, CursorDelta, StoredCursor, TopicNumber};
use self::cursors::CursorStore;
use self::database::{Database, Staged};
use self::transaction::Transaction;
use self::watermark::Watermark;
use crate::log::sequence::Sequence;

/// The metadata store. Every method blocks until the disk has answered; async callers use
/// [`handle::StoreHandle`].
#[derive(Debug)]
pub struct Store {
    state: Mutex<State>,
}

/// Why the store did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk refused; what was asked for is not done. [`Store::reopen`] is the cure.
    #[error("metadata store failed: {0}")]
    Broken(Arc<str>),
    /// What lies on the disk can not be understood.
    #[error("metadata store is damaged: {0}")]
    Damaged(Arc<str>),
    /// There is a topic of this name.
    #[error("topic {0} exists")]
    TopicExists(String),
    /// The topic has a channel of this name.
    #[error("channel {0} exists")]
    ChannelExists(String),
    /// There is no such topic; it was deleted.
    #[error("topic number {} is unknown", .0.0)]
    UnknownTopic(TopicNumber),
    /// There is no such channel; it was deleted.
    #[error("channel number {} is unknown", .0.0)]
    UnknownChannel(ChannelNumber),
    /// The whole state was to be written again, but this channel's cursor was not given.
    #[error("cursor of channel number {} is missing", .0.0)]
    MissingCursor(ChannelNumber),
    /// The store's thread has ended.
    #[error("exiting")]
    Closed,
}

impl StoreError {
    fn broken(cause: impl Display) -> Self {
        Self::Broken(cause.to_string().into())
    }

    fn damaged(cause: impl Display) -> Self {
        Self::Damaged(cause.to_string().into())
    }

    /// True when the disk is to blame, not the caller.
    fn is_of_disk(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Damaged(_))
    }
}

impl Store {
    /// Opens the store in `dir`, or creates it there. Its content is in [`Store::catalogue`] and, per channel,
    /// [`CursorStore::load`].
    ///
    /// # Errors
    /// [`StoreError::Broken`] when the disk refuses or another process has the store open,
    /// [`StoreError::Damaged`] when what lies there is incomplete or can not be understood.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let database = Database::open(&dir.join(DATABASE))?;
        let watermark = Watermark::open(&dir.join(WATERMARK)).map_err(StoreError::broken)?;
        let answered = watermark.last().map_err(StoreError::broken)?;
        let catalogue = match (catalogue_rows::read(&database)?, answered) {
            (Some(catalogue), answered) if Some(catalogue.numbers().changes) >= answered => catalogue,
            (None, None) => create(&database)?,
            (held, answered) => {
                let held = held.map_or(0, |catalogue| catalogue.numbers().changes);
                let answered = answered.unwrap_or_default();
                let text = format!(
                    "{} ends at change {held}, change {answered} was stored",
                    dir.display()
                );
                return Err(StoreError::damaged(text));
            }
        };
        watermark
            .record(catalogue.numbers().changes)
            .map_err(StoreError::broken)?;
        database::sync_dir(dir)?;
        for (number, _) in catalogue.channels() {
            if !cursor_rows::exists(&database, number)? {
                return Err(StoreError::damaged(format!(
                    "the cursor of channel {} is gone",
                    number.0
                )));
            }
        }
        let state = State {
            dir: dir.to_owned(),
            watermark,
            catalogue,
            database: Ok(database),
            unflushed: Vec::new(),
        };
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// What is stored now, cursors aside.
    pub fn catalogue(&self) -> Catalogue {
        self.state.lock().catalogue.clone()
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
        self.state.lock().database.as_ref().err().cloned()
    }

    /// Opens a broken store again and writes the whole state to it: the catalogue it kept and the cursors that
    /// `cursors` answers, one for every channel of the catalogue, with everything a channel has to say (what
    /// was stored before counts for nothing). Files that can not be understood are set aside. Does nothing when
    /// the store works; `cursors` is called only once the disk has answered, and must not call the store.
    ///
    /// # Errors
    /// The store stays broken: [`StoreError::Broken`], or [`StoreError::MissingCursor`] for a channel left out.
    pub fn reopen(
        &self,
        cursors: impl FnOnce() -> Vec<(ChannelNumber, CursorDelta)>,
    ) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.database.is_ok() {
            return Ok(());
        }
        let outcome = state.write_anew(cursors);
        state.database = outcome;
        state.database.as_ref().map(|_| ()).map_err(Clone::clone)
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

#[derive(Debug)]
struct State {
    dir: PathBuf,
    watermark: Watermark,
    catalogue: Catalogue,
    /// The error is why the store is broken.
    database: Result<Database, StoreError>,
    /// Undoes, last first, what is applied but not flushed.
    unflushed: Vec<Entry>,
}

impl State {
    fn database(&self) -> Result<&Database, StoreError> {
        self.database.as_ref().map_err(Clone::clone)
    }

    /// Runs `work` and applies what it changed; durable after the next flush.
    fn apply<R>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let database = self.database.as_ref().map_err(StoreError::clone)?;
        let mut transaction = Transaction::new(&mut self.catalogue, database);
        let answer = work(&mut transaction);
        let (undo, writes) = transaction.into_parts();
        let answer = answer.and_then(|answer| database.apply(writes).map(|()| answer));
        match answer {
            Ok(answer) => {
                self.unflushed.extend(undo);
                Ok(answer)
            }
            Err(error) => {
                self.undo(undo);
                if error.is_of_disk() {
                    self.fail(error.clone());
                }
                Err(error)
            }
        }
    }

    /// Makes everything applied durable, or undoes it.
    fn flush(&mut self) -> Result<(), StoreError> {
        let flushed = self.flush_to_disk();
        match &flushed {
            Ok(()) => self.unflushed.clear(),
            Err(error) => self.fail(error.clone()),
        }
        flushed
    }

    fn flush_to_disk(&self) -> Result<(), StoreError> {
        self.database()?.flush()?;
        if self.unflushed.is_empty() {
            return Ok(());
        }
        self.watermark
            .record(self.catalogue.numbers().changes)
            .map_err(StoreError::broken)
    }

    fn undo(&mut self, entries: Vec<Entry>) {
        for entry in entries.into_iter().rev() {
            self.catalogue.restore(entry);
        }
    }

    fn fail(&mut self, error: StoreError) {
        let unflushed = std::mem::take(&mut self.unflushed);
        self.undo(unflushed);
        if self.database.is_ok() {
            tracing::error!(%error, "metadata store is broken, changes are refused");
            self.database = Err(error);
        }
    }

    fn write_anew(
        &self,
        cursors: impl FnOnce() -> Vec<(ChannelNumber, CursorDelta)>,
    ) -> Result<Database, StoreError> {
        let path = self.dir.join(DATABASE);
        let database = match Database::open(&path) {
            Err(StoreError::Damaged(cause)) => {
                let aside = set_aside(&path)?;
                tracing::error!(%cause, aside = %aside.display(), "metadata store was damaged and is set aside");
                Database::open(&path)?
            }
            opened => opened?,
        };
        let mut staged = Staged::new(&database);
        staged.clear(..)?;
        for entry in self.catalogue.entries() {
            let (key, value) = catalogue_rows::row(&entry)?;
            staged.put(key, value);
        }
        let cursors = cursors();
        for (channel, _) in self.catalogue.channels() {
            if !cursors.iter().any(|(given, _)| *given == channel) {
                return Err(StoreError::MissingCursor(channel));
            }
        }
        for (channel, delta) in &cursors {
            cursor_rows::create(&mut staged, *channel, delta.floor);
            cursor_rows::save(&mut staged, *channel, delta)?;
        }
        database.apply(staged.into_writes())?;
        database.flush()?;
        self.watermark
            .record(self.catalogue.numbers().changes)
            .map_err(StoreError::broken)?;
        tracing::info!("metadata store works again");
        Ok(database)
    }
}

/// Gives an empty database its first row.
fn create(database: &Database) -> Result<Catalogue, StoreError> {
    let catalogue = Catalogue::default();
    let rows = catalogue
        .entries()
        .iter()
        .map(catalogue_rows::row)
        .collect::<Result<_, _>>()?;
    database.apply(rows)?;
    database.flush()?;
    Ok(catalogue)
}

/// Moves a folder to the first free name beside it.
fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let mut number = 1;
    loop {
        let aside = path.with_extension(format!("damaged-{number}"));
        if !aside.exists() {
            fs::rename(path, &aside).map_err(StoreError::broken)?;
            return Ok(aside);
        }
        number += 1;
    }
}

/// Folder of the database.
const DATABASE: &str = "sled";
const WATERMARK: &str = "watermark";

#[cfg(test)]
mod contract;
#[cfg(test)]
mod tests;
