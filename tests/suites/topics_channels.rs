//! C-71 to C-74, C-76, C-79, C-80: how messages get from topics into channels (nsq-tcp 4.1, 4.10 to 4.12).

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::wire::{Event, command};
use e2e::{Broker, Node, statements};

statements! {
    both {
        c_71_the_first_channel_gets_the_backlog,
        c_72_each_channel_gets_each_message,
        c_73_a_paused_channel_delivers_after_unpause,
        c_74_a_paused_topic_keeps_its_messages,
        c_76_an_ephemeral_channel_keeps_as_many_as_fit_in_memory,
        c_79_an_emptied_channel_forgets_what_was_in_flight,
        c_80_sample_rate_99_keeps_everything,
        c_80_sample_rate_50_keeps_about_half,
    }
}

fn c_71_the_first_channel_gets_the_backlog(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    for number in 0..5 {
        client.publish("t", format!("{number}"));
    }
    node.await_topic("t", |topic| topic["depth"] == 5);
    let mut first = node.consumer("t", "first");
    node.await_channel("t", "first", |channel| channel["depth"] == 5);
    let mut second = node.consumer("t", "second");
    first.ready(10);
    second.ready(10);
    let bodies: BTreeSet<_> = first
        .messages(5)
        .into_iter()
        .map(|message| message.body)
        .collect();
    assert_eq!(bodies.len(), 5);
    client.publish("t", "new");
    assert_eq!(second.message().body, b"new");
}

fn c_72_each_channel_gets_each_message(broker: &Broker) {
    let node = broker.start();
    let mut one = node.consumer("t", "one");
    let mut two = node.consumer("t", "two");
    node.client().publish("t", "body");
    one.ready(1);
    let first = one.message();
    one.requeue(&first.id, 0);
    assert_eq!(one.message().attempts, 2);
    two.ready(1);
    assert_eq!(two.message(), first);
}

fn c_73_a_paused_channel_delivers_after_unpause(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(1);
    node.http()
        .post("/channel/pause?topic=t&channel=c", "")
        .expect_done();
    node.client().publish("t", "body");
    consumer.expect_silence(Duration::from_millis(300));
    assert_eq!(node.channel("t", "c")["depth"], 1);
    node.http()
        .post("/channel/unpause?topic=t&channel=c", "")
        .expect_done();
    assert_eq!(consumer.message_within(Duration::from_secs(1)).body, b"body");
}

fn c_74_a_paused_topic_keeps_its_messages(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    node.http().post("/topic/pause?topic=t", "").expect_done();
    node.client().publish("t", "body");
    consumer.expect_silence(Duration::from_millis(300));
    let topic = node.topic("t");
    assert_eq!(
        (&topic["depth"], &topic["channels"][0]["depth"]),
        (&1.into(), &0.into())
    );
    node.http().post("/topic/unpause?topic=t", "").expect_done();
    assert_eq!(consumer.message_within(Duration::from_secs(1)).body, b"body");
}

fn c_76_an_ephemeral_channel_keeps_as_many_as_fit_in_memory(broker: &Broker) {
    let node = broker.node().flag("mem-queue-size", 100).start();
    let mut consumer = node.consumer("t", "c#ephemeral");
    for number in 0..150 {
        consumer.publish("t", format!("{number}"));
    }
    node.await_topic("t", |topic| {
        topic["depth"] == 0 && topic["channels"][0]["depth"] == 100
    });
    consumer.ready(200);
    consumer.messages(100);
    consumer.expect_silence(Duration::from_millis(500));
}

fn c_79_an_emptied_channel_forgets_what_was_in_flight(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    consumer.publish("t", "in flight");
    consumer.publish("t", "queued");
    consumer.ready(1);
    let id = consumer.message().id;
    node.http()
        .post("/channel/empty?topic=t&channel=c", "")
        .expect_done();
    consumer.finish(&id);
    // The queued message may have been on its way while the channel was emptied.
    let frame = loop {
        let frame = consumer.frame();
        if !frame.is_message() {
            break frame;
        }
    };
    assert_eq!(
        frame.text(),
        format!("E_FIN_FAILED FIN {id} failed ID not in flight")
    );
    node.client().publish("t", "new");
    assert_eq!(consumer.message_within(Duration::from_secs(1)).body, b"new");
}

fn c_80_sample_rate_99_keeps_everything(broker: &Broker) {
    assert_eq!(sampled(broker, 99), SAMPLED_FROM);
}

fn c_80_sample_rate_50_keeps_about_half(broker: &Broker) {
    let kept = sampled(broker, 50);
    // 51 % of 2000 with a standard deviation of 22.4; five of them to each side.
    assert!((908..=1132).contains(&kept), "{kept} of {SAMPLED_FROM} were kept");
}

/// How many of the published messages a consumer with this sample rate receives; all are finished.
fn sampled(broker: &Broker, rate: u32) -> usize {
    let node: Node = broker.start();
    let mut consumer = node.consumer_with(&format!(r#"{{"sample_rate":{rate}}}"#), "t", "c");
    let bodies = vec![&b"body"[..]; SAMPLED_FROM];
    consumer.send(&command::publish_many("t", &bodies));
    consumer.expect_ok();
    consumer.ready(100);
    let mut kept = 0;
    while let Event::Frame(frame) = consumer.event(Duration::from_secs(1)) {
        consumer.finish(&frame.message().id);
        kept += 1;
    }
    node.await_channel("t", "c", |channel| {
        channel["depth"] == 0 && channel["in_flight_count"] == 0
    });
    kept
}

const SAMPLED_FROM: usize = 2000;
