//! Duty: what lies under a node: the data folder with its lock, its metadata store and its logs, before anything of
//! it lives. Must not know topics, channels or ports.

use std::io;
use std::path::{Path, PathBuf};

use super::NodeError;
use crate::clock::Clock;
use crate::config::Config;
use crate::import::directory_lock::DirectoryLock;
use crate::log::engines::Engines;
use crate::log::segmented::{EngineOptions, SegmentedEngine};
use crate::store::Store;

/// An open data folder.
pub(super) struct Data {
    pub(super) folder: PathBuf,
    pub(super) store: Store,
    pub(super) engines: Engines,
    /// Held for as long as anything here is in use.
    pub(super) lock: DirectoryLock,
}

impl Data {
    /// Opens the data path, which `lock` holds. May wait for the disk.
    ///
    /// # Errors
    /// When the disk refuses or the store is damaged.
    pub(super) fn open(lock: DirectoryLock, config: &Config, clock: Clock) -> Result<Self, NodeError> {
        let folder = config.node.data_path.clone();
        let store = Store::open(&made(&folder, "store")?)?;
        let log = &config.log;
        let options = EngineOptions {
            max_bytes_per_file: log.max_bytes_per_file,
            sync_every: log.sync_every.unwrap_or(u64::MAX),
            sync_timeout: log.sync_timeout,
            memory_tail: log.memory_tail as usize,
            ..EngineOptions::new(made(&folder, "topics")?, clock)
        };
        let engines = Engines::new(SegmentedEngine::start(options)?);
        Ok(Self {
            folder,
            store,
            engines,
            lock,
        })
    }
}

fn made(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let made = folder.join(name);
    match std::fs::create_dir(&made) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(made),
    }
}
