//! Moving a channel over our own route (nsqx-interface 3).

use e2e::{Broker, Node, statements};

statements! {
    ours {
        everything_from_there_on_comes_again,
        delayed_messages_wait_again_for_what_is_left_of_their_delay,
    }
}

fn everything_from_there_on_comes_again(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    for body in ["one", "two", "three"] {
        consumer.publish("t", body);
    }
    consumer.ready(10);
    for message in consumer.messages(3) {
        consumer.finish(&message.id);
    }
    node.await_channel("t", "c", |channel| channel["finished_count"] == 3);
    seek(&node, r#"{"to":"beginning"}"#);
    let again: Vec<_> = consumer
        .messages(3)
        .into_iter()
        .map(|message| message.body)
        .collect();
    assert_eq!(again, [&b"one"[..], b"two", b"three"]);
    // What is in flight is given up.
    seek(&node, r#"{"to":"end"}"#);
    node.await_channel("t", "c", |channel| channel["in_flight_count"] == 0);
    consumer.publish("t", "four");
    assert_eq!(consumer.message().body, b"four");
}

fn delayed_messages_wait_again_for_what_is_left_of_their_delay(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    consumer.publish_deferred("t", 60_000, "far");
    consumer.publish_deferred("t", 50, "near");
    consumer.ready(10);
    let near = consumer.message();
    consumer.finish(&near.id);
    seek(&node, r#"{"to":"beginning"}"#);
    // Its delay is over.
    assert_eq!(consumer.message().id, near.id);
    let channel = node.await_channel("t", "c", |channel| channel["deferred_count"] == 1);
    assert_eq!(channel["depth"], 0);
}

fn seek(node: &Node, place: &str) {
    let answer = node.http().post("/channel/seek?topic=t&channel=c", place);
    assert_eq!(answer.status, 200, "{answer:?}");
}
