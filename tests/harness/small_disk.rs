//! Duty: a small file system of its own under a node's data folder, that can really be full or read-only.
//!
//! In: a folder and a size. Out: the mounted file system, filled and freed on demand. It ends with its value. Needs the right to
//! mount: without it there is none, and in CI that is an error.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted tmpfs.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts a file system of `mebibytes` on `folder`; `None`, told as `skipped:`, without the right to do so.
    ///
    /// # Panics
    /// In CI (`CI` is set), where such a test must not be skipped.
    pub fn mount(folder: &Path, mebibytes: u32) -> Option<Self> {
        let options = format!("size={mebibytes}m,mode=0755");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self {
                folder: folder.to_owned(),
            }),
            other => {
                assert!(std::env::var_os("CI").is_none(), "cannot mount: {other:?}");
                println!("skipped: no right to mount a file system");
                None
            }
        }
    }

    /// Occupies all free space but `left` KiB; a second call frees what the first one took, first.
    pub fn fill_but(&self, left: usize) {
        self.free();
        let mut ballast = fs::File::create(self.ballast()).expect("ballast");
        let piece = [1; 4096];
        loop {
            match ballast.write_all(&piece) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("ballast: {error}"),
            }
        }
        let length = ballast.metadata().expect("ballast").len();
        ballast
            .set_len(length.saturating_sub(left as u64 * 1024))
            .expect("cut the ballast");
    }

    /// Gives back what [`SmallDisk::fill_but`] took.
    pub fn free(&self) {
        if let Err(error) = fs::remove_file(self.ballast()) {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
    }

    /// Makes the file system read-only, or writable again. Nothing may be open for writing.
    pub fn set_read_only(&self, read_only: bool) {
        let options = if read_only { "remount,ro" } else { "remount,rw" };
        let output = Command::new("mount")
            .args(["-o", options])
            .arg(&self.folder)
            .output()
            .expect("mount");
        assert!(output.status.success(), "{output:?}");
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A node that just ended may still be let go of; lazily is early enough.
        let _ = Command::new("umount").arg("-l").arg(&self.folder).output();
        let _ = fs::remove_dir(&self.folder);
    }
}
