//! What an append with its flush costs, and what reading back costs, on the real file system.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use nsqx_broker::clock::Clock;
use nsqx_broker::log::engine::Retention;
use nsqx_broker::log::engine::{DelayedRecord, Durability, LogError, TailWatch, TopicLog};
use nsqx_broker::log::record::NewRecord;
use nsqx_broker::log::segmented::{EngineOptions, LogOptions, SegmentedEngine, SegmentedLog};
use nsqx_broker::log::sequence::Sequence;
use tempfile::TempDir;

struct Deaf;

impl TailWatch for Deaf {
    fn advanced(&self, _end: Sequence, _delayed: &[DelayedRecord]) {}
    fn health(&self, _state: Result<(), &LogError>) {}
}

struct Bench {
    folder: TempDir,
    engine: SegmentedEngine,
    next: u64,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let engine = SegmentedEngine::start(EngineOptions::new(folder.path().into(), Clock::start()));
        Self {
            folder,
            engine: engine.expect("an engine"),
            next: 0,
        }
    }

    /// A new log; the one before it is deleted, so that the disk does not fill up.
    fn log(&mut self) -> Arc<SegmentedLog> {
        if self.next > 0 {
            self.engine.remove(self.next).expect("a deleted log");
        }
        self.next += 1;
        let options = LogOptions {
            start: Sequence::default(),
            at_least: Sequence::default(),
            durability: Durability::Interval,
            retention: Retention::default(),
            watch: Arc::new(Deaf),
        };
        self.engine.open(self.next, options).expect("a log")
    }
}

fn fill(log: &SegmentedLog, batches: usize, batch: usize) {
    let record = NewRecord {
        timestamp: 1_700_000_000_000_000_000,
        body: &[7; 200],
        ..NewRecord::default()
    };
    let records = vec![record; batch];
    for _ in 0..batches {
        black_box(log.append(&records).expect("an open log"));
        log.flush();
    }
}

fn read_back(log: &SegmentedLog, read: impl Fn(Sequence) -> Option<nsqx_broker::log::engine::Chunk>) -> u64 {
    let mut from = log.oldest();
    let mut bytes = 0;
    while let Some(chunk) = read(from) {
        bytes += chunk.bytes.len() as u64;
        from = chunk.end();
    }
    bytes
}

fn append(criterion: &mut Criterion) {
    let mut bench = Bench::new();
    let mut group = criterion.benchmark_group("append and flush, 200 bytes");
    group.sample_size(10);
    for (name, batches, batch) in [("batches of 100", 2000, 100), ("single records", 20_000, 1)] {
        group.throughput(Throughput::Elements((batches * batch) as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || bench.log(),
                |log| fill(&log, batches, batch),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn read(criterion: &mut Criterion) {
    let mut bench = Bench::new();
    let mut group = criterion.benchmark_group("read back, 200 bytes");
    group.sample_size(10);
    let records = 40_000;
    group.throughput(Throughput::Elements(records));
    for (name, batch) in [
        ("from memory, batches of 100", 100),
        ("from memory, single records", 1),
    ] {
        let log = bench.log();
        fill(&log, records as usize / batch, batch);
        group.bench_function(name, |bencher| {
            bencher.iter(|| read_back(&log, |from| log.read_cached(from)));
        });
    }
    let records = 400_000;
    group.throughput(Throughput::Elements(records));
    let log = bench.log();
    fill(&log, records as usize / 100, 100);
    group.bench_function("from files", |bencher| {
        bencher.iter(|| read_back(&log, |from| log.read(from, 256 << 10).expect("readable records")));
    });
    group.finish();
    drop(bench.folder);
}

criterion_group!(benches, append, read);
criterion_main!(benches);
