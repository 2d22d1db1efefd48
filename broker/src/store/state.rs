//! Duty: the open store: the catalogue in memory, the database under it, and what to undo when the disk fails.
//! Must not know threads or callers.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::catalogue::{Catalogue, Entry};
use super::cursor::{ChannelNumber, CursorDelta};
use super::database::{Database, Staged, sync_dir};
use super::error::StoreError;
use super::transaction::Transaction;
use super::watermark::Watermark;
use super::{catalogue_rows, cursor_rows};

/// What [`super::Store`] guards.
#[derive(Debug)]
pub(super) struct State {
    dir: PathBuf,
    watermark: Watermark,
    catalogue: Catalogue,
    /// The error is why the store is broken.
    database: Result<Database, StoreError>,
    /// Undoes, last first, what is applied but not flushed.
    unflushed: Vec<Entry>,
}

impl State {
    /// See [`super::Store::open`].
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(dir).map_err(StoreError::broken)?;
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
        sync_dir(dir)?;
        for (number, _) in catalogue.channels() {
            if !cursor_rows::exists(&database, number)? {
                return Err(StoreError::damaged(format!(
                    "the cursor of channel {} is gone",
                    number.0
                )));
            }
        }
        Ok(Self {
            dir: dir.to_owned(),
            watermark,
            catalogue,
            database: Ok(database),
            unflushed: Vec::new(),
        })
    }

    /// What is stored now, cursors aside.
    pub(super) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// See [`super::Store::reopen`].
    pub(super) fn reopen(
        &mut self,
        cursors: impl FnOnce(&Catalogue) -> Vec<(ChannelNumber, CursorDelta)>,
    ) -> Result<(), StoreError> {
        if self.database.is_ok() {
            return Ok(());
        }
        match self.write_anew(cursors) {
            Ok(database) => self.database = Ok(database),
            Err(error) if error.is_of_disk() => {
                self.database = Err(error.clone());
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The database, or why there is none.
    pub(super) fn database(&self) -> Result<&Database, StoreError> {
        self.database.as_ref().map_err(Clone::clone)
    }

    /// Runs `work` and applies what it changed; durable after the next flush.
    pub(super) fn apply<R>(
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
                if error.is_of_disk() {
                    self.unflushed.extend(undo);
                    self.fail(error.clone());
                } else {
                    self.catalogue.take_back(undo);
                }
                Err(error)
            }
        }
    }

    /// Makes everything applied durable, or undoes it.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
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

    /// Breaks the store and undoes what is not durable.
    pub(super) fn fail(&mut self, error: StoreError) {
        let counted = self.catalogue.numbers();
        self.catalogue.take_back(std::mem::take(&mut self.unflushed));
        self.catalogue.keep_counted(counted);
        if self.database.is_ok() {
            tracing::error!(%error, "metadata store is broken, changes are refused");
            self.database = Err(error);
        }
    }

    fn write_anew(
        &mut self,
        cursors: impl FnOnce(&Catalogue) -> Vec<(ChannelNumber, CursorDelta)>,
    ) -> Result<Database, StoreError> {
        let path = self.dir.join(DATABASE);
        if let Err(StoreError::Damaged(cause)) = &self.database
            && path.exists()
        {
            let aside = set_aside(&path)?;
            tracing::error!(%cause, aside = %aside.display(), "metadata store was damaged and is set aside");
            self.database = Err(StoreError::broken("its damaged files were set aside"));
        }
        let database = Database::open(&path)?;
        let mut staged = Staged::new(&database);
        staged.clear(..)?;
        for entry in self.catalogue.entries() {
            let (key, value) = catalogue_rows::row(&entry)?;
            staged.set(key, value)?;
        }
        let mut cursors = cursors(&self.catalogue);
        cursors.retain(|(channel, _)| self.catalogue.channel(*channel).is_some());
        let given: HashSet<_> = cursors.iter().map(|(channel, _)| *channel).collect();
        let mut channels = self.catalogue.channels().map(|(channel, _)| channel);
        if let Some(missing) = channels.find(|channel| !given.contains(channel)) {
            return Err(StoreError::MissingCursor(missing));
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
    for number in 1..=MAX_SET_ASIDE {
        let aside = path.with_extension(format!("damaged-{number}"));
        if !aside.exists() {
            fs::rename(path, &aside).map_err(StoreError::broken)?;
            return Ok(aside);
        }
    }
    Err(StoreError::damaged(format!(
        "{} was set aside too often",
        path.display()
    )))
}

/// Folder of the database.
const DATABASE: &str = "sled";
const WATERMARK: &str = "watermark";
/// How many damaged databases are kept for whoever looks into the cause.
const MAX_SET_ASIDE: u32 = 9;
