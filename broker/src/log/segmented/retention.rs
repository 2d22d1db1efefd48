//! Duty: which segments go once nobody needs their records. Comes in: the floor below which everything is
//! finished. Goes out: deleted segments. Must not know who finished what.

use std::sync::Arc;

use super::segment::Segment;
use super::topic::SegmentedLog;
use crate::log::sequence::{Sequence, SequenceRange};

impl SegmentedLog {
    /// Deletes segments of which no record lies at or above `floor`, oldest first, as retention allows.
    pub(super) fn remove_below(&self, floor: Sequence) {
        let retention = *self.retention.lock();
        let wall = self.services.options.clock.wall();
        let (gone, base) = {
            let mut view = self.view.lock();
            let sealed = |segment: &&Arc<Segment>| segment.extent().sealed && segment.extent().end <= floor;
            // The last segment that survives a power cut stays: it tells the next start where the log ends.
            let durable = |segment: &Arc<Segment>| segment.extent().synced_len > 0;
            let older = view.segments.iter().rposition(durable).unwrap_or(0);
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
            let gone: Vec<Arc<Segment>> = view.segments.drain(..count).collect();
            let base = view
                .segments
                .first()
                .map_or(Sequence::default(), |first| first.base);
            view.absent.forget_below(base);
            (gone, base)
        };
        self.tail.lock().forget_below(base);
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
    use std::time::Duration;

    use crate::log::engine::Retention;

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
