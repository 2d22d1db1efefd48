//! H-22 to H-32: creating, deleting, emptying and pausing topics and channels (nsq-http-and-tools 1.8, 1.9).

use std::time::Duration;

use e2e::{Broker, statements};

statements! {
    both {
        h_22_creating_a_topic_is_idempotent,
        h_23_an_invalid_topic_has_two_names,
        h_24_some_topic_routes_do_not_look_at_the_name,
        h_25_missing_parameters_are_named,
        h_26_a_channel_needs_its_topic,
        h_27_an_absent_channel_is_not_found,
        h_28_names_have_a_length,
        h_29_emptying_a_topic_leaves_its_channels,
        h_30_emptying_a_channel_drops_everything,
        h_31_a_paused_topic_stays_paused_over_a_restart,
        h_32_deleting_a_topic_closes_its_consumers,
        a_deleted_topic_is_gone_over_a_restart,
        deleting_the_last_channel_of_an_ephemeral_topic_deletes_it,
    }
}

fn h_22_creating_a_topic_is_idempotent(broker: &Broker) {
    let node = broker.start();
    for _ in 0..2 {
        let response = node.http().post("/topic/create?topic=t", "");
        response.expect_done();
        assert_eq!(response.header("Content-Type"), None);
        assert_eq!(response.header("X-NSQ-Content-Type"), Some("nsq; version=1.0"));
    }
    assert_eq!(node.stats()["topics"].as_array().map(Vec::len), Some(1));
}

fn h_23_an_invalid_topic_has_two_names(broker: &Broker) {
    let node = broker.start();
    node.http()
        .post("/topic/create?topic=a%24", "")
        .expect_error(400, "INVALID_TOPIC");
    node.http()
        .post("/channel/create?topic=a%24", "")
        .expect_error(400, "INVALID_ARG_TOPIC");
    node.http()
        .post("/channel/create?topic=t&channel=a%24", "")
        .expect_error(400, "INVALID_ARG_CHANNEL");
}

fn h_24_some_topic_routes_do_not_look_at_the_name(broker: &Broker) {
    let node = broker.start();
    for verb in ["delete", "pause", "unpause"] {
        node.http()
            .post(&format!("/topic/{verb}?topic=a%24"), "")
            .expect_error(404, "TOPIC_NOT_FOUND");
    }
    node.http()
        .post("/topic/empty?topic=a%24", "")
        .expect_error(400, "INVALID_TOPIC");
    node.http()
        .post("/topic/empty?topic=absent", "")
        .expect_error(404, "TOPIC_NOT_FOUND");
}

fn h_25_missing_parameters_are_named(broker: &Broker) {
    let node = broker.start();
    for verb in ["create", "delete", "empty", "pause", "unpause"] {
        node.http()
            .post(&format!("/topic/{verb}"), "")
            .expect_error(400, "MISSING_ARG_TOPIC");
        node.http()
            .post(&format!("/channel/{verb}"), "")
            .expect_error(400, "MISSING_ARG_TOPIC");
        node.http()
            .post(&format!("/channel/{verb}?topic=absent"), "")
            .expect_error(400, "MISSING_ARG_CHANNEL");
        node.http()
            .post(&format!("/channel/{verb}?topic=%zz"), "")
            .expect_error(400, "INVALID_REQUEST");
    }
}

fn h_26_a_channel_needs_its_topic(broker: &Broker) {
    let node = broker.start();
    for verb in ["create", "delete", "empty", "pause", "unpause"] {
        let response = node
            .http()
            .post(&format!("/channel/{verb}?topic=absent&channel=c"), "");
        response.expect_error(404, "TOPIC_NOT_FOUND");
    }
    assert!(node.topic("absent").is_null());
}

fn h_27_an_absent_channel_is_not_found(broker: &Broker) {
    let node = broker.start();
    node.http().post("/topic/create?topic=t", "").expect_done();
    for verb in ["delete", "empty", "pause", "unpause"] {
        let response = node
            .http()
            .post(&format!("/channel/{verb}?topic=t&channel=absent"), "");
        response.expect_error(404, "CHANNEL_NOT_FOUND");
    }
}

fn h_28_names_have_a_length(broker: &Broker) {
    let node = broker.start();
    for (name, accepted) in [
        ("n".repeat(64), true),
        ("n".repeat(65), false),
        (format!("{}%23ephemeral", "n".repeat(54)), true),
        (format!("{}%23ephemeral", "n".repeat(55)), false),
        ("%23ephemeral".to_owned(), false),
    ] {
        let response = node.http().post(&format!("/topic/create?topic={name}"), "");
        if accepted {
            response.expect_done();
        } else {
            response.expect_error(400, "INVALID_TOPIC");
        }
    }
}

fn h_29_emptying_a_topic_leaves_its_channels(broker: &Broker) {
    let node = broker.start();
    node.client().subscribe("t", "c");
    node.client().publish("t", "in the channel");
    node.await_channel("t", "c", |channel| channel["depth"] == 1);
    node.http().post("/topic/pause?topic=t", "").expect_done();
    node.client().publish("t", "in the topic");
    assert_eq!(node.topic("t")["depth"], 1);
    node.http().post("/topic/empty?topic=t", "").expect_done();
    node.http().post("/topic/unpause?topic=t", "").expect_done();
    let topic = node.topic("t");
    assert_eq!(
        (&topic["depth"], &topic["channels"][0]["depth"]),
        (&0.into(), &1.into())
    );
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    assert_eq!(consumer.message().body, b"in the channel");
    node.client().publish("t", "after");
    assert_eq!(consumer.message().body, b"after");
}

fn h_30_emptying_a_channel_drops_everything(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    for _ in 0..3 {
        consumer.publish("t", "body");
    }
    consumer.publish_deferred("t", 60_000, "body");
    consumer.ready(1);
    consumer.message();
    node.await_channel("t", "c", |channel| {
        channel["depth"] == 2 && channel["in_flight_count"] == 1 && channel["deferred_count"] == 1
    });
    consumer.ready(0);
    node.http()
        .post("/channel/empty?topic=t&channel=c", "")
        .expect_done();
    let channel = node.channel("t", "c");
    for count in ["depth", "in_flight_count", "deferred_count"] {
        assert_eq!(channel[count], 0, "{count}");
    }
    assert_eq!(channel["clients"][0]["in_flight_count"], 0);
}

fn h_31_a_paused_topic_stays_paused_over_a_restart(broker: &Broker) {
    let node = broker.start();
    node.client().subscribe("t", "c");
    node.http().post("/topic/pause?topic=t", "").expect_done();
    node.client().publish("t", "body");
    let node = node.restart();
    let topic = node.await_topic("t", |topic| topic["paused"] == true);
    assert_eq!(
        (&topic["depth"], &topic["channels"][0]["depth"]),
        (&1.into(), &0.into())
    );
    node.http().post("/topic/unpause?topic=t", "").expect_done();
    node.await_channel("t", "c", |channel| channel["depth"] == 1);
}

fn h_32_deleting_a_topic_closes_its_consumers(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    node.http().post("/topic/delete?topic=t", "").expect_done();
    consumer.expect_closed();
    assert!(node.topic("t").is_null());
}

fn a_deleted_topic_is_gone_over_a_restart(broker: &Broker) {
    let node = broker.start();
    node.client().subscribe("t", "c");
    node.client().publish("t", "old");
    node.http().post("/topic/delete?topic=t", "").expect_done();
    let node = node.restart();
    assert!(node.topic("t").is_null());
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    node.client().publish("t", "new");
    assert_eq!(consumer.message().body, b"new");
}

fn deleting_the_last_channel_of_an_ephemeral_topic_deletes_it(broker: &Broker) {
    let node = broker.start();
    node.client().subscribe("t#ephemeral", "c");
    node.http()
        .post("/channel/delete?topic=t%23ephemeral&channel=c", "")
        .expect_done();
    node.await_no_topic("t#ephemeral", Duration::from_secs(5));
}
