//! Duty: the engine of one broker: opens, checks and deletes logs, and owns what they share. Comes in: topic
//! numbers. Goes out: logs. Must not know topics' names or channels.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use super::budget::MemoryBudget;
use super::handles::Handles;
use super::sync::Syncer;
use super::topic::SegmentedLog;
use crate::clock::Clock;
use crate::log::disk::{Disk, RealDisk};
use crate::log::engine::{Durability, LogError, Retention, TailWatch};
use crate::log::sequence::Sequence;

/// What holds for all logs of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Folder of the topics' folders.
    pub root: PathBuf,
    /// A segment is closed before it grows beyond this many bytes (`--max-bytes-per-file`).
    pub max_bytes_per_file: u64,
    /// Under `interval` a sync is asked for after this many records of a log (`--sync-every`).
    pub sync_every: u64,
    /// A sync is asked for at latest this long after a write (`--sync-timeout`).
    pub sync_timeout: Duration,
    /// Bytes of newest records kept in memory for all logs together (`--memory-tail`).
    pub memory_tail: usize,
    /// About how many files are open at once; those with unsynced records stay open beyond it.
    pub max_open_files: usize,
    /// The clocks.
    pub clock: Clock,
}

impl EngineOptions {
    /// The broker's defaults.
    pub fn new(root: PathBuf, clock: Clock) -> Self {
        Self {
            root,
            max_bytes_per_file: 100 << 20,
            sync_every: 2500,
            sync_timeout: Duration::from_secs(2),
            memory_tail: 16 << 20,
            max_open_files: 512,
            clock,
        }
    }
}

/// What holds for one log.
pub struct LogOptions {
    /// Sequence of the first record when the log is new.
    pub start: Sequence,
    /// The next record's sequence is not below this: the largest cursor stored for the topic.
    pub at_least: Sequence,
    /// When appends are answered.
    pub durability: Durability,
    /// How long finished records stay.
    pub retention: Retention,
    /// Is told when records can be read, and how the disk is.
    pub watch: Arc<dyn TailWatch>,
}

/// The engine that keeps logs in segment files. Outlives its logs: without it nobody syncs.
pub struct SegmentedEngine {
    services: Arc<Services>,
    logs: Mutex<HashMap<u64, Weak<SegmentedLog>>>,
    sync_thread: Option<JoinHandle<()>>,
    /// True when the last probe failed.
    failing: Mutex<bool>,
}

/// What the logs of one engine share.
pub(super) struct Services {
    pub(super) options: EngineOptions,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) handles: Arc<Handles>,
    pub(super) budget: MemoryBudget,
    pub(super) syncer: Arc<Syncer>,
}

impl SegmentedEngine {
    /// Starts an engine on the machine's file system, with its sync thread.
    ///
    /// # Errors
    /// [`LogError::Disk`] when the folder or the thread cannot be made.
    pub fn start(options: EngineOptions) -> Result<Self, LogError> {
        let mut engine = Self::without_thread(options, Arc::new(RealDisk))?;
        let syncer = Arc::clone(&engine.services.syncer);
        let thread = std::thread::Builder::new()
            .name("log-sync".into())
            .spawn(move || syncer.run());
        engine.sync_thread = Some(thread.map_err(|error| failed("start the sync thread", &error))?);
        Ok(engine)
    }

    /// An engine on any file system; rounds of syncs happen when [`SegmentedEngine::sync_round`] is called.
    pub(super) fn without_thread(options: EngineOptions, disk: Arc<dyn Disk>) -> Result<Self, LogError> {
        create_root(&*disk, &options.root).map_err(|error| failed("create the topics' folder", &error))?;
        let handles = Arc::new(Handles::new(Arc::clone(&disk), options.max_open_files));
        let (root, clock, timeout) = (options.root.clone(), options.clock, options.sync_timeout);
        Ok(Self {
            services: Arc::new(Services {
                budget: MemoryBudget::new(options.memory_tail),
                syncer: Arc::new(Syncer::new(Arc::clone(&disk), root, clock, timeout)),
                options,
                disk,
                handles,
            }),
            logs: Mutex::default(),
            sync_thread: None,
            failing: Mutex::new(false),
        })
    }

    /// Opens the log of the topic with this number, creates it when it is new and recovers it when it was not
    /// closed. Different logs may be opened in parallel. Fails when the log is open already.
    ///
    /// # Errors
    /// [`LogError::Disk`]; the same call can succeed later.
    pub fn open(&self, number: u64, options: LogOptions) -> Result<Arc<SegmentedLog>, LogError> {
        if self.find(number).is_some() {
            return Err(LogError::Disk(format!("log {number} is open already").into()));
        }
        let folder: Arc<Path> = self.folder(number).into();
        let log = SegmentedLog::open(&self.services, folder, options)
            .map_err(|error| failed(&format!("open log {number}"), &error))?;
        self.logs.lock().insert(number, Arc::downgrade(&log));
        Ok(log)
    }

    /// Deletes a log with all its files; it may be open, unknown or gone already.
    ///
    /// # Errors
    /// [`LogError::Disk`] when files are left; the call can be repeated.
    pub fn remove(&self, number: u64) -> Result<(), LogError> {
        let open = self.logs.lock().remove(&number).and_then(|log| log.upgrade());
        let disk = &self.services.disk;
        let removed = self.services.syncer.between_rounds(|| {
            if let Some(log) = open {
                log.abandon();
            }
            self.services
                .handles
                .with_room(|| disk.remove_dir(&self.folder(number)))
        });
        removed
            .and_then(|()| disk.sync_dir(&self.services.options.root))
            .map_err(|error| failed(&format!("delete log {number}"), &error))
    }

    /// Numbers of the logs that have a folder.
    ///
    /// # Errors
    /// [`LogError::Disk`].
    pub fn numbers(&self) -> Result<Vec<u64>, LogError> {
        let names = self.services.disk.list(&self.services.options.root);
        let names = names.map_err(|error| failed("list the topics' folder", &error))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// Looks at the disk, tests it by a write when something has failed, and lets the logs recover when it works again.
    /// To be called about once a second.
    ///
    /// # Errors
    /// [`LogError::Disk`] with the reason while the disk fails.
    pub fn probe(&self) -> Result<(), LogError> {
        let mut failing = self.failing.lock();
        let logs: Vec<_> = self.logs.lock().values().filter_map(Weak::upgrade).collect();
        let sick: Vec<_> = logs.into_iter().filter(|log| log.is_sick()).collect();
        let mut tested = self.services.disk.has_room(&self.services.options.root);
        if tested.is_ok() && (*failing || !sick.is_empty()) {
            tested = self.test_disk();
        }
        *failing = tested.is_err();
        tested.map_err(|error| failed("test the disk", &error))?;
        for log in sick {
            log.recover_health();
        }
        Ok(())
    }

    /// Syncs what was written so far in the logs that asked for it.
    pub fn sync_round(&self) {
        self.services.syncer.round();
    }

    /// Writes, syncs and removes a small file.
    fn test_disk(&self) -> io::Result<()> {
        let Services {
            disk,
            handles,
            options,
            ..
        } = &*self.services;
        let path = options.root.join(PROBE);
        let tested = handles.with_room(|| disk.create(&path)).and_then(|file| {
            file.write_at(&vec![0; PROBE_BYTES], 0)?;
            file.sync()
        });
        disk.unlink(&path)?;
        tested
    }

    fn find(&self, number: u64) -> Option<Arc<SegmentedLog>> {
        self.logs
            .lock()
            .get(&number)
            .and_then(Weak::upgrade)
            .filter(|log| !log.is_closed())
    }

    fn folder(&self, number: u64) -> PathBuf {
        self.services.options.root.join(number.to_string())
    }
}

impl Drop for SegmentedEngine {
    fn drop(&mut self) {
        self.services.syncer.stop();
        if let Some(thread) = self.sync_thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the sync thread has panicked");
        }
    }
}

fn create_root(disk: &dyn Disk, root: &Path) -> io::Result<()> {
    match (disk.create_dir(root)?, root.parent()) {
        (true, Some(parent)) => disk.sync_dir(parent),
        _ => Ok(()),
    }
}

fn failed(what: &str, error: &io::Error) -> LogError {
    LogError::Disk(format!("{what}: {error}").into())
}

const PROBE: &str = "probe";
const PROBE_BYTES: usize = 64 << 10;
