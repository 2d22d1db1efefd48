//! C-81 to C-84: when buffered messages go out (nsq-tcp 4.9).

use std::time::Duration;

use e2e::wire::{Client, command};
use e2e::{Broker, Node, statements};

statements! {
    both {
        c_81_without_a_flush_timer_a_message_waits_for_the_next_response,
        c_82_a_full_ready_count_flushes_at_once,
        c_83_without_a_buffer_messages_go_out_at_once,
        c_84_the_flush_timer_sends_what_is_buffered,
    }
}

fn c_81_without_a_flush_timer_a_message_waits_for_the_next_response(broker: &Broker) {
    let node = broker.start();
    let mut consumer = ready_consumer(&node, r#"{"output_buffer_timeout":-1}"#, 10);
    node.client().publish("t", "body");
    consumer.expect_silence(Duration::from_secs(4));
    consumer.send(&command::publish("other", b"x"));
    assert_eq!(consumer.message_within(SOON).body, b"body");
    consumer.expect_ok();
}

fn c_82_a_full_ready_count_flushes_at_once(broker: &Broker) {
    let node = broker.start();
    let mut consumer = ready_consumer(&node, r#"{"output_buffer_timeout":-1}"#, 1);
    node.client().publish("t", "body");
    assert_eq!(consumer.message_within(SOON).body, b"body");
}

fn c_83_without_a_buffer_messages_go_out_at_once(broker: &Broker) {
    let node = broker.start();
    let mut consumer = ready_consumer(&node, r#"{"output_buffer_size":-1}"#, 10);
    node.client().publish("t", "body");
    assert_eq!(consumer.message_within(SOON).body, b"body");
}

fn c_84_the_flush_timer_sends_what_is_buffered(broker: &Broker) {
    let node = broker.start();
    let mut consumer = ready_consumer(&node, r#"{"output_buffer_timeout":3000}"#, 10);
    node.client().publish("t", "body");
    assert_eq!(consumer.message_within(Duration::from_millis(3300)).body, b"body");
}

fn ready_consumer(node: &Node, settings: &str, ready: u32) -> Client {
    let mut consumer = node.consumer_with(settings, "t", "c");
    consumer.ready(ready);
    node.await_channel("t", "c", |channel| channel["clients"][0]["ready_count"] == ready);
    consumer
}

/// At once, on a busy machine.
const SOON: Duration = Duration::from_millis(500);
