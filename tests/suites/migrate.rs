//! The way from stock nsqd and back (nsq-http-and-tools 7): what either broker left is there in the other one.
//! D-02, D-04 and D-05 are stated for an export and an import of ours as well. Tests that begin or end with stock nsqd
//! pass without it and say so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use e2e::node::NodeSetup;
use e2e::process::Exit;
use e2e::wire::frame::Message;
use e2e::{Broker, Node, eventually, statements};

use super::disk::{Record, read_records};

statements! {
    ours {
        what_stock_left_is_taken_over_once,
        what_stock_adds_later_is_taken_over_later,
        a_killed_import_loses_and_repeats_nothing,
        d_05_an_import_reads_behind_the_write_position,
        unwanted_stock_data_stops_the_start,
        a_taken_port_is_told_before_anything_is_imported,
        another_folder_is_imported_on_demand,
        d_02_d_04_an_export_has_the_form_of_stock,
        stock_delivers_what_was_exported,
        an_export_can_be_served_by_ours_again,
        an_export_overwrites_nothing,
    }
}

fn what_stock_left_is_taken_over_once(broker: &Broker) {
    let Some(left) = left_by_stock() else { return };
    let expected = records_of(left.data_path(), "t:c");
    let originals = stock_files(left.data_path());
    let node = left.run_by(broker).start();
    expect_what_stock_left(&node);
    assert_eq!(
        stock_files(node.data_path()),
        originals,
        "the originals are as they were"
    );

    let mut consumer = node.consumer("t", "c");
    consumer.ready(100);
    let mut attempts = Vec::new();
    for message in consumer.messages(expected.len()) {
        let record = &expected[&message.id];
        assert_eq!(
            (message.timestamp, &message.body),
            (record.timestamp, &record.body)
        );
        assert_eq!(message.attempts, record.attempts + 1);
        attempts.push(record.attempts);
        consumer.finish(&message.id);
    }
    attempts.sort_unstable();
    assert_eq!(attempts, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1], "two were in flight");
    consumer.expect_alive();
    node.await_channel("t", "c", |channel| channel["in_flight_count"] == 0);

    let node = node.restart();
    let depth = |topic, channel| node.channel(topic, channel)["depth"].clone();
    assert_eq!((depth("t", "c"), depth("t", "idle")), (0.into(), 11.into()));
    assert_eq!(node.topic("held")["depth"], 5);
    assert_eq!(node.topic("stopped")["depth"], 4);
}

fn what_stock_adds_later_is_taken_over_later(broker: &Broker) {
    let (Some(stock), Some(left)) = (Broker::stock(), left_by_stock()) else {
        return;
    };
    let left = left.run_by(broker).start().terminate();
    let node = left.run_by(&stock).start();
    for body in ["six", "seven"] {
        node.client().publish("held", body);
    }
    let node = node.terminate().run_by(broker).start();
    node.await_topic("held", |topic| topic["depth"] == 7);
    assert_eq!(node.channel("t", "idle")["depth"], 11);
}

/// Three times, each time further on.
fn a_killed_import_loses_and_repeats_nothing(broker: &Broker) {
    let mut setup = broker
        .node()
        .file("nsqd.dat", METADATA)
        .file("t:c.diskqueue.000000.dat", numbered(0..MANY))
        .file("t:c.diskqueue.meta.dat", format!("{MANY}\n0,0\n1,0\n"))
        .file("t.diskqueue.000000.dat", numbered(MANY..2 * MANY))
        .file("t.diskqueue.meta.dat", format!("{MANY}\n0,0\n1,0\n"));
    for bytes in [2_000_000, 8_000_000, 14_000_000] {
        let mut node = setup.launch();
        eventually("the import is under way", Duration::from_secs(20), || {
            assert!(node.is_running(), "{}", node.log());
            (bytes_in(&node.data_path().join("topics")) > bytes).then_some(())
        });
        assert!(
            TcpStream::connect(node.tcp_address()).is_err(),
            "the ports are shut"
        );
        let log = node.log();
        assert!(
            !log.contains("imported the queues"),
            "too late to kill it:\n{log}"
        );
        setup = node.kill();
    }
    let node = setup.start();
    assert_eq!(node.channel("t", "c")["depth"], 2 * MANY);
    assert_eq!(node.channel("t", "d")["depth"], MANY);
    let mut consumer = node.consumer_with(r#"{"heartbeat_interval":60000}"#, "t", "c");
    consumer.ready(2500);
    let mut numbers = BTreeSet::new();
    for _ in 0..2 * MANY {
        let message = consumer.message();
        numbers.insert(message.id.clone());
        consumer.finish(&message.id);
    }
    assert_eq!(numbers.len() as u64, 2 * MANY);
    assert_eq!(numbers.last(), Some(&format!("{:016x}", FIRST_ID + 2 * MANY - 1)));
    consumer.expect_alive();
    let channel = node.await_channel("t", "c", |channel| channel["in_flight_count"] == 0);
    assert_eq!(channel["depth"], 0);
}

fn d_05_an_import_reads_behind_the_write_position(broker: &Broker) {
    let stock = broker
        .node()
        .file("t.diskqueue.000000.dat", numbered(0..3))
        .file("t.diskqueue.meta.dat", "1\n0,0\n0,1\n");
    let data = broker.node();
    let exit = import(broker, stock.data_path(), data.data_path());
    assert_eq!(
        (exit.code, exit.stdout.as_str()),
        (Some(0), "imported messages: 3, queues: 1, topics: 1\n")
    );
    assert_eq!(data.start().topic("t")["depth"], 3);
}

fn unwanted_stock_data_stops_the_start(broker: &Broker) {
    let setup = broker
        .node()
        .file("t.diskqueue.000000.dat", numbered(0..3))
        .file("t.diskqueue.meta.dat", "3\n0,0\n1,0\n");
    let exit = setup.clone().flag("import-stock-data", false).expect_exit();
    assert_eq!(exit.code, Some(1));
    let text = "holds messages of stock nsqd (3 in 1 queues) and --import-stock-data is false";
    assert!(exit.stderr.contains(text), "{}", exit.stderr);
    let setup = setup.start().terminate();
    let node = setup.flag("import-stock-data", false).start();
    assert_eq!(
        node.topic("t")["depth"],
        3,
        "what was imported before is not in the way"
    );
}

fn a_taken_port_is_told_before_anything_is_imported(broker: &Broker) {
    let taken = broker.start();
    let setup = broker
        .node()
        .file("t.diskqueue.000000.dat", numbered(0..3))
        .file("t.diskqueue.meta.dat", "3\n0,0\n1,0\n");
    let exit = setup
        .clone()
        .flag("http-address", taken.http_address())
        .expect_exit();
    assert_eq!(exit.code, Some(1));
    assert!(
        exit.stderr
            .contains(&format!("listen ({})", taken.http_address())),
        "{}",
        exit.stderr
    );
    assert!(!setup.data_path().join("topics").exists());
}

fn another_folder_is_imported_on_demand(broker: &Broker) {
    let Some(left) = left_by_stock() else { return };
    let data = broker.node();
    let exit = import(broker, left.data_path(), data.data_path());
    let summary = "imported messages: 30, queues: 4, topics: 3\n";
    assert_eq!(
        (exit.code, exit.stdout.as_str()),
        (Some(0), summary),
        "{}",
        exit.stderr
    );
    let exit = import(broker, left.data_path(), data.data_path());
    assert!(
        exit.stdout.starts_with("imported messages: 0,"),
        "{}",
        exit.stdout
    );
    let node = data.start();
    expect_what_stock_left(&node);
    let exit = import(broker, left.data_path(), node.data_path());
    assert_eq!(exit.code, Some(1));
    assert!(
        exit.stderr.contains("failed to lock data-path"),
        "{}",
        exit.stderr
    );
}

fn d_02_d_04_an_export_has_the_form_of_stock(broker: &Broker) {
    let node = broker.node().flag("max-bytes-per-file", 100).start();
    for number in 1..=5 {
        node.client().publish("t", format!("message-{number}"));
    }
    let data = node.terminate();
    let folder = Folder::new();
    let exit = export(
        broker,
        data.data_path(),
        folder.path(),
        &["--max-bytes-per-file=100"],
    );
    assert_eq!(
        (exit.code, exit.stdout.as_str()),
        (
            Some(0),
            "exported messages: 5, topics: 1, delays lost: 0, headers lost: 0\n"
        ),
        "{}",
        exit.stderr
    );
    let file = |name: &str| fs::read(folder.path().join(name)).expect(name);
    let lengths =
        ["000000", "000001", "000002"].map(|number| file(&format!("t.diskqueue.{number}.dat")).len());
    assert_eq!(lengths, [78, 78, 39]);
    assert_eq!(file("t.diskqueue.meta.dat"), b"5\n0,0\n2,39\n");
    let metadata = r#"{"topics":[{"name":"t","paused":false,"channels":null}],"version":"1.3.0"}"#;
    assert_eq!(file("nsqd.dat"), metadata.as_bytes());
    let records = read_records(&folder.path().join("t.diskqueue.000000.dat"));
    let read: Vec<_> = records
        .iter()
        .map(|record| (record.attempts, &record.body[..]))
        .collect();
    assert_eq!(read, [(0, &b"message-1"[..]), (0, b"message-2")]);
    assert!(records[0].id < records[1].id && records[0].timestamp <= records[1].timestamp);
}

fn stock_delivers_what_was_exported(broker: &Broker) {
    let Some(stock) = Broker::stock() else {
        println!("skipped: stock nsqd not given");
        return;
    };
    let (setup, expected) = left_by_ours(broker);
    let folder = Folder::new();
    let exit = export(broker, setup.data_path(), folder.path(), &[]);
    let summary = "exported messages: 23, topics: 3, delays lost: 3, headers lost: 0\n";
    assert_eq!(
        (exit.code, exit.stdout.as_str()),
        (Some(0), summary),
        "{}",
        exit.stderr
    );
    let node = folder.serve(&stock);
    expect_what_ours_left(&node, &expected);
}

/// The ids that a node gave itself come back as ids of imported messages.
fn an_export_can_be_served_by_ours_again(broker: &Broker) {
    let (setup, expected) = left_by_ours(broker);
    let folder = Folder::new();
    assert_eq!(
        export(broker, setup.data_path(), folder.path(), &[]).code,
        Some(0)
    );
    let node = folder.serve(broker);
    expect_what_ours_left(&node, &expected);
}

fn an_export_overwrites_nothing(broker: &Broker) {
    let data = broker.start().terminate();
    let folder = Folder::new();
    fs::write(folder.path().join("other"), "").expect("file");
    let exit = export(broker, data.data_path(), folder.path(), &[]);
    assert_eq!(exit.code, Some(1));
    assert!(exit.stderr.contains("is not empty"), "{}", exit.stderr);
    assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 1);
}

/// `t` with channel `c` (10 messages, two of them delivered once, one deferred) and paused channel `idle` (11),
/// `held` without a channel (5), `stopped` paused with 4 messages of its own and an empty channel.
fn left_by_stock() -> Option<NodeSetup> {
    let Some(stock) = Broker::stock() else {
        println!("skipped: stock nsqd not given");
        return None;
    };
    let node = stock.start();
    node.client().subscribe("t", "idle");
    node.http()
        .post("/channel/pause?topic=t&channel=idle", "")
        .expect_done();
    node.client().subscribe("stopped", "c");
    node.http().post("/topic/pause?topic=stopped", "").expect_done();
    let mut consumer = node.consumer("t", "c");
    for number in 0..10 {
        consumer.publish("t", format!("{number}"));
    }
    consumer.publish_deferred("t", 60_000, "deferred");
    for number in 0..5 {
        consumer.publish("held", format!("{number}"));
    }
    for number in 0..4 {
        consumer.publish("stopped", format!("{number}"));
    }
    consumer.ready(3);
    let in_flight = consumer.messages(3);
    consumer.ready(0);
    consumer.finish(&in_flight[0].id);
    consumer.expect_alive();
    node.http().post("/topic/delete?topic=alive", "").expect_done();
    node.await_channel("t", "c", |channel| {
        channel["in_flight_count"] == 2 && channel["deferred_count"] == 1
    });
    Some(node.terminate())
}

fn expect_what_stock_left(node: &Node) {
    let channel = node.channel("t", "c");
    assert_eq!(
        (&channel["depth"], &channel["deferred_count"]),
        (&10.into(), &0.into())
    );
    let idle = node.channel("t", "idle");
    assert_eq!((&idle["depth"], &idle["paused"]), (&11.into(), &true.into()));
    assert_eq!(node.topic("held")["depth"], 5);
    let stopped = node.topic("stopped");
    assert_eq!((&stopped["depth"], &stopped["paused"]), (&4.into(), &true.into()));
    assert_eq!(node.channel("stopped", "c")["depth"], 0);
}

/// `t` with channel `c` (10 messages: one delivered once, one deferred by REQ, one by DPUB) and paused channel `idle`
/// (11), `held` without a channel (2), `stopped` paused with an empty channel. Answers the messages of `c` as they were
/// seen, by body.
fn left_by_ours(broker: &Broker) -> (NodeSetup, BTreeMap<Vec<u8>, Message>) {
    let node = broker.start();
    node.client().subscribe("t", "idle");
    node.http()
        .post("/channel/pause?topic=t&channel=idle", "")
        .expect_done();
    node.client().subscribe("stopped", "c");
    node.http().post("/topic/pause?topic=stopped", "").expect_done();
    let mut consumer = node.consumer("t", "c");
    for number in 0..10 {
        consumer.publish("t", format!("{number}"));
    }
    consumer.publish_deferred("t", 600_000, "deferred");
    for number in 0..2 {
        consumer.publish("held", format!("{number}"));
    }
    consumer.ready(3);
    let seen = consumer.messages(3);
    consumer.ready(0);
    consumer.finish(&seen[0].id);
    consumer.requeue(&seen[1].id, 600_000);
    consumer.expect_alive();
    node.http().post("/topic/delete?topic=alive", "").expect_done();
    node.await_channel("t", "c", |channel| {
        channel["in_flight_count"] == 1 && channel["deferred_count"] == 2
    });
    let seen = seen
        .into_iter()
        .skip(1)
        .map(|message| (message.body.clone(), message))
        .collect();
    (node.terminate(), seen)
}

fn expect_what_ours_left(node: &Node, seen: &BTreeMap<Vec<u8>, Message>) {
    let channel = node.await_channel("t", "c", |channel| channel["depth"] == 10);
    assert_eq!(channel["deferred_count"], 0);
    let idle = node.channel("t", "idle");
    assert_eq!((&idle["depth"], &idle["paused"]), (&11.into(), &true.into()));
    assert_eq!(node.topic("held")["depth"], 2);
    let stopped = node.topic("stopped");
    assert_eq!((&stopped["depth"], &stopped["paused"]), (&0.into(), &true.into()));
    let mut consumer = node.consumer("t", "c");
    consumer.ready(100);
    let mut bodies = BTreeSet::new();
    for message in consumer.messages(10) {
        match seen.get(&message.body) {
            Some(seen) => {
                assert_eq!((&message.id, message.timestamp), (&seen.id, seen.timestamp));
                assert_eq!(message.attempts, 2, "{message:?}");
            }
            None => assert_eq!(message.attempts, 1, "{message:?}"),
        }
        consumer.finish(&message.id);
        bodies.insert(message.body);
    }
    assert_eq!(bodies.len(), 10);
    assert!(bodies.contains(&b"deferred"[..]));
    consumer.expect_alive();
    let channel = node.await_channel("t", "c", |channel| channel["in_flight_count"] == 0);
    assert_eq!(channel["depth"], 0);
}

/// A place for an export.
struct Folder {
    setup: NodeSetup,
}

impl Folder {
    fn new() -> Self {
        Self {
            setup: NodeSetup::new(Path::new("")),
        }
    }

    fn path(&self) -> &Path {
        self.setup.data_path()
    }

    fn serve(self, broker: &Broker) -> Node {
        self.setup.run_by(broker).start()
    }
}

fn import(broker: &Broker, from: &Path, data: &Path) -> Exit {
    let from = format!("--from={}", from.display());
    broker.run(&["import", &from, &format!("--data-path={}", data.display())])
}

fn export(broker: &Broker, data: &Path, to: &Path, flags: &[&str]) -> Exit {
    let (to, data) = (
        format!("--to={}", to.display()),
        format!("--data-path={}", data.display()),
    );
    broker.run(&[&["export", &to, &data][..], flags].concat())
}

/// The records of a queue by their ids.
fn records_of(folder: &Path, queue: &str) -> BTreeMap<String, Record> {
    let records = read_records(&folder.join(format!("{queue}.diskqueue.000000.dat")));
    records
        .into_iter()
        .map(|record| (record.id.clone(), record))
        .collect()
}

/// Stock's queue files with their content.
fn stock_files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder)
        .expect("folder")
        .map(|entry| entry.expect("entry").path());
    let queues = entries.filter(|path| path.display().to_string().contains(".diskqueue."));
    queues
        .map(|path| (path.display().to_string(), fs::read(&path).expect("file")))
        .collect()
}

/// Records of 1030 bytes whose ids count up.
fn numbered(numbers: std::ops::Range<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in numbers {
        bytes.extend(1026_u32.to_be_bytes());
        bytes.extend(1_700_000_000_000_000_000_i64.to_be_bytes());
        bytes.extend(0_u16.to_be_bytes());
        bytes.extend(format!("{:016x}", FIRST_ID + number).as_bytes());
        bytes.extend([b'x'; 1000]);
    }
    bytes
}

/// Bytes of all files in a folder; 0 while there is none.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

const METADATA: &str = concat!(
    r#"{"topics":[{"name":"t","paused":false,"channels":[{"name":"c","paused":false},"#,
    r#"{"name":"d","paused":false}]}],"version":"1.3.0"}"#
);
/// Messages in each of the two queues of a large import.
const MANY: u64 = 10_000;
/// An id such as stock gives.
const FIRST_ID: u64 = 0x18ae_0e53_9e5a_9000;
