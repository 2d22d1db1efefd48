//! Duty: keeps the number of open files bounded: files are opened when needed and those not used lately are
//! closed. Comes in: paths. Goes out: open files. Must not know what is in the files.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::log::disk::{Disk, DiskFile};

/// The open files of one engine.
pub(super) struct Handles {
    disk: Arc<dyn Disk>,
    limit: usize,
    open: Mutex<VecDeque<Arc<Slot>>>,
}

/// Place of one file that may be open.
#[derive(Default)]
pub(super) struct Slot {
    file: Mutex<Option<Arc<dyn DiskFile>>>,
    used: AtomicBool,
    pinned: AtomicBool,
}

impl Handles {
    /// At most about `limit` files stay open at once.
    pub(super) fn new(disk: Arc<dyn Disk>, limit: usize) -> Self {
        Self {
            disk,
            limit,
            open: Mutex::default(),
        }
    }

    /// The file of `slot`, opened at `path` when it is not open.
    pub(super) fn get(
        &self,
        slot: &Arc<Slot>,
        path: impl FnOnce() -> Box<Path>,
    ) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = &*slot.file.lock() {
            slot.used.store(true, Ordering::Relaxed);
            return Ok(Arc::clone(file));
        }
        let path = path();
        let file = self.with_room(|| self.disk.open(&path))?;
        self.put(slot, &file);
        Ok(file)
    }

    /// Creates the file of `slot` at `path`.
    pub(super) fn create(&self, slot: &Arc<Slot>, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.with_room(|| self.disk.create(path))?;
        self.put(slot, &file);
        Ok(file)
    }

    /// Runs an operation that needs a free file descriptor; makes room and tries once more when there is none.
    pub(super) fn with_room<T>(&self, operation: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match operation() {
            Err(error) if is_lack_of_descriptors(&error) => {
                let half = self.open.lock().len() / 2;
                self.close_down_to(half);
                operation()
            }
            outcome => outcome,
        }
    }

    fn put(&self, slot: &Arc<Slot>, file: &Arc<dyn DiskFile>) {
        let before = slot.file.lock().replace(Arc::clone(file));
        if before.is_none() {
            self.open.lock().push_back(Arc::clone(slot));
            self.close_down_to(self.limit);
        }
    }

    /// Closes files until `limit` are open: oldest first, those used since the last look one round later.
    fn close_down_to(&self, limit: usize) {
        let mut open = self.open.lock();
        let mut looks = 2 * open.len();
        while open.len() > limit && looks > 0 {
            looks -= 1;
            let Some(slot) = open.pop_front() else { break };
            let used = slot.used.swap(false, Ordering::Relaxed);
            if used || slot.pinned.load(Ordering::Acquire) {
                open.push_back(slot);
            } else {
                slot.file.lock().take();
            }
        }
    }
}

impl Slot {
    /// Keeps the file open, or lets it go. A file with unsynced bytes is kept: closing it could lose the news
    /// of a failed write-back.
    pub(super) fn pin(&self, pinned: bool) {
        self.pinned.store(pinned, Ordering::Release);
    }

    /// Closes the file for good; it stays readable for those who hold it.
    pub(super) fn close(&self) {
        self.pin(false);
        self.used.store(false, Ordering::Relaxed);
        // Left in the list of open files until its turn comes: it costs no descriptor any more.
        self.file.lock().take();
    }
}

/// True for an error that says nothing about the disk: the process or the system has too many files open.
pub(super) fn is_lack_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::disk::recording::{Fails, RecordingDisk};

    fn open_count(slots: &[Arc<Slot>]) -> usize {
        slots.iter().filter(|slot| slot.file.lock().is_some()).count()
    }

    #[test]
    fn files_not_used_lately_are_closed_and_opened_again_on_demand() {
        let handles = Handles::new(Arc::new(RecordingDisk::default()), 3);
        let slots: Vec<Arc<Slot>> = (0..10).map(|_| Arc::default()).collect();
        let path = |at: usize| Path::new("/").join(at.to_string());
        slots[0].pin(true);
        for (at, slot) in slots.iter().enumerate() {
            handles.create(slot, &path(at)).unwrap();
        }
        assert_eq!(open_count(&slots), 3);
        assert!(slots[0].file.lock().is_some());
        handles.get(&slots[5], || path(5).into()).unwrap();
        assert_eq!(open_count(&slots), 3);
    }

    #[test]
    fn too_many_open_files_is_an_error_that_passes() {
        let disk = RecordingDisk::default();
        let handles = Handles::new(Arc::new(disk.clone()), 3);
        let slot = Arc::default();
        disk.fail(Fails::Open, EMFILE);
        let refused = handles.create(&slot, Path::new("/a")).err().unwrap();
        assert_eq!(refused.raw_os_error(), Some(EMFILE));
        disk.heal();
        handles.create(&slot, Path::new("/a")).unwrap();
    }
}
