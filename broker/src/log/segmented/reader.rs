//! Duty: reads records from segment files and verifies them; steps over damage and remembers it. Comes in:
//! sequences, times. Goes out: chunks, delayed records. Must not know how records got there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::BytesMut;

use super::segment::Segment;
use super::topic::SegmentedLog;
use super::view::Spot;
use super::walk::{Step, Walk};
use crate::log::engine::{Chunk, DelayedRecord, LogError, TopicLog};
use crate::log::record::{FIXED, Record, RecordError};
use crate::log::sequence::{Sequence, SequenceRange};

/// Where the latest reads ended: those who read on need no index.
#[derive(Default)]
pub(super) struct Hints {
    known: [Hint; HINTS],
    next: usize,
}

#[derive(Clone, Copy, Default)]
struct Hint {
    base: Sequence,
    sequence: Sequence,
    offset: u64,
}

/// What a read of one segment found.
enum Found {
    /// Records, and the offset behind them.
    Chunk(Chunk, u64),
    /// No record in the asked range.
    Nothing,
    /// Bytes at this offset, where the record with this sequence or a later one should be, are none.
    Damage(u64, Sequence),
}

impl SegmentedLog {
    /// [`TopicLog::read`] of the records below `end`.
    pub(super) fn read_from(
        &self,
        from: Sequence,
        end: Sequence,
        max_bytes: usize,
    ) -> Result<Option<Chunk>, LogError> {
        let mut from = from;
        loop {
            if let Some(chunk) = self.tail.lock().read(from) {
                return Ok(Some(chunk.within(max_bytes)));
            }
            let Some(spot) = self.view.lock().spot(from, end) else {
                return Ok(None);
            };
            let found = match self.read_spot(&spot, max_bytes) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.report_damage(
                        &spot,
                        SequenceRange::new(spot.from, spot.bound),
                        "segment file missing",
                    );
                    continue;
                }
                found => found.map_err(|error| LogError::Read(self.describe("read", &error)))?,
            };
            match found {
                Found::Chunk(chunk, offset) => {
                    self.hints.lock().put(spot.segment.base, chunk.end(), offset);
                    return Ok(Some(chunk));
                }
                Found::Nothing => from = spot.bound,
                Found::Damage(offset, sequence) => {
                    from = self.step_over(&spot, offset, sequence)?;
                }
            }
        }
    }

    /// [`TopicLog::delayed`].
    pub(super) fn find_delayed(&self, range: SequenceRange) -> Result<Vec<DelayedRecord>, LogError> {
        let failed = |error| LogError::Read(self.describe("read", &error));
        let range = SequenceRange::new(range.start, range.end.min(self.end()));
        let (segments, absent) = {
            let view = self.view.lock();
            (view.segments.clone(), view.absent.clone())
        };
        let mut found = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            let next = segments.get(at + 1).map_or(Sequence::MAX, |next| next.base);
            let part = SequenceRange::new(range.start.max(segment.base), range.end.min(next));
            if part.is_empty() || segment.extent().end <= part.start {
                continue;
            }
            let blocks = match segment.blocks(part, |block| block.delayed > 0) {
                // Who reads the segment finds it missing and says so.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                blocks => blocks.map_err(failed)?,
            };
            for block in blocks {
                let file = segment.file().map_err(failed)?;
                let mut walk = Walk::new(&*file, block.offset, block.offset + u64::from(block.bytes));
                let mut expected = SequenceRange::new(block.first, part.end);
                loop {
                    let at_end = match walk.step(expected).map_err(failed)? {
                        Step::Record(record, ..) => {
                            expected.start = record.sequence.next();
                            let present = absent.skip(record.sequence) == record.sequence;
                            if record.delay_ms > 0 && part.contains(record.sequence) && present {
                                found.push(DelayedRecord::of(&record));
                            }
                            continue;
                        }
                        step => matches!(step, Step::End),
                    };
                    if at_end || !walk.resync(expected).map_err(failed)? {
                        break;
                    }
                }
            }
        }
        Ok(found)
    }

    /// [`TopicLog::seek_time`].
    pub(super) fn find_time(&self, unix_ns: i64) -> Result<Sequence, LogError> {
        let reaches = |segment: &&Arc<Segment>| segment.extent().highest >= unix_ns;
        let segment = self.view.lock().segments.iter().find(reaches).cloned();
        let Some(segment) = segment else {
            return Ok(self.end());
        };
        let mut from = match segment.reaching(unix_ns) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => segment.base,
            found => found.map_err(|error| LogError::Read(self.describe("read", &error)))?,
        };
        while let Some(chunk) = self.read(from, READ)? {
            if let Some(record) = chunk.records().find(|record| record.timestamp >= unix_ns) {
                return Ok(record.sequence);
            }
            from = chunk.end();
        }
        Ok(self.end())
    }

    fn read_spot(&self, spot: &Spot, max_bytes: usize) -> io::Result<Found> {
        let segment = &spot.segment;
        let known = self.hints.lock().get(segment.base, spot.from);
        let offset = match known {
            Some(offset) => offset,
            None => segment.locate(spot.from)?,
        };
        read_segment(segment, offset, spot.from..spot.bound, max_bytes)
    }

    /// Looks for the next record behind damage; answers the sequence to go on from.
    fn step_over(&self, spot: &Spot, offset: u64, expected: Sequence) -> Result<Sequence, LogError> {
        let failed = |error| LogError::Read(self.describe("read", &error));
        let extent = spot.segment.extent();
        let file = spot.segment.file().map_err(failed)?;
        let mut walk = Walk::new(&*file, offset, extent.len);
        let within = SequenceRange::new(expected, extent.end);
        let mut next = extent.end.min(self.end());
        if walk.resync(within).map_err(failed)?
            && let Step::Record(record, offset, _) = walk.step(within).map_err(failed)?
        {
            next = record.sequence;
            self.hints
                .lock()
                .put(spot.segment.base, next.max(spot.from), offset);
        }
        self.report_damage(spot, SequenceRange::new(expected, next), "bad bytes");
        Ok(next.max(spot.from))
    }

    /// The records in `range` are lost: counts them and never looks for them again. Unless the segment went,
    /// or another took its place, while it was being read.
    fn report_damage(&self, spot: &Spot, range: SequenceRange, what: &str) {
        let lost = {
            let mut view = self.view.lock();
            let now = view.spot(spot.from, spot.bound);
            if now.is_none_or(|now| !Arc::ptr_eq(&now.segment, &spot.segment)) {
                return;
            }
            let lost = range.len() - view.absent.overlap(range);
            view.forget(range);
            lost
        };
        if lost > 0 {
            self.damaged.fetch_add(lost, Ordering::Relaxed);
            let folder = self.home.folder.display();
            tracing::error!(%folder, from = %range.start, to = %range.end, records = lost, what, "records lost");
        }
    }
}

impl Hints {
    fn get(&self, base: Sequence, sequence: Sequence) -> Option<u64> {
        let known = self
            .known
            .iter()
            .find(|hint| hint.base == base && hint.sequence == sequence)?;
        (known.offset > 0).then_some(known.offset)
    }

    fn put(&mut self, base: Sequence, sequence: Sequence, offset: u64) {
        self.known[self.next] = Hint {
            base,
            sequence,
            offset,
        };
        self.next = (self.next + 1) % HINTS;
    }

    /// Forgets everything: segments were replaced.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Reads about `max_bytes` of the records of `wanted` from `offset` on, where a record begins at or before them.
fn read_segment(
    segment: &Segment,
    offset: u64,
    wanted: std::ops::Range<Sequence>,
    max_bytes: usize,
) -> io::Result<Found> {
    let file = segment.file()?;
    let len = segment.extent().len;
    let mut at = offset;
    let mut size = max_bytes + BLOCK_SLACK;
    let mut expected = wanted.start;
    while at < len {
        let mut buffer = BytesMut::zeroed((size as u64).min(len - at) as usize);
        let filled = file.read_at(&mut buffer, at)?;
        let ends_early = filled < buffer.len();
        buffer.truncate(filled);
        let mut run = Run::default();
        let stopped = run.collect(&buffer, &wanted, max_bytes);
        if run.count > 0 {
            let bytes = buffer.freeze().slice(run.start..run.end);
            let (first, count) = (run.first, run.count);
            return Ok(Found::Chunk(Chunk { first, count, bytes }, at + run.end as u64));
        }
        at += run.start as u64;
        expected = run.skipped_to.unwrap_or(expected);
        match stopped {
            Stopped::Short(needed) if !ends_early && needed as u64 <= len - at => size = needed.max(size),
            Stopped::Short(_) if at == len => {}
            Stopped::Short(_) | Stopped::Bad => return Ok(Found::Damage(at, expected)),
            Stopped::Beyond => return Ok(Found::Nothing),
        }
    }
    // The segment has a record at or after the wanted ones, but its file ends before.
    Ok(Found::Damage(len, expected))
}

/// Dense verified records in a buffer.
#[derive(Default)]
struct Run {
    first: Sequence,
    count: u32,
    start: usize,
    end: usize,
    /// The sequence after the last record that was too early.
    skipped_to: Option<Sequence>,
}

/// Why a run ends.
enum Stopped {
    /// Enough, or a record that does not belong to it.
    Beyond,
    /// The buffer ends before the next record, which has this many bytes as far as is known.
    Short(usize),
    /// The next bytes are no record.
    Bad,
}

impl Run {
    fn collect(&mut self, buffer: &[u8], wanted: &std::ops::Range<Sequence>, max_bytes: usize) -> Stopped {
        loop {
            let rest = &buffer[self.end..];
            let (record, length) = match Record::decode_checked(rest) {
                Ok(read) => read,
                Err(RecordError::Short) => {
                    return Stopped::Short(Record::whole_len(rest).unwrap_or(FIXED));
                }
                Err(_) => return Stopped::Bad,
            };
            if record.sequence < wanted.start && self.count == 0 {
                self.end += length;
                self.start = self.end;
                self.skipped_to = Some(record.sequence.next());
                continue;
            }
            let follows = self.count == 0 || record.sequence == self.first + u64::from(self.count);
            let fits = self.count == 0 || self.end + length - self.start <= max_bytes;
            if !follows || !fits || !wanted.contains(&record.sequence) {
                return Stopped::Beyond;
            }
            if self.count == 0 {
                self.first = record.sequence;
            }
            self.count += 1;
            self.end += length;
        }
    }
}

/// Bytes to read where the caller does not say.
const READ: usize = 256 << 10;
/// What may lie between the place an index leads to and the record that is looked for.
const BLOCK_SLACK: usize = 8 << 10;
const HINTS: usize = 8;
