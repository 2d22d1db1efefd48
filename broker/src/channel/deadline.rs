//! Duty: the timer wheel that timeouts and delays live by: which slot a deadline belongs to, which slot is next.
//! Comes in: ticks of 10 ms. Goes out: lists that are due. Must not know what the lists link.
//!
//! Seven levels of 64 slots. A deadline lies on the level of the highest base-64 digit in which it differs from
//! the wheel's time, so a level-0 slot holds one tick, and a slot of a higher level is dealt out to lower ones
//! when time reaches its start. Appending in order and dealing out in order keeps each tick first in, first out.

use std::time::Duration;

use crate::clock::Moment;

/// Length of one tick: how late a deadline may fire at most, apart from the caller's own lateness.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// The first tick that is not before `moment`: rounding up is what keeps deadlines from firing early.
pub(super) const fn tick_after(moment: Moment) -> u64 {
    moment.as_nanos().div_ceil(TICK_NANOS)
}

/// The last tick that is not after `moment`.
pub(super) const fn tick_before(moment: Moment) -> u64 {
    moment.as_nanos() / TICK_NANOS
}

/// The moment at which `tick` begins.
pub(super) const fn tick_start(tick: u64) -> Moment {
    Moment::from_nanos(tick.saturating_mul(TICK_NANOS))
}

/// First and last member of a linked list, or [`NONE`] twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) head: u32,
    pub(super) tail: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
    };

    pub(super) const fn is_empty(self) -> bool {
        self.head == NONE
    }
}

/// The link that leads nowhere.
pub(super) const NONE: u32 = u32::MAX;

/// Slots by time. Whoever owns the linked members keeps their links and tells [`Wheel::set`] what a slot holds.
#[derive(Debug, Default)]
pub(super) struct Wheel {
    /// Every deadline before this tick has been handed out.
    elapsed: u64,
    /// One bit per slot that is not empty.
    occupied: [u64; LEVELS],
    /// Level after level, grown to the highest level in use.
    slots: Vec<List>,
}

impl Wheel {
    /// An empty wheel whose time is the tick `elapsed`.
    pub(super) fn starting_at(elapsed: u64) -> Self {
        Self {
            elapsed,
            ..Self::default()
        }
    }

    /// The wheel's time.
    pub(super) const fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// The slot of `tick` as the wheel stands now. A tick that has passed belongs to the current slot.
    ///
    /// Stays the same for a member until the slot is handed out, so a member's slot can be found again from its
    /// deadline.
    pub(super) fn slot(&self, tick: u64) -> usize {
        let tick = tick.max(self.elapsed);
        let differing = (tick ^ self.elapsed) | 1;
        let level = (differing.ilog2() / BITS) as usize;
        level * SLOTS + ((tick >> (BITS as usize * level)) as usize & (SLOTS - 1))
    }

    /// What `slot` holds.
    pub(super) fn get(&self, slot: usize) -> List {
        self.slots.get(slot).copied().unwrap_or(List::EMPTY)
    }

    /// Replaces what `slot` holds.
    pub(super) fn set(&mut self, slot: usize, list: List) {
        if slot >= self.slots.len() {
            self.slots.resize((slot / SLOTS + 1) * SLOTS, List::EMPTY);
        }
        self.slots[slot] = list;
        let bit = 1 << (slot % SLOTS);
        if list.is_empty() {
            self.occupied[slot / SLOTS] &= !bit;
        } else {
            self.occupied[slot / SLOTS] |= bit;
        }
    }

    /// Takes the earliest list that begins at or before the tick `now`. Its members are due when their tick is
    /// not after [`Wheel::elapsed`]; the others are to be put into their new slots before the next call. `None`
    /// when there is no such list; the wheel's time is then `now`.
    pub(super) fn take_until(&mut self, now: u64) -> Option<List> {
        match self.earliest() {
            Some((slot, start)) if start <= now => {
                self.elapsed = self.elapsed.max(start);
                let list = self.get(slot);
                self.set(slot, List::EMPTY);
                Some(list)
            }
            _ => {
                self.elapsed = self.elapsed.max(now);
                None
            }
        }
    }

    /// When [`Wheel::take_until`] finds a list again.
    pub(super) fn next(&self) -> Option<Moment> {
        self.earliest().map(|(_, start)| tick_start(start))
    }

    /// Bytes allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<List>()
    }

    /// Lower levels hold nothing but what lies before every slot of the levels above them.
    fn earliest(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|slots| *slots != 0)?;
        let slot = self.occupied[level].trailing_zeros() as usize;
        let width = BITS as usize * level;
        let above = self.elapsed >> (width + BITS as usize) << (width + BITS as usize);
        Some((level * SLOTS + slot, above | (slot as u64) << width))
    }
}

const TICK_NANOS: u64 = TICK.as_nanos() as u64;
/// Bits of time that one level tells apart.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// 64^7 ticks are more than the clock's whole range of 2^64 nanoseconds.
const LEVELS: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Members are numbers; a slot's list is kept aside by its head.
    fn run(deadlines: &[u64], steps: &[u64]) -> Vec<(u64, u64)> {
        let mut wheel = Wheel::default();
        let mut lists: std::collections::HashMap<u32, Vec<u64>> = std::collections::HashMap::new();
        let mut made = 0;
        let mut put = |wheel: &mut Wheel, lists: &mut std::collections::HashMap<u32, Vec<u64>>, tick: u64| {
            let slot = wheel.slot(tick);
            let list = wheel.get(slot);
            if list.is_empty() {
                wheel.set(
                    slot,
                    List {
                        head: made,
                        tail: made,
                    },
                );
                lists.insert(made, vec![tick]);
                made += 1;
            } else {
                lists.entry(list.head).or_default().push(tick);
            }
        };
        for tick in deadlines {
            put(&mut wheel, &mut lists, *tick);
        }
        let mut fired = Vec::new();
        let mut now = 0;
        for step in steps {
            now += step;
            while let Some(list) = wheel.take_until(now) {
                for tick in lists.remove(&list.head).unwrap() {
                    if tick <= wheel.elapsed() {
                        fired.push((tick, now));
                    } else {
                        put(&mut wheel, &mut lists, tick);
                    }
                }
            }
        }
        fired
    }

    proptest! {
        #[test]
        fn every_deadline_fires_at_the_first_step_that_reaches_it(
            deadlines in proptest::collection::vec(prop_oneof![0_u64..200, 0_u64..10_000, 0_u64..30_000_000], 0..60),
            steps in proptest::collection::vec(prop_oneof![1_u64..100, 1_u64..300_000], 0..60),
        ) {
            let fired = run(&deadlines, &steps);
            let mut expected = Vec::new();
            let (mut before, mut now) = (None, 0);
            for step in &steps {
                now += step;
                let mut due: Vec<u64> =
                    deadlines.iter().copied().filter(|tick| *tick <= now && before.is_none_or(|past| *tick > past)).collect();
                due.sort_unstable();
                expected.extend(due.into_iter().map(|tick| (tick, now)));
                before = Some(now);
            }
            prop_assert_eq!(fired, expected);
        }
    }

    #[test]
    fn the_wheel_reaches_the_end_of_the_clock() {
        let last = tick_before(Moment::from_nanos(u64::MAX));
        assert_eq!(run(&[last], &[last - 1, 1]), [(last, last)]);
    }

    #[test]
    fn ticks_round_away_from_early() {
        assert_eq!(tick_after(Moment::from_nanos(1)), 1);
        assert_eq!(tick_after(Moment::from_nanos(10_000_000)), 1);
        assert_eq!(tick_before(Moment::from_nanos(19_999_999)), 1);
    }
}
