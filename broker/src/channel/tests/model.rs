//! Duty: what a channel is to do, said as plainly as possible: one map from sequence to state, everything else by
//! looking at all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bed::{Got, RULES, START};
use crate::channel::{ChannelRules, SettleError};
use crate::clock::Moment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    /// Met by the cursor before its announcement.
    Unannounced,
    Returned {
        attempts: u16,
    },
    Deferred {
        attempts: u16,
    },
    InFlight {
        attempts: u16,
        consumer: u64,
    },
    Finished,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    /// First ten milliseconds at which it may end, and its place among those of the same.
    expires: (u64, u64),
    delivered: Moment,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ModelConsumer {
    pub(super) ready: u64,
    pub(super) msg_timeout: Duration,
    pub(super) return_on_leave: bool,
}

/// What a store would hold.
#[derive(Clone, Debug, Default)]
struct Stored {
    floor: u64,
    finished: BTreeSet<u64>,
    unsettled: BTreeMap<u64, (u16, Option<Moment>)>,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    rules: ChannelRules,
    states: BTreeMap<u64, State>,
    /// Records with a delay; whoever meets one before it is announced waits for that.
    pub(super) delayed: BTreeMap<u64, Moment>,
    base: u64,
    next: u64,
    pub(super) end: u64,
    /// Sequence and the place of the cursor at which its turn comes.
    returned: Vec<(u64, u64)>,
    /// By due time in milliseconds and order of arrival.
    deferred: BTreeMap<(u64, u64), u64>,
    flights: BTreeMap<u64, Flight>,
    arrivals: u64,
    pub(super) consumers: BTreeMap<u64, ModelConsumer>,
    pub(super) paused: bool,
    known: BTreeMap<u64, (u16, Option<Moment>)>,
    stored: Stored,
    pub(super) timeouts: u64,
    pub(super) dropped: u64,
}

impl Model {
    pub(super) fn new(rules: ChannelRules) -> Self {
        Self {
            rules,
            states: BTreeMap::new(),
            delayed: BTreeMap::new(),
            base: START,
            next: START,
            end: START,
            returned: Vec::new(),
            deferred: BTreeMap::new(),
            flights: BTreeMap::new(),
            arrivals: 0,
            consumers: BTreeMap::new(),
            paused: false,
            known: BTreeMap::new(),
            stored: Stored {
                floor: START,
                ..Stored::default()
            },
            timeouts: 0,
            dropped: 0,
        }
    }

    // Figures

    pub(super) fn depth(&self) -> u64 {
        self.count(|state| matches!(state, State::Fresh | State::Unannounced | State::Returned { .. }))
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.count(|state| matches!(state, State::InFlight { .. }))
    }

    pub(super) fn in_flight_of(&self, owner: u64) -> u64 {
        self.count(|state| matches!(state, State::InFlight { consumer, .. } if *consumer == owner))
    }

    pub(super) fn deferred(&self) -> u64 {
        self.count(|state| matches!(state, State::Deferred { .. }))
    }

    /// Something could be delivered now to a consumer with credit.
    pub(super) fn has_ready(&self) -> bool {
        !self.paused && self.depth() > self.count(|state| *state == State::Unannounced)
    }

    /// Some consumer has credit.
    pub(super) fn has_credit(&self) -> bool {
        self.consumers
            .iter()
            .any(|(id, consumer)| consumer.ready > self.in_flight_of(*id))
    }

    /// The first place that is neither finished nor a gap that the cursor has met.
    pub(super) fn floor(&self) -> u64 {
        let mut floor = self.base;
        let records = self
            .states
            .range(self.base..self.end)
            .map(|(sequence, state)| (*sequence, Some(*state)));
        for (sequence, state) in records.chain([(self.end, None)]) {
            let gap = floor.max(self.next);
            if gap < sequence {
                return gap;
            }
            if state != Some(State::Finished) {
                return sequence;
            }
            floor = sequence + 1;
        }
        floor
    }

    /// The message in flight that `pick` points at.
    pub(super) fn pick_flight(&self, pick: proptest::sample::Index) -> Option<(u64, u64)> {
        let all: Vec<(u64, u64)> = self
            .states
            .iter()
            .filter_map(|(sequence, state)| match state {
                State::InFlight { consumer, .. } => Some((*sequence, *consumer)),
                _ => None,
            })
            .collect();
        (!all.is_empty()).then(|| all[pick.index(all.len())])
    }

    // Inputs

    pub(super) fn hand_over(&mut self, end: u64, records: &[u64], announced: &[(u64, Moment)]) {
        self.end = end;
        self.states
            .extend(records.iter().map(|sequence| (*sequence, State::Fresh)));
        for (sequence, due) in announced {
            if let Some(State::Fresh | State::Unannounced) = self.states.get(sequence) {
                self.defer(*sequence, 0, *due);
                self.settle_cursor();
            }
        }
        self.drop_excess();
    }

    pub(super) fn set_ready(&mut self, consumer: u64, ready: u64) {
        if let Some(consumer) = self.consumers.get_mut(&consumer) {
            consumer.ready = ready;
        }
        self.drop_excess();
    }

    pub(super) fn unsubscribe(&mut self, consumer: u64) {
        let Some(ModelConsumer { return_on_leave, .. }) = self.consumers.remove(&consumer) else {
            return;
        };
        if return_on_leave {
            let held: Vec<(u64, u16)> = self
                .states
                .iter()
                .filter_map(|(sequence, state)| match state {
                    State::InFlight {
                        attempts,
                        consumer: owner,
                    } if *owner == consumer => Some((*sequence, *attempts)),
                    _ => None,
                })
                .collect();
            for (sequence, attempts) in held {
                self.flights.remove(&sequence);
                self.come_back(sequence, attempts.wrapping_sub(1));
            }
        }
        self.drop_excess();
    }

    /// What the consumer gets, in order, when it takes at most `limit`.
    pub(super) fn take(&mut self, consumer: u64, limit: usize, now: Moment) -> Vec<Got> {
        let mut got = Vec::new();
        let Some(ModelConsumer {
            ready, msg_timeout, ..
        }) = self.consumers.get(&consumer).copied()
        else {
            return got;
        };
        while got.len() < limit && self.in_flight_of(consumer) < ready && !self.paused {
            let Some((sequence, attempts)) = self.next_message() else {
                break;
            };
            let attempts = attempts.wrapping_add(1);
            self.states
                .insert(sequence, State::InFlight { attempts, consumer });
            self.settle_cursor();
            self.arrivals += 1;
            let expires = (tick_after(now + msg_timeout), self.arrivals);
            self.flights.insert(
                sequence,
                Flight {
                    expires,
                    delivered: now,
                },
            );
            got.push(Got { sequence, attempts });
        }
        got
    }

    /// The consumer got `sequence`: the returned message whose turn it is or, while that is being read, the first
    /// fresh one. Answers its attempts; `None` when neither it is.
    pub(super) fn take_this(&mut self, consumer: u64, sequence: u64, now: Moment) -> Option<u16> {
        let mut without_returned = self.clone();
        without_returned.returned.clear();
        let fresh = without_returned.take(consumer, 1, now);
        let mut whole = self.clone();
        let next = whole.take(consumer, 1, now);
        let (model, got) = if next.first().is_some_and(|got| got.sequence == sequence) {
            (whole, next)
        } else {
            without_returned.returned = std::mem::take(&mut self.returned);
            (without_returned, fresh)
        };
        *self = model;
        got.first()
            .filter(|got| got.sequence == sequence)
            .map(|got| got.attempts)
    }

    pub(super) fn finish(&mut self, consumer: u64, sequence: u64) -> Result<(), SettleError> {
        self.end_flight(consumer, sequence)?;
        self.set_finished(sequence);
        Ok(())
    }

    pub(super) fn requeue(
        &mut self,
        consumer: u64,
        sequence: u64,
        delay: Duration,
        now: Moment,
    ) -> Result<(), SettleError> {
        let attempts = self.end_flight(consumer, sequence)?;
        let delay = delay.min(RULES.max_req_timeout);
        if delay.is_zero() {
            self.come_back(sequence, attempts);
            self.drop_excess();
        } else {
            self.known.insert(sequence, (attempts, Some(now + delay)));
            self.defer(sequence, attempts, now + delay);
        }
        Ok(())
    }

    pub(super) fn touch(&mut self, consumer: u64, sequence: u64, now: Moment) -> Result<(), SettleError> {
        self.owned(consumer, sequence)?;
        let timeout = self.consumers[&consumer].msg_timeout;
        self.arrivals += 1;
        let arrivals = self.arrivals;
        let longest = self.rules.max_msg_timeout;
        let flight = self.flights.get_mut(&sequence).unwrap();
        let cap = tick_after(flight.delivered) + tick_after(Moment::default() + longest);
        flight.expires = (tick_after(now + timeout).min(cap), arrivals);
        Ok(())
    }

    pub(super) fn advance(&mut self, now: Moment) {
        let tick = now.as_nanos() / 10_000_000;
        let mut expired: Vec<((u64, u64), u64)> = self
            .flights
            .iter()
            .map(|(sequence, flight)| (flight.expires, *sequence))
            .collect();
        expired.retain(|((expires, _), _)| *expires <= tick);
        expired.sort_unstable();
        for (_, sequence) in expired {
            self.flights.remove(&sequence);
            let State::InFlight { attempts, .. } = self.states[&sequence] else {
                panic!("{sequence} has a timeout and is not in flight");
            };
            self.timeouts += 1;
            self.come_back(sequence, attempts);
        }
        while let Some(((due_ms, _), sequence)) = self.deferred.first_key_value().map(|(at, of)| (*at, *of)) {
            if due_ms.div_ceil(10) > tick {
                break;
            }
            self.deferred.pop_first();
            let State::Deferred { attempts } = self.states[&sequence] else {
                panic!("{sequence} is due and not deferred");
            };
            self.wait_for_turn(sequence, attempts);
        }
        self.drop_excess();
    }

    pub(super) fn empty(&mut self) {
        self.start_over(self.end);
        self.states
            .values_mut()
            .for_each(|state| *state = State::Finished);
    }

    pub(super) fn seek(&mut self, to: u64) {
        self.start_over(to);
        self.states.iter_mut().for_each(|(sequence, state)| {
            *state = if *sequence >= to {
                State::Fresh
            } else {
                State::Finished
            };
        });
        self.drop_excess();
    }

    pub(super) fn checkpoint(&mut self) {
        let finished = self.states.iter().filter(|(_, state)| **state == State::Finished);
        self.stored = Stored {
            floor: self.floor(),
            finished: finished.map(|(sequence, _)| *sequence).collect(),
            unsettled: self.known.clone(),
        };
    }

    /// The checkpoint that writes all anew: the store learns of the deliveries that are under way, of those
    /// messages that it knows.
    pub(super) fn full_checkpoint(&mut self) {
        for (sequence, state) in &self.states {
            if let (State::InFlight { attempts, .. }, Some(known)) = (state, self.known.get_mut(sequence)) {
                *known = (*attempts, None);
            }
        }
        self.checkpoint();
    }

    /// The checkpoint of a clean stop.
    pub(super) fn final_checkpoint(&mut self) {
        for (sequence, state) in &self.states {
            if let State::InFlight { attempts, .. } = state {
                self.known.insert(*sequence, (*attempts, None));
            }
        }
        self.checkpoint();
    }

    /// Everything is gone but the log and what was stored. Announcements are to be made again.
    pub(super) fn crash(&mut self, now: Moment) {
        let stored = self.stored.clone();
        let kept = (self.delayed.clone(), self.end, self.paused);
        let sequences: Vec<u64> = self.states.keys().copied().collect();
        *self = Self::new(self.rules);
        (self.delayed, self.end, self.paused) = kept;
        self.base = stored.floor;
        self.next = stored.floor;
        for sequence in sequences {
            let finished = sequence < stored.floor || stored.finished.contains(&sequence);
            self.states
                .insert(sequence, if finished { State::Finished } else { State::Fresh });
        }
        self.settle_cursor();
        self.base = self.floor();
        self.settle_cursor();
        // None of them is fresh any more when the first one gets its turn.
        for sequence in stored.unsettled.keys() {
            self.states.insert(*sequence, State::Unannounced);
        }
        self.settle_cursor();
        for (sequence, (attempts, due)) in &stored.unsettled {
            self.known.insert(*sequence, (*attempts, *due));
            self.restore_one(*sequence, *attempts, *due, now);
        }
        self.stored = stored;
    }

    fn restore_one(&mut self, sequence: u64, attempts: u16, due: Option<Moment>, now: Moment) {
        match due.filter(|due| *due > now) {
            Some(due) => self.defer(sequence, attempts, due),
            None => self.wait_for_turn(sequence, attempts),
        }
    }

    // Rules

    /// The returned message whose turn it is, else the first fresh one.
    fn next_message(&mut self) -> Option<(u64, u16)> {
        loop {
            self.settle_cursor();
            let fresh = self
                .states
                .range(self.next..self.end)
                .any(|(_, state)| *state == State::Fresh);
            if let Some((sequence, turn)) = self.returned.first().copied()
                && (turn <= self.next || !fresh)
            {
                self.returned.remove(0);
                let State::Returned { attempts } = self.states[&sequence] else {
                    panic!("{sequence} waits for its turn and was not returned");
                };
                return Some((sequence, attempts));
            }
            if self.next >= self.end {
                return None;
            }
            if !self.states.contains_key(&self.next) {
                self.next = self
                    .states
                    .range(self.next..)
                    .next()
                    .map_or(self.end, |(sequence, _)| *sequence);
            } else if self.delayed.contains_key(&self.next) {
                self.states.insert(self.next, State::Unannounced);
                self.next += 1;
            } else {
                return Some((self.next, 0));
            }
        }
    }

    /// The cursor stands at a fresh record, a gap or the end.
    fn settle_cursor(&mut self) {
        self.next = self.next.max(self.base);
        while let Some(state) = self.states.get(&self.next) {
            if *state == State::Fresh {
                break;
            }
            self.next += 1;
        }
    }

    fn come_back(&mut self, sequence: u64, attempts: u16) {
        self.known.insert(sequence, (attempts, None));
        self.wait_for_turn(sequence, attempts);
    }

    fn wait_for_turn(&mut self, sequence: u64, attempts: u16) {
        let turn = (self.next + self.rules.mem_queue_size.max(1)).min(self.end);
        self.states.insert(sequence, State::Returned { attempts });
        self.returned.push((sequence, turn));
    }

    fn defer(&mut self, sequence: u64, attempts: u16, due: Moment) {
        self.arrivals += 1;
        self.states.insert(sequence, State::Deferred { attempts });
        self.deferred
            .insert((due.as_nanos().div_ceil(1_000_000), self.arrivals), sequence);
    }

    fn owned(&self, consumer: u64, sequence: u64) -> Result<u16, SettleError> {
        match self.states.get(&sequence) {
            Some(State::InFlight {
                attempts,
                consumer: owner,
            }) if *owner == consumer && self.consumers.contains_key(&consumer) => Ok(*attempts),
            Some(State::InFlight { .. }) => Err(SettleError::NotOwner),
            _ => Err(SettleError::NotInFlight),
        }
    }

    fn end_flight(&mut self, consumer: u64, sequence: u64) -> Result<u16, SettleError> {
        let attempts = self.owned(consumer, sequence)?;
        self.flights.remove(&sequence);
        Ok(attempts)
    }

    fn set_finished(&mut self, sequence: u64) {
        self.states.insert(sequence, State::Finished);
        self.known.remove(&sequence);
        self.settle_cursor();
    }

    fn drop_excess(&mut self) {
        let Some(base) = self.rules.drop_oldest_beyond else {
            return;
        };
        let bound = base.max(self.consumers.values().map(|consumer| consumer.ready).sum());
        while self.depth() > bound {
            let oldest_returned = self.returned.first().map(|(sequence, _)| *sequence);
            let oldest_fresh = self
                .states
                .range(self.next..)
                .find(|(_, state)| **state == State::Fresh)
                .map(|(sequence, _)| *sequence);
            let oldest = oldest_returned
                .filter(|sequence| *sequence < self.next)
                .or(oldest_fresh);
            let Some(oldest) = oldest else {
                return;
            };
            self.returned.retain(|(sequence, _)| *sequence != oldest);
            self.dropped += 1;
            self.set_finished(oldest);
        }
    }

    fn start_over(&mut self, floor: u64) {
        self.base = floor;
        self.next = floor;
        self.returned.clear();
        self.deferred.clear();
        self.flights.clear();
        self.known.clear();
    }

    fn count(&self, of: impl Fn(&State) -> bool) -> u64 {
        self.states.values().filter(|state| of(state)).count() as u64
    }
}

fn tick_after(moment: Moment) -> u64 {
    moment.as_nanos().div_ceil(10_000_000)
}
