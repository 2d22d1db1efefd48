//! Duty: how far a queue has been imported, and whether what lies there later is still the same queue. Comes in:
//! a queue and a position. Goes out: where to go on. Must not know where marks are kept.
//!
//! Stock nsqd may run on a folder between two imports. It then goes on writing behind the mark and deletes the
//! files that it has read; or the topic was deleted and created again, and the files begin anew at number 0.
//! The beginning of the last file that was read tells the two apart: records hold their time and their id.

use std::fs::File;
use std::io::Read;

use serde::{Deserialize, Serialize};

use super::ImportError;
use super::stock_files::{DataFile, StockQueue};
use super::stock_meta::Position;

/// How far a queue has been imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Where the next record to import begins.
    position: Position,
    /// The last file that was read from; `None` while nothing was.
    last: Option<Seen>,
}

/// A file as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    file: u64,
    /// Bytes from its beginning that `crc` covers.
    bytes: u64,
    /// CRC-32C.
    crc: u32,
}

impl Mark {
    /// `queue` has been read up to `position`.
    ///
    /// # Errors
    /// [`ImportError::Read`].
    pub fn at(queue: &StockQueue, position: Position) -> Result<Self, ImportError> {
        let read = |file: &&DataFile| {
            file.number < position.file || file.number == position.file && position.offset > 0
        };
        let last = match queue.files.iter().rev().find(read) {
            Some(file) if file.number == position.file => {
                Some(Seen::of(file, position.offset.min(HEAD_BYTES))?)
            }
            Some(file) => Some(Seen::of(file, HEAD_BYTES)?),
            None => None,
        };
        Ok(Self { position, last })
    }

    /// Where to go on in `queue`: behind the mark, unless stock nsqd has come further or it is another queue by now.
    ///
    /// # Errors
    /// [`ImportError::Read`].
    pub fn resume(&self, queue: &StockQueue) -> Result<Position, ImportError> {
        let Some(seen) = self.last else {
            return Ok(queue.start);
        };
        let Some(file) = queue.files.iter().find(|file| file.number == seen.file) else {
            return Ok(queue.start);
        };
        if Seen::of(file, seen.bytes)? != seen {
            return Ok(queue.start);
        }
        Ok(self.position.max(queue.start))
    }
}

impl Seen {
    fn of(file: &DataFile, bytes: u64) -> Result<Self, ImportError> {
        let unreadable = |source| ImportError::Read {
            path: file.path.clone(),
            source,
        };
        let mut head = Vec::new();
        let opened = File::open(&file.path).map_err(unreadable)?;
        opened.take(bytes).read_to_end(&mut head).map_err(unreadable)?;
        Ok(Self {
            file: file.number,
            bytes: head.len() as u64,
            crc: crc32c::crc32c(&head),
        })
    }
}

/// Enough for the time and id of the first record of a file.
const HEAD_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::import::stock_files::find;

    fn queue(dir: &Path) -> StockQueue {
        find(dir).unwrap().0.remove(0)
    }

    fn lay(dir: &Path, number: u64, bytes: &[u8]) {
        fs::write(dir.join(format!("t.diskqueue.{number:06}.dat")), bytes).unwrap();
    }

    fn lay_meta(dir: &Path, text: &str) {
        fs::write(dir.join("t.diskqueue.meta.dat"), text).unwrap();
    }

    fn at(file: u64, offset: u64) -> Position {
        Position { file, offset }
    }

    #[test]
    fn a_queue_that_grew_is_read_from_the_mark() {
        let dir = tempfile::tempdir().unwrap();
        lay(dir.path(), 0, b"first");
        lay_meta(dir.path(), "1\n0,0\n0,5\n");
        let mark = Mark::at(&queue(dir.path()), at(0, 5)).unwrap();
        lay(dir.path(), 0, b"first and more");
        lay(dir.path(), 1, b"new");
        assert_eq!(mark.resume(&queue(dir.path())).unwrap(), at(0, 5));
        lay_meta(dir.path(), "1\n0,9\n1,3\n");
        assert_eq!(
            mark.resume(&queue(dir.path())).unwrap(),
            at(0, 9),
            "stock nsqd has read further"
        );
        fs::remove_file(dir.path().join("t.diskqueue.000000.dat")).unwrap();
        lay_meta(dir.path(), "1\n1,0\n1,3\n");
        assert_eq!(
            mark.resume(&queue(dir.path())).unwrap(),
            at(1, 0),
            "stock nsqd has read the file"
        );
    }

    #[test]
    fn a_queue_that_was_made_anew_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        lay(dir.path(), 0, b"first");
        lay(dir.path(), 1, b"second");
        lay_meta(dir.path(), "2\n0,0\n1,6\n");
        let mark = Mark::at(&queue(dir.path()), at(1, 6)).unwrap();
        fs::remove_file(dir.path().join("t.diskqueue.000001.dat")).unwrap();
        lay(dir.path(), 0, b"other");
        lay_meta(dir.path(), "1\n0,0\n0,5\n");
        assert_eq!(mark.resume(&queue(dir.path())).unwrap(), at(0, 0));
        lay(dir.path(), 1, b"other second");
        lay_meta(dir.path(), "2\n0,0\n1,12\n");
        assert_eq!(mark.resume(&queue(dir.path())).unwrap(), at(0, 0));
        lay(dir.path(), 1, b"sec");
        assert_eq!(mark.resume(&queue(dir.path())).unwrap(), at(0, 0));
    }

    #[test]
    fn a_mark_behind_a_damaged_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        lay(dir.path(), 0, b"damaged");
        lay_meta(dir.path(), "1\n0,0\n0,7\n");
        let mark = Mark::at(&queue(dir.path()), at(1, 0)).unwrap();
        assert_eq!(mark.resume(&queue(dir.path())).unwrap(), at(1, 0));
        let text = serde_json::to_vec(&mark).unwrap();
        assert_eq!(serde_json::from_slice::<Mark>(&text).unwrap(), mark);
    }
}
