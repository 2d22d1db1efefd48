//! C-117 to C-120, H-53, H-59: nsqd as a client of nsqlookupd (nsq-tcp 7.5, 7.6).

use std::time::Duration;

use e2e::fake_lookupd::FakeLookupd;
use e2e::lookupd::Lookupd;
use e2e::{Broker, Node, eventually, statements};
use serde_json::json;

statements! {
    both {
        c_117_nsqd_introduces_itself_and_registers,
        c_117_nsqd_pings_every_fifteen_seconds,
        c_118_nsqd_registers_again_after_a_restart_of_nsqlookupd,
        c_119_a_new_topic_gets_the_known_channels_first,
        c_119_channels_known_to_nsqlookupd_get_the_first_message,
        c_120_an_unreachable_lookup_does_not_stop_a_publish,
        h_59_a_topic_made_by_http_gets_the_known_channels,
        deleted_topics_and_channels_are_unregistered,
    }
}

fn c_117_nsqd_introduces_itself_and_registers(broker: &Broker) {
    let lookupd = FakeLookupd::listing(&[]);
    let node = broker.start();
    node.client().subscribe("t", "c");
    node.client().publish("u", "x");
    let node = node
        .terminate()
        .flag("lookupd-tcp-address", lookupd.tcp_address())
        .start();
    lookupd.await_line("REGISTER t c", SOON);
    lookupd.await_line("REGISTER u", SOON);
    let sent = lookupd.sent();
    assert_eq!(
        (sent[0].line.as_str(), sent[1].line.as_str()),
        ("  V1", "IDENTIFY")
    );
    let introduction = &sent[1].body;
    assert!(introduction["hostname"].is_string());
    let (tcp, http) = (node.tcp_address().port(), node.http_address().port());
    assert_eq!(introduction["broadcast_address"], "127.0.0.1");
    assert_eq!(
        (&introduction["tcp_port"], &introduction["http_port"]),
        (&json!(tcp), &json!(http))
    );
    assert_eq!(introduction["version"], "1.3.0");
    node.client().subscribe("v", "d");
    lookupd.await_line("REGISTER v d", SOON);
}

fn c_117_nsqd_pings_every_fifteen_seconds(broker: &Broker) {
    let lookupd = FakeLookupd::listing(&[]);
    let _node = node_of(broker, &lookupd);
    let pings = eventually("two PINGs", Duration::from_secs(35), || {
        let sent = lookupd.sent();
        let pings: Vec<_> = sent
            .into_iter()
            .filter(|sent| sent.line == "PING")
            .map(|sent| sent.at)
            .collect();
        (pings.len() == 2).then_some(pings)
    });
    let between = pings[1] - pings[0];
    assert!(
        (Duration::from_secs(14)..Duration::from_secs(16)).contains(&between),
        "{between:?}"
    );
}

fn c_118_nsqd_registers_again_after_a_restart_of_nsqlookupd(broker: &Broker) {
    let Some(mut lookupd) = Lookupd::start() else {
        return;
    };
    let node = broker
        .node()
        .flag("lookupd-tcp-address", lookupd.tcp_address())
        .start();
    node.client().subscribe("t", "c");
    lookupd.await_producer("t", SOON);
    lookupd.restart();
    assert!(lookupd.lookup("t")["producers"].is_null());
    lookupd.await_producer("t", Duration::from_secs(31));
    eventually("the channel is registered again", SOON, || {
        (lookupd.lookup("t")["channels"] == json!(["c"])).then_some(())
    });
}

fn c_119_a_new_topic_gets_the_known_channels_first(broker: &Broker) {
    let lookupd = FakeLookupd::listing(&["archive", "passing#ephemeral"]);
    let node = node_of(broker, &lookupd);
    node.client().publish("t", "first");
    let channel = node.await_channel("t", "archive", |channel| channel["depth"] == 1);
    assert_eq!(channel["message_count"], 1);
    assert!(node.channel("t", "passing#ephemeral").is_null());
    let mut consumer = node.consumer("t", "archive");
    consumer.ready(1);
    assert_eq!(consumer.message().body, b"first");
    let asked: Vec<_> = lookupd
        .requests()
        .into_iter()
        .map(|request| request.line)
        .collect();
    assert!(
        asked.contains(&"GET /channels?topic=t HTTP/1.1".to_owned()),
        "{asked:?}"
    );
}

fn c_119_channels_known_to_nsqlookupd_get_the_first_message(broker: &Broker) {
    let Some(lookupd) = Lookupd::start() else { return };
    lookupd
        .http()
        .post("/channel/create?topic=t&channel=archive", "")
        .expect_done();
    let node = broker
        .node()
        .flag("lookupd-tcp-address", lookupd.tcp_address())
        .start();
    for topic in INTRODUCTION {
        node.client().publish(topic, "x");
        lookupd.await_producer(topic, SOON);
    }
    node.client().publish("t", "first");
    node.await_channel("t", "archive", |channel| channel["depth"] == 1);
}

fn c_120_an_unreachable_lookup_does_not_stop_a_publish(broker: &Broker) {
    let lookupd = FakeLookupd::without_http();
    let node = node_of(broker, &lookupd);
    node.client().publish("t", "first");
    node.await_topic("t", |topic| topic["depth"] == 1);
}

fn h_59_a_topic_made_by_http_gets_the_known_channels(broker: &Broker) {
    let lookupd = FakeLookupd::listing(&["archive", "passing#ephemeral"]);
    let node = node_of(broker, &lookupd);
    node.http().post("/topic/create?topic=t", "").expect_done();
    let topic = node.topic("t");
    assert_eq!(topic["channels"].as_array().map(Vec::len), Some(1), "{topic}");
    assert_eq!(topic["channels"][0]["channel_name"], "archive");
}

fn deleted_topics_and_channels_are_unregistered(broker: &Broker) {
    let lookupd = FakeLookupd::listing(&[]);
    let node = node_of(broker, &lookupd);
    node.client().subscribe("t", "c");
    lookupd.await_line("REGISTER t c", SOON);
    node.http()
        .post("/channel/delete?topic=t&channel=c", "")
        .expect_done();
    lookupd.await_line("UNREGISTER t c", SOON);
    node.http().post("/topic/delete?topic=t", "").expect_done();
    lookupd.await_line("UNREGISTER t", SOON);
}

/// A node that asks `lookupd` about new topics. A topic made while the node still connects may be registered
/// before that; one made after it has been registered is not, so the second shows that the node is ready.
fn node_of(broker: &Broker, lookupd: &FakeLookupd) -> Node {
    let node = broker
        .node()
        .flag("lookupd-tcp-address", lookupd.tcp_address())
        .start();
    for topic in INTRODUCTION {
        node.client().publish(topic, "x");
        // With its channels, if the lookupd knows any; then the topic needs no line of its own.
        lookupd.await_line_starting(&format!("REGISTER {topic}"), SOON);
    }
    node
}

const INTRODUCTION: [&str; 2] = ["introduction-1", "introduction-2"];
const SOON: Duration = Duration::from_secs(5);
