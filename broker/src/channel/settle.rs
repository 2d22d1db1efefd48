//! Duty: how a flight ends: FIN, REQ, timeout, a consumer that leaves; and how TOUCH prolongs it. Checks who owns
//! the message. Must not know the texts of commands.

use std::time::Duration;

use super::changes::Waiting;
use super::delay::Deferred;
use super::in_flight::Flight;
use super::order::Returned;
use super::{Channel, ConnectionId, Moment, Sequence};

/// Why FIN, REQ or TOUCH failed. The text is the end of the answer (nsq-tcp 2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettleError {
    /// No consumer has the message.
    #[error("ID not in flight")]
    NotInFlight,
    /// Another consumer has it.
    #[error("client does not own message")]
    NotOwner,
}

impl Channel {
    /// FIN: the message is done.
    pub fn finish(&mut self, consumer: ConnectionId, message: Sequence) -> Result<(), SettleError> {
        let flight = self.in_flight.remove(message, self.consumers.row(consumer))?;
        self.consumers.get_mut(flight.consumer).counts.finish_count += 1;
        self.leave_flight(flight);
        self.totals.finish_count += 1;
        self.finish_message(message, flight.stored);
        Ok(())
    }

    /// REQ: the message comes again, after `delay` if that is not zero.
    pub fn requeue(
        &mut self,
        consumer: ConnectionId,
        message: Sequence,
        delay: Duration,
        now: Moment,
    ) -> Result<(), SettleError> {
        let flight = self.in_flight.remove(message, self.consumers.row(consumer))?;
        self.consumers.get_mut(flight.consumer).counts.requeue_count += 1;
        self.leave_flight(flight);
        self.totals.requeue_count += 1;
        let delay = delay.min(self.rules.max_req_timeout);
        if delay.is_zero() {
            self.come_back(message, flight.attempts, flight.stored);
            self.drop_excess();
        } else {
            let due = now + delay;
            let waiting = Waiting {
                attempts: flight.attempts,
                due: Some(due),
            };
            let stored = self.changes.waits(message, flight.stored, waiting);
            self.due.insert(Deferred {
                sequence: message,
                due,
                attempts: flight.attempts,
                stored,
            });
        }
        Ok(())
    }

    /// TOUCH: the message may be kept for another message timeout from `now`, but no longer than
    /// [`super::ChannelRules::max_msg_timeout`] from its delivery (C-65).
    pub fn touch(
        &mut self,
        consumer: ConnectionId,
        message: Sequence,
        now: Moment,
    ) -> Result<(), SettleError> {
        let flight = self.in_flight.get(message).ok_or(SettleError::NotInFlight)?;
        if self.consumers.row(consumer) != Some(flight.consumer) {
            return Err(SettleError::NotOwner);
        }
        let timeout = self.consumers.get(flight.consumer).rules.msg_timeout;
        self.in_flight
            .postpone(message, now, timeout, self.rules.max_msg_timeout);
        Ok(())
    }

    /// Ends what has timed out and what was deferred until now, never early. True when anything came back.
    pub fn advance(&mut self, now: Moment) -> bool {
        let mut came_back = false;
        while let Some(flight) = self.in_flight.pop_expired(now) {
            self.totals.timeout_count += 1;
            self.leave_flight(flight);
            self.come_back(flight.sequence, flight.attempts, flight.stored);
            came_back = true;
        }
        while let Some(deferred) = self.due.pop_due(now) {
            // The store knows when it was due and how often it was delivered: nothing new for it.
            self.wait_for_turn(deferred.sequence, deferred.attempts, deferred.stored);
            came_back = true;
        }
        if came_back {
            self.drop_excess();
        }
        came_back
    }

    /// Removes a consumer. What it has in flight stays so until its timeout, or comes back at once, as its rules
    /// say.
    pub fn unsubscribe(&mut self, consumer: ConnectionId) {
        let Some(row) = self.consumers.unsubscribe(consumer) else {
            return;
        };
        if self.consumers.get(row).rules.return_on_leave {
            let mut held: Vec<Flight> = self
                .in_flight
                .iter()
                .filter(|flight| flight.consumer == row)
                .collect();
            held.sort_unstable_by_key(|flight| flight.sequence);
            for flight in held {
                if self.in_flight.remove(flight.sequence, Some(row)).is_err() {
                    continue;
                }
                self.leave_flight(flight);
                self.come_back(flight.sequence, flight.attempts.wrapping_sub(1), flight.stored);
            }
        }
        if self.consumers.is_empty() {
            self.cursor.release();
            self.reread.clear();
        }
        self.drop_excess();
    }

    /// What every end of a flight has in common.
    fn leave_flight(&mut self, flight: Flight) {
        self.consumers.end_flight(flight.consumer);
        if flight.own_id {
            self.own_ids.remove(flight.sequence);
        }
    }

    /// The message waits for its next delivery, and the store is to know.
    fn come_back(&mut self, sequence: Sequence, attempts: u16, stored: bool) {
        let stored = self
            .changes
            .waits(sequence, stored, Waiting { attempts, due: None });
        self.wait_for_turn(sequence, attempts, stored);
    }

    /// The message gets its turn behind what is fresh now, but not behind a whole backlog.
    pub(super) fn wait_for_turn(&mut self, sequence: Sequence, attempts: u16, stored: bool) {
        let ahead = self.rules.mem_queue_size.max(1);
        let behind = Sequence::new(self.cursor.next().get().saturating_add(ahead));
        let turn = behind.min(self.cursor.end());
        self.returned.push(Returned {
            sequence,
            turn,
            attempts,
            stored,
        });
    }
}
