//! What ephemeral topics and channels occupy: nothing stores what they have finished, and still it must go (nsq-tcp 4.11).

use e2e::node::NodeSetup;
use e2e::wire::command;
use e2e::{Broker, Node, statements};

statements! {
    ours {
        an_ephemeral_topic_keeps_the_newest_messages_for_its_first_channel,
        an_ephemeral_channel_that_nobody_reads_stays_small,
        what_an_ephemeral_channel_has_finished_goes,
        a_topic_on_disk_does_not_grow_under_an_ephemeral_channel,
    }
}

fn an_ephemeral_topic_keeps_the_newest_messages_for_its_first_channel(broker: &Broker) {
    let node = bounded(broker).start();
    publish(&node, "t#ephemeral", 5000);
    let topic = node.topic("t#ephemeral");
    assert_eq!(topic["depth"], 100);
    assert_eq!(topic["message_count"], 5000);
    expect_small(&node);
    let mut consumer = node.consumer("t#ephemeral", "c#ephemeral");
    consumer.ready(100);
    let first = consumer.messages(100).remove(0);
    assert!(first.body.starts_with(b"4900 "), "{first:?}");
}

fn an_ephemeral_channel_that_nobody_reads_stays_small(broker: &Broker) {
    let node = bounded(broker).start();
    let consumer = node.consumer("t#ephemeral", "c#ephemeral");
    publish(&node, "t#ephemeral", 5000);
    expect_small(&node);
    assert_eq!(node.channel("t#ephemeral", "c#ephemeral")["depth"], 100);
    drop(consumer);
}

fn what_an_ephemeral_channel_has_finished_goes(broker: &Broker) {
    let node = bounded(broker).start();
    // A channel that is not ephemeral itself has no bound but what is finished.
    let mut consumer = node.consumer("t#ephemeral", "c");
    publish(&node, "t#ephemeral", 3000);
    assert_eq!(node.channel("t#ephemeral", "c")["depth"], 3000);
    consumer.ready(100);
    for _ in 0..3000 {
        let message = consumer.message();
        consumer.finish(&message.id);
    }
    node.await_topic("t#ephemeral", |topic| {
        topic["memory_bytes"].as_u64() < Some(100_000)
    });
}

fn a_topic_on_disk_does_not_grow_under_an_ephemeral_channel(broker: &Broker) {
    let node = broker.node().flag("max-bytes-per-file", 20_000).start();
    let mut consumer = node.consumer("t", "c#ephemeral");
    consumer.ready(100);
    publish(&node, "t", 500);
    for _ in 0..400 {
        let message = consumer.message();
        consumer.finish(&message.id);
    }
    node.await_topic("t", |topic| topic["disk_bytes"].as_u64() < Some(200_000));
}

fn bounded(broker: &Broker) -> NodeSetup {
    broker.node().flag("mem-queue-size", 100)
}

/// Publishes numbered messages of 1000 bytes.
fn publish(node: &Node, topic: &str, count: usize) {
    let mut client = node.client();
    for number in (0..count).step_by(50) {
        let bodies: Vec<Vec<u8>> = (number..number + 50)
            .map(|number| {
                let mut body = format!("{number} ").into_bytes();
                body.resize(1000, b'.');
                body
            })
            .collect();
        let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        client.send(&command::publish_many(topic, &bodies));
        client.expect_ok();
    }
}

fn expect_small(node: &Node) {
    let bytes = node.topic("t#ephemeral")["memory_bytes"].as_u64();
    assert!(bytes < Some(2_000_000), "{bytes:?} bytes in memory");
}
