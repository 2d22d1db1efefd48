//! Files of a stopped broker are damaged: it starts and serves what is whole, or refuses with a clear text; it never panics and
//! never delivers what nobody has published.
//!
//! Which byte of which file is random; the seed is printed. `NSQX_SEED` repeats a run, `NSQX_DEEP=1` makes it long.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::node::NodeSetup;
use e2e::{Broker, Node, eventually, statements};
use fastrand::Rng;

statements! {
    ours {
        damaged_logs_cost_at_most_what_is_damaged,
        a_damaged_store_is_refused_or_whole,
    }
}

fn damaged_logs_cost_at_most_what_is_damaged(broker: &Broker) {
    let mut rng = seeded();
    for _ in 0..rounds(15) {
        let setup = filled(broker);
        let files = files_below(&setup.data_path().join("topics"));
        // All damage is done to the topic that was made first.
        let hurt: Vec<_> = files
            .iter()
            .filter(|file| file.components().any(|part| part.as_os_str() == "1"))
            .collect();
        assert!(hurt.len() > 5 && hurt.len() < files.len(), "{files:?}");
        let damage = (0..rng.usize(1..4)).map(|_| damage(hurt[rng.usize(..hurt.len())], &mut rng));
        println!("{}", damage.collect::<Vec<_>>().join(", "));
        let node = setup.start();
        let came = consume(&node, "hurt");
        assert!(came.is_subset(&bodies("hurt")), "what nobody published");
        assert_eq!(consume(&node, "whole"), bodies("whole"));
        node.client().publish("hurt", "after");
        let node = node.restart();
        assert_eq!(
            consume(&node, "hurt").into_iter().collect::<Vec<_>>(),
            ["after"],
            "what was consumed stays consumed"
        );
        expect_no_panic(&node.log());
    }
}

fn a_damaged_store_is_refused_or_whole(broker: &Broker) {
    let mut rng = seeded();
    let mut refused = 0;
    for _ in 0..rounds(15) {
        let setup = filled(broker);
        let files = files_below(&setup.data_path().join("store"));
        println!("{}", damage(&files[rng.usize(..files.len())], &mut rng));
        match setup.start_or_exit() {
            Err(exit) => {
                refused += 1;
                assert_eq!(exit.code, Some(1), "{}", exit.stderr);
                assert!(exit.stderr.contains("metadata store"), "{}", exit.stderr);
                expect_no_panic(&exit.stderr);
            }
            Ok(node) => {
                for topic in ["hurt", "whole"] {
                    assert_eq!(consume(&node, topic), bodies(topic));
                }
                expect_no_panic(&node.log());
            }
        }
    }
    println!("{refused} refused");
}

/// A stopped node with two topics of several segments, nothing of them consumed.
fn filled(broker: &Broker) -> NodeSetup {
    let node = broker
        .node()
        .flag("max-bytes-per-file", 20_000)
        .flag("memory-tail", "64KiB")
        .flag("sync-every", 10)
        .start();
    for topic in ["hurt", "whole"] {
        node.client().subscribe(topic, "c");
        let mut client = node.client();
        for number in 0..MESSAGES {
            client.publish(topic, body(topic, number));
        }
        // Makes a list of absent sequences.
        node.client().subscribe(topic, "short");
        node.http()
            .post(&format!("/channel/delete?topic={topic}&channel=short"), "")
            .expect_done();
    }
    node.terminate()
}

fn body(topic: &str, number: usize) -> String {
    format!("{topic} {number} {}", "body ".repeat(number % 200))
}

fn bodies(topic: &str) -> HashSet<String> {
    (0..MESSAGES).map(|number| body(topic, number)).collect()
}

/// Everything that is there, finished.
fn consume(node: &Node, topic: &str) -> HashSet<String> {
    let mut consumer = node.consumer(topic, "c");
    consumer.ready(100);
    let mut came = HashSet::new();
    eventually("everything is consumed", Duration::from_secs(20), || {
        let waits = |count: &str| node.channel(topic, "c")[count] != 0;
        if !waits("depth") && !waits("in_flight_count") {
            return Some(());
        }
        while let e2e::wire::Event::Frame(frame) = consumer.event(Duration::from_millis(50)) {
            let message = frame.message();
            consumer.finish(&message.id);
            came.insert(String::from_utf8(message.body).expect("bodies are text"));
        }
        None
    });
    came
}

/// Damages one file; answers what was done.
fn damage(file: &Path, rng: &mut Rng) -> String {
    let mut bytes = fs::read(file).unwrap_or_default();
    let at = if bytes.is_empty() {
        0
    } else {
        rng.usize(..bytes.len())
    };
    let what = match rng.u8(..6) {
        0 if !bytes.is_empty() => {
            bytes[at] ^= 1 << rng.u8(..8);
            "flipped a bit of"
        }
        1 => {
            let end = (at + rng.usize(1..5000)).min(bytes.len());
            bytes[at..end].iter_mut().for_each(|byte| *byte = rng.u8(..));
            "wrote noise into"
        }
        2 => {
            let end = (at + rng.usize(1..5000)).min(bytes.len());
            bytes[at..end].fill(0);
            "zeroed a part of"
        }
        3 => {
            bytes.truncate(at);
            "cut"
        }
        4 => {
            bytes.extend((0..rng.usize(1..5000)).map(|_| rng.u8(..)));
            "lengthened"
        }
        _ => {
            // Gone already, perhaps.
            let _ = fs::remove_file(file);
            return format!("removed {}", file.display());
        }
    };
    fs::write(file, bytes).expect("damage");
    format!("{what} {} at {at}", file.display())
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn seeded() -> Rng {
    let seed = env::var("NSQX_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().expect("a seed"));
    println!("NSQX_SEED={seed}");
    Rng::with_seed(seed)
}

fn rounds(short: u32) -> u32 {
    if env::var_os("NSQX_DEEP").is_some() {
        short * 40
    } else {
        short
    }
}

fn expect_no_panic(log: &str) {
    assert!(!log.contains("panicked"), "{log}");
}

const MESSAGES: usize = 300;
