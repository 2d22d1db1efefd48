//! Duty: bytes under keys on disk: one sled tree, batches that are applied whole or not at all, flushes that
//! reach the disk. Comes in: keys and values. Goes out: the same after a restart. Must not know what they mean.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::ops::RangeBounds;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sled::IVec;

use super::StoreError;

/// The open database.
#[derive(Debug)]
pub(super) struct Database {
    sled: Option<sled::Db>,
    /// sled's own flush ends in `sync_file_range`, which leaves the disk's write cache and the file's extents
    /// alone; a sync through this second handle is what makes a flush survive a power cut.
    file: File,
    blobs: PathBuf,
}

impl Database {
    /// Opens or creates the database in `dir`, whose parent must be there: a data folder that was moved away must
    /// not come into being a second time.
    ///
    /// # Errors
    /// [`StoreError::Broken`] when the disk refuses, [`StoreError::Damaged`] when the files can not be understood.
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        match fs::create_dir(dir) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(StoreError::broken(error)),
            _ => {}
        }
        let config = sled::Config::new()
            .path(dir)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(None);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(dir.join("db"))
            .map_err(StoreError::broken)?;
        remove_unfinished(dir).map_err(StoreError::broken)?;
        let sled = guarded(|| config.open())?;
        let database = Self {
            sled: Some(sled),
            file,
            blobs: dir.join("blobs"),
        };
        database.flush()?;
        sync_dir(dir)?;
        if let Some(parent) = dir.parent() {
            sync_dir(parent)?;
        }
        Ok(database)
    }

    /// The value under `key`.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        guarded(|| self.sled()?.get(key))
    }

    /// The rows whose keys lie in `range`, in order.
    pub(super) fn scan(&self, range: impl RangeBounds<Vec<u8>>) -> Result<Vec<(IVec, IVec)>, StoreError> {
        guarded(|| self.sled()?.range(range).collect())
    }

    /// Applies all of `writes` or nothing; `None` removes a key. Survives a crash after the next
    /// [`Database::flush`] has returned.
    pub(super) fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        guarded(|| self.sled()?.apply_batch(batch))
    }

    /// Brings everything applied so far to the disk.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        guarded(|| self.sled()?.flush())?;
        self.sync_blobs()
            .and_then(|()| self.file.sync_data())
            .map_err(StoreError::broken)
    }

    /// Pages above 128 KiB lie in files of their own, which sled never syncs. As a rule there are none.
    fn sync_blobs(&self) -> io::Result<()> {
        let mut found = false;
        for blob in fs::read_dir(&self.blobs)? {
            found = true;
            match File::open(blob?.path()).and_then(|blob| blob.sync_all()) {
                // sled has replaced it meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                synced => synced?,
            }
        }
        if found {
            File::open(&self.blobs)?.sync_all()
        } else {
            Ok(())
        }
    }

    fn sled(&self) -> sled::Result<&sled::Db> {
        self.sled
            .as_ref()
            .ok_or_else(|| sled::Error::Unsupported("the database is closed".into()))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // sled flushes when it is dropped and panics when that fails.
        let sled = self.sled.take();
        let _ = guarded(|| {
            drop(sled);
            Ok(())
        });
        // Its worker threads may hold the locked file a moment longer; whoever opens the folder next needs the lock.
        for _ in 0..RELEASE_TRIES {
            if self.file.try_lock().is_ok() {
                break;
            }
            thread::sleep(RELEASE_PAUSE);
        }
    }
}

/// Keys with their new values; `None` removes a key.
pub(super) type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Writes that wait to be applied together, over the database they will be applied to.
pub(super) struct Staged<'a> {
    database: &'a Database,
    writes: Writes,
}

impl<'a> Staged<'a> {
    pub(super) fn new(database: &'a Database) -> Self {
        Self {
            database,
            writes: Writes::new(),
        }
    }

    /// The value under `key` as it will be once the writes are applied.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.writes.get(key) {
            Some(value) => Ok(value.clone()),
            None => Ok(self.database.get(key)?.map(|value| value.to_vec())),
        }
    }

    /// Writes one key.
    pub(super) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.writes.insert(key, Some(value));
    }

    /// Removes one key. A look is cheaper than the removal of a key that is not there.
    pub(super) fn remove(&mut self, key: Vec<u8>) -> Result<(), StoreError> {
        if self.get(&key)?.is_some() {
            self.writes.insert(key, None);
        }
        Ok(())
    }

    /// Writes one key, or removes it when there is no value.
    pub(super) fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), StoreError> {
        match value {
            Some(value) => {
                self.put(key, value);
                Ok(())
            }
            None => self.remove(key),
        }
    }

    /// Removes every key in `range`.
    pub(super) fn clear(&mut self, range: impl RangeBounds<Vec<u8>> + Clone) -> Result<(), StoreError> {
        for (_, value) in self.writes.range_mut(range.clone()) {
            *value = None;
        }
        for (key, _) in self.database.scan(range)? {
            self.writes.insert(key.to_vec(), None);
        }
        Ok(())
    }

    pub(super) fn into_writes(self) -> Writes {
        self.writes
    }
}

/// Removes what a crash or a full disk left of a snapshot that was being written: sled would take it for the newest one
/// and find it corrupt. The one before is still there.
fn remove_unfinished(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "generating") {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Makes the entries of a folder survive a power cut.
pub(super) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(StoreError::broken)
}

/// Runs a call into sled. It panics on some kinds of damage; to us that is an error like any other.
fn guarded<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(sled::Error::Io(error))) => Err(StoreError::broken(error)),
        Ok(Err(error)) => Err(StoreError::damaged(error)),
        Err(panic) => Err(StoreError::damaged(panic_text(panic.as_ref()))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("sled panicked").to_owned()
}

/// Bytes of pages that sled keeps in memory.
const CACHE_BYTES: u64 = 8 << 20;
/// How long a closing database waits for sled's lock: tries and the pause between them.
const RELEASE_TRIES: u32 = 1000;
const RELEASE_PAUSE: Duration = Duration::from_millis(1);
