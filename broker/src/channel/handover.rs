//! Duty: what enters the channel and what is taken out of it wholesale: hand-over, empty, seek, the bound of
//! ephemeral channels. Must not know why a record is delayed or how the log is laid out.

use super::cursor::{Cursor, Dropped};
use super::delay::Deferred;
use super::finished::Finished;
use super::{Channel, Moment, Sequence};

impl Channel {
    /// Records below `end` can be delivered now; `records` is how many really lie between the last `end` and this
    /// one (gaps do not count).
    ///
    /// `delayed` announces delayed records below `end` with the moment each is due. Every delayed record must be
    /// announced once after its hand-over, and again after a restart or seek: until then it is counted in `depth`
    /// and not delivered. Announcements may come later than the hand-over, with an unchanged `end`; what was
    /// announced before, delivered or finished is left alone.
    pub fn hand_over(&mut self, end: Sequence, records: u64, delayed: &[(Sequence, Moment)]) {
        if end > self.cursor.end() {
            self.cursor.hand_over(end, records);
            self.totals.message_count += records;
        }
        for (sequence, due) in delayed {
            if self.cursor.set_aside(*sequence) {
                let deferred = Deferred {
                    sequence: *sequence,
                    due: *due,
                    attempts: 0,
                    stored: false,
                };
                self.due.insert(deferred);
            }
        }
        self.drop_excess();
    }

    /// Drops everything that was handed over, in flight and deferred included (nsq-tcp 4.13).
    pub fn empty(&mut self) {
        self.start_over(self.cursor.end(), 0);
    }

    /// Goes to `to`, at most to the end of what was handed over, with `records` records between the two. Drops
    /// what is in flight, returned and deferred, as [`Channel::empty`] does; everything from `to` on is
    /// delivered anew. Delayed records in the range must be announced again.
    pub fn seek(&mut self, to: Sequence, records: u64) {
        self.start_over(to, records);
    }

    /// Keeps an ephemeral channel within its bound: the oldest waiting message goes, never one in flight.
    pub(super) fn drop_excess(&mut self) {
        let Some(base) = self.rules.drop_oldest_beyond else {
            return;
        };
        let bound = base.max(self.consumers.ready());
        while self.depth() > bound {
            let returned = self
                .returned
                .front()
                .filter(|front| front.sequence < self.cursor.next());
            if let Some(front) = returned {
                self.drop_returned(front.sequence, front.stored);
                continue;
            }
            match self.cursor.drop_oldest() {
                Some(Dropped::One(sequence)) => {
                    self.totals.dropped += 1;
                    self.finish_message(sequence, false);
                }
                Some(Dropped::Many(range, count)) => {
                    self.totals.dropped += count;
                    self.finished.insert_gap(range);
                }
                None => break,
            }
        }
    }

    fn drop_returned(&mut self, sequence: Sequence, stored: bool) {
        self.returned.pop();
        if self.reread_wanted == Some(sequence) {
            self.reread_wanted = None;
        }
        self.totals.dropped += 1;
        self.finish_message(sequence, stored);
    }

    fn start_over(&mut self, floor: Sequence, records: u64) {
        let end = self.cursor.end();
        let floor = floor.min(end);
        self.totals.lost += self.cursor.lost();
        self.cursor = Cursor::new(floor, end, records);
        self.finished = Finished::new(floor);
        self.in_flight.clear();
        self.own_ids.clear();
        self.returned.clear();
        self.reread.clear();
        self.reread_wanted = None;
        self.due.clear();
        self.consumers.end_all_flights();
        self.changes.reset();
        self.drop_excess();
    }
}
