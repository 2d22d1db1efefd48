//! Duty: what one message costs in the channel machine, from the log to its FIN; no network, no disk.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use nsqx_broker::channel::{Channel, ChannelRules, ConsumerRules, Deliveries, RecordSource, TakeLimit};
use nsqx_broker::clock::Moment;
use nsqx_broker::ids::ConnectionId;
use nsqx_broker::log::engine::Chunk;
use nsqx_broker::log::record::NewRecord;
use nsqx_broker::log::sequence::Sequence;

/// A log that lies in memory as equal chunks, which come again and again: the channel never reads the sequence
/// inside a record.
struct Chunks(Vec<Bytes>);

impl RecordSource for Chunks {
    fn cached(&self, from: Sequence) -> Option<Chunk> {
        let chunk = from.get() / PER_CHUNK;
        let bytes = self.0[chunk as usize % self.0.len()].clone();
        Some(Chunk {
            first: Sequence::new(chunk * PER_CHUNK),
            count: PER_CHUNK as u32,
            bytes,
        })
    }
}

fn chunks(count: u64) -> Chunks {
    let body = [7; 200];
    let chunk = |_| {
        let mut bytes = BytesMut::new();
        for sequence in 0..PER_CHUNK {
            NewRecord {
                timestamp: 1,
                body: &body,
                ..NewRecord::default()
            }
            .encode(Sequence::new(sequence), &mut bytes);
        }
        bytes.freeze()
    };
    Chunks((0..count).map(chunk).collect())
}

/// A channel with everything handed over and one hungry consumer.
fn loaded() -> Channel {
    let rules = ChannelRules {
        mem_queue_size: 10_000,
        max_msg_timeout: Duration::from_mins(15),
        max_req_timeout: Duration::from_hours(1),
        drop_oldest_beyond: None,
        durable: true,
    };
    let consumer = ConsumerRules {
        msg_timeout: Duration::from_mins(1),
        sample_rate: 0,
        return_on_leave: false,
        seed: 0,
    };
    let mut channel = Channel::new(rules, Sequence::new(0));
    channel.hand_over(Sequence::new(MESSAGES), MESSAGES, &[]);
    channel.subscribe(CONSUMER, consumer);
    channel.set_ready(CONSUMER, RDY);
    channel
}

/// Takes everything in turns of `TURN`, each followed by `finish`.
fn drain(channel: &mut Channel, log: &Chunks, finish: fn(&mut VecDeque<u64>, &mut Channel)) {
    let mut out = Deliveries::default();
    let mut held = VecDeque::with_capacity(RDY as usize);
    let limit = TakeLimit {
        messages: TURN,
        bytes: usize::MAX,
    };
    let (mut now, mut next) = (0, 0);
    while channel.counts().depth > 0 {
        now += 20_000;
        out.clear();
        channel.take(CONSUMER, Moment::from_nanos(now), limit, log, &mut out);
        // Records are met in order and none comes twice.
        for _ in black_box(&out.items) {
            held.push_back(next);
            next += 1;
        }
        finish(&mut held, channel);
    }
}

fn take_and_finish(c: &mut Criterion) {
    // What was just written lies in the processor's cache; a backlog does not.
    let (fresh, backlog) = (chunks(2), chunks(MESSAGES / PER_CHUNK));
    let mut group = c.benchmark_group("channel");
    group.throughput(Throughput::Elements(MESSAGES)).sample_size(10);
    for (name, log) in [("fresh", &fresh), ("backlog", &backlog)] {
        group.bench_function(format!("{name}, finished in order"), |b| {
            b.iter_batched(
                loaded,
                |mut channel| drain(&mut channel, log, finish_oldest),
                BatchSize::PerIteration,
            );
        });
    }
    group.bench_function("fresh, finished newest first", |b| {
        b.iter_batched(
            loaded,
            |mut channel| drain(&mut channel, &fresh, finish_newest),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// As many as make room for the next turn.
fn finish_oldest(held: &mut VecDeque<u64>, channel: &mut Channel) {
    while held.len() > RDY as usize - TURN {
        let Some(sequence) = held.pop_front() else { break };
        let _ = channel.finish(CONSUMER, Sequence::new(sequence));
    }
}

/// All at once when there is no room left.
fn finish_newest(held: &mut VecDeque<u64>, channel: &mut Channel) {
    if held.len() == RDY as usize {
        while let Some(sequence) = held.pop_back() {
            let _ = channel.finish(CONSUMER, Sequence::new(sequence));
        }
    }
}

const MESSAGES: u64 = 1_000_000;
const PER_CHUNK: u64 = 1_000;
const RDY: u64 = 2_500;
const TURN: usize = 100;
const CONSUMER: ConnectionId = ConnectionId(1);

criterion_group!(benches, take_and_finish);
criterion_main!(benches);
