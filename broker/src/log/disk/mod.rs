//! Duty: the few things the log asks of a file system, so that tests can put another one in its place. Comes
//! in: paths and bytes. Goes out: bytes and the system's errors, unchanged. Must not know records or segments.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;

#[cfg(test)]
pub(crate) mod recording;

/// A file system.
pub trait Disk: Send + Sync {
    /// Opens an empty file for reading and writing, whatever was under this name before.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, in place of what had that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file; it may be absent.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Makes a folder and those above it; answers false when it was there already.
    fn create_dir(&self, path: &Path) -> io::Result<bool>;

    /// Removes a folder with everything in it; it may be absent.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Names in a folder, in any order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes everything durable that was written to the file system which holds `path`.
    fn sync_all(&self, path: &Path) -> io::Result<()>;

    /// Whether the file system which holds `path` says that it takes more. Writes nothing: what it does not tell (a
    /// quota, a bad disk) only a write finds out.
    fn has_room(&self, path: &Path) -> io::Result<()>;
}

/// An open file. Writes at different places may run at once.
pub trait DiskFile: Send + Sync {
    /// Reads at `offset` until `buffer` is full or the file ends; answers the bytes read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`. After an error any part of them may be there.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file to `length` bytes.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes the file's bytes and length durable.
    fn sync(&self) -> io::Result<()>;

    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// True when the file holds nothing.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        Ok(Arc::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        or_absent(std::fs::remove_file(path))
    }

    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        if path.is_dir() {
            return Ok(false);
        }
        std::fs::create_dir_all(path).map(|()| true)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        or_absent(std::fs::remove_dir_all(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        std::fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn sync_all(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(path)?)?)
    }

    fn has_room(&self, path: &Path) -> io::Result<()> {
        let state = rustix::fs::statvfs(path)?;
        if state.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(Errno::ROFS.into());
        }
        // A file system that has no table of files counts none.
        let names_left = state.f_files == 0 || state.f_favail > 0;
        if names_left && state.f_bavail.saturating_mul(state.f_frsize) >= LEAST_ROOM {
            return Ok(());
        }
        Err(Errno::NOSPC.into())
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match FileExt::read_at(self, &mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

fn or_absent(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// A disk with less free space than this, in bytes, is full: it takes no message of the largest size.
const LEAST_ROOM: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_disk_keeps_the_contract() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        assert!(RealDisk.create_dir(&inner).unwrap());
        assert!(!RealDisk.create_dir(&inner).unwrap());
        let (old, new) = (inner.join("old"), inner.join("new"));
        let file = RealDisk.create(&old).unwrap();
        file.write_at(b"abcdef", 0).unwrap();
        file.truncate(4).unwrap();
        file.sync().unwrap();
        RealDisk.rename(&old, &new).unwrap();
        RealDisk.sync_dir(&inner).unwrap();
        RealDisk.sync_all(&inner).unwrap();
        RealDisk.has_room(&inner).unwrap();
        assert!(RealDisk.has_room(&inner.join("absent")).is_err());
        assert_eq!(RealDisk.list(&inner).unwrap(), ["new"]);
        let file = RealDisk.open(&new).unwrap();
        let mut buffer = [0; 8];
        assert_eq!(file.read_at(&mut buffer, 1).unwrap(), 3);
        assert_eq!(&buffer[..3], b"bcd");
        assert_eq!(file.len().unwrap(), 4);
        assert!(RealDisk.create(&new).unwrap().is_empty().unwrap());
        RealDisk.unlink(&new).unwrap();
        RealDisk.unlink(&new).unwrap();
        RealDisk.remove_dir(&inner).unwrap();
        RealDisk.remove_dir(&inner).unwrap();
    }
}
