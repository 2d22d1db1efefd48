//! H-01 to H-21, H-60: /pub and /mpub (nsq-http-and-tools 1.6, 1.7).

use std::fs;
use std::time::Duration;

use e2e::wire::command;
use e2e::{Broker, Node, eventually, statements};

statements! {
    both {
        h_01_an_empty_message_is_refused,
        h_02_the_body_is_checked_before_the_topic,
        h_03_the_topic_comes_from_the_query_only,
        h_04_an_invalid_topic_is_refused,
        h_05_a_query_that_cannot_be_parsed_is_refused,
        h_06_the_largest_message_is_accepted,
        h_06_a_larger_message_is_refused,
        h_07_a_publish_is_answered_as_text,
        h_08_a_bad_delay_is_refused,
        h_09_a_refused_delay_has_created_the_topic,
        h_10_a_deferred_publish_waits_in_the_channel,
        h_11_each_line_is_a_message,
        h_12_an_empty_batch_creates_the_topic,
        h_13_carriage_returns_are_kept,
        h_14_a_line_too_long_refuses_the_batch,
        h_15_a_batch_too_big_is_refused,
        h_16_any_word_but_no_selects_the_binary_form,
        h_17_no_selects_the_text_form,
        h_18_a_bad_count_is_refused,
        h_19_a_bad_message_refuses_the_batch,
        h_20_surplus_bytes_are_ignored,
        h_21_batches_are_not_deferred,
        h_60_a_failed_write_turns_health_red_until_one_succeeds,
    }
}

fn h_01_an_empty_message_is_refused(broker: &Broker) {
    let node = broker.start();
    node.http()
        .post("/pub?topic=t", "")
        .expect_error(400, "MSG_EMPTY");
    assert!(node.topic("t").is_null());
}

fn h_02_the_body_is_checked_before_the_topic(broker: &Broker) {
    let node = broker.start();
    node.http().post("/pub", "").expect_error(400, "MSG_EMPTY");
    node.http()
        .post("/pub?topic=a%24", "")
        .expect_error(400, "MSG_EMPTY");
}

fn h_03_the_topic_comes_from_the_query_only(broker: &Broker) {
    let node = broker.start();
    node.http()
        .post("/pub", "body")
        .expect_error(400, "MISSING_ARG_TOPIC");
    node.http()
        .post("/pub", "topic=t")
        .expect_error(400, "MISSING_ARG_TOPIC");
    node.http()
        .post("/mpub", "body")
        .expect_error(400, "MISSING_ARG_TOPIC");
}

fn h_04_an_invalid_topic_is_refused(broker: &Broker) {
    let node = broker.start();
    for route in ["/pub", "/mpub"] {
        for topic in ["", "a%24", "a%0A"] {
            node.http()
                .post(&format!("{route}?topic={topic}"), "body")
                .expect_error(400, "INVALID_TOPIC");
        }
    }
}

fn h_05_a_query_that_cannot_be_parsed_is_refused(broker: &Broker) {
    let node = broker.start();
    for route in ["/pub", "/mpub"] {
        for query in ["topic=t;x=1", "topic=%zz", "topic=t&x=%"] {
            node.http()
                .post(&format!("{route}?{query}"), "body")
                .expect_error(400, "INVALID_REQUEST");
        }
    }
    node.http()
        .post("/pub?topic=first&topic=second", "body")
        .expect_ok();
    node.await_topic("first", |topic| topic["depth"] == 1);
}

fn h_06_the_largest_message_is_accepted(broker: &Broker) {
    let node = broker.start();
    let body = vec![b'x'; LARGEST_MESSAGE];
    node.http().post("/pub?topic=t", &body).expect_ok();
    node.http().post_chunked("/pub?topic=t", &body).expect_ok();
    node.await_topic("t", |topic| topic["message_bytes"] == 2 * LARGEST_MESSAGE);
}

fn h_06_a_larger_message_is_refused(broker: &Broker) {
    let node = broker.start();
    let body = vec![b'x'; LARGEST_MESSAGE + 1];
    node.http()
        .post("/pub?topic=t", &body)
        .expect_error(413, "MSG_TOO_BIG");
    node.http()
        .post_chunked("/pub?topic=t", &body)
        .expect_error(413, "MSG_TOO_BIG");
    assert!(node.topic("t").is_null());
}

fn h_07_a_publish_is_answered_as_text(broker: &Broker) {
    let node = broker.start();
    let response = node.http().post("/pub?topic=t", "body");
    response.expect_ok();
    assert_eq!(response.header("Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(response.header("X-NSQ-Content-Type"), Some("nsq; version=1.0"));
    assert_eq!(bodies(&node, 1), ["body"]);
}

fn h_08_a_bad_delay_is_refused(broker: &Broker) {
    let node = broker.start();
    for delay in ["abc", "", "1.5", "-1", "3600001"] {
        let response = node.http().post(&format!("/pub?topic=t&defer={delay}"), "body");
        response.expect_error(400, "INVALID_DEFER");
    }
    node.http().post("/pub?topic=t&defer=3600000", "body").expect_ok();
    node.http().post("/pub?topic=t&defer=0", "body").expect_ok();
}

fn h_09_a_refused_delay_has_created_the_topic(broker: &Broker) {
    let node = broker.start();
    node.http()
        .post("/pub?topic=t&defer=abc", "body")
        .expect_error(400, "INVALID_DEFER");
    assert_eq!(node.topic("t")["message_count"], 0);
}

fn h_10_a_deferred_publish_waits_in_the_channel(broker: &Broker) {
    let node = broker.start();
    node.http().post("/pub?topic=t&defer=60000", "body").expect_ok();
    assert_eq!(node.topic("t")["depth"], 1);
    node.http()
        .post("/channel/create?topic=t&channel=c", "")
        .expect_done();
    let channel = node.await_channel("t", "c", |channel| channel["deferred_count"] == 1);
    assert_eq!(channel["depth"], 0);
    assert_eq!(node.topic("t")["depth"], 0);
}

fn h_11_each_line_is_a_message(broker: &Broker) {
    let node = broker.start();
    node.http().post("/mpub?topic=t", "a\nb\n\nc\n").expect_ok();
    node.http().post("/mpub?topic=t", "\n\nd").expect_ok();
    assert_eq!(bodies(&node, 4), ["a", "b", "c", "d"]);
}

fn h_12_an_empty_batch_creates_the_topic(broker: &Broker) {
    let node = broker.start();
    node.http().post("/mpub?topic=t", "").expect_ok();
    node.http().post("/mpub?topic=u", "\n\n").expect_ok();
    assert_eq!(node.topic("t")["message_count"], 0);
    assert_eq!(node.topic("u")["message_count"], 0);
}

fn h_13_carriage_returns_are_kept(broker: &Broker) {
    let node = broker.start();
    node.http().post("/mpub?topic=t", "a\r\nb\r\n").expect_ok();
    assert_eq!(bodies(&node, 2), ["a\r", "b\r"]);
}

fn h_14_a_line_too_long_refuses_the_batch(broker: &Broker) {
    let node = broker.start();
    let longest = format!("{}\n", "x".repeat(LARGEST_MESSAGE));
    node.http().post("/mpub?topic=longest", &longest).expect_ok();
    let too_long = format!("first\nx{longest}last\n");
    node.http()
        .post("/mpub?topic=t", too_long)
        .expect_error(413, "MSG_TOO_BIG");
    assert_eq!(node.topic("t")["message_count"], 0);
}

fn h_15_a_batch_too_big_is_refused(broker: &Broker) {
    let node = broker.start();
    let mut body = "line of text\n".repeat(LARGEST_BODY / 13 + 1).into_bytes();
    body.truncate(LARGEST_BODY);
    node.http().post("/mpub?topic=largest", &body).expect_ok();
    body.push(b'x');
    node.http()
        .post("/mpub?topic=t", &body)
        .expect_error(413, "BODY_TOO_BIG");
    node.http()
        .post_chunked("/mpub?topic=u", &body)
        .expect_error(413, "BODY_TOO_BIG");
    assert_ne!(node.topic("u")["message_count"], 1);
}

fn h_16_any_word_but_no_selects_the_binary_form(broker: &Broker) {
    let node = broker.start();
    let body = command::batch(&[b"one\n", b"two\n"]);
    for (count, word) in ["true", "1", "", "TRUE", "whatever"].iter().enumerate() {
        node.http()
            .post(&format!("/mpub?topic=t&binary={word}"), &body)
            .expect_ok();
        node.await_topic("t", |topic| topic["message_count"] == 2 * (count + 1));
    }
}

fn h_17_no_selects_the_text_form(broker: &Broker) {
    let node = broker.start();
    for word in ["0", "false"] {
        node.http()
            .post(&format!("/mpub?topic=t&binary={word}"), "a\nb\n")
            .expect_ok();
    }
    assert_eq!(bodies(&node, 4), ["a", "b", "a", "b"]);
}

fn h_18_a_bad_count_is_refused(broker: &Broker) {
    let node = broker.start();
    for body in [
        &b""[..],
        b"\0\0",
        &0_i32.to_be_bytes(),
        &(-1_i32).to_be_bytes(),
        &1_048_576_i32.to_be_bytes(),
    ] {
        node.http()
            .post("/mpub?topic=t&binary=true", body)
            .expect_error(413, "BAD_BODY");
    }
}

fn h_19_a_bad_message_refuses_the_batch(broker: &Broker) {
    let node = broker.start();
    let with_empty = command::batch(&[b"one", b""]);
    let whole = command::batch(&[b"one", b"two"]);
    let too_big = [&1_i32.to_be_bytes()[..], &1_048_577_i32.to_be_bytes()].concat();
    for body in [&with_empty[..], &whole[..whole.len() - 1], &whole[..13], &too_big] {
        node.http()
            .post("/mpub?topic=t&binary=true", body)
            .expect_error(413, "BAD_MESSAGE");
    }
    assert_eq!(node.topic("t")["message_count"], 0);
}

fn h_20_surplus_bytes_are_ignored(broker: &Broker) {
    let node = broker.start();
    let mut body = command::batch(&[b"one", b"two"]);
    body.extend_from_slice(b"surplus");
    node.http().post("/mpub?topic=t&binary=true", body).expect_ok();
    assert_eq!(bodies(&node, 2), ["one", "two"]);
}

fn h_21_batches_are_not_deferred(broker: &Broker) {
    let node = broker.start();
    node.http()
        .post("/channel/create?topic=t&channel=c", "")
        .expect_error(404, "TOPIC_NOT_FOUND");
    node.http().post("/mpub?topic=t&defer=60000", "a\nb").expect_ok();
    assert_eq!(bodies(&node, 2), ["a", "b"]);
}

/// The data folder is moved away, so that the first write of a new topic has nowhere to go.
fn h_60_a_failed_write_turns_health_red_until_one_succeeds(broker: &Broker) {
    let node = broker.node().flag("mem-queue-size", 0).start();
    let away = node.data_path().with_extension("away");
    fs::rename(node.data_path(), &away).expect("move the data folder");
    let refused = node.http().post("/pub?topic=t", "body");
    let health = node.http().get("/ping");
    fs::rename(&away, node.data_path()).expect("move the data folder back");
    refused.expect_error(503, "EXITING");
    assert_eq!(health.status, 500);
    assert!(health.text().starts_with("NOK - "), "{health:?}");
    eventually("publishing works again", Duration::from_secs(5), || {
        (node.http().post("/pub?topic=t", "body").status == 200).then_some(())
    });
    eventually("health is good again", Duration::from_secs(5), || {
        (node.http().get("/ping").status == 200).then_some(())
    });
}

/// The bodies of the first `count` messages of topic `t`, and proof that there are no more.
fn bodies(node: &Node, count: usize) -> Vec<String> {
    let mut consumer = node.consumer("t", "reader");
    consumer.ready(100);
    let messages = consumer.messages(count);
    assert_eq!(node.topic("t")["message_count"], count);
    messages
        .into_iter()
        .map(|message| String::from_utf8_lossy(&message.body).into_owned())
        .collect()
}

const LARGEST_MESSAGE: usize = 1_048_576;
const LARGEST_BODY: usize = 5_242_880;
