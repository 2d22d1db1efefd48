//! Duty: one process at a time on a data folder, by the lock that stock nsqd takes (nsq-http-and-tools 7.1).

use std::fs::{File, TryLockError};
use std::path::Path;

use super::ImportError;

/// Holds a folder; lets go when dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    _directory: File,
}

impl DirectoryLock {
    /// Locks the folder itself with `flock(2)`, without waiting.
    ///
    /// # Errors
    /// [`ImportError::Locked`] when another process holds it, [`ImportError::NoFolder`] when it can not be opened.
    pub fn acquire(dir: &Path) -> Result<Self, ImportError> {
        let unreadable = |source| ImportError::NoFolder {
            path: dir.to_owned(),
            source,
        };
        let directory = File::open(dir).map_err(unreadable)?;
        match directory.try_lock() {
            Ok(()) => Ok(Self {
                _directory: directory,
            }),
            Err(TryLockError::WouldBlock) => Err(ImportError::Locked(dir.to_owned())),
            Err(TryLockError::Error(source)) => Err(unreadable(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_once() {
        let dir = tempfile::tempdir().unwrap();
        let held = DirectoryLock::acquire(dir.path()).unwrap();
        assert!(matches!(
            DirectoryLock::acquire(dir.path()),
            Err(ImportError::Locked(_))
        ));
        drop(held);
        DirectoryLock::acquire(dir.path()).unwrap();
    }
}
