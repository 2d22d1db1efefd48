//! What a finished message pays for end-to-end percentiles when they are configured.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nsqx_broker::clock::Moment;
use nsqx_broker::metrics::latency::{LatencyWindow, summarize};

const SAMPLES: u64 = 1_000_000;

fn latency(criterion: &mut Criterion) {
    let window = LatencyWindow::new(Duration::from_mins(10), Moment::default());
    let mut group = criterion.benchmark_group("latency");
    group.throughput(Throughput::Elements(SAMPLES));
    group.bench_function("record", |bencher| {
        let mut window = window.clone();
        let mut nanos = 1;
        bencher.iter(|| {
            for at in 0..SAMPLES {
                // Spread over microseconds to minutes without a pattern that a predictor could learn.
                nanos = 6_364_136_223_846_793_005_u64.wrapping_mul(nanos).wrapping_add(1);
                window.record(Moment::from_nanos(at), black_box(nanos >> 28));
            }
        });
    });
    group.finish();
    criterion.bench_function("latency/summarize", |bencher| {
        let mut window = window.clone();
        window.record(Moment::default(), 1_000_000);
        bencher.iter(|| summarize([&mut window], black_box(&[1.0, 0.99, 0.95]), Moment::default()));
    });
}

criterion_group!(benches, latency);
criterion_main!(benches);
