//! Speed of writing messages to consumers.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nsqx_proto::dialect::Dialect;
use nsqx_proto::message::{Delivery, Detail, Header, IdForm, Layout, MessageId, put_message};

const MESSAGES: u64 = 1_000;

fn messages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    group.throughput(Throughput::Elements(MESSAGES));
    let extended = Layout {
        extended: true,
        detail: true,
        dialect: Dialect::Youzan,
        ..Layout::default()
    };
    for (name, layout, form) in [
        ("message plain", Layout::default(), IdForm::Hex),
        ("message extended", extended, IdForm::Binary),
    ] {
        let body = [b'x'; 200];
        let mut out = Vec::with_capacity(1 << 20);
        group.bench_function(name, |bench| {
            bench.iter(|| {
                out.clear();
                for sequence in 0..MESSAGES {
                    let message = Delivery {
                        timestamp: 1_700_000_000_000_000_000,
                        attempts: 1,
                        id: MessageId::in_form(form, black_box(sequence) << 20, 0),
                        header: Header::Json(br#"{"region":"cn"}"#),
                        detail: Detail::default(),
                        body: &body,
                    };
                    put_message(&mut out, layout, &message);
                }
                black_box(&out);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, messages);
criterion_main!(benches);
