//! Duty: which segments go once nobody needs their records. Comes in: the floor below which everything is
//! finished. Goes out: deleted segments. Must not know who finished what.

use std::sync::Arc;
use std::time::Duration;

use super::segment::Segment;
use super::topic::SegmentedLog;
use crate::log::sequence::{Sequence, SequenceRange};

/// How long finished records are kept. None of both: not at all. Both: as long as both allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Finished records are kept for this long after they were published.
    pub time: Option<Duration>,
    /// Finished records are kept up to this many bytes.
    pub bytes: Option<u64>,
}

impl Retention {
    /// True when a segment whose newest record was stamped `newest` stays, where it and what follows it below
    /// the floor have `finished` bytes.
    fn keeps(self, newest: i64, finished: u64, wall: i64) -> bool {
        let age = Duration::from_nanos(u64::try_from(wall.saturating_sub(newest)).unwrap_or(0));
        let young = self.time.is_none_or(|time| age < time);
        let small = self.bytes.is_none_or(|bytes| finished <= bytes);
        (self.time.is_some() || self.bytes.is_some()) && young && small
    }
}

impl SegmentedLog {
    /// Deletes segments of which no record lies at or above `floor`, oldest first, as retention allows.
    pub(super) fn remove_below(&self, floor: Sequence) {
        let retention = *self.retention.lock();
        let wall = self.services.options.clock.wall();
        let gone: Vec<Arc<Segment>> = {
            let mut view = self.view.lock();
            let sealed = |segment: &&Arc<Segment>| segment.extent().sealed && segment.extent().end <= floor;
            // The last segment stays: it tells the next start where the log ends.
            let older = view.segments.len().saturating_sub(1);
            let finished = view.segments[..older].iter().take_while(sealed);
            let finished: Vec<_> = finished.map(|segment| segment.extent()).collect();
            let mut bytes: u64 = finished.iter().map(|extent| extent.len).sum();
            let mut count = 0;
            for extent in finished {
                if retention.keeps(extent.highest, bytes, wall) {
                    break;
                }
                bytes -= extent.len;
                count += 1;
            }
            let gone: Vec<_> = view.segments.drain(..count).collect();
            if !gone.is_empty()
                && let Some(base) = view.segments.first().map(|first| first.base)
            {
                view.absent.forget_below(base);
                self.tail.lock().forget_below(base);
            }
            gone
        };
        for segment in gone {
            if let Err(error) = segment.remove() {
                let folder = self.home.folder.display();
                tracing::warn!(%folder, segment = %segment.base, %error, "segment not deleted before the next start");
            }
            let range = SequenceRange::new(segment.base, segment.extent().end);
            tracing::debug!(from = %range.start, to = %range.end, "segment deleted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_records_stay_while_young_and_few() {
        let retention = |seconds: Option<u64>, bytes| Retention {
            time: seconds.map(Duration::from_secs),
            bytes,
        };
        let wall = 100_000_000_000;
        assert!(!retention(None, None).keeps(wall, 1, wall));
        assert!(retention(Some(10), None).keeps(91_000_000_000, u64::MAX, wall));
        assert!(!retention(Some(10), None).keeps(90_000_000_000, 1, wall));
        assert!(retention(None, Some(5)).keeps(0, 5, wall));
        assert!(!retention(None, Some(5)).keeps(wall, 6, wall));
        assert!(!retention(Some(10), Some(5)).keeps(wall, 6, wall));
        assert!(retention(Some(10), None).keeps(wall + 1, 1, wall));
    }
}
