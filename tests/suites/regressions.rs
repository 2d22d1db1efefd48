//! Duty: faults that were found by attacking the broker, each with the history that showed it.

use std::time::Duration;

use e2e::{Broker, statements};

statements! {
    both {
        a_consumer_gets_everything_its_credit_allows_before_it_answers,
        a_consumer_that_goes_keeps_nothing_from_the_others,
        a_broker_stops_after_topics_were_deleted_right_after_their_first_message,
    }
}

/// The output of a connection is filled in portions; each leaves before the next is taken.
fn a_consumer_gets_everything_its_credit_allows_before_it_answers(broker: &Broker) {
    let node = broker.start();
    let body = "x".repeat(10_000);
    let mut producer = node.client();
    for _ in 0..100 {
        producer.publish("t", &body);
    }
    let mut consumer = node.consumer("t", "c");
    consumer.ready(100);
    assert_eq!(consumer.messages(100).len(), 100);
}

/// A connection whose peer does not read is offered no messages once it is ending.
fn a_consumer_that_goes_keeps_nothing_from_the_others(broker: &Broker) {
    let node = broker.start();
    let mut blocked = node.consumer("t", "c");
    blocked.ready(2500);
    let body = "x".repeat(20_000);
    let mut producer = node.client();
    for _ in 0..600 {
        producer.publish("t", &body);
    }
    node.await_channel("t", "c", |channel| channel["in_flight_count"].as_u64() > Some(20));
    blocked.send(b"NONSENSE\n");
    let mut other = node.consumer("t", "c");
    other.ready(2500);
    for _ in 0..20 {
        producer.publish("t", "small");
    }
    let mut left = 20;
    while left > 0 {
        let message = other.message_within(Duration::from_secs(10));
        other.finish(&message.id);
        left -= usize::from(message.body == b"small");
    }
}

/// What is left to be synced of a deleted log keeps nothing alive.
fn a_broker_stops_after_topics_were_deleted_right_after_their_first_message(broker: &Broker) {
    let node = broker.start();
    for number in 0..5 {
        let topic = format!("t{number}");
        node.client().publish(&topic, "x");
        node.http()
            .post(&format!("/topic/delete?topic={topic}"), "")
            .expect_done();
    }
    let _stopped = node.terminate();
}
