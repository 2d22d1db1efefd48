//! Statements about `/stats` and `/metrics`.

use super::*;
use crate::metrics::latency::{LatencySummary, Percentile};
use crate::metrics::snapshot::{ChannelStats, ClientStats, PubCount, TopicStats};

fn client(name: &str) -> ClientStats {
    ClientStats {
        client_id: name.to_owned(),
        hostname: "ho<st".to_owned(),
        version: "V2",
        remote_address: "127.0.0.1:32914".to_owned(),
        ..ClientStats::default()
    }
}

fn channel(name: &str) -> ChannelStats {
    ChannelStats {
        channel_name: name.to_owned(),
        depth_exact: true,
        settings: Some(ChannelSettings::default()),
        ..ChannelStats::default()
    }
}

fn topic(name: &str, channels: Vec<ChannelStats>) -> TopicStats {
    TopicStats {
        topic_name: name.to_owned(),
        channels,
        settings: Some(TopicSettings::default()),
        ..TopicStats::default()
    }
}

fn desk_with(topics: Vec<TopicStats>, producers: Vec<ClientStats>) -> Arc<FakeDesk> {
    let desk = FakeDesk::new();
    desk.0.lock().snapshot = Snapshot { topics, producers };
    desk
}

/// Two topics, one with two channels, a consumer and a producer.
fn busy() -> Arc<FakeDesk> {
    let consumed = ChannelStats {
        client_count: 1,
        clients: Some(vec![client("consumer")]),
        ..channel("b")
    };
    let count = |topic: &str| PubCount {
        topic: topic.to_owned(),
        count: 2,
    };
    let producer = ClientStats {
        pub_counts: vec![count("t1"), count("t2")],
        ..client("producer")
    };
    desk_with(
        vec![topic("t2", vec![]), topic("t1", vec![consumed, channel("a")])],
        vec![producer],
    )
}

async fn json(desk: &Arc<FakeDesk>, query: &str) -> serde_json::Value {
    let got = send(desk, &format!("GET /stats?format=json&{query}"), "").await;
    assert_eq!(
        got.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    serde_json::from_str(&got.body).unwrap()
}

#[tokio::test]
async fn h_40_an_empty_server_has_the_frame_of_stock() {
    let got = send(&FakeDesk::new(), "GET /stats?format=json", "").await.body;
    assert!(
        got.starts_with(r#"{"version":"1.3.0","health":"OK","start_time":1796053195,"topics":[],"memory":{"#)
    );
    assert!(got.ends_with(r#""producers":null}"#));
    let keys = [
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
    assert!(keys.iter().all(|key| got.contains(&format!("\"{key}\":"))));
}

#[tokio::test]
async fn h_41_filters_leave_out_or_give_null() {
    let got = json(&busy(), "topic=absent").await;
    assert!(got["topics"].is_null() && got["producers"].is_null());
    let got = json(&busy(), "topic=t1&channel=absent").await;
    assert_eq!(got["topics"], serde_json::json!([]));
    assert_eq!(got["producers"].as_array().unwrap().len(), 1);
    let got = json(&busy(), "channel=a").await;
    assert_eq!(got["topics"].as_array().unwrap().len(), 1);
    assert_eq!(got["topics"][0]["channels"].as_array().unwrap().len(), 1);
    let got = json(&busy(), "topic=&channel=").await;
    assert_eq!(got["topics"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn h_42_clients_can_be_left_out() {
    for off in ["false", "0"] {
        let got = json(&busy(), &format!("include_clients={off}")).await;
        let channel = &got["topics"][0]["channels"][1];
        assert!(channel["clients"].is_null() && got["producers"].is_null());
        assert_eq!(channel["client_count"], 1);
    }
    let got = json(&busy(), "include_clients=no").await;
    assert_eq!(got["topics"][0]["channels"][0]["clients"], serde_json::json!([]));
    assert_eq!(
        got["topics"][0]["channels"][1]["clients"][0]["client_id"],
        "consumer"
    );
}

#[tokio::test]
async fn h_43_memory_can_be_left_out() {
    assert!(json(&busy(), "include_mem=0").await.get("memory").is_none());
    assert!(json(&busy(), "include_mem=no").await.get("memory").is_some());
}

#[tokio::test]
async fn h_44_only_the_exact_word_gives_json() {
    for query in ["format=JSON", "format=text", ""] {
        let got = send(&busy(), &format!("GET /stats?{query}"), "").await;
        assert!(
            got.body
                .starts_with("nsqd v1.3.0 (built w/test)\nstart_time 2026-11-30T15:39:55Z\nuptime ")
        );
        assert_eq!(got.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(got.header("x-nsq-content-type"), Some("nsq; version=1.0"));
    }
    assert_eq!(ask("GET /stats?a;b", "").await, refused(400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn h_45_topics_and_channels_are_sorted() {
    let got = json(&busy(), "").await;
    assert_eq!(
        (&got["topics"][0]["topic_name"], &got["topics"][1]["topic_name"]),
        (&"t1".into(), &"t2".into())
    );
    let channels = &got["topics"][0]["channels"];
    assert_eq!(
        (&channels[0]["channel_name"], &channels[1]["channel_name"]),
        (&"a".into(), &"b".into())
    );
}

#[tokio::test]
async fn h_46_producers_count_per_topic() {
    let got = json(&busy(), "").await;
    assert_eq!(got["producers"][0]["pub_counts"].as_array().unwrap().len(), 2);
    let got = json(&busy(), "topic=t2").await;
    assert_eq!(
        got["producers"][0]["pub_counts"],
        serde_json::json!([{"topic": "t2", "count": 2}])
    );
}

#[tokio::test]
async fn h_47_clients_omit_what_is_empty_and_keep_the_tls_keys() {
    let got = send(&busy(), "GET /stats?format=json&topic=t1&channel=b", "")
        .await
        .body;
    let expected = concat!(
        r#""clients":[{"client_id":"consumer","hostname":"ho\u003cst","version":"V2","#,
        r#""remote_address":"127.0.0.1:32914","state":0,"ready_count":0,"in_flight_count":0,"message_count":0,"#,
        r#""finish_count":0,"requeue_count":0,"connect_ts":0,"sample_rate":0,"deflate":false,"snappy":false,"#,
        r#""user_agent":"","tls":false,"tls_cipher_suite":"","tls_version":"","tls_negotiated_protocol":"","#,
        r#""tls_negotiated_protocol_is_mutual":false}],"paused":false"#
    );
    assert!(got.contains(expected), "{got}");
}

#[tokio::test]
async fn h_48_percentiles_are_null_or_in_the_configured_order() {
    let got = send(&busy(), "GET /stats?format=json", "").await.body;
    let e2e = r#""e2e_processing_latency":{"count":0,"percentiles":null}"#;
    assert_eq!(got.matches(e2e).count(), 4);
    let percentile = |quantile, value| Percentile { quantile, value };
    let latency = LatencySummary {
        count: 2,
        percentiles: Some(vec![percentile(1.0, 132_921_213.0), percentile(0.99, 0.0)]),
    };
    let with_latency = TopicStats {
        e2e_processing_latency: latency,
        ..topic("t", vec![])
    };
    let got = send(
        &desk_with(vec![with_latency], vec![]),
        "GET /stats?format=json",
        "",
    )
    .await
    .body;
    let expected =
        r#"{"count":2,"percentiles":[{"quantile":1,"value":132921213},{"quantile":0.99,"value":0}]}"#;
    assert!(got.contains(expected), "{got}");
}

#[tokio::test]
async fn stock_fields_come_first_in_stock_order() {
    let got = send(
        &busy(),
        "GET /stats?format=json&include_mem=0&include_clients=0&topic=t1&channel=a",
        "",
    )
    .await;
    let expected = concat!(
        r#"{"version":"1.3.0","health":"OK","start_time":1796053195,"topics":[{"topic_name":"t1","channels":["#,
        r#"{"channel_name":"a","depth":0,"backend_depth":0,"in_flight_count":0,"deferred_count":0,"#,
        r#""message_count":0,"requeue_count":0,"timeout_count":0,"client_count":0,"clients":null,"paused":false,"#,
        r#""e2e_processing_latency":{"count":0,"percentiles":null},"delivered_count":0,"finished_count":0,"#,
        r#""dropped_count":0,"depth_exact":true,"settings":{"paused":false}}],"#,
        r#""depth":0,"backend_depth":0,"message_count":0,"message_bytes":0,"paused":false,"#,
        r#""e2e_processing_latency":{"count":0,"percentiles":null},"disk_bytes":0,"memory_bytes":0,"#,
        r#""oldest_sequence":0,"newest_sequence":0,"settings":{"durability":"interval","retention_time":"0s","#,
        r#""retention_bytes":0}}],"producers":null}"#
    );
    assert_eq!(got.body, expected);
}

#[tokio::test]
async fn settings_show_when_a_topic_is_named() {
    let got = json(&busy(), "").await;
    assert!(got["topics"][0].get("settings").is_none());
    assert!(got["topics"][0]["channels"][0].get("settings").is_none());
}

#[tokio::test]
async fn a_sick_broker_says_so() {
    let desk = busy();
    desk.0.lock().sick = Some("disk".to_owned());
    assert_eq!(json(&desk, "").await["health"], "NOK - disk");
    let got = send(&desk, "GET /stats", "").await;
    assert!(got.body.contains("\nHealth: NOK - disk\n"));
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let got = send(&busy(), "GET /metrics", "").await;
    assert_eq!(
        got.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    assert!(
        got.body
            .contains("nsq_channel_depth{topic=\"t1\",channel=\"a\"} 0\n"),
        "{}",
        got.body
    );
}
