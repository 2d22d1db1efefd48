//! Duty: shows what a channel holds without changing anything. Must not know records or the wire.

use super::{Channel, Moment, Sequence};

/// Where a message is in its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Waits for its (next) delivery.
    Ready,
    /// Some consumer has it.
    InFlight,
    /// Waits for a time.
    Deferred,
}

/// A message as it stands in its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// Its record.
    pub sequence: Sequence,
    /// Deliveries so far.
    pub attempts: u16,
    /// When a deferred message is due.
    pub due: Option<Moment>,
}

impl Channel {
    /// At most `limit` messages that came back, are in flight or deferred. Of [`Place::Ready`] these are only the
    /// returned ones: fresh messages are all from [`Channel::next_fresh`] on that [`Channel::is_fresh`] does not refuse.
    pub fn peek(&self, place: Place, limit: usize) -> Vec<Peeked> {
        let returned = self.returned.iter().map(|message| Peeked {
            sequence: message.sequence,
            attempts: message.attempts,
            due: None,
        });
        let flying = self.in_flight.iter().map(|flight| Peeked {
            sequence: flight.sequence,
            attempts: flight.attempts,
            due: None,
        });
        let deferred = self.due.iter().map(|message| Peeked {
            sequence: message.sequence,
            attempts: message.attempts,
            due: Some(message.due),
        });
        match place {
            Place::Ready => returned.take(limit).collect(),
            Place::InFlight => flying.take(limit).collect(),
            Place::Deferred => deferred.take(limit).collect(),
        }
    }

    /// The next sequence that was never looked at.
    pub fn next_fresh(&self) -> Sequence {
        self.cursor.next()
    }

    /// False when the message at or after [`Channel::next_fresh`] is finished, deferred or returned already.
    pub fn is_fresh(&self, sequence: Sequence) -> bool {
        sequence < self.cursor.end() && !self.cursor.is_aside(sequence)
    }
}
