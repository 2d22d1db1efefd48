//! Duty: the scenarios that every client library plays, each against a broker of its own.
//!
//! In: a broker and a library. A scenario starts programs, then judges what they print and what `/stats`
//! shows. Timing is judged by the programs' clocks and only where a library's part in it shows; precision is
//! the business of the other suites.

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::auth_server::AuthServer;
use e2e::broker::Kind;
use e2e::lookupd::Lookupd;
use e2e::pki::Pki;
use e2e::{Broker, Node, eventually};

use super::program::{Delivery, Library, PATIENCE, Program};
use super::skip;
use super::stage::{
    CHANNEL, TOPIC, await_channel, await_finished, await_ready, consume, is_empty, is_finished, nsqd, publish,
};

pub(super) fn publish_single(broker: &Broker, library: Library) {
    let node = broker.start();
    expect_published_in_order(&node, library, "publish");
}

pub(super) fn publish_multi(broker: &Broker, library: Library) {
    let node = broker.start();
    expect_published_in_order(&node, library, "publish_multi");
}

pub(super) fn publish_deferred(broker: &Broker, library: Library) {
    let node = broker.start();
    let mut reader = node.consumer(TOPIC, CHANNEL);
    let publisher = library.start(
        "publish_deferred",
        [nsqd(&node).as_str(), "topic=t", "delay=5000"],
    );
    await_channel(&node, "the message waits", |channel| {
        channel["deferred_count"] == 1
    });
    assert_eq!(publisher.finish(), ["m0"]);
    await_channel(&node, "the message is due", |channel| channel["depth"] == 1);
    reader.ready(1);
    assert_eq!(reader.message().body, b"m0");
}

pub(super) fn consume_and_finish(broker: &Broker, library: Library) {
    let node = broker.start();
    let consumer = consume(library, &node, "max_in_flight=10");
    await_ready(&node, 1);
    publish(&node, 100);
    let channel = await_finished(&node, 100);
    assert_eq!(channel["requeue_count"], 0);
    assert_eq!(channel["timeout_count"], 0);
    let deliveries = consumer.stop();
    assert_eq!(deliveries.len(), 100);
    assert_eq!(names(&deliveries), expected(100));
    assert!(deliveries.iter().all(|delivery| delivery.attempts == 1));
}

pub(super) fn requeue_with_delay(broker: &Broker, library: Library) {
    let node = broker.start();
    let consumer = consume(library, &node, "requeue=1500");
    await_ready(&node, 1);
    broker.settle();
    publish(&node, 1);
    let channel = await_finished(&node, 1);
    assert_eq!(channel["requeue_count"], 1);
    assert_eq!(channel["timeout_count"], 0);
    let deliveries = consumer.stop();
    let [first, second] = &deliveries[..] else {
        panic!("not delivered twice: {deliveries:?}");
    };
    assert_eq!((first.attempts, second.attempts), (1, 2));
    let pause = second.at.saturating_sub(first.at);
    assert!(pause >= Duration::from_millis(1500), "came again after {pause:?}");
}

pub(super) fn touch_beyond_the_timeout(broker: &Broker, library: Library) {
    let node = broker.node().flag("msg-timeout", "2s").start();
    let consumer = consume(library, &node, "hold=5000 touch=500");
    await_ready(&node, 1);
    // From now on a message that is not touched times out.
    broker.settle();
    publish(&node, 1);
    let channel = await_finished(&node, 1);
    assert_eq!(channel["timeout_count"], 0);
    let deliveries = consumer.stop();
    assert_eq!(deliveries.len(), 1, "{deliveries:?}");
}

/// As many failures as messages in flight: a success among them may end the pause at once. That a consumer
/// gets back to its full RDY is not asked for: after several failures nsq-j may stay at 1.
pub(super) fn back_off_and_recover(broker: &Broker, library: Library) {
    let node = broker.start();
    let consumer = consume(library, &node, "max_in_flight=5 fail=5");
    await_ready(&node, 1);
    publish(&node, 20);
    await_channel(&node, "the consumer backs off", |channel| {
        channel["requeue_count"].as_u64() > Some(0) && channel["clients"][0]["ready_count"] == 0
    });
    await_finished(&node, 20);
    await_ready(&node, 1);
    let deliveries = consumer.stop();
    assert_eq!(deliveries.len(), 25, "20 messages and 5 failures");
    assert_eq!(names(&deliveries), expected(20));
}

pub(super) fn tls(broker: &Broker, library: Library) {
    let pki = Pki::new();
    expect_round_trip(&only_tls(broker, &pki), library, &trusting(&pki), &["tls"]);
}

pub(super) fn snappy(broker: &Broker, library: Library) {
    expect_round_trip(&broker.start(), library, "compression=snappy", &["snappy"]);
}

pub(super) fn deflate(broker: &Broker, library: Library) {
    expect_round_trip(&broker.start(), library, "compression=deflate", &["deflate"]);
}

pub(super) fn tls_and_snappy(broker: &Broker, library: Library) {
    let pki = Pki::new();
    let options = format!("{} compression=snappy", trusting(&pki));
    expect_round_trip(&only_tls(broker, &pki), library, &options, &["tls", "snappy"]);
}

pub(super) fn auth(broker: &Broker, library: Library) {
    let server = AuthServer::start();
    let node = broker.node().flag("auth-http-address", server.address()).start();
    expect_round_trip(&node, library, "auth=open-sesame", &["authed"]);
    let asked = server.requests();
    assert!(asked.len() >= 2, "publisher and consumer: {asked:?}");
    assert!(
        asked
            .iter()
            .all(|request| request.line.contains("secret=open-sesame")),
        "{asked:?}"
    );
}

pub(super) fn sample_rate(broker: &Broker, library: Library) {
    let node = broker.start();
    let consumer = consume(library, &node, "max_in_flight=10 sample_rate=50");
    let channel = await_ready(&node, 1);
    assert_eq!(channel["clients"][0]["sample_rate"], 50);
    publish(&node, 1000);
    await_channel(&node, "everything is sampled", |channel| {
        channel["message_count"] == 1000 && is_empty(channel)
    });
    let count = consumer.stop().len();
    assert!((400..=600).contains(&count), "{count} of 1000 at 50 %");
}

/// Stock keeps what a stop saves and what it had room for on disk; only ours promises what it acknowledged.
pub(super) fn reconnect_after_a_kill(broker: &Broker, library: Library) {
    let node = broker.start();
    let consumer = consume(library, &node, "max_in_flight=10");
    await_ready(&node, 1);
    let arguments = [nsqd(&node).as_str(), "topic=t", "count=300", "pace=20"].map(str::to_owned);
    let publisher = library.start("publish", arguments.iter().map(String::as_str));
    eventually("some messages are acknowledged", PATIENCE, || {
        (publisher.acknowledged().len() >= 30).then_some(())
    });
    let node = node.kill().start();
    let acknowledged = publisher.finish();
    assert_eq!(acknowledged.len(), 300);
    let promised: BTreeSet<_> = match broker.kind() {
        Kind::Stock => acknowledged.into_iter().skip(250).collect(),
        Kind::Ours => acknowledged.into_iter().collect(),
    };
    eventually("everything promised is delivered", PATIENCE, || {
        promised.is_subset(&names(&consumer.deliveries())).then_some(())
    });
    await_channel(&node, "nothing is left", is_empty);
    consumer.stop();
}

pub(super) fn two_consumers_share(broker: &Broker, library: Library) {
    let node = broker.start();
    let consumers = [consume(library, &node, ""), consume(library, &node, "")];
    await_ready(&node, 2);
    publish(&node, 200);
    await_finished(&node, 200);
    let [first, second] = consumers.map(Program::stop);
    assert!(
        !first.is_empty() && !second.is_empty(),
        "one got all: {} and {}",
        first.len(),
        second.len()
    );
    assert_eq!(first.len() + second.len(), 200);
    assert_eq!(&names(&first) | &names(&second), expected(200));
}

pub(super) fn max_in_flight(broker: &Broker, library: Library) {
    let node = broker.start();
    let consumer = consume(library, &node, "max_in_flight=5 hold=1000");
    await_ready(&node, 1);
    publish(&node, 20);
    let mut most = 0;
    await_channel(&node, "everything is finished", |channel| {
        let in_flight = channel["in_flight_count"].as_u64().expect("in_flight_count");
        most = most.max(in_flight);
        is_finished(channel, 20)
    });
    assert_eq!(most, 5, "most messages in flight");
    assert_eq!(consumer.stop().len(), 20);
}

pub(super) fn discovery(broker: &Broker, library: Library) {
    let Some(lookupd) = Lookupd::start() else {
        return skip("stock nsqlookupd not given");
    };
    let nodes = [(); 2].map(|()| {
        let node = broker
            .node()
            .flag("lookupd-tcp-address", lookupd.tcp_address())
            .start();
        node.client().publish(TOPIC, "m0");
        node
    });
    eventually("both nodes are registered", PATIENCE, || {
        let producers = lookupd.lookup(TOPIC)["producers"].as_array().map(Vec::len);
        (producers == Some(2)).then_some(())
    });
    let lookupd = format!("lookupd={}", lookupd.http_address());
    let consumer = library.start(
        "consume",
        [lookupd.as_str(), "topic=t", "channel=c", "max_in_flight=10"],
    );
    for node in &nodes {
        await_ready(node, 1);
        await_finished(node, 1);
    }
    assert_eq!(consumer.stop().len(), 2);
}

/// The library's publisher and a plain reader.
fn expect_published_in_order(node: &Node, library: Library, verb: &str) {
    let mut reader = node.consumer(TOPIC, CHANNEL);
    let publisher = library.start(verb, [nsqd(node).as_str(), "topic=t", "count=20"]);
    let published: Vec<_> = (0..20).map(|number| format!("m{number}")).collect();
    assert_eq!(publisher.finish(), published);
    reader.ready(20);
    let read: Vec<_> = reader
        .messages(20)
        .into_iter()
        .map(|message| message.body)
        .collect();
    let published: Vec<_> = published.into_iter().map(String::into_bytes).collect();
    assert_eq!(read, published);
    assert_eq!(node.topic(TOPIC)["message_count"], 20);
}

/// The library's publisher and the library's consumer, both with `options`, bodies of several records and
/// blocks. The broker says of the consumer that it has each of `features`.
fn expect_round_trip(node: &Node, library: Library, options: &str, features: &[&str]) {
    let consumer = consume(library, node, &format!("max_in_flight=5 {options}"));
    let channel = await_ready(node, 1);
    for feature in features {
        assert_eq!(channel["clients"][0][feature], true, "{feature}");
    }
    let nsqd = nsqd(node);
    let arguments = [nsqd.as_str(), "topic=t", "count=20", "size=200000"];
    let publisher = library.start("publish", arguments.into_iter().chain(options.split(' ')));
    assert_eq!(publisher.finish().len(), 20);
    await_finished(node, 20);
    let deliveries = consumer.stop();
    assert_eq!(names(&deliveries), expected(20));
    assert!(deliveries.iter().all(|delivery| delivery.length == 200_000));
}

fn only_tls(broker: &Broker, pki: &Pki) -> Node {
    broker
        .node()
        .arguments(pki.server_flags())
        .flag("tls-required", "tcp-https")
        .start()
}

fn trusting(pki: &Pki) -> String {
    format!("tls={}", pki.authority_file().display())
}

fn names(deliveries: &[Delivery]) -> BTreeSet<String> {
    deliveries.iter().map(|delivery| delivery.name.clone()).collect()
}

fn expected(count: usize) -> BTreeSet<String> {
    (0..count).map(|number| format!("m{number}")).collect()
}
