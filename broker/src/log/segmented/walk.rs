//! Duty: steps from record to record through a segment file and verifies each. Comes in: a file and the part of
//! it to walk. Goes out: records, or the place of the first bytes that are none. Must not know indexes or logs.

use std::io;

use crate::log::disk::DiskFile;
use crate::log::record::{FIXED, Record};
use crate::log::sequence::{Sequence, SequenceRange};

/// A walk through a part of a file.
pub(super) struct Walk<'f> {
    file: &'f dyn DiskFile,
    buffer: Vec<u8>,
    /// Offset of the buffer in the file.
    start: u64,
    /// Where the walk stands in the buffer.
    at: usize,
    /// End of the part to walk, in the file.
    limit: u64,
}

/// What a walk comes upon.
#[derive(Debug)]
pub(super) enum Step<'b> {
    /// A verified record, its offset and its length.
    Record(Record<'b>, u64, usize),
    /// The bytes here are no record, or one that does not belong here.
    Bad,
    /// The end of the part.
    End,
}

impl<'f> Walk<'f> {
    /// Walks `file` from `offset`, where a record begins, to `limit`.
    pub(super) fn new(file: &'f dyn DiskFile, offset: u64, limit: u64) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            start: offset,
            at: 0,
            limit,
        }
    }

    /// Where the walk stands in the file.
    pub(super) fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    /// The next record, whose sequence must lie in `expected`.
    pub(super) fn step(&mut self, expected: SequenceRange) -> io::Result<Step<'_>> {
        if self.offset() >= self.limit {
            return Ok(Step::End);
        }
        let offset = self.offset();
        if !self.load_record()? {
            return Ok(Step::Bad);
        }
        match Record::decode_checked(&self.buffer[self.at..]) {
            Ok((record, whole)) if expected.contains(record.sequence) => {
                self.at += whole;
                Ok(Step::Record(record, offset, whole))
            }
            _ => Ok(Step::Bad),
        }
    }

    /// From bad bytes on to the next verified record whose sequence lies in `expected`; false when there is none.
    pub(super) fn resync(&mut self, expected: SequenceRange) -> io::Result<bool> {
        loop {
            self.at += 1;
            if self.limit.saturating_sub(self.offset()) < FIXED as u64 {
                self.at = (self.limit - self.start) as usize;
                return Ok(false);
            }
            self.load(FIXED)?;
            let fixed = self.buffer.get(self.at..).and_then(|rest| rest.first_chunk());
            // The sequence is looked at first: checksums of chance lengths would be slow.
            if fixed.is_some_and(|fixed| expected.contains(sequence_of(fixed)))
                && self.load_record()?
                && Record::decode_checked(&self.buffer[self.at..]).is_ok()
            {
                return Ok(true);
            }
        }
    }

    /// Makes the buffer hold the whole record at the walk's place; false when the part cannot hold it.
    fn load_record(&mut self) -> io::Result<bool> {
        self.load(FIXED)?;
        let whole = Record::whole_len(&self.buffer[self.at..]).unwrap_or(usize::MAX);
        if whole as u64 > self.limit - self.offset() {
            return Ok(false);
        }
        self.load(whole)?;
        Ok(self.buffer.len() - self.at >= whole)
    }

    /// Makes the buffer hold `length` bytes from the walk's place on, when the part has them.
    fn load(&mut self, length: usize) -> io::Result<()> {
        if self.buffer.len() >= self.at + length {
            return Ok(());
        }
        self.start += self.at as u64;
        self.at = 0;
        let wanted = (length.max(WINDOW) as u64).min(self.limit.saturating_sub(self.start));
        self.buffer.resize(wanted as usize, 0);
        let filled = self.file.read_at(&mut self.buffer, self.start)?;
        self.buffer.truncate(filled);
        Ok(())
    }
}

/// The sequence field of a record.
fn sequence_of(fixed: &[u8; FIXED]) -> Sequence {
    let mut sequence = [0; 8];
    sequence.copy_from_slice(&fixed[8..16]);
    Sequence::new(u64::from_le_bytes(sequence))
}

/// Bytes read at once.
const WINDOW: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::log::disk::Disk;
    use crate::log::disk::recording::RecordingDisk;
    use crate::log::record::NewRecord;

    const ALL: SequenceRange = SequenceRange::new(Sequence::new(0), Sequence::MAX);

    fn file(damage: impl FnOnce(&mut Vec<u8>)) -> (std::sync::Arc<dyn DiskFile>, u64) {
        let mut bytes = Vec::new();
        for sequence in 0..5_u64 {
            let record = NewRecord {
                body: &[9; 50],
                ..NewRecord::default()
            };
            record.encode(Sequence::new(sequence), &mut bytes);
        }
        damage(&mut bytes);
        let file = RecordingDisk::default().create(Path::new("/f")).unwrap();
        file.write_at(&bytes, 0).unwrap();
        (file, bytes.len() as u64)
    }

    fn sequences(walk: &mut Walk<'_>) -> Vec<u64> {
        let mut found = Vec::new();
        while let Step::Record(record, ..) = walk.step(ALL).unwrap() {
            found.push(record.sequence.get());
        }
        found
    }

    #[test]
    fn a_walk_stops_at_bad_bytes_and_goes_on_behind_them() {
        let (file, len) = file(|bytes| bytes[2 * 78 + 40] ^= 1);
        let mut walk = Walk::new(&*file, 0, len);
        assert_eq!(sequences(&mut walk), [0, 1]);
        assert!(walk.resync(ALL).unwrap());
        assert_eq!(sequences(&mut walk), [3, 4]);
        assert!(matches!(walk.step(ALL).unwrap(), Step::End));
    }

    #[test]
    fn an_absurd_length_is_bad_and_reads_nothing_beyond_the_part() {
        let (file, len) = file(|bytes| bytes[78..82].fill(0xff));
        let mut walk = Walk::new(&*file, 0, len);
        assert_eq!(sequences(&mut walk), [0]);
        assert!(walk.resync(ALL).unwrap());
        assert_eq!(sequences(&mut walk), [2, 3, 4]);
    }

    #[test]
    fn a_torn_end_is_bad_and_nothing_follows() {
        let (file, len) = file(|bytes| bytes.truncate(5 * 78 - 1));
        let mut walk = Walk::new(&*file, 0, len);
        assert_eq!(sequences(&mut walk), [0, 1, 2, 3]);
        assert!(!walk.resync(ALL).unwrap());
        assert!(matches!(walk.step(ALL).unwrap(), Step::End));
    }

    #[test]
    fn a_record_that_does_not_belong_here_is_bad() {
        let (file, len) = file(|_| ());
        let expected = SequenceRange::new(Sequence::new(1), Sequence::MAX);
        assert!(matches!(
            Walk::new(&*file, 0, len).step(expected).unwrap(),
            Step::Bad
        ));
    }
}
