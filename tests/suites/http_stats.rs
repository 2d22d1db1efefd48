//! H-38 to H-48: /info and /stats (nsq-http-and-tools 1.5, 1.10).

use std::collections::BTreeSet;

use e2e::wire::command;
use e2e::{Broker, Node, statements};
use serde_json::{Value, json};

statements! {
    both {
        h_38_info_has_ten_keys_in_order,
        h_39_unix_sockets_have_no_ports,
        h_40_stats_of_an_empty_node_are_framed_exactly,
        h_41_an_absent_topic_is_null_and_an_absent_channel_empty,
        h_42_clients_may_be_left_out,
        h_43_memory_may_be_left_out,
        h_44_anything_but_json_is_text,
        h_45_topics_and_channels_are_sorted,
        h_46_only_tcp_publishers_are_producers,
        h_47_client_objects_have_fixed_keys,
        h_48_without_percentiles_latency_is_empty,
        counters_follow_a_message,
        stats_text_names_everything,
    }
}

fn h_38_info_has_ten_keys_in_order(broker: &Broker) {
    let node = broker.start();
    let response = node.http().get("/info");
    let info = response.json();
    assert!(
        info["start_time"]
            .as_u64()
            .is_some_and(|seconds| seconds > 1_600_000_000),
        "{info}"
    );
    let expected = format!(
        concat!(
            r#"{{"version":"1.3.0","broadcast_address":"127.0.0.1","hostname":{},"http_port":{},"tcp_port":{},"#,
            r#""start_time":{},"max_heartbeat_interval":60000000000,"max_output_buffer_size":65536,"#,
            r#""max_output_buffer_timeout":30000000000,"max_deflate_level":6}}"#,
        ),
        info["hostname"],
        node.http_address().port(),
        node.tcp_address().port(),
        info["start_time"],
    );
    response.expect(200, &expected);
}

fn h_39_unix_sockets_have_no_ports(broker: &Broker) {
    let node = broker.node().on_unix_sockets().start();
    let info = node.http().get("/info").json();
    assert_eq!((&info["http_port"], &info["tcp_port"]), (&json!(-1), &json!(-1)));
    node.http().post("/pub?topic=t", "body").expect_ok();
}

fn h_40_stats_of_an_empty_node_are_framed_exactly(broker: &Broker) {
    let node = broker.start();
    let response = node.http().get("/stats?format=json");
    let text = response.text();
    assert!(
        text.starts_with(r#"{"version":"1.3.0","health":"OK","start_time":"#),
        "{text}"
    );
    assert!(text.contains(r#","topics":[],"memory":{"#), "{text}");
    assert!(text.ends_with(r#"},"producers":null}"#), "{text}");
    assert_eq!(
        response.header("Content-Type"),
        Some("application/json; charset=utf-8")
    );
    for key in MEMORY_KEYS {
        assert!(response.json()["memory"][key].is_number(), "{key}");
    }
}

fn h_41_an_absent_topic_is_null_and_an_absent_channel_empty(broker: &Broker) {
    let node = broker.start();
    let mut publisher = node.client();
    publisher.publish("t", "body");
    let stats = query(&node, "topic=absent");
    assert_eq!(
        (&stats["topics"], &stats["producers"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(query(&node, "topic=t&channel=absent")["topics"], json!([]));
    node.client().subscribe("t", "c");
    node.client().publish("u", "body");
    let stats = query(&node, "channel=c");
    assert_eq!(stats["topics"].as_array().map(Vec::len), Some(1));
    assert_eq!(stats["topics"][0]["topic_name"], "t");
}

fn h_42_clients_may_be_left_out(broker: &Broker) {
    let node = broker.start();
    let consumer = node.consumer("t", "c");
    let channel = |parameters: &str| query(&node, parameters)["topics"][0]["channels"][0].clone();
    let without = channel("include_clients=false");
    assert_eq!(
        (&without["clients"], &without["client_count"]),
        (&Value::Null, &json!(1))
    );
    assert_eq!(
        channel("include_clients=other")["clients"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    drop(consumer);
    node.await_channel("t", "c", |channel| channel["client_count"] == 0);
    assert_eq!(channel("include_clients=true")["clients"], json!([]));
}

fn h_43_memory_may_be_left_out(broker: &Broker) {
    let node = broker.start();
    for word in ["0", "false"] {
        assert!(
            query(&node, &format!("include_mem={word}"))
                .get("memory")
                .is_none()
        );
    }
    for word in ["no", "1", ""] {
        assert!(query(&node, &format!("include_mem={word}"))["memory"].is_object());
    }
}

fn h_44_anything_but_json_is_text(broker: &Broker) {
    let node = broker.start();
    for target in ["/stats", "/stats?format=JSON", "/stats?format=text"] {
        let response = node.http().get(target);
        assert_eq!(response.header("Content-Type"), Some("text/plain; charset=utf-8"));
        assert!(
            response.text().starts_with("nsqd v1.3.0 (built w/"),
            "{response:?}"
        );
        assert!(response.text().contains("\nTopics: None\n"), "{response:?}");
    }
    node.http()
        .get("/stats?topic=%zz")
        .expect_error(400, "INVALID_REQUEST");
}

fn h_45_topics_and_channels_are_sorted(broker: &Broker) {
    let node = broker.start();
    for topic in ["m", "z", "a"] {
        for channel in ["y", "b", "k"] {
            node.client().subscribe(topic, channel);
        }
    }
    let stats = query(&node, "");
    let names = |list: &Value, key: &str| -> Vec<String> {
        list.as_array()
            .into_iter()
            .flatten()
            .map(|item| item[key].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(names(&stats["topics"], "topic_name"), ["a", "m", "z"]);
    assert_eq!(
        names(&stats["topics"][0]["channels"], "channel_name"),
        ["b", "k", "y"]
    );
}

fn h_46_only_tcp_publishers_are_producers(broker: &Broker) {
    let node = broker.start();
    node.http().post("/pub?topic=t", "body").expect_ok();
    let _silent = node.client();
    assert_eq!(query(&node, "")["producers"], Value::Null);
    let mut publisher = node.client();
    publisher.identify(r#"{"client_id":"me","hostname":"here","user_agent":"suite/1"}"#);
    publisher.publish("t", "body");
    publisher.publish("t", "body");
    let stats = query(&node, "");
    let producers = stats["producers"].as_array().expect("a list of producers");
    assert_eq!(producers.len(), 1);
    assert_eq!(producers[0]["pub_counts"], json!([{"topic": "t", "count": 2}]));
    assert_eq!(
        (&producers[0]["client_id"], &producers[0]["user_agent"]),
        (&json!("me"), &json!("suite/1"))
    );
}

fn h_47_client_objects_have_fixed_keys(broker: &Broker) {
    let node = broker.start();
    let _consumer = node.consumer("t", "c");
    let channel = node.await_channel("t", "c", |channel| channel["client_count"] == 1);
    let client = channel["clients"][0].as_object().expect("a client");
    let keys: BTreeSet<&str> = client.keys().map(String::as_str).collect();
    for always in CLIENT_KEYS {
        assert!(keys.contains(always), "{always} in {client:?}");
    }
    for never in ["authed", "auth_identity", "auth_identity_url", "pub_counts"] {
        assert!(!keys.contains(never), "{never} in {client:?}");
    }
    assert_eq!(
        (&client["version"], &client["state"], &client["tls"]),
        (&json!("V2"), &json!(3), &json!(false))
    );
    assert_eq!(
        (&client["client_id"], &client["hostname"]),
        (&json!("127.0.0.1"), &json!("127.0.0.1"))
    );
}

fn h_48_without_percentiles_latency_is_empty(broker: &Broker) {
    let empty = json!({"count": 0, "percentiles": null});
    let node = broker.start();
    node.client().subscribe("t", "c");
    let topic = node.topic("t");
    assert_eq!(topic["e2e_processing_latency"], empty);
    assert_eq!(topic["channels"][0]["e2e_processing_latency"], empty);
}

fn counters_follow_a_message(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    consumer.send(&command::publish_many("t", &[b"one", b"two"]));
    consumer.expect_ok();
    consumer.ready(1);
    let first = consumer.message();
    let channel = node.await_channel("t", "c", |channel| channel["in_flight_count"] == 1);
    assert_eq!(
        (&channel["depth"], &channel["message_count"]),
        (&json!(1), &json!(2))
    );
    consumer.requeue(&first.id, 60_000);
    let second = consumer.message();
    consumer.ready(0);
    consumer.finish(&second.id);
    let channel = node.await_channel("t", "c", |channel| channel["clients"][0]["finish_count"] == 1);
    let client = &channel["clients"][0];
    let counts = [
        "depth",
        "in_flight_count",
        "deferred_count",
        "requeue_count",
        "message_count",
        "timeout_count",
    ];
    assert_eq!(
        counts.map(|count| channel[count].as_u64()),
        [0, 0, 1, 1, 2, 0].map(Some)
    );
    let counts = [
        "in_flight_count",
        "message_count",
        "finish_count",
        "requeue_count",
        "ready_count",
    ];
    assert_eq!(
        counts.map(|count| client[count].as_u64()),
        [0, 2, 1, 1, 0].map(Some)
    );
    let topic = node.topic("t");
    assert_eq!(
        (&topic["message_count"], &topic["message_bytes"]),
        (&json!(2), &json!(6))
    );
}

fn stats_text_names_everything(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.client();
    consumer.identify(r#"{"hostname":"consumer.example.org","user_agent":"suite/1"}"#);
    consumer.subscribe("t", "c");
    node.http()
        .post("/channel/pause?topic=t&channel=c", "")
        .expect_done();
    node.http().post("/pub?topic=t", "body").expect_ok();
    node.await_channel("t", "c", |channel| channel["depth"] == 1);
    let text = node.http().get("/stats").text();
    for line in [
        "\nHealth: OK\n",
        "\nMemory:\n   heap_objects             \t",
        "\nTopics:\n   [t              ] depth: 0     be-depth: 0     msgs: 1        e2e%: \n",
        "\n   *P [c                        ] depth: 1     be-depth: 0     inflt: 0    def: 0    re-q: 0     timeout: 0     msgs: 1        e2e%: \n",
        " suite/1] state: 3 inflt: 0    rdy: 0    fin: 0        re-q: 0        msgs: 0        connected: ",
        "\nProducers: None",
    ] {
        assert!(text.contains(line), "{line:?} in:\n{text}");
    }
}

fn query(node: &Node, parameters: &str) -> Value {
    node.http()
        .get(&format!("/stats?format=json&{parameters}"))
        .json()
}

const MEMORY_KEYS: [&str; 9] = [
    "heap_objects",
    "heap_idle_bytes",
    "heap_in_use_bytes",
    "heap_released_bytes",
    "gc_pause_usec_100",
    "gc_pause_usec_99",
    "gc_pause_usec_95",
    "next_gc_bytes",
    "gc_total_runs",
];

const CLIENT_KEYS: [&str; 20] = [
    "client_id",
    "hostname",
    "version",
    "remote_address",
    "state",
    "ready_count",
    "in_flight_count",
    "message_count",
    "finish_count",
    "requeue_count",
    "connect_ts",
    "sample_rate",
    "deflate",
    "snappy",
    "user_agent",
    "tls",
    "tls_cipher_suite",
    "tls_version",
    "tls_negotiated_protocol",
    "tls_negotiated_protocol_is_mutual",
];
