//! Duty: what an index file tells recovery: up to where the log can be trusted. Comes in: an index file. Goes
//! out: its last mark. Must not know the records.

use std::io;

use super::index::{Entries, Entry, Mark};
use crate::log::disk::DiskFile;
use crate::log::sequence::Sequence;

/// The marks of an index file.
#[derive(Default)]
pub(super) struct Marks {
    /// The last mark up to which all entries are whole.
    pub(super) last: Option<Mark>,
    /// Bytes of entries up to that mark.
    pub(super) index_len: u64,
    /// Bytes of the segment that were synced according to any mark.
    pub(super) synced_len: u64,
    /// First sequence that was not, according to any mark.
    pub(super) synced_end: Sequence,
}

impl Marks {
    /// Reads the marks of `file`. A sealed segment is told by its last entry alone.
    pub(super) fn load(file: &dyn DiskFile) -> io::Result<Self> {
        let len = file.len()?;
        let count = len / Entry::SIZE as u64;
        let entries = Entries::new(file, len);
        let mut marks = Self::default();
        if let Some(Entry::Mark(mark)) = read_one(&entries, count.saturating_sub(1))?
            && mark.sealed
        {
            marks.trust(mark, count);
            return Ok(marks);
        }
        let mut whole = true;
        for at in 0..count {
            match read_one(&entries, at)? {
                Some(Entry::Mark(mark)) if whole => marks.trust(mark, at + 1),
                Some(Entry::Mark(mark)) => marks.note(mark),
                Some(Entry::Block(_)) => {}
                None => whole = false,
            }
        }
        Ok(marks)
    }

    fn trust(&mut self, mark: Mark, entries: u64) {
        self.last = Some(mark);
        self.index_len = entries * Entry::SIZE as u64;
        self.note(mark);
    }

    fn note(&mut self, mark: Mark) {
        self.synced_len = self.synced_len.max(mark.len);
        self.synced_end = self.synced_end.max(mark.end);
    }
}

/// The entry at `at`, unless it is damaged or there is none.
fn read_one(entries: &Entries<'_>, at: u64) -> io::Result<Option<Entry>> {
    match entries.read(at, 1) {
        Ok(read) => Ok(read.first().copied()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::log::disk::Disk;
    use crate::log::disk::recording::RecordingDisk;

    fn mark(end: u64, sealed: bool) -> Mark {
        Mark {
            end: Sequence::new(end),
            len: end * 100,
            sealed,
            ..Mark::start(Sequence::default())
        }
    }

    fn file(marks: &[Mark], damaged: Option<usize>) -> Arc<dyn DiskFile> {
        let mut bytes: Vec<u8> = marks
            .iter()
            .flat_map(|mark| Entry::Mark(*mark).encode())
            .collect();
        if let Some(entry) = damaged {
            bytes[entry * Entry::SIZE + 20] ^= 1;
        }
        bytes.extend([1, 2, 3]);
        let file = RecordingDisk::default().create(Path::new("/f")).unwrap();
        file.write_at(&bytes, 0).unwrap();
        file
    }

    #[test]
    fn the_last_mark_before_any_damage_is_trusted_and_later_ones_are_noted() {
        let marks = [mark(5, false), mark(9, false), mark(12, false)];
        let found = Marks::load(&*file(&marks, None)).unwrap();
        assert_eq!((found.last, found.index_len), (Some(marks[2]), 144));
        let found = Marks::load(&*file(&marks, Some(1))).unwrap();
        assert_eq!((found.last, found.index_len), (Some(marks[0]), 48));
        assert_eq!((found.synced_len, found.synced_end.get()), (1200, 12));
    }

    #[test]
    fn a_seal_at_the_end_is_enough() {
        let marks = [mark(5, false), mark(9, true)];
        let found = Marks::load(&*file(&marks, Some(0))).unwrap();
        assert_eq!((found.last, found.index_len), (Some(marks[1]), 96));
        assert!(Marks::load(&*file(&[], None)).unwrap().last.is_none());
    }
}
