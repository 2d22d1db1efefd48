//! C-85 to C-89: what survives a restart, and the metadata file (nsq-tcp 4.13, 4.14).

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use e2e::{Broker, Node, eventually, statements};

statements! {
    both {
        c_85_a_fresh_node_writes_its_metadata,
        c_86_queued_and_in_flight_messages_survive_a_stop,
        c_87_paused_flags_survive_a_kill,
        c_88_metadata_that_is_not_json_stops_the_start,
        c_88_an_entry_with_an_invalid_name_is_skipped,
        c_89_a_data_folder_serves_one_node,
    }
    stock {
        c_86_a_deferred_message_loses_its_delay_by_a_stop,
    }
    ours {
        c_86_a_deferred_message_keeps_its_delay_over_a_stop,
        acknowledged_messages_survive_a_kill,
    }
}

fn c_85_a_fresh_node_writes_its_metadata(broker: &Broker) {
    let node = broker.start();
    await_metadata(&node, r#"{"topics":null,"version":"1.3.0"}"#);
    let file = node.data_path().join("nsqd.dat");
    let mode = file.metadata().expect("metadata file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    node.client().subscribe("t", "c");
    let expected = r#"{"topics":[{"name":"t","paused":false,"channels":[{"name":"c","paused":false}]}],"version":"1.3.0"}"#;
    await_metadata(&node, expected);
}

fn c_86_queued_and_in_flight_messages_survive_a_stop(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    for body in ["one", "two", "three"] {
        consumer.publish("t", body);
    }
    consumer.ready(1);
    let in_flight = consumer.message();
    let node = node.restart();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    let after: BTreeMap<_, _> = consumer
        .messages(3)
        .into_iter()
        .map(|message| (message.body.clone(), message))
        .collect();
    assert_eq!(after.len(), 3);
    for message in after.values() {
        let again = message.id == in_flight.id;
        assert_eq!(message.attempts, if again { 2 } else { 1 }, "{message:?}");
    }
    assert_eq!(after[&in_flight.body].timestamp, in_flight.timestamp);
}

fn c_86_a_deferred_message_loses_its_delay_by_a_stop(broker: &Broker) {
    let node = node_with_deferred(broker, 60_000).restart();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    let mut attempts: Vec<u16> = consumer
        .messages(2)
        .into_iter()
        .map(|message| message.attempts)
        .collect();
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 2]);
}

fn c_86_a_deferred_message_keeps_its_delay_over_a_stop(broker: &Broker) {
    let deferred = Instant::now();
    let node = node_with_deferred(broker, 4_000).restart();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    assert_eq!(node.channel("t", "c")["deferred_count"], 2);
    let mut attempts: Vec<u16> = consumer
        .messages(2)
        .into_iter()
        .map(|message| message.attempts)
        .collect();
    let waited = deferred.elapsed();
    assert!(
        waited >= Duration::from_secs(4),
        "delivered {waited:?} after it was deferred"
    );
    assert!(
        waited < Duration::from_secs(8),
        "delivered {waited:?} after it was deferred"
    );
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 2]);
}

/// A channel with one message deferred by DPUB and one by REQ.
fn node_with_deferred(broker: &Broker, delay: u64) -> Node {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    consumer.publish("t", "requeued");
    consumer.ready(1);
    let id = consumer.message().id;
    consumer.requeue(&id, delay);
    consumer.publish_deferred("t", delay, "deferred");
    node.await_channel("t", "c", |channel| channel["deferred_count"] == 2);
    node
}

fn c_87_paused_flags_survive_a_kill(broker: &Broker) {
    let node = broker.start();
    node.client().subscribe("t", "paused");
    node.client().subscribe("t", "running");
    node.client().subscribe("u", "c");
    node.http()
        .post("/channel/pause?topic=t&channel=paused", "")
        .expect_done();
    node.http().post("/topic/pause?topic=u", "").expect_done();
    let node = node.kill().start();
    let paused = eventually("topics are loaded", Duration::from_secs(5), || {
        let topics = [node.topic("t"), node.topic("u")];
        let channels = [
            node.channel("t", "paused"),
            node.channel("t", "running"),
            node.channel("u", "c"),
        ];
        let all = topics
            .iter()
            .chain(&channels)
            .map(|object| object["paused"].as_bool());
        all.collect::<Option<Vec<bool>>>()
    });
    assert_eq!(paused, [false, true, true, false, false]);
}

fn c_88_metadata_that_is_not_json_stops_the_start(broker: &Broker) {
    for content in ["", "{", "topics"] {
        let exit = broker.node().file("nsqd.dat", content).expect_exit();
        assert_eq!(exit.code, Some(1), "{}", exit.stderr);
        assert!(
            exit.stderr.contains("failed to parse metadata in"),
            "{}",
            exit.stderr
        );
    }
}

fn c_88_an_entry_with_an_invalid_name_is_skipped(broker: &Broker) {
    let metadata = concat!(
        r#"{"topics":[{"name":"a$","paused":false,"channels":[]},"#,
        r#"{"name":"t","channels":[{"name":"b$"},{"name":"c","paused":true}],"more":1}]}"#
    );
    let node = broker.node().file("nsqd.dat", metadata).start();
    node.await_channel("t", "c", |channel| channel["paused"] == true);
    let stats = node.stats();
    assert_eq!(stats["topics"].as_array().map(Vec::len), Some(1), "{stats}");
    assert_eq!(
        stats["topics"][0]["channels"].as_array().map(Vec::len),
        Some(1),
        "{stats}"
    );
}

fn c_89_a_data_folder_serves_one_node(broker: &Broker) {
    let node = broker.start();
    let exit = broker.node().on_data_of(&node).expect_exit();
    assert_eq!(exit.code, Some(1));
    assert!(
        exit.stderr.contains("failed to lock data-path"),
        "{}",
        exit.stderr
    );
    node.client().expect_alive();
}

/// Stock loses what is in memory; ours answers `OK` when the kernel has the message.
fn acknowledged_messages_survive_a_kill(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.subscribe("t", "c");
    for number in 0..100 {
        client.publish("t", format!("{number}"));
    }
    let node = node.kill().start();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(100);
    let bodies: Vec<_> = consumer
        .messages(100)
        .into_iter()
        .map(|message| message.body)
        .collect();
    assert_eq!(
        bodies,
        (0..100)
            .map(|number| format!("{number}").into_bytes())
            .collect::<Vec<_>>()
    );
}

fn await_metadata(node: &Node, expected: &str) {
    eventually("metadata as expected", Duration::from_secs(5), || {
        (node.metadata() == expected).then_some(())
    });
}
