//! C-52 to C-67: RDY, FIN, REQ, TOUCH, timeouts, attempts (nsq-tcp 2.6 to 2.9, 4.3 to 4.7).

use std::time::{Duration, Instant};

use e2e::wire::Event;
use e2e::{Broker, Node, statements};

statements! {
    both {
        c_52_ready_is_a_level_of_messages_in_flight,
        c_53_a_lower_ready_takes_effect_as_messages_finish,
        c_54_ready_without_a_count_is_one,
        c_55_ready_has_a_range,
        c_56_finishing_an_unknown_message_is_not_fatal,
        c_57_an_id_has_sixteen_bytes,
        c_58_only_the_owner_may_settle,
        c_59_requeue_without_delay_redelivers_at_once,
        c_60_requeue_with_delay_waits_its_time,
        c_61_a_requeue_delay_beyond_the_limit_is_clamped,
        c_62_a_requeue_delay_must_be_digits,
        c_63_an_unanswered_message_times_out,
        c_64_finishing_after_the_timeout_is_not_fatal,
        c_65_touch_extends_up_to_the_maximum,
        c_66_settling_is_not_answered,
        c_67_attempts_wrap,
    }
}

fn c_52_ready_is_a_level_of_messages_in_flight(broker: &Broker) {
    let node = node_with_messages(broker, 4);
    let mut consumer = node.consumer("t", "c");
    consumer.ready(2);
    let first = consumer.message();
    consumer.message();
    consumer.expect_silence(QUIET);
    consumer.finish(&first.id);
    consumer.message();
    consumer.expect_silence(QUIET);
}

fn c_53_a_lower_ready_takes_effect_as_messages_finish(broker: &Broker) {
    let node = node_with_messages(broker, 6);
    let mut consumer = node.consumer("t", "c");
    consumer.ready(3);
    let messages = consumer.messages(3);
    consumer.ready(1);
    consumer.finish(&messages[0].id);
    consumer.finish(&messages[1].id);
    consumer.expect_silence(QUIET);
    consumer.finish(&messages[2].id);
    consumer.message();
    consumer.expect_silence(QUIET);
}

fn c_54_ready_without_a_count_is_one(broker: &Broker) {
    let node = node_with_messages(broker, 2);
    let mut consumer = node.consumer("t", "c");
    consumer.send_line("RDY");
    consumer.message();
    consumer.expect_silence(QUIET);
}

fn c_55_ready_has_a_range(broker: &Broker) {
    let node = broker.start();
    node.consumer("t", "c").send_line("RDY 2500");
    for (line, error) in [
        ("RDY 2501", "E_INVALID RDY count 2501 out of range 0-2500"),
        ("RDY -1", "E_INVALID RDY could not parse count -1"),
        ("RDY abc", "E_INVALID RDY could not parse count abc"),
    ] {
        let mut consumer = node.consumer("t", "c");
        consumer.send_line(line);
        consumer.expect_fatal(error);
    }
}

fn c_56_finishing_an_unknown_message_is_not_fatal(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    for id in ["0123456789abcdef", "0000000000000000", "not-hexadecimal!"] {
        consumer.finish(id);
        consumer.expect_error(&format!("E_FIN_FAILED FIN {id} failed ID not in flight"));
    }
    consumer.expect_alive();
}

fn c_57_an_id_has_sixteen_bytes(broker: &Broker) {
    let node = broker.start();
    for id in ["0123456789abcde", "0123456789abcdef0", ""] {
        let mut consumer = node.consumer("t", "c");
        consumer.finish(id);
        consumer.expect_fatal("E_INVALID invalid message ID");
    }
}

fn c_58_only_the_owner_may_settle(broker: &Broker) {
    let node = node_with_messages(broker, 1);
    let mut owner = node.consumer("t", "c");
    owner.ready(1);
    let id = owner.message().id;
    let mut other = node.consumer("t", "c");
    for (line, name) in [
        (format!("FIN {id}"), "FIN"),
        (format!("REQ {id} 0"), "REQ"),
        (format!("TOUCH {id}"), "TOUCH"),
    ] {
        other.send_line(&line);
        other.expect_error(&format!(
            "E_{name}_FAILED {name} {id} failed client does not own message"
        ));
    }
    other.expect_alive();
    owner.finish(&id);
    node.await_channel("t", "c", |channel| channel["in_flight_count"] == 0);
}

fn c_59_requeue_without_delay_redelivers_at_once(broker: &Broker) {
    let node = node_with_messages(broker, 1);
    let mut consumer = node.consumer("t", "c");
    consumer.ready(1);
    let first = consumer.message();
    consumer.requeue(&first.id, 0);
    let second = consumer.message_within(Duration::from_secs(1));
    assert_eq!((first.attempts, second.attempts), (1, 2));
    assert_eq!(
        (first.id, first.timestamp, first.body),
        (second.id, second.timestamp, second.body)
    );
    assert_eq!(node.channel("t", "c")["requeue_count"], 1);
}

fn c_60_requeue_with_delay_waits_its_time(broker: &Broker) {
    let node = node_with_messages(broker, 1);
    let mut consumer = node.consumer("t", "c");
    broker.settle();
    consumer.ready(1);
    let id = consumer.message().id;
    let requeued = Instant::now();
    consumer.requeue(&id, 500);
    node.await_channel("t", "c", |channel| {
        channel["deferred_count"] == 1 && channel["depth"] == 0
    });
    assert_eq!(consumer.message().attempts, 2);
    expect_between(requeued.elapsed(), Duration::from_millis(500), broker.lateness());
}

fn c_61_a_requeue_delay_beyond_the_limit_is_clamped(broker: &Broker) {
    // Clamped to one second instead of an hour shows both: no error, and the limit counts.
    let node = broker.node().flag("max-req-timeout", "1s").start();
    let mut consumer = node.consumer("t", "c");
    consumer.publish("t", "body");
    broker.settle();
    consumer.ready(1);
    let id = consumer.message().id;
    let requeued = Instant::now();
    consumer.requeue(&id, 99_999_999_999);
    node.await_channel("t", "c", |channel| channel["deferred_count"] == 1);
    assert_eq!(consumer.message().attempts, 2);
    expect_between(requeued.elapsed(), Duration::from_secs(1), broker.lateness());
}

fn c_62_a_requeue_delay_must_be_digits(broker: &Broker) {
    let node = node_with_messages(broker, 1);
    let mut consumer = node.consumer("t", "c");
    consumer.ready(1);
    let id = consumer.message().id;
    consumer.send_line(&format!("REQ {id} -1"));
    consumer.expect_fatal("E_INVALID REQ could not parse timeout -1");
}

fn c_63_an_unanswered_message_times_out(broker: &Broker) {
    let node = broker.node().flag("msg-timeout", "1s").start();
    let mut consumer = node.consumer("t", "c");
    consumer.publish("t", "body");
    broker.settle();
    consumer.ready(1);
    let first = consumer.message();
    let delivered = Instant::now();
    let second = consumer.message();
    expect_between(delivered.elapsed(), Duration::from_millis(990), broker.lateness());
    assert_eq!((second.id, second.attempts), (first.id, 2));
    let channel = node.channel("t", "c");
    assert_eq!(
        (&channel["timeout_count"], &channel["requeue_count"]),
        (&1.into(), &0.into())
    );
}

fn c_64_finishing_after_the_timeout_is_not_fatal(broker: &Broker) {
    let node = broker.node().flag("msg-timeout", "1s").start();
    let mut consumer = node.consumer("t", "c");
    consumer.publish("t", "body");
    broker.settle();
    consumer.ready(1);
    let id = consumer.message().id;
    consumer.ready(0);
    node.await_channel("t", "c", |channel| channel["timeout_count"] == 1);
    consumer.finish(&id);
    consumer.expect_error(&format!("E_FIN_FAILED FIN {id} failed ID not in flight"));
    consumer.expect_alive();
}

fn c_65_touch_extends_up_to_the_maximum(broker: &Broker) {
    let node = broker
        .node()
        .flag("msg-timeout", "1s")
        .flag("max-msg-timeout", "3s")
        .start();
    let mut consumer = node.consumer("t", "c");
    consumer.publish("t", "body");
    broker.settle();
    consumer.ready(1);
    let first = consumer.message();
    let delivered = Instant::now();
    let second = loop {
        match consumer.event(Duration::from_millis(400)) {
            Event::Frame(frame) => break frame.message(),
            Event::Silence => consumer.touch(&first.id),
            Event::Closed => panic!("closed while touching"),
        }
        assert!(
            delivered.elapsed() < Duration::from_secs(8),
            "touched without end"
        );
    };
    expect_between(
        delivered.elapsed(),
        Duration::from_millis(2990),
        broker.lateness(),
    );
    assert_eq!((second.id, second.attempts), (first.id, 2));
}

fn c_66_settling_is_not_answered(broker: &Broker) {
    let node = node_with_messages(broker, 3);
    let mut consumer = node.consumer("t", "c");
    consumer.ready(3);
    let messages = consumer.messages(3);
    consumer.ready(0);
    consumer.touch(&messages[0].id);
    consumer.finish(&messages[0].id);
    consumer.requeue(&messages[1].id, 0);
    consumer.requeue(&messages[2].id, 60_000);
    consumer.send_line("NOP");
    consumer.expect_silence(QUIET);
    consumer.expect_alive();
}

fn c_67_attempts_wrap(broker: &Broker) {
    let node = node_with_messages(broker, 1);
    let mut consumer = node.consumer("t", "c");
    consumer.ready(1);
    for delivery in 1..=65_536_u32 {
        let message = consumer.message();
        assert_eq!(u32::from(message.attempts), delivery % 65_536);
        consumer.requeue(&message.id, 0);
    }
}

/// A node whose topic `t` has channel `c` with `count` messages.
fn node_with_messages(broker: &Broker, count: usize) -> Node {
    let node = broker.start();
    let mut producer = node.consumer("t", "c");
    for number in 0..count {
        producer.publish("t", format!("body {number}"));
    }
    node.await_channel("t", "c", |channel| channel["depth"] == count);
    node
}

fn expect_between(passed: Duration, earliest: Duration, lateness: Duration) {
    assert!(
        (earliest..earliest + lateness).contains(&passed),
        "after {passed:?}, not {earliest:?}"
    );
}

/// Long enough for anything that comes at once to have come.
const QUIET: Duration = Duration::from_millis(300);
