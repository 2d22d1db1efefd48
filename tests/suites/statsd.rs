//! S-01 to S-05: metrics pushed to statsd (nsq-http-and-tools 5).

use std::time::Duration;

use e2e::node::NodeSetup;
use e2e::statsd::Statsd;
use e2e::{Broker, statements};

statements! {
    both {
        s_01_datagrams_hold_whole_lines_up_to_a_size,
        s_02_every_name_begins_with_prefix_and_host,
        s_03_counters_hold_the_increase,
        s_04_percentiles_are_rounded_to_whole_numbers,
        s_05_ephemeral_names_can_be_left_out,
    }
}

fn s_01_datagrams_hold_whole_lines_up_to_a_size(broker: &Broker) {
    let sink = Statsd::start();
    let node = pushing(broker, &sink).start();
    for topic in 0..5 {
        node.client().subscribe(&format!("topic-{topic}"), "channel");
    }
    let datagrams = sink.datagrams_until(PATIENCE, |text| text.contains(LAST));
    assert!(datagrams.len() > 1, "more than fits into one datagram");
    for datagram in &datagrams {
        assert!(datagram.len() <= 508, "{} bytes", datagram.len());
        assert!(datagram.ends_with('\n'), "{datagram:?}");
        for line in datagram.lines() {
            let (_, value) = line.split_once(':').expect("name and value");
            let (number, kind) = value.split_once('|').expect("number and kind");
            assert!(
                number.parse::<i64>().is_ok() && ["c", "g"].contains(&kind),
                "{line}"
            );
        }
    }
    let packed = datagrams.iter().filter(|datagram| datagram.len() > 400).count();
    assert!(
        packed + 1 >= datagrams.len(),
        "datagrams are filled before the next begins"
    );
}

fn s_02_every_name_begins_with_prefix_and_host(broker: &Broker) {
    let sink = Statsd::start();
    let setup = pushing(broker, &sink)
        .flag("broadcast-address", "my.host")
        .flag("broadcast-http-port", 4151);
    let node = setup.start();
    node.client().subscribe("t", "c");
    node.http()
        .get("/config/statsd_prefix")
        .expect(200, "nsq.my_host_4151.");
    let lines = lines_of_a_push(&sink);
    assert!(
        lines.iter().all(|line| line.starts_with("nsq.my_host_4151.")),
        "{lines:?}"
    );
    for name in [
        "topic.t.message_count:0|c",
        "topic.t.message_bytes:0|c",
        "topic.t.depth:0|g",
        "topic.t.backend_depth:0|g",
        "topic.t.channel.c.message_count:0|c",
        "topic.t.channel.c.depth:0|g",
        "topic.t.channel.c.backend_depth:0|g",
        "topic.t.channel.c.in_flight_count:0|g",
        "topic.t.channel.c.deferred_count:0|g",
        "topic.t.channel.c.requeue_count:0|c",
        "topic.t.channel.c.timeout_count:0|c",
        "topic.t.channel.c.clients:0|g",
    ] {
        assert!(
            lines.contains(&format!("nsq.my_host_4151.{name}")),
            "{name} in {lines:?}"
        );
    }
}

fn s_03_counters_hold_the_increase(broker: &Broker) {
    let sink = Statsd::start();
    let node = pushing(broker, &sink).flag("statsd-prefix", "").start();
    for _ in 0..3 {
        node.client().publish("t", "body");
    }
    let expected = [
        ("topic.t.message_count:3|c", "topic.t.message_bytes:12|c"),
        ("topic.t.message_count:0|c", "topic.t.message_bytes:0|c"),
    ];
    for (count, bytes) in expected {
        let lines = lines_of_a_push(&sink);
        assert!(
            lines.contains(&count.to_owned()) && lines.contains(&bytes.to_owned()),
            "{count} in {lines:?}"
        );
        assert!(lines.contains(&"topic.t.depth:3|g".to_owned()), "{lines:?}");
    }
}

fn s_04_percentiles_are_rounded_to_whole_numbers(broker: &Broker) {
    let sink = Statsd::start();
    let setup = pushing(broker, &sink).flag("e2e-processing-latency-percentile", "0.999,0.5");
    let node = setup.start();
    node.client().subscribe("t", "c");
    let lines = lines_of_a_push(&sink);
    for name in ["e2e_processing_latency_100:", "e2e_processing_latency_50:"] {
        assert!(
            lines
                .iter()
                .any(|line| line.contains(&format!(".channel.c.{name}"))),
            "{name} in {lines:?}"
        );
    }
}

fn s_05_ephemeral_names_can_be_left_out(broker: &Broker) {
    for (exclude, expected) in [(false, true), (true, false)] {
        let sink = Statsd::start();
        let node = pushing(broker, &sink)
            .flag("statsd-exclude-ephemeral", exclude)
            .start();
        let _consumers = [
            node.consumer("t", "c#ephemeral"),
            node.consumer("u#ephemeral", "d"),
        ];
        node.client().subscribe("t", "e");
        let lines = lines_of_a_push(&sink);
        assert!(
            lines.iter().any(|line| line.contains("topic.t.channel.e.depth")),
            "{lines:?}"
        );
        let found = lines.iter().any(|line| line.contains("#ephemeral"));
        assert_eq!(found, expected, "{lines:?}");
    }
}

/// A node that pushes every 2 s; stock crashes at one second or less.
fn pushing(broker: &Broker, sink: &Statsd) -> NodeSetup {
    broker
        .node()
        .flag("statsd-address", sink.address())
        .flag("statsd-interval", "2s")
}

fn lines_of_a_push(sink: &Statsd) -> Vec<String> {
    let datagrams = sink.datagrams_until(PATIENCE, |text| text.contains(LAST));
    datagrams
        .iter()
        .flat_map(|datagram| datagram.lines())
        .map(str::to_owned)
        .collect()
}

/// The last metric of a push.
const LAST: &str = "mem.gc_runs:";
const PATIENCE: Duration = Duration::from_secs(10);
