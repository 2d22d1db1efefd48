//! Duty: replaces a small file whole, the way stock does with `nsqd.dat` and `meta.dat`. Must not know its content.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes `<path>.<random>.tmp` with mode 0600, syncs it and renames it to `path`. A crash leaves the old file or
/// the new one; what this has returned from survives a power cut.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", RandomState::new().build_hasher().finish()));
    let written = write_synced(Path::new(&temporary), content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The error that counts is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    match path.parent() {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}
