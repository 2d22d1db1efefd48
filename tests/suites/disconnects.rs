//! C-69, C-75, C-77, C-78: what a connection leaves behind (nsq-tcp 4.11, 4.13).

use std::time::{Duration, Instant};

use e2e::eventually::stays;
use e2e::{Broker, eventually, statements};

statements! {
    both {
        c_69_messages_of_a_gone_client_wait_for_their_timeout,
        c_75_an_ephemeral_topic_goes_with_its_last_client,
        c_77_an_ephemeral_channel_takes_its_messages_with_it,
        c_78_deleting_a_channel_closes_its_subscribers,
    }
}

fn c_69_messages_of_a_gone_client_wait_for_their_timeout(broker: &Broker) {
    let node = broker.start();
    let mut leaving = node.consumer_with(r#"{"msg_timeout":2000}"#, "t", "c");
    leaving.publish("t", "body");
    leaving.ready(1);
    let first = leaving.message();
    let delivered = Instant::now();
    drop(leaving);
    let mut staying = node.consumer("t", "c");
    staying.ready(1);
    let second = staying.message();
    assert!(
        delivered.elapsed() >= Duration::from_millis(1990),
        "after {:?}",
        delivered.elapsed()
    );
    assert_eq!((first.id, 2), (second.id, second.attempts));
}

fn c_75_an_ephemeral_topic_goes_with_its_last_client(broker: &Broker) {
    let node = broker.start();
    let client = node.consumer("t#ephemeral", "c#ephemeral");
    // A durable topic made afterwards shows that the metadata was written with the ephemeral one in place.
    node.client().publish("durable", "body");
    eventually("metadata holds the durable topic", Duration::from_secs(5), || {
        node.metadata().contains("durable").then_some(())
    });
    assert!(!node.metadata().contains("ephemeral"), "{}", node.metadata());
    assert!(!node.topic("t#ephemeral").is_null());
    drop(client);
    node.await_no_topic("t#ephemeral", Duration::from_millis(500));
    assert!(!node.metadata().contains("ephemeral"), "{}", node.metadata());
}

fn c_77_an_ephemeral_channel_takes_its_messages_with_it(broker: &Broker) {
    let node = broker.start();
    let mut leaving = node.consumer("t", "c#ephemeral");
    leaving.publish("t", "in flight");
    leaving.publish("t", "queued");
    node.await_channel("t", "c#ephemeral", |channel| channel["depth"] == 2);
    leaving.ready(1);
    leaving.message();
    drop(leaving);
    node.await_topic("t", |topic| {
        topic["channels"].as_array().is_some_and(Vec::is_empty)
    });
    let mut next = node.consumer("t", "c#ephemeral");
    next.ready(10);
    node.client().publish("t", "new");
    assert_eq!(next.message().body, b"new");
    stays("nothing else is delivered", Duration::from_millis(200), || {
        node.channel("t", "c#ephemeral")["in_flight_count"] == 1
    });
}

fn c_78_deleting_a_channel_closes_its_subscribers(broker: &Broker) {
    let node = broker.start();
    let mut subscribers = [node.consumer("t", "c"), node.consumer("t", "c")];
    let mut other = node.consumer("t", "d");
    node.http()
        .post("/channel/delete?topic=t&channel=c", "")
        .expect_done();
    for subscriber in &mut subscribers {
        subscriber.expect_closed();
    }
    other.expect_alive();
}
