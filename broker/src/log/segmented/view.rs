//! Duty: what of a log there is to read: its segments and the sequences that are absent. Comes in: new segments,
//! gaps. Goes out: which segment to read, counts. Must not know what is in memory, nor how files are read.

use std::sync::Arc;

use super::segment::Segment;
use crate::log::absent::Absent;
use crate::log::sequence::{Sequence, SequenceRange};

/// A log's segments and gaps.
#[derive(Default)]
pub(super) struct View {
    /// In order of their base.
    pub(super) segments: Vec<Arc<Segment>>,
    /// Sequences without records.
    pub(super) absent: Absent,
    /// True when `absent` was changed since it was last saved.
    pub(super) absent_changed: bool,
}

/// Where to read.
pub(super) struct Spot {
    /// The segment.
    pub(super) segment: Arc<Segment>,
    /// The first sequence that may be there.
    pub(super) from: Sequence,
    /// No sequence from here on belongs to the answer.
    pub(super) bound: Sequence,
}

impl View {
    /// Where the first record at or after `from` can be, in a log that can be read up to `end`.
    pub(super) fn spot(&self, from: Sequence, end: Sequence) -> Option<Spot> {
        let mut from = self.absent.skip(from);
        let at = self.segments.partition_point(|segment| segment.base <= from);
        for (at, segment) in self.segments.iter().enumerate().skip(at.saturating_sub(1)) {
            from = self.absent.skip(from.max(segment.base));
            let next = self.segments.get(at + 1).map_or(Sequence::MAX, |next| next.base);
            if from < segment.extent().end.min(next) {
                return (from < end).then(|| Spot {
                    segment: Arc::clone(segment),
                    from,
                    bound: end.min(next).min(self.absent.next(from)),
                });
            }
        }
        None
    }

    /// The sequences in `range` have no record.
    pub(super) fn forget(&mut self, range: SequenceRange) {
        self.absent_changed |= self.absent.insert(range);
    }

    /// The oldest record in a log that can be read up to `end`.
    pub(super) fn oldest(&self, end: Sequence) -> Sequence {
        self.segments
            .first()
            .map_or(end, |segment| self.absent.skip(segment.base).min(end))
    }

    /// Number of records in `range` of a log that can be read up to `end`.
    pub(super) fn count(&self, range: SequenceRange, end: Sequence) -> u64 {
        let oldest = self.oldest(end);
        let range = SequenceRange::new(range.start.max(oldest), range.end.min(end));
        range.len() - self.absent.overlap(range)
    }
}
