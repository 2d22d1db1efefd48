//! The broker is killed or stopped at any moment, again and again: what it promised is kept, what it repeats is bounded.
//!
//! A run is as random as its seed, which it prints; `NSQX_SEED` repeats one, `NSQX_DEEP=1` makes it long.

use std::env;
use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use e2e::ledger::Ledger;
use e2e::load::{Load, Manners};
use e2e::wire::{Client, Frame, command};
use e2e::{Broker, Node, eventually, statements};
use fastrand::Rng;

statements! {
    ours {
        a_killed_broker_keeps_what_it_acknowledged,
        a_killed_broker_that_syncs_always_keeps_what_it_acknowledged,
        a_stopped_broker_repeats_only_what_was_in_flight,
        what_was_answered_is_there_after_a_kill,
        a_deleted_topic_leaves_nothing_and_can_be_made_again_at_once,
        a_topic_whose_last_channel_was_ephemeral_keeps_what_comes_later,
    }
}

fn a_killed_broker_keeps_what_it_acknowledged(broker: &Broker) {
    live_and_die(broker, "interval", End::Kill, 6);
}

fn a_killed_broker_that_syncs_always_keeps_what_it_acknowledged(broker: &Broker) {
    live_and_die(broker, "always", End::Kill, 4);
}

fn a_stopped_broker_repeats_only_what_was_in_flight(broker: &Broker) {
    live_and_die(broker, "interval", End::Stop, 4);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Kill,
    Stop,
}

fn live_and_die(broker: &Broker, durability: &str, end: End, lives: u32) {
    let seed = env::var("NSQX_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().expect("a seed"));
    println!("NSQX_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let deep = env::var_os("NSQX_DEEP").is_some();
    let lives = if deep { lives * 50 } else { lives };

    let ledger = Arc::new(Ledger::new("load", &["one", "other"]));
    let mut node = broker
        .node()
        .flag("durability", durability)
        .flag("checkpoint-interval", "100ms")
        .flag("msg-timeout", "2s")
        .flag("max-bytes-per-file", 200_000)
        .flag("memory-tail", "64KiB")
        .flag("mem-queue-size", rng.u32(..200))
        .start();
    for life in 0..lives {
        let publishers = rng.u32(1..4);
        let load = Load::start(&node, &ledger, publishers, Manners::Varied, &mut rng);
        // The moment of the end is all there is to choose.
        thread::sleep(Duration::from_millis(rng.u64(1..2500)));
        let now = Instant::now();
        let (setup, window) = match end {
            End::Kill => (node.kill(), REPEATED),
            End::Stop => (node.terminate(), Duration::ZERO),
        };
        load.join();
        ledger.broker_ended(now, window);
        let left = rng.fork();
        node = setup.start();
        if deep && life % 10 == 9 {
            drain(&node, &ledger, left);
        }
    }
    drain(&node, &ledger, rng.fork());
    ledger.expect_growing_ids();
    println!(
        "{} messages acknowledged in {lives} lives, {} deliveries repeated",
        ledger.acknowledged_count(),
        ledger.repeats()
    );
    expect_no_panic(&node);
}

/// Consumes everything and checks that nothing is missing.
fn drain(node: &Node, ledger: &Arc<Ledger>, mut rng: Rng) {
    let load = Load::start(node, ledger, 0, Manners::Finishing, &mut rng);
    eventually("every channel is empty", Duration::from_mins(1), || {
        let idle = |channel: &String| {
            let channel = node.channel(ledger.topic(), channel);
            ["depth", "in_flight_count", "deferred_count"]
                .iter()
                .all(|count| channel[count] == 0)
        };
        ledger.channels().iter().all(idle).then_some(())
    });
    load.stop();
    let missing = ledger.missing();
    assert!(
        missing.is_empty(),
        "{} missing, such as {:?}",
        missing.len(),
        &missing[..missing.len().min(5)]
    );
}

/// Everything that is durable before it is answered, each followed by a kill.
fn what_was_answered_is_there_after_a_kill(broker: &Broker) {
    let mut node = broker.start();
    for (name, call, check) in CALLS {
        println!("{name}");
        call(&node);
        node = node.kill().start();
        check(&node);
        expect_no_panic(&node);
    }
}

type Step = fn(&Node);

const CALLS: &[(&str, Step, Step)] = &[
    (
        "create a topic",
        |node| post(node, "/topic/create?topic=t"),
        |node| assert_eq!(node.topic("t")["depth"], 0),
    ),
    (
        "create a channel",
        |node| post(node, "/channel/create?topic=t&channel=c"),
        |node| assert_eq!(node.channel("t", "c")["depth"], 0),
    ),
    (
        "pause a channel",
        |node| post(node, "/channel/pause?topic=t&channel=c"),
        |node| assert_eq!(node.channel("t", "c")["paused"], true),
    ),
    (
        "unpause a channel",
        |node| post(node, "/channel/unpause?topic=t&channel=c"),
        |node| assert_eq!(node.channel("t", "c")["paused"], false),
    ),
    (
        "pause a topic",
        |node| post(node, "/topic/pause?topic=t"),
        |node| {
            assert_eq!(node.topic("t")["paused"], true);
            publish(node, "t", 3);
            assert_eq!(node.topic("t")["depth"], 3);
        },
    ),
    (
        "unpause a topic",
        |node| post(node, "/topic/unpause?topic=t"),
        |node| {
            assert_eq!(node.topic("t")["paused"], false);
            assert_eq!(node.topic("t")["depth"], 0);
            assert_eq!(node.channel("t", "c")["depth"], 3);
        },
    ),
    (
        "empty a channel",
        |node| post(node, "/channel/empty?topic=t&channel=c"),
        |node| assert_eq!(node.channel("t", "c")["depth"], 0),
    ),
    (
        "seek back",
        |node| post_json(node, "/channel/seek?topic=t&channel=c", r#"{"to":"beginning"}"#),
        |node| assert_eq!(node.channel("t", "c")["depth"], 3),
    ),
    (
        "seek on",
        |node| post_json(node, "/channel/seek?topic=t&channel=c", r#"{"to":"end"}"#),
        |node| assert_eq!(node.channel("t", "c")["depth"], 0),
    ),
    (
        "delete a channel",
        |node| {
            publish(node, "t", 2);
            post(node, "/channel/delete?topic=t&channel=c");
        },
        |node| {
            assert!(node.channel("t", "c").is_null());
            assert_eq!(
                node.topic("t")["depth"],
                0,
                "what it left unread does not come back"
            );
        },
    ),
    (
        "empty a topic",
        |node| {
            publish(node, "t", 2);
            assert_eq!(node.topic("t")["depth"], 2);
            post(node, "/topic/empty?topic=t");
        },
        |node| {
            assert_eq!(node.topic("t")["depth"], 0);
            node.client().subscribe("t", "c");
            assert_eq!(node.channel("t", "c")["depth"], 0);
        },
    ),
    (
        "set a topic",
        |node| {
            let set = node
                .http()
                .put("/topic/settings?topic=t", r#"{"durability":"always"}"#);
            assert_eq!(set.status, 200, "{set:?}");
        },
        |node| {
            let settings = node.http().get("/topic/settings?topic=t").json();
            assert_eq!(settings["durability"], "always");
        },
    ),
    (
        "set a channel",
        |node| {
            let set = node
                .http()
                .put("/channel/settings?topic=t&channel=c", r#"{"paused":true}"#);
            assert_eq!(set.status, 200, "{set:?}");
        },
        |node| assert_eq!(node.channel("t", "c")["paused"], true),
    ),
    (
        "delete a topic",
        |node| post(node, "/topic/delete?topic=t"),
        |node| assert!(node.topic("t").is_null()),
    ),
    (
        "SUB",
        |node| node.client().subscribe("u", "c"),
        |node| assert_eq!(node.channel("u", "c")["depth"], 0),
    ),
    (
        "the first PUB",
        |node| node.client().publish("v", "first"),
        |node| assert_eq!(node.topic("v")["depth"], 1),
    ),
    (
        "the first /pub",
        |node| node.http().post("/pub?topic=w", "first").expect_ok(),
        |node| {
            assert_eq!(node.topic("w")["depth"], 1);
            assert_eq!(node.topic("v")["depth"], 1);
        },
    ),
];

fn a_deleted_topic_leaves_nothing_and_can_be_made_again_at_once(broker: &Broker) {
    let node = broker.node().flag("max-bytes-per-file", 10_000).start();
    let mut last = String::new();
    for _ in 0..5 {
        node.client().subscribe("t", "c");
        publish(&node, "t", 50);
        let mut consumer = node.consumer("t", "c");
        consumer.ready(50);
        let ids: Vec<String> = consumer
            .messages(50)
            .into_iter()
            .map(|message| message.id)
            .collect();
        assert!(ids.iter().all(|id| *id > last), "ids start again");
        last.clone_from(&ids[49]);
        post(&node, "/topic/delete?topic=t");
        consumer.expect_closed();
        assert_eq!(topic_folders(&node), 0);
    }
    // Whoever publishes meanwhile gets into the next life of the topic, or is told.
    let address = node.tcp_address();
    let publisher = thread::spawn(move || {
        let mut client = Client::connect(address);
        for _ in 0..300 {
            client.send(&command::publish("t", b"body"));
            let answer = client.frame();
            if answer != Frame::response("OK") {
                assert_eq!(answer, Frame::error("E_PUB_FAILED PUB failed exiting"));
                client = Client::connect(address);
            }
        }
    });
    while !publisher.is_finished() {
        let deleted = node.http().post("/topic/delete?topic=t", "");
        assert!([200, 404].contains(&deleted.status), "{deleted:?}");
    }
    publisher
        .join()
        .expect("every publish is answered as it should be");
    node.client().publish("t", "last");
    assert!(node.topic("t")["depth"].as_u64() >= Some(1));
    let node = node.kill().start();
    assert!(node.topic("t")["depth"].as_u64() >= Some(1));
    assert_eq!(topic_folders(&node), 1);
}

fn a_topic_whose_last_channel_was_ephemeral_keeps_what_comes_later(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "passing#ephemeral");
    consumer.ready(10);
    publish(&node, "t", 1);
    consumer.message();
    // The channel ends with the process; what comes afterwards waits in the topic over any further end.
    let node = node.kill().start();
    assert_eq!(node.topic("t")["depth"], 0);
    publish(&node, "t", 2);
    let node = node.kill().start();
    assert_eq!(node.topic("t")["depth"], 2);
}

fn post(node: &Node, target: &str) {
    node.http().post(target, "").expect_done();
}

fn post_json(node: &Node, target: &str, body: &str) {
    let answer = node.http().post(target, body);
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn publish(node: &Node, topic: &str, count: usize) {
    let mut client = node.client();
    for number in 0..count {
        client.publish(topic, format!("{number} {}", ".".repeat(500)));
    }
}

fn topic_folders(node: &Node) -> usize {
    fs::read_dir(node.data_path().join("topics"))
        .expect("folder of the topics")
        .count()
}

fn expect_no_panic(node: &Node) {
    let log = node.log();
    assert!(!log.contains("panicked"), "{log}");
}

/// What a kill may undo: the checkpoint interval, and what a busy machine adds to it.
const REPEATED: Duration = Duration::from_millis(1100);
