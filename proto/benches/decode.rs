//! Speed of reading commands: one publish, a batch, a settling line.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nsqx_proto::command::{Command, NewMessage, SubscribeMode, encode};
use nsqx_proto::limits::Limits;
use nsqx_proto::message::IdForm;
use nsqx_proto::session::{Session, Step};
use nsqx_proto::{MessageId, TopicRef, Verb};

/// Commands in one buffer, as a full read brings them.
const COMMANDS: u64 = 1_000;

fn publishes(criterion: &mut Criterion) {
    let Ok(topic) = TopicRef::parse(b"orders.created") else {
        return;
    };
    let body = [b'x'; 200];
    let message = NewMessage {
        body: &body,
        ..NewMessage::default()
    };
    let mut single = Vec::new();
    for _ in 0..COMMANDS {
        encode::publish(&mut single, Verb::Pub, topic, None, &message);
    }
    let mut batch = Vec::new();
    encode::publish_batch(
        &mut batch,
        Verb::Mpub,
        topic,
        None,
        &vec![message; COMMANDS as usize],
    );

    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(COMMANDS));
    group.bench_function("pub", |bench| {
        bench.iter(|| drain(Session::new(Limits::default()), &single));
    });
    group.bench_function("mpub", |bench| {
        bench.iter(|| drain(Session::new(Limits::default()), &batch));
    });
    group.finish();
}

fn settles(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(COMMANDS));
    for (name, mode, form) in [
        ("fin hex", SubscribeMode::Plain, IdForm::Hex),
        ("fin binary", SubscribeMode::Advanced, IdForm::Binary),
    ] {
        let mut lines = Vec::new();
        (1..=COMMANDS).for_each(|id| encode::finish(&mut lines, MessageId::in_form(form, id << 20, 0)));
        let mut session = Session::new(Limits::default());
        session.subscribed(mode);
        group.bench_function(name, |bench| bench.iter(|| drain(session.clone(), &lines)));
    }
    let mut lines = Vec::new();
    (0..COMMANDS).for_each(|count| encode::ready(&mut lines, count));
    let mut session = Session::new(Limits::default());
    session.subscribed(SubscribeMode::Plain);
    group.bench_function("rdy", |bench| bench.iter(|| drain(session.clone(), &lines)));
    group.finish();
}

fn drain(mut session: Session, input: &[u8]) {
    let form = session.id_form();
    let mut rest = black_box(input);
    while let Step::Command { command, consumed } = session.next(rest) {
        match command {
            Command::Publish(publish) => publish.messages.for_each(|message| {
                black_box(message);
            }),
            Command::Finish { id } => {
                black_box(id.internal_id(form));
            }
            other => {
                black_box(other);
            }
        }
        rest = &rest[consumed..];
    }
    assert!(rest.is_empty());
}

criterion_group!(benches, publishes, settles);
criterion_main!(benches);
