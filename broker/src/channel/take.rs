//! Duty: the hot way, from the log to a consumer: what is next, in flight with it, on to the connection. Must not
//! know frames.

use super::cursor::Met;
use super::delivery::{Deliveries, RecordSource, TakeLimit, Taken};
use super::in_flight::{Departure, Flight};
use super::order::Returned;
use super::reader::Found;
use super::{Channel, ConnectionId, Moment, Sequence};
use crate::log::record::Record;

/// What a consumer's turn needs for each message.
#[derive(Clone, Copy)]
struct Turn {
    row: u32,
    departure: Departure,
}

impl Channel {
    /// Hands the consumer what is next, as far as its credit and the limit go, and puts it in flight; adds it to
    /// `out`. The consumer is parked when it found nothing more or has no credit left.
    pub fn take<S: RecordSource + ?Sized>(
        &mut self,
        consumer: ConnectionId,
        now: Moment,
        limit: TakeLimit,
        source: &S,
        out: &mut Deliveries,
    ) -> Taken {
        let mut taken = Taken::default();
        let Some(row) = self.consumers.row(consumer) else {
            return taken;
        };
        self.consumers.begin_turn(row);
        let credit = self.consumers.get(row).credit();
        let most = limit.messages.min(usize::try_from(credit).unwrap_or(usize::MAX));
        let turn = Turn {
            row,
            departure: Departure::new(now, self.consumers.get(row).rules.msg_timeout),
        };
        self.in_flight.keep_time(now);
        let mut found_nothing = self.paused;
        while !found_nothing && taken.messages < most && (taken.bytes < limit.bytes || taken.messages == 0) {
            match self.deliver_next(turn, source, out) {
                Some(bytes) => {
                    taken.messages += 1;
                    taken.bytes += bytes;
                }
                None => found_nothing = true,
            }
        }
        let counts = &mut self.consumers.get_mut(row).counts;
        counts.in_flight += taken.messages as u64;
        counts.message_count += taken.messages as u64;
        taken.more = credit > taken.messages as u64 && !found_nothing && self.available() > 0;
        self.totals.delivered += taken.messages as u64;
        taken.full = self.paused || credit <= taken.messages as u64;
        if !taken.more {
            self.consumers.park(row);
        }
        taken
    }

    /// Delivers one message and answers its record's length.
    fn deliver_next<S: RecordSource + ?Sized>(
        &mut self,
        turn: Turn,
        source: &S,
        out: &mut Deliveries,
    ) -> Option<usize> {
        loop {
            if let Some(front) = self.next_returned() {
                if let Some(found) = self.find_returned(front, source)
                    && let Some(bytes) = self.deliver_returned(turn, front, found, out)
                {
                    return Some(bytes);
                }
                if self.next_returned().is_some() {
                    continue;
                }
            }
            match self.cursor.meet(source) {
                Met::Record(found) => {
                    if let Some(bytes) = self.deliver_fresh(turn, found, out) {
                        return Some(bytes);
                    }
                }
                Met::Gap(range) => self.finished.insert_gap(range),
                // The cursor may have moved on over what was set aside.
                Met::Nothing if self.next_returned().is_some() => {}
                Met::Nothing => return None,
            }
        }
    }

    /// The returned message whose turn it is, unless its record is still being read.
    pub(super) fn next_returned(&self) -> Option<Returned> {
        let front = self.returned.front()?;
        let its_turn = front.turn <= self.cursor.next() || self.cursor.unmet() == 0;
        (its_turn && self.reread_wanted.is_none()).then_some(front)
    }

    fn find_returned<S: RecordSource + ?Sized>(&mut self, front: Returned, source: &S) -> Option<Found> {
        if let Some(found) = self.reread.find(front.sequence) {
            return Some(found);
        }
        match source.cached(front.sequence) {
            Some(chunk) if chunk.end() > front.sequence => {
                self.reread.load(chunk);
                let found = self.reread.find(front.sequence);
                if found.is_none() {
                    self.lose_returned();
                }
                found
            }
            _ => {
                self.reread_wanted = Some(front.sequence);
                None
            }
        }
    }

    /// `None` when the consumer's sampling removed the message.
    fn deliver_returned(
        &mut self,
        turn: Turn,
        front: Returned,
        found: Found,
        out: &mut Deliveries,
    ) -> Option<usize> {
        self.returned.pop();
        if !self.consumers.get_mut(turn.row).samples_in() {
            self.reread.step(found);
            self.sample_out(front.sequence, front.stored);
            return None;
        }
        let mut flight = Flight {
            sequence: front.sequence,
            attempts: front.attempts.wrapping_add(1),
            consumer: turn.row,
            stored: front.stored,
            own_id: false,
        };
        let bytes = self.reread.bytes();
        if !found.outline.plain
            && let Ok((record, _)) = Record::decode(&bytes[found.offset..])
        {
            flight.own_id = record.own_id.is_some();
            if front.attempts == 0 {
                flight.attempts = record.attempts.wrapping_add(1);
            }
            if let Some(id) = record.own_id {
                self.own_ids.insert(id, front.sequence);
            }
        }
        out.push(bytes, found.offset as u32, flight.attempts);
        self.reread.step(found);
        self.in_flight.insert(flight, turn.departure);
        Some(found.outline.length)
    }

    /// `None` when the message is not to be delivered now.
    fn deliver_fresh(&mut self, turn: Turn, found: Found, out: &mut Deliveries) -> Option<usize> {
        let sequence = self.cursor.next();
        let mut flight = Flight {
            sequence,
            attempts: 1,
            consumer: turn.row,
            stored: false,
            own_id: false,
        };
        if !found.outline.plain && !self.prepare_special(found, &mut flight) {
            return None;
        }
        if !self.consumers.get_mut(turn.row).samples_in() {
            self.cursor.accept(found);
            self.own_ids.remove(sequence);
            self.sample_out(sequence, false);
            return None;
        }
        out.push(self.cursor.bytes(), found.offset as u32, flight.attempts);
        self.cursor.accept(found);
        self.in_flight.insert(flight, turn.departure);
        Some(found.outline.length)
    }

    /// Looks at what only few records have. False when the record must wait for its announcement.
    #[cold]
    fn prepare_special(&mut self, found: Found, flight: &mut Flight) -> bool {
        let Ok((record, _)) = Record::decode(&self.cursor.bytes()[found.offset..]) else {
            return true;
        };
        if record.delay_ms > 0 {
            self.cursor.await_announcement(found);
            return false;
        }
        flight.attempts = record.attempts.wrapping_add(1);
        if let Some(id) = record.own_id {
            flight.own_id = true;
            self.own_ids.insert(id, flight.sequence);
        }
        true
    }

    fn sample_out(&mut self, sequence: Sequence, stored: bool) {
        self.totals.sampled_out += 1;
        self.finish_message(sequence, stored);
    }

    /// The returned message in front has no record any more.
    pub(super) fn lose_returned(&mut self) {
        if let Some(front) = self.returned.pop() {
            self.totals.lost += 1;
            self.finish_message(front.sequence, front.stored);
        }
    }
}
