//! Duty: a file system in memory for tests. It records every change, builds the images a crash at any point
//! could leave, and fails on demand. Must not know records or segments.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Disk, DiskFile};

/// A file system that remembers how it came to be. Clones are the same file system.
#[derive(Clone, Default)]
pub(crate) struct RecordingDisk {
    state: Arc<Mutex<State>>,
}

/// What can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fails {
    /// Writes; the first half of the bytes gets through.
    Write,
    /// Syncs of files and of the whole file system.
    Sync,
    /// Cutting files.
    Truncate,
    /// Opening and creating files, and opening a folder to sync it.
    Open,
    /// Having room for more.
    Room,
}

/// What a crash leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Crash {
    /// The process dies: every finished operation is there; a write that was under way is there in part.
    Kill,
    /// The machine dies: what was not synced is there in any part, chosen by the number.
    Power(u64),
}

#[derive(Default)]
struct State {
    live: Image,
    operations: Vec<Operation>,
    faults: Vec<(Fails, i32)>,
    once: Vec<(Fails, i32)>,
}

#[derive(Clone, Default)]
struct Image {
    contents: Vec<Vec<u8>>,
    names: BTreeMap<PathBuf, usize>,
    folders: BTreeSet<PathBuf>,
}

#[derive(Clone)]
enum Operation {
    Link(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    Folder(PathBuf),
    RemoveFolder(PathBuf),
    Write(usize, u64, Vec<u8>),
    Truncate(usize, u64),
    Sync(usize),
    SyncFolder(PathBuf),
    SyncAll,
}

struct RecordingFile {
    disk: RecordingDisk,
    inode: usize,
}

impl RecordingDisk {
    /// Number of operations so far: names a moment to crash at.
    pub(crate) fn moment(&self) -> usize {
        self.state.lock().operations.len()
    }

    /// From now on operations of this kind fail with the system's error `errno`.
    pub(crate) fn fail(&self, kind: Fails, errno: i32) {
        self.state.lock().faults.push((kind, errno));
    }

    /// The next operation of this kind fails with the system's error `errno`.
    pub(crate) fn fail_once(&self, kind: Fails, errno: i32) {
        self.state.lock().once.push((kind, errno));
    }

    /// Nothing fails any more.
    pub(crate) fn heal(&self) {
        let mut state = self.state.lock();
        state.faults.clear();
        state.once.clear();
    }

    /// The file system after a crash once the first `moment` operations were done.
    pub(crate) fn crash(&self, moment: usize, crash: Crash) -> Self {
        let state = self.state.lock();
        let image = match crash {
            Crash::Kill => killed(&state.operations, moment),
            Crash::Power(seed) => power_lost(&state.operations, moment, Dice(seed)),
        };
        let mut disk = State {
            live: image,
            ..State::default()
        };
        // The image is the durable state of the new life: it begins with these operations and a sync.
        let Image {
            contents,
            names,
            folders,
        } = disk.live.clone();
        disk.operations.extend(folders.into_iter().map(Operation::Folder));
        for (name, inode) in names {
            disk.operations.push(Operation::Link(name, inode));
            disk.operations
                .push(Operation::Write(inode, 0, contents[inode].clone()));
        }
        disk.operations.push(Operation::SyncAll);
        Self {
            state: Arc::new(Mutex::new(disk)),
        }
    }

    /// Changes the bytes of a file behind the log's back.
    pub(crate) fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state.lock();
        let inode = state.live.names[path];
        change(&mut state.live.contents[inode]);
    }

    /// Removes a file behind the log's back.
    pub(crate) fn unlink_behind(&self, path: &Path) {
        self.state.lock().live.names.remove(path).unwrap();
    }

    /// Every file with its length.
    pub(crate) fn files(&self) -> Vec<(PathBuf, usize)> {
        let state = self.state.lock();
        let names = state.live.names.iter();
        names
            .map(|(name, inode)| (name.clone(), state.live.contents[*inode].len()))
            .collect()
    }

    fn apply(&self, operation: Operation) {
        let mut state = self.state.lock();
        state.live.apply(&operation);
        state.operations.push(operation);
    }

    fn check(&self, kind: Fails) -> io::Result<()> {
        let mut state = self.state.lock();
        let once = state
            .once
            .iter()
            .position(|fault| fault.0 == kind)
            .map(|at| state.once.remove(at));
        let fault = once.or_else(|| state.faults.iter().find(|fault| fault.0 == kind).copied());
        fault.map_or(Ok(()), |(_, errno)| Err(io::Error::from_raw_os_error(errno)))
    }

    fn file(&self, inode: usize) -> Arc<dyn DiskFile> {
        Arc::new(RecordingFile {
            disk: self.clone(),
            inode,
        })
    }
}

impl Disk for RecordingDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.check(Fails::Open)?;
        let inode = {
            let mut state = self.state.lock();
            state.live.contents.push(Vec::new());
            state.live.contents.len() - 1
        };
        self.apply(Operation::Link(path.to_owned(), inode));
        Ok(self.file(inode))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.check(Fails::Open)?;
        let inode = self.state.lock().live.names.get(path).copied();
        inode
            .map(|inode| self.file(inode))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if !self.state.lock().live.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.apply(Operation::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.apply(Operation::Unlink(path.to_owned()));
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        if self.state.lock().live.folders.contains(path) {
            return Ok(false);
        }
        for folder in path.ancestors() {
            if !self.state.lock().live.folders.contains(folder) {
                self.apply(Operation::Folder(folder.to_owned()));
            }
        }
        Ok(true)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.apply(Operation::RemoveFolder(path.to_owned()));
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        if !state.live.folders.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state.live.names.keys().chain(&state.live.folders);
        Ok(inside
            .filter(|name| name.parent() == Some(path))
            .filter_map(|name| Some(name.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Fails::Open)?;
        self.apply(Operation::SyncFolder(path.to_owned()));
        Ok(())
    }

    fn sync_all(&self, _path: &Path) -> io::Result<()> {
        self.check(Fails::Sync)?;
        self.apply(Operation::SyncAll);
        Ok(())
    }

    fn has_room(&self, _path: &Path) -> io::Result<()> {
        self.check(Fails::Room)
    }
}

impl DiskFile for RecordingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state.lock();
        let content = &state.live.contents[self.inode];
        let rest = content.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let fault = self.disk.check(Fails::Write);
        let written = if fault.is_ok() {
            bytes.len()
        } else {
            bytes.len() / 2
        };
        self.disk
            .apply(Operation::Write(self.inode, offset, bytes[..written].to_vec()));
        fault
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.disk.check(Fails::Truncate)?;
        self.disk.apply(Operation::Truncate(self.inode, length));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.check(Fails::Sync)?;
        self.disk.apply(Operation::Sync(self.inode));
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state.lock().live.contents[self.inode].len() as u64)
    }
}

impl Image {
    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Link(path, inode) => {
                self.names.insert(path.clone(), *inode);
                self.content(*inode);
            }
            Operation::Rename(from, to) => {
                // The old name may be missing when an image lost the file's creation.
                if let Some(inode) = self.names.remove(from) {
                    self.names.insert(to.clone(), inode);
                }
            }
            Operation::Unlink(path) => {
                self.names.remove(path);
            }
            Operation::Folder(path) => {
                self.folders.insert(path.clone());
            }
            Operation::RemoveFolder(path) => {
                self.names.retain(|name, _| !name.starts_with(path));
                self.folders.retain(|name| !name.starts_with(path));
            }
            Operation::Write(inode, offset, bytes) => {
                let content = self.content(*inode);
                let end = *offset as usize + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset as usize..end].copy_from_slice(bytes);
            }
            Operation::Truncate(inode, length) => self.content(*inode).resize(*length as usize, 0),
            Operation::Sync(_) | Operation::SyncFolder(_) | Operation::SyncAll => {}
        }
    }

    fn content(&mut self, inode: usize) -> &mut Vec<u8> {
        if self.contents.len() <= inode {
            self.contents.resize(inode + 1, Vec::new());
        }
        &mut self.contents[inode]
    }
}

impl Operation {
    /// The queue that keeps this operation's order: one for each file's bytes, one for each folder's names.
    fn queue(&self) -> Queue {
        let parent = |path: &Path| Queue::Folder(path.parent().unwrap_or(path).to_owned());
        match self {
            Self::Write(inode, ..) | Self::Truncate(inode, _) | Self::Sync(inode) => Queue::File(*inode),
            Self::Link(path, _)
            | Self::Rename(_, path)
            | Self::Unlink(path)
            | Self::Folder(path)
            | Self::RemoveFolder(path) => parent(path),
            Self::SyncFolder(path) => Queue::Folder(path.clone()),
            Self::SyncAll => Queue::All,
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    File(usize),
    Folder(PathBuf),
    All,
}

fn killed(operations: &[Operation], moment: usize) -> Image {
    let mut image = Image::default();
    for operation in &operations[..moment] {
        image.apply(operation);
    }
    if let Some(Operation::Write(inode, offset, bytes)) = operations.get(moment) {
        let part = bytes[..bytes.len() / 3].to_vec();
        image.apply(&Operation::Write(*inode, *offset, part));
    }
    image
}

/// What was synced is there; of everything else each file and each folder keeps a prefix of its own, the last
/// write torn or, where the file had grown, filled with zeros.
fn power_lost(operations: &[Operation], moment: usize, mut dice: Dice) -> Image {
    let mut image = Image::default();
    let mut unsynced: BTreeMap<Queue, Vec<&Operation>> = BTreeMap::new();
    for operation in &operations[..moment] {
        match operation {
            Operation::SyncAll => {
                for operation in std::mem::take(&mut unsynced).into_values().flatten() {
                    image.apply(operation);
                }
            }
            Operation::Sync(_) | Operation::SyncFolder(_) => {
                for operation in unsynced.remove(&operation.queue()).unwrap_or_default() {
                    image.apply(operation);
                }
            }
            _ => unsynced.entry(operation.queue()).or_default().push(operation),
        }
    }
    for queue in unsynced.into_values() {
        let kept = dice.below(queue.len() + 1);
        queue[..kept].iter().for_each(|operation| image.apply(operation));
        if let Some(Operation::Write(inode, offset, bytes)) = queue.get(kept) {
            let mut torn = bytes[..dice.below(bytes.len() + 1)].to_vec();
            if dice.below(3) == 0 {
                let zeroed = dice.below(torn.len() + 1);
                torn[zeroed..].fill(0);
            }
            image.apply(&Operation::Write(*inode, *offset, torn));
        }
    }
    let Image { names, folders, .. } = &mut image;
    names.retain(|name, _| name.parent().is_some_and(|folder| folders.contains(folder)));
    image
}

/// Repeatable chance (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `bound`, which is above 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
