//! Duty: remembers outside of the database which change of the catalogue it must at least hold. sled cuts its
//! log at the first damaged byte and opens what came before without a word; a broker that believed it would
//! delete the files of every topic created since. Must not know what the changes are.
//!
//! The file has two slots of 512 bytes, written in turn, so that a torn write leaves the other one: number of
//! the change u64, CRC-32C of it u32 (little-endian).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The open file.
#[derive(Debug)]
pub(super) struct Watermark {
    file: File,
}

impl Watermark {
    /// Opens or creates the file. Its folder is not synced.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        Ok(Self { file })
    }

    /// The last change recorded; `None` = none yet.
    pub(super) fn last(&self) -> io::Result<Option<u64>> {
        let mut last = None;
        for slot in 0..SLOTS {
            last = last.max(self.slot(slot)?);
        }
        Ok(last)
    }

    /// Records that the database holds `change`. Durable on return.
    pub(super) fn record(&self, change: u64) -> io::Result<()> {
        let change_bytes = change.to_le_bytes();
        let crc = crc32c::crc32c(&change_bytes).to_le_bytes();
        let slot = [change_bytes.as_slice(), &crc].concat();
        self.file.write_all_at(&slot, change % SLOTS * SLOT_BYTES)?;
        self.file.sync_data()
    }

    fn slot(&self, slot: u64) -> io::Result<Option<u64>> {
        let mut bytes = [0; 12];
        match self.file.read_exact_at(&mut bytes, slot * SLOT_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let (change, crc) = bytes.split_at(8);
        let written = crc32c::crc32c(change).to_le_bytes() == *crc;
        Ok(change.try_into().ok().map(u64::from_le_bytes).filter(|_| written))
    }
}

const SLOTS: u64 = 2;
const SLOT_BYTES: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_slot_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let watermark = Watermark::open(&dir.path().join("w")).unwrap();
        assert_eq!(watermark.last().unwrap(), None);
        for change in 0..5 {
            watermark.record(change).unwrap();
            assert_eq!(watermark.last().unwrap(), Some(change));
        }
        watermark
            .file
            .write_all_at(&[9; 5], 5 % SLOTS * SLOT_BYTES)
            .unwrap();
        assert_eq!(watermark.last().unwrap(), Some(4));
    }
}
