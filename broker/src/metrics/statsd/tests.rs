//! Statements about statsd.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::metrics::latency::Percentile;

fn config() -> StatsdConfig {
    StatsdConfig {
        address: String::new(),
        prefix: String::new(),
        interval: Duration::from_mins(1),
        mem_stats: false,
        packet_size: 508,
        exclude_ephemeral: false,
    }
}

fn channel(name: &str, message_count: u64) -> ChannelStats {
    ChannelStats {
        channel_name: name.to_owned(),
        message_count,
        ..ChannelStats::default()
    }
}

fn topic(name: &str, message_count: u64, channels: Vec<ChannelStats>) -> TopicStats {
    TopicStats {
        topic_name: name.to_owned(),
        message_count,
        channels,
        ..TopicStats::default()
    }
}

fn reading(topics: Vec<TopicStats>) -> Reading {
    let snapshot = Snapshot {
        topics,
        producers: Vec::new(),
    };
    Reading::new(snapshot, Memory::default())
}

fn text(datagrams: &[Vec<u8>]) -> String {
    String::from_utf8(datagrams.concat()).unwrap()
}

proptest! {
    #[test]
    fn s_01_datagrams_hold_whole_lines_within_the_packet_size(
        names in proptest::collection::vec("[a-z]{1,64}", 0..20), packet_size in 1_u64..600,
    ) {
        let topics = names.iter().map(|name| topic(name, 1, vec![channel("c", 1)])).collect();
        let config = StatsdConfig { packet_size, ..config() };
        let now = reading(topics);
        let datagrams = pack(&config, &now, &Reading::default());
        for datagram in &datagrams {
            prop_assert!(datagram.ends_with(b"\n"));
            let lines = datagram.split(|byte| *byte == b'\n').count() - 1;
            prop_assert!(datagram.len() as u64 <= packet_size || lines == 1);
        }
        let whole = StatsdConfig { packet_size: u64::MAX, ..config };
        prop_assert_eq!(text(&datagrams), text(&pack(&whole, &now, &Reading::default())));
    }
}

#[test]
fn s_02_every_name_starts_with_the_prefix() {
    let config = StatsdConfig {
        prefix: "nsq.my_host_4151.".to_owned(),
        mem_stats: true,
        ..config()
    };
    let sent = text(&pack(
        &config,
        &reading(vec![topic("t", 1, vec![])]),
        &Reading::default(),
    ));
    assert!(
        sent.lines().all(|line| line.starts_with("nsq.my_host_4151.")),
        "{sent}"
    );
    assert!(sent.ends_with("nsq.my_host_4151.mem.gc_runs:0|c\n"));
}

#[test]
fn s_03_counters_hold_the_increase_even_when_it_is_none() {
    let first = reading(vec![topic("t", 5, vec![channel("c", 3)])]);
    let second = reading(vec![topic("t", 7, vec![channel("c", 3)])]);
    let again = reading(vec![topic("t", 2, vec![])]);
    let sent = text(&pack(&config(), &first, &Reading::default()));
    assert!(sent.starts_with("topic.t.message_count:5|c\n"), "{sent}");
    let sent = text(&pack(&config(), &second, &first));
    assert!(sent.starts_with("topic.t.message_count:2|c\n"), "{sent}");
    assert!(sent.contains("topic.t.channel.c.message_count:0|c\n"), "{sent}");
    let sent = text(&pack(&config(), &again, &second));
    assert!(sent.starts_with("topic.t.message_count:2|c\n"), "{sent}");
}

#[test]
fn s_04_percentiles_are_named_by_the_rounded_percent() {
    let latency = LatencySummary {
        count: 1,
        percentiles: Some(vec![
            Percentile {
                quantile: 0.999,
                value: 7.0,
            },
            Percentile {
                quantile: 0.5,
                value: 309_560_316.0,
            },
        ]),
    };
    let with_latency = TopicStats {
        e2e_processing_latency: latency.clone(),
        channels: vec![ChannelStats {
            e2e_processing_latency: latency,
            ..channel("c", 0)
        }],
        ..topic("t", 0, vec![])
    };
    let sent = text(&pack(
        &config(),
        &reading(vec![with_latency]),
        &Reading::default(),
    ));
    assert!(
        sent.contains("topic.t.e2e_processing_latency_100:7|g\n"),
        "{sent}"
    );
    assert!(
        sent.ends_with("topic.t.channel.c.e2e_processing_latency_50:309560316|g\n"),
        "{sent}"
    );
}

#[test]
fn s_05_ephemeral_queues_can_be_left_out() {
    let topics = vec![
        topic("a#ephemeral", 1, vec![channel("c", 1)]),
        topic("b", 1, vec![channel("x#ephemeral", 1), channel("y", 1)]),
    ];
    let now = reading(topics);
    assert!(text(&pack(&config(), &now, &Reading::default())).contains("#ephemeral"));
    let config = StatsdConfig {
        exclude_ephemeral: true,
        ..config()
    };
    let sent = text(&pack(&config, &now, &Reading::default()));
    assert!(
        !sent.contains("#ephemeral") && sent.contains("topic.b.channel.y.depth"),
        "{sent}"
    );
}

#[test]
fn lines_come_in_the_order_of_stock() {
    let sent = text(&pack(
        &StatsdConfig {
            mem_stats: true,
            ..config()
        },
        &reading(vec![topic("t", 2, vec![channel("c", 2)]), topic("s", 0, vec![])]),
        &Reading::default(),
    ));
    let names: Vec<_> = sent.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "topic.s.message_count",
            "topic.s.message_bytes",
            "topic.s.depth",
            "topic.s.backend_depth",
            "topic.t.message_count",
            "topic.t.message_bytes",
            "topic.t.depth",
            "topic.t.backend_depth",
            "topic.t.channel.c.message_count",
            "topic.t.channel.c.depth",
            "topic.t.channel.c.backend_depth",
            "topic.t.channel.c.in_flight_count",
            "topic.t.channel.c.deferred_count",
            "topic.t.channel.c.requeue_count",
            "topic.t.channel.c.timeout_count",
            "topic.t.channel.c.clients",
            "mem.heap_objects",
            "mem.heap_idle_bytes",
            "mem.heap_in_use_bytes",
            "mem.heap_released_bytes",
            "mem.gc_pause_usec_100",
            "mem.gc_pause_usec_99",
            "mem.gc_pause_usec_95",
            "mem.next_gc_bytes",
            "mem.gc_runs",
        ]
    );
}

#[test]
fn datagrams_are_spread_over_the_interval_less_a_second() {
    assert_eq!(pause_between(Duration::from_secs(61), 4), Duration::from_secs(15));
    assert_eq!(pause_between(Duration::from_secs(1), 4), Duration::ZERO);
    assert_eq!(pause_between(Duration::from_millis(200), 0), Duration::ZERO);
}
