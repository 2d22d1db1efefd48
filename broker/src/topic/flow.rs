//! Duty: decides which records of a topic are handed over to its channels (architecture 3, "Hand-over"). Comes
//! in: pausing, channels coming and going, the log's growing end. Goes out: ranges to hand over. Pure; must not
//! know channels, locks or the log.

use crate::log::engine::DelayedRecord;
use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::catalogue::Hold;

/// A topic's hand-over position and what holds it back.
#[derive(Debug)]
pub struct Flow {
    handed_over: Sequence,
    end: Sequence,
    paused: bool,
    starting: bool,
    channels: usize,
    held: Vec<DelayedRecord>,
}

/// When the delay of a record began, in nanoseconds since the Unix epoch: with its publish, or with the end of the one of
/// `holds` that it was caught in (C-51).
pub fn delay_start(record: &DelayedRecord, holds: &[Hold]) -> i64 {
    let hold = holds.iter().find(|hold| hold.range.contains(record.sequence));
    hold.map_or(record.published, |hold| hold.ended)
}

/// Records that all channels of the topic get now.
#[derive(Debug, PartialEq, Eq)]
pub struct HandOver {
    /// The records, gaps included.
    pub range: SequenceRange,
    /// Those of them that are to be held back by their own delay, which starts now.
    pub delayed: Vec<DelayedRecord>,
    /// True when the records had been held back by the topic, so that their delay starts later than their stamp.
    pub was_held: bool,
}

impl Flow {
    /// A topic whose log ends at `end` and whose channels have been given everything below `handed_over`. It holds
    /// records back until [`Flow::start`]. `held` are the delayed records from `handed_over` on.
    pub fn new(handed_over: Sequence, end: Sequence, paused: bool, held: Vec<DelayedRecord>) -> Self {
        Self {
            handed_over,
            end,
            paused,
            starting: true,
            channels: 0,
            held,
        }
    }

    /// First sequence that no channel has been given.
    pub fn handed_over(&self) -> Sequence {
        self.handed_over
    }

    /// What the topic itself still holds, gaps included.
    pub fn held_back(&self) -> SequenceRange {
        SequenceRange::new(self.handed_over, self.end)
    }

    /// True while new records go straight on to the channels.
    pub fn is_flowing(&self) -> bool {
        !self.paused && !self.starting && self.channels > 0
    }

    /// True while the topic is paused.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// The log has grown up to `end`. News of two growths may come in either order.
    pub fn advance(&mut self, end: Sequence, delayed: &[DelayedRecord]) -> Option<HandOver> {
        if end <= self.end && delayed.is_empty() {
            return None;
        }
        self.end = self.end.max(end);
        if self.is_flowing() {
            return Some(self.hand_over(delayed.to_vec(), false));
        }
        self.held.extend_from_slice(delayed);
        None
    }

    /// All channels that were known are there: records may flow.
    pub fn start(&mut self) -> Option<HandOver> {
        self.starting = false;
        self.release()
    }

    /// Pauses or resumes the topic.
    pub fn set_paused(&mut self, paused: bool) -> Option<HandOver> {
        self.paused = paused;
        self.release()
    }

    /// The topic has this many channels now.
    pub fn set_channels(&mut self, channels: usize) -> Option<HandOver> {
        self.channels = channels;
        self.release()
    }

    /// Forgets what the topic holds back below `end`, which the log has.
    pub fn drop_below(&mut self, end: Sequence) {
        self.handed_over = self.handed_over.max(end);
        self.held.retain(|record| record.sequence >= end);
    }

    /// Forgets the oldest records that are held back, so that no more than `bound` are left; answers whether some went.
    pub fn keep_newest(&mut self, bound: u64) -> bool {
        let surplus = self.held_back().len().saturating_sub(bound);
        if surplus == 0 {
            return false;
        }
        let oldest = self.handed_over + surplus;
        self.handed_over = oldest;
        self.held.retain(|record| record.sequence >= oldest);
        true
    }

    fn release(&mut self) -> Option<HandOver> {
        if !self.is_flowing() || self.held_back().is_empty() {
            return None;
        }
        let held = std::mem::take(&mut self.held);
        Some(self.hand_over(held, true))
    }

    fn hand_over(&mut self, delayed: Vec<DelayedRecord>, was_held: bool) -> HandOver {
        let range = self.held_back();
        self.handed_over = self.end;
        HandOver {
            range,
            delayed,
            was_held,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Sequence = Sequence::new(100);

    fn flow() -> Flow {
        let mut flow = Flow::new(START, START, false, Vec::new());
        assert_eq!(flow.start(), None);
        flow
    }

    fn delayed(sequence: u64) -> DelayedRecord {
        DelayedRecord {
            sequence: Sequence::new(sequence),
            published: 0,
            delay_ms: 5,
        }
    }

    fn handed(from: u64, to: u64, delayed: Vec<DelayedRecord>, was_held: bool) -> HandOver {
        let range = SequenceRange::new(Sequence::new(from), Sequence::new(to));
        HandOver {
            range,
            delayed,
            was_held,
        }
    }

    #[test]
    fn c_71_the_first_channel_gets_what_waited_and_a_later_one_does_not() {
        let mut flow = flow();
        assert_eq!(flow.advance(Sequence::new(103), &[delayed(101)]), None);
        assert_eq!(flow.held_back().len(), 3);
        assert_eq!(
            flow.set_channels(1),
            Some(handed(100, 103, vec![delayed(101)], true))
        );
        assert_eq!(flow.set_channels(2), None);
        assert_eq!(flow.handed_over(), Sequence::new(103));
    }

    #[test]
    fn c_74_a_paused_topic_holds_and_resuming_releases() {
        let mut flow = flow();
        flow.set_channels(1);
        assert_eq!(
            flow.advance(Sequence::new(101), &[]),
            Some(handed(100, 101, vec![], false))
        );
        assert_eq!(flow.set_paused(true), None);
        assert_eq!(flow.advance(Sequence::new(105), &[]), None);
        assert_eq!(flow.set_paused(false), Some(handed(101, 105, vec![], true)));
    }

    #[test]
    fn messages_pile_up_again_when_the_last_channel_goes() {
        let mut flow = flow();
        flow.set_channels(1);
        flow.set_channels(0);
        assert_eq!(flow.advance(Sequence::new(102), &[]), None);
        let dropped = flow.held_back();
        assert_eq!(dropped.len(), 2);
        flow.advance(Sequence::new(103), &[delayed(102)]);
        flow.drop_below(dropped.end);
        assert_eq!(
            flow.set_channels(1),
            Some(handed(102, 103, vec![delayed(102)], true))
        );
    }

    #[test]
    fn a_bounded_topic_keeps_its_newest_messages() {
        let mut flow = flow();
        flow.advance(Sequence::new(110), &[delayed(101), delayed(109)]);
        assert!(flow.keep_newest(3));
        assert!(!flow.keep_newest(3));
        assert_eq!(
            flow.set_channels(1),
            Some(handed(107, 110, vec![delayed(109)], true))
        );
    }

    #[test]
    fn nothing_flows_before_the_start() {
        let mut flow = Flow::new(START, Sequence::new(102), false, vec![delayed(100)]);
        assert_eq!(flow.set_channels(1), None);
        assert_eq!(flow.start(), Some(handed(100, 102, vec![delayed(100)], true)));
    }
}
