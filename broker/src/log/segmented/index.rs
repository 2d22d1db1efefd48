//! Duty: the sparse index of one segment: entries as bytes, the part that is still in memory, the search in the
//! file. Comes in: records with their offsets. Goes out: where to start reading, which blocks hold what. Must
//! not know how segments are written or recovered.
//!
//! An index file is a row of entries of 48 bytes, little-endian. Blocks and marks alternate as they come; their
//! sequences, offsets and highest timestamps only grow, so that both kinds serve a binary search.
//!
//! | offset | size | block | mark |
//! |---|---|---|---|
//! | 0 | 4 | CRC-32C of the rest | the same |
//! | 4 | 4 | 1 | 2, or 3 when the segment is sealed |
//! | 8 | 8 | its first sequence | first sequence that no block before the mark covers |
//! | 16 | 8 | its offset in the segment | offset of that sequence |
//! | 24 | 8 | highest timestamp up to its end | highest timestamp before that sequence |
//! | 32 | 8 | length in bytes, number of records | first sequence that is not synced |
//! | 40 | 8 | records with header, load test, tag, delay | length in bytes that is synced |

use std::io;

use crate::log::disk::DiskFile;
use crate::log::record::Record;
use crate::log::sequence::Sequence;

/// About 4 KiB of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Sequence of the first record.
    pub(super) first: Sequence,
    /// Offset of the first record in the segment.
    pub(super) offset: u64,
    /// Highest timestamp in the segment up to the block's end.
    pub(super) highest: i64,
    /// Length in bytes.
    pub(super) bytes: u32,
    /// Number of records.
    pub(super) records: u32,
    /// Records with an extended header.
    pub(super) headers: u16,
    /// Records of load-test traffic.
    pub(super) load_test: u16,
    /// Records with a tag.
    pub(super) tagged: u16,
    /// Records with a delay.
    pub(super) delayed: u16,
}

/// What is known to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// First sequence that no block before the mark covers: recovery scans from here.
    pub(super) first: Sequence,
    /// Its offset.
    pub(super) offset: u64,
    /// Highest timestamp before it.
    pub(super) highest: i64,
    /// First sequence that is not synced.
    pub(super) end: Sequence,
    /// Bytes of the segment that are synced.
    pub(super) len: u64,
    /// True when nothing will follow in this segment.
    pub(super) sealed: bool,
}

impl Mark {
    /// The mark of a segment that holds nothing yet.
    pub(super) fn start(base: Sequence) -> Self {
        Self {
            first: base,
            offset: 0,
            highest: i64::MIN,
            end: base,
            len: 0,
            sealed: false,
        }
    }
}

/// An entry of an index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// About 4 KiB of records.
    Block(Block),
    /// What is known to be synced.
    Mark(Mark),
}

impl Entry {
    /// Bytes of an entry.
    pub(super) const SIZE: usize = 48;

    /// Sequence to which the entry leads.
    pub(super) fn first(&self) -> Sequence {
        match self {
            Self::Block(block) => block.first,
            Self::Mark(mark) => mark.first,
        }
    }

    /// Offset to which the entry leads.
    pub(super) fn offset(&self) -> u64 {
        match self {
            Self::Block(block) => block.offset,
            Self::Mark(mark) => mark.offset,
        }
    }

    /// Highest timestamp before the next entry's records.
    pub(super) fn highest(&self) -> i64 {
        match self {
            Self::Block(block) => block.highest,
            Self::Mark(mark) => mark.highest,
        }
    }

    /// The block, when it is one.
    pub(super) fn block(&self) -> Option<&Block> {
        match self {
            Self::Block(block) => Some(block),
            Self::Mark(_) => None,
        }
    }

    /// The entry as bytes.
    pub(super) fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let (kind, last): (u32, [u64; 2]) = match self {
            Self::Block(block) => {
                let size = u64::from(block.records) << 32 | u64::from(block.bytes);
                let kinds = u64::from(block.delayed) << 48
                    | u64::from(block.tagged) << 32
                    | u64::from(block.load_test) << 16
                    | u64::from(block.headers);
                (BLOCK, [size, kinds])
            }
            Self::Mark(mark) => {
                let kind = if mark.sealed { SEAL } else { MARK };
                (kind, [mark.end.get(), mark.len])
            }
        };
        bytes[4..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first().get().to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset().to_le_bytes());
        bytes[24..32].copy_from_slice(&self.highest().to_le_bytes());
        bytes[32..40].copy_from_slice(&last[0].to_le_bytes());
        bytes[40..48].copy_from_slice(&last[1].to_le_bytes());
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads an entry; `None` when the bytes are not one.
    pub(super) fn decode(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let head = word(0);
        if head as u32 != crc32c::crc32c(&bytes[4..]) {
            return None;
        }
        let (first, offset, highest) = (Sequence::new(word(8)), word(16), word(24) as i64);
        let (size, kinds) = (word(32), word(40));
        match (head >> 32) as u32 {
            BLOCK => Some(Self::Block(Block {
                first,
                offset,
                highest,
                bytes: size as u32,
                records: (size >> 32) as u32,
                headers: kinds as u16,
                load_test: (kinds >> 16) as u16,
                tagged: (kinds >> 32) as u16,
                delayed: (kinds >> 48) as u16,
            })),
            kind @ (MARK | SEAL) => Some(Self::Mark(Mark {
                first,
                offset,
                highest,
                end: Sequence::new(size),
                len: kinds,
                sealed: kind == SEAL,
            })),
            _ => None,
        }
    }
}

/// The part of an index that is not in its file yet: closed blocks and the one that still grows.
#[derive(Clone, Debug)]
pub(super) struct Unwritten {
    blocks: Vec<Block>,
    open: Option<Block>,
    /// Highest timestamp in what the file covers.
    written_highest: i64,
    /// Highest timestamp so far.
    highest: i64,
}

impl Default for Unwritten {
    fn default() -> Self {
        Self::resuming(i64::MIN)
    }
}

impl Unwritten {
    /// Nothing; `highest` is the highest timestamp in what the file covers.
    pub(super) fn resuming(highest: i64) -> Self {
        Self {
            blocks: Vec::new(),
            open: None,
            written_highest: highest,
            highest,
        }
    }

    /// Takes in the next record: it lies at `offset` and is `length` bytes long.
    pub(super) fn add(&mut self, record: &Record<'_>, offset: u64, length: usize) {
        self.highest = self.highest.max(record.timestamp);
        let block = self.open.get_or_insert(Block {
            first: record.sequence,
            offset,
            highest: self.highest,
            bytes: 0,
            records: 0,
            headers: 0,
            load_test: 0,
            tagged: 0,
            delayed: 0,
        });
        block.highest = self.highest;
        block.bytes = (offset + length as u64 - block.offset) as u32;
        block.records += 1;
        block.headers += u16::from(record.ext_version > 0);
        block.load_test += u16::from(record.load_test);
        block.tagged += u16::from(record.tagged);
        block.delayed += u16::from(record.delay_ms > 0);
        if block.bytes >= BLOCK_BYTES {
            self.close();
        }
    }

    /// Closes the block that still grows.
    pub(super) fn close(&mut self) {
        self.blocks.extend(self.open.take());
    }

    /// Closed blocks that end at or below `offset`, and the mark's place behind them; `end` and `len` are
    /// where the segment is synced to.
    pub(super) fn synced_to(&self, end: Sequence, len: u64, sealed: bool) -> (&[Block], Mark) {
        let count = self
            .blocks
            .partition_point(|block| block.offset + u64::from(block.bytes) <= len);
        let next = self.blocks.get(count).or(self.open.as_ref());
        let (first, offset) = next.map_or((end, len), |block| (block.first, block.offset));
        let blocks = &self.blocks[..count];
        let highest = blocks.last().map_or(self.written_highest, |block| block.highest);
        let mark = Mark {
            first,
            offset,
            highest,
            end,
            len,
            sealed,
        };
        (blocks, mark)
    }

    /// Forgets the first `count` closed blocks: they are in the file now.
    pub(super) fn written(&mut self, count: usize) {
        if let Some(last) = self.blocks.drain(..count).next_back() {
            self.written_highest = last.highest;
        }
        if self.blocks.capacity() > 2 * KEPT_BLOCKS && self.blocks.len() < KEPT_BLOCKS {
            self.blocks.shrink_to(KEPT_BLOCKS);
        }
    }

    /// The blocks here in order.
    pub(super) fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.blocks.iter().chain(&self.open)
    }

    /// The last block that begins at or before `sequence`.
    pub(super) fn block_before(&self, sequence: Sequence) -> Option<&Block> {
        if let Some(open) = self.open.as_ref().filter(|open| open.first <= sequence) {
            return Some(open);
        }
        let after = self.blocks.partition_point(|block| block.first <= sequence);
        self.blocks[..after].last()
    }

    /// Highest timestamp so far.
    pub(super) fn highest(&self) -> i64 {
        self.highest
    }
}

/// The entries of an index file.
pub(super) struct Entries<'f> {
    file: Option<&'f dyn DiskFile>,
    count: u64,
}

impl<'f> Entries<'f> {
    /// No entries: there is no file yet.
    pub(super) fn none() -> Self {
        Self { file: None, count: 0 }
    }

    /// The entries in the first `len` bytes of `file`.
    pub(super) fn new(file: &'f dyn DiskFile, len: u64) -> Self {
        Self {
            file: Some(file),
            count: len / Entry::SIZE as u64,
        }
    }

    /// Number of entries at the front that fulfil `holds`, which is true for a front part and false for the rest.
    ///
    /// # Errors
    /// `InvalidData` when an entry on the way is damaged.
    pub(super) fn partition_point(&self, holds: impl Fn(&Entry) -> bool) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            let [entry] = self.read(middle, 1)?[..] else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            if holds(&entry) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Up to `count` entries from the one at `at` on.
    ///
    /// # Errors
    /// `InvalidData` when one of them is damaged.
    pub(super) fn read(&self, at: u64, count: u64) -> io::Result<Vec<Entry>> {
        let count = count.min(self.count.saturating_sub(at));
        let mut bytes = vec![0; count as usize * Entry::SIZE];
        let offset = at * Entry::SIZE as u64;
        let filled = self.file.map_or(Ok(0), |file| file.read_at(&mut bytes, offset))?;
        let (entries, _) = bytes[..filled].as_chunks();
        let read: Option<Vec<Entry>> = entries.iter().map(Entry::decode).collect();
        read.filter(|read| read.len() as u64 == count)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// A block is closed when it holds this many bytes.
const BLOCK_BYTES: u32 = 4 << 10;
/// Memory for this many blocks is kept for the next ones.
const KEPT_BLOCKS: usize = 64;
const BLOCK: u32 = 1;
const MARK: u32 = 2;
const SEAL: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sequence: u64, timestamp: i64) -> Record<'static> {
        Record {
            sequence: Sequence::new(sequence),
            timestamp,
            delay_ms: sequence % 2,
            trace_id: 0,
            own_id: None,
            attempts: 0,
            load_test: sequence.is_multiple_of(3),
            tagged: false,
            ext_version: 4,
            ext: &[],
            body: &[],
        }
    }

    #[test]
    fn entries_survive_encode_and_decode_and_notice_damage() {
        let mut index = Unwritten::default();
        index.add(&record(7, 3), 0, 4096);
        let (blocks, mark) = index.synced_to(Sequence::new(8), 4096, true);
        for entry in [Entry::Block(blocks[0]), Entry::Mark(mark)] {
            let mut bytes = entry.encode();
            assert_eq!(Entry::decode(&bytes), Some(entry));
            bytes[30] ^= 1;
            assert_eq!(Entry::decode(&bytes), None);
        }
    }

    #[test]
    fn blocks_count_what_they_hold_and_carry_the_highest_stamp() {
        let mut index = Unwritten::default();
        for sequence in 0..6 {
            let timestamp = if sequence == 2 { 900 } else { sequence as i64 };
            index.add(&record(sequence, timestamp), sequence * 2048, 2048);
        }
        let blocks: Vec<_> = index.blocks().copied().collect();
        assert_eq!(blocks.len(), 3);
        assert_eq!(
            blocks.iter().map(|block| block.highest).collect::<Vec<_>>(),
            [1, 900, 900]
        );
        assert_eq!(
            blocks.iter().map(|block| block.load_test).collect::<Vec<_>>(),
            [1, 1, 0]
        );
        assert!(
            blocks
                .iter()
                .all(|block| block.delayed == 1 && block.headers == 2)
        );
    }

    #[test]
    fn a_mark_leads_to_the_first_block_that_is_not_wholly_synced() {
        let mut index = Unwritten::default();
        for sequence in 0..5 {
            index.add(&record(sequence, 1), sequence * 2048, 2048);
        }
        let (blocks, mark) = index.synced_to(Sequence::new(3), 3 * 2048, false);
        assert_eq!(blocks.len(), 1);
        assert_eq!(
            (mark.first.get(), mark.offset, mark.end.get(), mark.len),
            (2, 4096, 3, 6144)
        );
    }
}
