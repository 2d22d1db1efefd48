//! C-43 to C-51: PUB, MPUB, DPUB (nsq-tcp 2.3 to 2.5, 4.8).

use std::thread;
use std::time::{Duration, Instant};

use e2e::wire::command;
use e2e::{Broker, statements};

statements! {
    both {
        c_43_the_largest_message_is_accepted,
        c_43_a_larger_message_is_refused_by_its_size,
        c_44_an_empty_message_is_refused_and_creates_no_topic,
        c_45_mpub_says_a_bad_topic_twice,
        c_46_mpub_counts_out_of_range_are_refused,
        c_47_mpub_is_all_or_nothing,
        c_48_mpub_delivers_all_with_increasing_ids,
        c_49_dpub_delay_has_a_range,
        c_50_a_deferred_message_waits_its_time,
        c_51_a_delay_begins_when_the_channel_appears,
        publishing_needs_a_topic_parameter,
    }
}

fn c_43_the_largest_message_is_accepted(broker: &Broker) {
    let node = broker.start();
    let body = vec![b'x'; 1_048_576];
    let mut client = node.client();
    client.publish("t", &body);
    client.subscribe("t", "c");
    client.ready(1);
    assert!(client.message().body == body, "the body came back unchanged");
}

fn c_43_a_larger_message_is_refused_by_its_size(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send(&command::only_size("PUB t", 1_048_577));
    client.expect_fatal("E_BAD_MESSAGE PUB message too big 1048577 > 1048576");
}

fn c_44_an_empty_message_is_refused_and_creates_no_topic(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send(&command::publish("t", b""));
    client.expect_fatal("E_BAD_MESSAGE PUB invalid message body size 0");
    assert!(node.topic("t").is_null());
}

fn c_45_mpub_says_a_bad_topic_twice(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send(&command::publish_many("a$", &[b"x"]));
    client.expect_fatal("E_BAD_TOPIC E_BAD_TOPIC MPUB topic name \"a$\" is not valid");
}

fn c_46_mpub_counts_out_of_range_are_refused(broker: &Broker) {
    let node = broker.start();
    for count in [0, 1_048_576, -1_i32] {
        let mut client = node.client();
        client.send(&command::sized("MPUB t", &count.to_be_bytes()));
        client.expect_fatal(&format!("E_BAD_BODY MPUB invalid message count {count}"));
    }
}

fn c_47_mpub_is_all_or_nothing(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send(&command::publish_many(
        "t",
        &[b"0", b"1", b"2", b"3", b"4", b"", b"6"],
    ));
    client.expect_fatal("E_BAD_MESSAGE MPUB invalid message(5) body size 0");
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    node.client().publish("t", "marker");
    assert_eq!(consumer.message().body, b"marker");
}

fn c_48_mpub_delivers_all_with_increasing_ids(broker: &Broker) {
    let node = broker.start();
    let mut client = node.consumer("t", "c");
    let bodies: Vec<Vec<u8>> = (0..500)
        .map(|number| format!("body {number}").into_bytes())
        .collect();
    let slices: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    client.send(&command::publish_many("t", &slices));
    client.expect_ok();
    client.ready(1000);
    let messages = client.messages(500);
    assert!(
        messages.windows(2).all(|pair| pair[0].id < pair[1].id),
        "ids increase"
    );
    let received: Vec<Vec<u8>> = messages.into_iter().map(|message| message.body).collect();
    assert_eq!(received, bodies);
}

fn c_49_dpub_delay_has_a_range(broker: &Broker) {
    let node = broker.start();
    node.client().publish_deferred("t", 3_600_000, "late");
    for (delay, error) in [
        ("3600001", "E_INVALID DPUB timeout 3600001 out of range 0-3600000"),
        ("-1", "E_INVALID DPUB could not parse timeout -1"),
        ("1s", "E_INVALID DPUB could not parse timeout 1s"),
    ] {
        let mut client = node.client();
        client.send_line(&format!("DPUB t {delay}"));
        client.expect_fatal(error);
    }
}

fn c_50_a_deferred_message_waits_its_time(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(1);
    broker.settle();
    let published = Instant::now();
    node.client().publish_deferred("t", 700, "late");
    let channel = node.await_channel("t", "c", |channel| channel["deferred_count"] == 1);
    assert_eq!(channel["depth"], 0);
    let message = consumer.message();
    let waited = published.elapsed();
    let delay = Duration::from_millis(700);
    assert!(
        (delay..delay + broker.lateness()).contains(&waited),
        "delivered after {waited:?}"
    );
    assert_eq!((message.attempts, message.body.as_slice()), (1, &b"late"[..]));
    node.await_channel("t", "c", |channel| channel["deferred_count"] == 0);
}

fn c_51_a_delay_begins_when_the_channel_appears(broker: &Broker) {
    let node = broker.start();
    node.client().publish_deferred("t", 1000, "late");
    node.await_topic("t", |topic| topic["depth"] == 1);
    // Longer than the delay: a broker that counts from the publish would deliver at once.
    thread::sleep(Duration::from_secs(2));
    let appeared = Instant::now();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(1);
    assert_eq!(consumer.message().body, b"late");
    assert!(
        appeared.elapsed() >= Duration::from_secs(1),
        "delivered after {:?}",
        appeared.elapsed()
    );
}

fn publishing_needs_a_topic_parameter(broker: &Broker) {
    let node = broker.start();
    for line in ["PUB", "MPUB", "DPUB", "DPUB t"] {
        let mut client = node.client();
        client.send_line(line);
        let name = line.split(' ').next().unwrap_or_default();
        client.expect_fatal(&format!("E_INVALID {name} insufficient number of parameters"));
    }
}
