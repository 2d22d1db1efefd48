//! Duty: a channel on a small log in memory, driven in virtual time the way a broker drives it.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::channel::{
    Channel, ChannelRules, ConsumerCounts, ConsumerRules, Deliveries, RecordSource, SettleError, TakeLimit,
    Taken,
};
use crate::clock::Moment;
use crate::ids::ConnectionId;
use crate::log::engine::Chunk;
use crate::log::record::{NewRecord, Record};
use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::cursor::{CursorDelta, StoredCursor};

/// The first sequence of every test log: not a multiple of anything.
pub(super) const START: u64 = 1_000_003;

/// Records by sequence; those below `cached_from` are "on disk".
#[derive(Debug, Default)]
pub(super) struct TestLog {
    records: BTreeMap<u64, Vec<u8>>,
    pub(super) end: u64,
    pub(super) cached_from: u64,
    /// Records of one chunk at most.
    pub(super) chunk: usize,
}

impl TestLog {
    pub(super) fn new() -> Self {
        Self {
            end: START,
            chunk: 7,
            ..Self::default()
        }
    }

    pub(super) fn append(&mut self, new: NewRecord<'_>) -> u64 {
        let mut bytes = Vec::new();
        new.encode(Sequence::new(self.end), &mut bytes);
        self.records.insert(self.end, bytes);
        self.end += 1;
        self.end - 1
    }

    pub(super) fn skip(&mut self, count: u64) {
        self.end += count;
    }

    pub(super) fn remove(&mut self, sequence: u64) {
        self.records.remove(&sequence);
    }

    pub(super) fn read(&self, from: Sequence) -> Option<Chunk> {
        let mut bytes = Vec::new();
        let (first, _) = self.records.range(from.get()..).next()?;
        let mut count = 0;
        while let Some(record) = self.records.get(&(first + count))
            && count < self.chunk as u64
        {
            bytes.extend_from_slice(record);
            count += 1;
        }
        Some(Chunk {
            first: Sequence::new(*first),
            count: count as u32,
            bytes: Bytes::from(bytes),
        })
    }

    pub(super) fn count(&self, range: SequenceRange) -> u64 {
        self.records
            .range(range.start.get()..range.end.get().max(range.start.get()))
            .count() as u64
    }
}

impl RecordSource for TestLog {
    fn cached(&self, from: Sequence) -> Option<Chunk> {
        if from.get() < self.cached_from {
            None
        } else {
            self.read(from)
        }
    }
}

/// A delivered message as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Got {
    pub(super) sequence: u64,
    pub(super) attempts: u16,
}

pub(super) const RULES: ChannelRules = ChannelRules {
    mem_queue_size: 10_000,
    max_msg_timeout: Duration::from_mins(15),
    max_req_timeout: Duration::from_hours(1),
    drop_oldest_beyond: None,
    durable: true,
};

pub(super) const CONSUMER: ConsumerRules = ConsumerRules {
    msg_timeout: Duration::from_mins(1),
    sample_rate: 0,
    return_on_leave: false,
    seed: 1,
};

pub(super) struct Bed {
    pub(super) channel: Channel,
    pub(super) log: TestLog,
    pub(super) now: Moment,
    out: Deliveries,
}

impl Bed {
    pub(super) fn new() -> Self {
        Self::with_rules(RULES)
    }

    pub(super) fn with_rules(rules: ChannelRules) -> Self {
        Self {
            channel: Channel::new(rules, Sequence::new(START)),
            log: TestLog::new(),
            now: Moment::from_nanos(123_456_789),
            out: Deliveries::default(),
        }
    }

    /// Appends and hands over `count` plain records; answers the first sequence.
    pub(super) fn publish(&mut self, count: u64) -> u64 {
        let first = self.log.end;
        for _ in 0..count {
            self.log.append(NewRecord {
                body: b"body",
                ..NewRecord::default()
            });
        }
        self.channel.hand_over(Sequence::new(self.log.end), count, &[]);
        first
    }

    /// Appends and hands over one record with a delay.
    pub(super) fn publish_delayed(&mut self, delay: Duration) -> u64 {
        let delay_ms = delay.as_millis() as u64;
        let sequence = self.log.append(NewRecord {
            delay_ms,
            body: b"later",
            ..NewRecord::default()
        });
        let announced = (Sequence::new(sequence), self.now + delay);
        self.channel
            .hand_over(Sequence::new(self.log.end), 1, &[announced]);
        sequence
    }

    /// Appends and hands over one record with a delay and says nothing of when it is due.
    pub(super) fn append_delayed(&mut self, delay: Duration) -> u64 {
        let delay_ms = delay.as_millis() as u64;
        let sequence = self.log.append(NewRecord {
            delay_ms,
            ..NewRecord::default()
        });
        self.channel.hand_over(Sequence::new(self.log.end), 1, &[]);
        sequence
    }

    pub(super) fn announce(&mut self, sequence: u64, due: Moment) {
        self.channel
            .hand_over(Sequence::new(self.log.end), 0, &[(Sequence::new(sequence), due)]);
    }

    pub(super) fn consumer_counts(&self, consumer: u64) -> ConsumerCounts {
        self.channel.consumer_counts(ConnectionId(consumer)).unwrap()
    }

    pub(super) fn subscribe(&mut self, consumer: u64, ready: u64) {
        self.subscribe_as(consumer, ready, CONSUMER);
    }

    pub(super) fn subscribe_as(&mut self, consumer: u64, ready: u64, rules: ConsumerRules) {
        self.channel.subscribe(ConnectionId(consumer), rules);
        self.channel.set_ready(ConnectionId(consumer), ready);
    }

    /// One call of `take` without limits.
    pub(super) fn take(&mut self, consumer: u64) -> Vec<Got> {
        self.take_at_most(consumer, usize::MAX, usize::MAX).1
    }

    pub(super) fn take_at_most(&mut self, consumer: u64, messages: usize, bytes: usize) -> (Taken, Vec<Got>) {
        self.out.clear();
        let limit = TakeLimit { messages, bytes };
        let taken = self
            .channel
            .take(ConnectionId(consumer), self.now, limit, &self.log, &mut self.out);
        let got = self.out.items.iter().map(|item| {
            let bytes = &self.out.chunks[item.chunk as usize][item.offset as usize..];
            let (record, _) = Record::decode_checked(bytes).unwrap();
            Got {
                sequence: record.sequence.get(),
                attempts: item.attempts,
            }
        });
        let got: Vec<Got> = got.collect();
        assert_eq!(got.len(), taken.messages);
        (taken, got)
    }

    /// Wakes and lets take until nobody is woken any more; answers who got what.
    pub(super) fn run(&mut self) -> Vec<(u64, Got)> {
        let mut all = Vec::new();
        loop {
            while let Some(ConnectionId(consumer)) = self.channel.wake_next() {
                all.extend(self.take(consumer).into_iter().map(|got| (consumer, got)));
            }
            let Some(asked) = self.channel.wanted() else {
                return all;
            };
            let chunk = self.log.read(asked);
            self.channel.supply(asked, chunk);
        }
    }

    /// Lets time pass in steps of the channel's own deadlines, without anybody taking.
    pub(super) fn sleep(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(deadline) = self.channel.next_deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.channel.advance(self.now);
        }
        self.now = until;
    }

    pub(super) fn finish(&mut self, consumer: u64, sequence: u64) -> Result<(), SettleError> {
        self.channel
            .finish(ConnectionId(consumer), Sequence::new(sequence))
    }

    pub(super) fn requeue(
        &mut self,
        consumer: u64,
        sequence: u64,
        delay: Duration,
    ) -> Result<(), SettleError> {
        self.channel
            .requeue(ConnectionId(consumer), Sequence::new(sequence), delay, self.now)
    }

    pub(super) fn touch(&mut self, consumer: u64, sequence: u64) -> Result<(), SettleError> {
        self.channel
            .touch(ConnectionId(consumer), Sequence::new(sequence), self.now)
    }
}

/// Applies deltas as a store does, and insists that they are no broader than they must be.
pub(super) fn apply(stored: &mut StoredCursor, delta: CursorDelta) {
    if delta.reset {
        *stored = StoredCursor::default();
    }
    stored.floor = delta.floor;
    for block in delta.blocks {
        stored.blocks.retain(|known| known.number != block.number);
        stored.blocks.push(block);
    }
    let first = delta.floor.get() / crate::store::cursor::BLOCK;
    stored.blocks.retain(|block| block.number >= first);
    for unsettled in delta.unsettled {
        stored
            .unsettled
            .retain(|known| known.sequence != unsettled.sequence);
        stored.unsettled.push(unsettled);
    }
    for sequence in delta.settled {
        let before = stored.unsettled.len();
        stored.unsettled.retain(|known| known.sequence != sequence);
        assert!(
            stored.unsettled.len() < before,
            "{sequence} was never stored as unsettled"
        );
    }
}
