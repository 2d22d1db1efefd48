//! Duty: what a channel may cost in memory and how late its timers may be (architecture, "Bounds"). Counts what
//! the machine has allocated, never the process.

use std::time::Duration;

use super::bed::{Bed, CONSUMER, RULES, START};
use crate::channel::{
    Channel, ChannelRules, ConsumerRules, Deliveries, RecordSource, TakeLimit, deadline::TICK,
};
use crate::clock::Moment;
use crate::ids::ConnectionId;
use crate::log::engine::Chunk;
use crate::log::record::NewRecord;
use crate::log::sequence::Sequence;

const ME: ConnectionId = ConnectionId(1);
const ALL: TakeLimit = TakeLimit {
    messages: usize::MAX,
    bytes: usize::MAX,
};

/// A log that gives the same empty record for every sequence.
struct Endless(bytes::Bytes);

impl Endless {
    fn new() -> Self {
        let mut bytes = Vec::new();
        (0..100).for_each(|_| NewRecord::default().encode(Sequence::new(0), &mut bytes));
        Self(bytes.into())
    }
}

impl RecordSource for Endless {
    fn cached(&self, from: Sequence) -> Option<Chunk> {
        Some(Chunk {
            first: from,
            count: 100,
            bytes: self.0.clone(),
        })
    }
}

/// A channel with `count` messages in flight with consumer 1.
fn with_in_flight(count: u64, now: Moment) -> Channel {
    let mut channel = Channel::new(RULES, Sequence::new(START));
    channel.subscribe(ME, CONSUMER);
    channel.set_ready(ME, count);
    channel.hand_over(Sequence::new(START + count), count, &[]);
    let taken = channel.take(ME, now, ALL, &Endless::new(), &mut Deliveries::default());
    assert_eq!(taken.messages as u64, count);
    channel
}

fn per_message(channel: &Channel, count: u64) -> f64 {
    channel.memory_bytes() as f64 / count as f64
}

#[test]
fn a_message_in_flight_costs_at_most_48_bytes() {
    for count in [1_000, 4_096, 4_097, 65_537, 131_073, 200_000] {
        let channel = with_in_flight(count, Moment::default());
        let cost = per_message(&channel, count);
        assert!(cost <= 48.0, "{cost} bytes at {count}");
    }
}

#[test]
fn a_returned_message_costs_at_most_24_bytes_and_its_page() {
    let count = 100_000;
    let mut channel = with_in_flight(count, Moment::default());
    channel.advance(Moment::default() + CONSUMER.msg_timeout);
    assert_eq!((channel.counts().depth, channel.counts().in_flight), (count, 0));
    let _ = channel.checkpoint(0, Moment::default());
    let cost = per_message(&channel, count);
    assert!(
        cost <= 25.0,
        "{cost} bytes, what was in flight costs nothing any more"
    );
}

#[test]
fn a_deferred_message_costs_16_bytes_and_its_page() {
    let count = 300_000;
    let mut channel = Channel::new(RULES, Sequence::new(START));
    let due = |index: u64| Moment::default() + Duration::from_millis(3_600_000 + index / 10);
    let delayed: Vec<(Sequence, Moment)> = (0..count)
        .map(|index| (Sequence::new(START + index), due(index)))
        .collect();
    channel.hand_over(Sequence::new(START + count), count, &delayed);
    assert_eq!(channel.counts().deferred, count);
    let cost = per_message(&channel, count);
    // One bit of it says that the cursor is to step over the record.
    assert!(cost <= 17.5, "{cost} bytes");
    channel.advance(due(count / 2));
    let cost = channel.memory_bytes() as f64 / count as f64;
    assert!(cost <= 17.5 + 12.5, "{cost} bytes when the first half came back");
}

#[test]
fn a_finished_message_costs_at_most_a_bit_and_a_full_block_nothing() {
    let count = 10 * 65_536;
    let mut channel = with_in_flight(count, Moment::default());
    for sequence in (START + 1..START + count).filter(|sequence| sequence % 3 > 0) {
        channel.finish(ME, Sequence::new(sequence)).unwrap();
    }
    assert_eq!(channel.floor().get(), START);
    let sparse = channel.finished.memory_bytes() as u64;
    assert!(
        sparse <= count / 8 + 16 * 1024,
        "{sparse} bytes for {count} messages"
    );
    for sequence in (START + 1..START + count).filter(|sequence| sequence % 3 == 0) {
        channel.finish(ME, Sequence::new(sequence)).unwrap();
    }
    let full = channel.finished.memory_bytes();
    assert!(
        full <= 17 * 1024,
        "{full} bytes: only the first and the last block are not full"
    );
    channel.finish(ME, Sequence::new(START)).unwrap();
    assert_eq!(channel.floor().get(), START + count);
    let left = channel.finished.memory_bytes();
    assert!(
        left <= 8192 + 64,
        "{left} bytes: only the block of the floor is left"
    );
}

#[test]
fn an_empty_channel_gives_its_memory_back() {
    let mut channel = with_in_flight(100_000, Moment::default());
    channel.empty();
    assert_eq!(channel.memory_bytes(), 0);
}

#[test]
fn no_timer_is_early_and_none_is_later_than_its_slot_with_100_000_in_flight() {
    let start = Moment::from_nanos(1_234_567_891);
    let mut channel = Channel::new(RULES, Sequence::new(START));
    let log = Endless::new();
    let mut deadlines = std::collections::BTreeMap::new();
    let count = 100_000;
    channel.hand_over(Sequence::new(START + count), count, &[]);
    let mut out = Deliveries::default();
    // A thousand consumers with timeouts all over a minute take a hundred each, a little later every time.
    for consumer in 0..1000 {
        let msg_timeout = Duration::from_micros(1_000_000 + consumer * 59_123);
        let id = ConnectionId(consumer);
        channel.subscribe(
            id,
            ConsumerRules {
                msg_timeout,
                ..CONSUMER
            },
        );
        channel.set_ready(id, 100);
        let now = start + Duration::from_micros(consumer * 317);
        assert_eq!(channel.take(id, now, ALL, &log, &mut out).messages, 100);
        *deadlines.entry(now + msg_timeout).or_insert(0) += 100;
    }
    let mut fired = 0;
    let mut latest = Duration::ZERO;
    while let Some(now) = channel.next_deadline() {
        channel.advance(now);
        let total = channel.counts().timeout_count;
        while fired < total {
            let (deadline, messages) = deadlines.pop_first().unwrap();
            assert!(deadline <= now, "fired at {now:?}, due at {deadline:?}");
            latest = latest.max(now.since(deadline));
            fired += messages;
        }
        assert_eq!(fired, total, "consumers' messages fire together");
    }
    assert_eq!(fired, count);
    assert!(latest < TICK, "{latest:?} late");
}

#[test]
fn no_delay_is_early_and_none_is_later_than_its_slot_and_a_millisecond() {
    let mut bed = Bed::with_rules(ChannelRules {
        durable: false,
        ..RULES
    });
    let count = 50_000_u64;
    // Odd steps that spread the delays over two hours.
    let delay = |index: u64| Duration::from_micros(index * 7_919_993 % 7_200_000_000);
    let due: Vec<Moment> = (0..count).map(|index| bed.now + delay(index)).collect();
    let delayed: Vec<(Sequence, Moment)> = due
        .iter()
        .zip(START..)
        .map(|(due, sequence)| (Sequence::new(sequence), *due))
        .collect();
    bed.channel
        .hand_over(Sequence::new(START + count), count, &delayed);
    bed.channel.subscribe(ME, CONSUMER);
    bed.channel.set_ready(ME, count);
    let log = Endless::new();
    let mut out = Deliveries::default();
    let mut seen = 0;
    while let Some(now) = bed.channel.next_deadline() {
        bed.channel.advance(now);
        out.clear();
        bed.channel.take(ME, now, ALL, &log, &mut out);
        for sequence in bed
            .channel
            .in_flight
            .iter()
            .map(|flight| flight.sequence)
            .collect::<Vec<_>>()
        {
            let due = due[(sequence.get() - START) as usize];
            assert!(due <= now, "{sequence} at {now:?}, due at {due:?}");
            assert!(
                now.since(due) < TICK + Duration::from_millis(1),
                "{sequence} is late"
            );
            bed.channel.finish(ME, sequence).unwrap();
            seen += 1;
        }
    }
    assert_eq!(seen, count);
    assert_eq!(bed.channel.floor().get(), START + count);
}
