//! D-01 to D-06: the data folder of stock nsqd (nsq-http-and-tools 7).
//!
//! Our broker keeps its own files, so what stock leaves on disk (D-02, D-04) is checked for stock only; what
//! a broker must take over from such a folder is checked for both.

use std::fs;
use std::path::Path;
use std::time::Duration;

use e2e::wire::command;
use e2e::{Broker, eventually, statements};

statements! {
    both {
        d_01_a_fresh_node_writes_its_metadata,
        d_05_records_behind_the_write_position_are_not_lost,
        d_06_empty_metadata_stops_the_start,
        a_stock_data_folder_is_taken_over,
    }
    stock {
        d_02_data_files_roll_before_they_are_too_big,
        d_03_a_deferred_message_is_in_the_data_file_after_a_stop,
        d_04_records_parse,
    }
    ours {
        d_03_a_deferred_message_stays_deferred_over_a_stop,
    }
}

fn d_01_a_fresh_node_writes_its_metadata(broker: &Broker) {
    let node = broker.start();
    eventually("metadata is written", Duration::from_secs(5), || {
        (node.metadata() == r#"{"topics":null,"version":"1.3.0"}"#).then_some(())
    });
}

fn d_02_data_files_roll_before_they_are_too_big(broker: &Broker) {
    let node = broker
        .node()
        .flag("mem-queue-size", 0)
        .flag("max-bytes-per-file", 100)
        .start();
    for number in 1..=5 {
        node.client()
            .publish("t", format!("message-{number}").get(..9).unwrap_or_default());
    }
    let folder = node.terminate();
    let length = |name: &str| {
        fs::metadata(folder.data_path().join(name))
            .map(|file| file.len())
            .ok()
    };
    assert_eq!(length("t.diskqueue.000000.dat"), Some(78));
    assert_eq!(length("t.diskqueue.000001.dat"), Some(78));
    assert_eq!(length("t.diskqueue.000002.dat"), Some(39));
    let meta = fs::read_to_string(folder.data_path().join("t.diskqueue.meta.dat")).expect("meta file");
    assert_eq!(meta, "5\n0,0\n2,39\n");
}

fn d_03_a_deferred_message_is_in_the_data_file_after_a_stop(broker: &Broker) {
    let node = broker.start();
    node.client().subscribe("t", "c");
    node.client().publish_deferred("t", 60_000, "deferred");
    node.await_channel("t", "c", |channel| channel["deferred_count"] == 1);
    let folder = node.terminate();
    let records = read_records(&folder.data_path().join("t:c.diskqueue.000000.dat"));
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].body, b"deferred");
}

fn d_03_a_deferred_message_stays_deferred_over_a_stop(broker: &Broker) {
    let node = broker.start();
    node.client().subscribe("t", "c");
    node.client().publish_deferred("t", 60_000, "deferred");
    node.await_channel("t", "c", |channel| channel["deferred_count"] == 1);
    let node = node.restart();
    let channel = node.await_channel("t", "c", |channel| channel["deferred_count"] == 1);
    assert_eq!(channel["depth"], 0);
}

fn d_04_records_parse(broker: &Broker) {
    let node = broker.start();
    let mut consumer = node.consumer("t", "c");
    consumer.send(&command::publish_many("t", &[b"one", b"two"]));
    consumer.expect_ok();
    consumer.ready(1);
    let delivered = consumer.message();
    let folder = node.terminate();
    let mut records = read_records(&folder.data_path().join("t:c.diskqueue.000000.dat"));
    records.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(records.len(), 2);
    assert_eq!(
        (&records[0].id, records[0].timestamp),
        (&delivered.id, delivered.timestamp)
    );
    assert_eq!((records[0].attempts, records[1].attempts), (1, 0));
    assert_eq!(
        (&records[0].body[..], &records[1].body[..]),
        (&b"one"[..], &b"two"[..])
    );
}

fn d_05_records_behind_the_write_position_are_not_lost(broker: &Broker) {
    let records = ["one", "two", "three"].map(|body| record(0, body));
    let written = records[0].len() + records[1].len();
    let node = broker
        .node()
        .file("nsqd.dat", METADATA)
        .file("t:c.diskqueue.000000.dat", records.concat())
        .file("t:c.diskqueue.meta.dat", format!("2\n0,0\n0,{written}\n"))
        .start();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    let bodies: Vec<_> = consumer
        .messages(3)
        .into_iter()
        .map(|message| message.body)
        .collect();
    assert_eq!(bodies, [&b"one"[..], b"two", b"three"]);
}

fn d_06_empty_metadata_stops_the_start(broker: &Broker) {
    let exit = broker.node().file("nsqd.dat", "").expect_exit();
    assert_eq!(exit.code, Some(1), "{}", exit.stderr);
}

/// Topic messages go to every channel, channel messages to their channel; read positions, ids, timestamps and
/// attempts count.
fn a_stock_data_folder_is_taken_over(broker: &Broker) {
    let in_topic = [record(0, "read already"), record(0, "of the topic")];
    let in_channel = record(3, "of the channel");
    let (read, written) = (in_topic[0].len(), in_topic.concat().len());
    let node = broker
        .node()
        .file("nsqd.dat", METADATA)
        .file("t.diskqueue.000000.dat", in_topic.concat())
        .file("t.diskqueue.meta.dat", format!("1\n0,{read}\n0,{written}\n"))
        .file("t:c.diskqueue.000000.dat", &in_channel)
        .file(
            "t:c.diskqueue.meta.dat",
            format!("1\n0,0\n0,{}\n", in_channel.len()),
        )
        .start();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    let mut messages = consumer.messages(2);
    messages.sort_by(|one, other| one.body.cmp(&other.body));
    assert_eq!(
        (&messages[0].body[..], messages[0].attempts),
        (&b"of the channel"[..], 4)
    );
    assert_eq!(
        (&messages[1].body[..], messages[1].attempts),
        (&b"of the topic"[..], 1)
    );
    for message in messages {
        assert_eq!((message.timestamp, message.id.as_str()), (TIMESTAMP, ID));
    }
}

/// A record of a data file.
pub(super) struct Record {
    pub(super) timestamp: i64,
    pub(super) attempts: u16,
    pub(super) id: String,
    pub(super) body: Vec<u8>,
}

/// All records of a data file.
pub(super) fn read_records(file: &Path) -> Vec<Record> {
    let bytes = fs::read(file).expect("data file");
    let mut rest = &bytes[..];
    let mut records = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (record, next) = behind.split_at(u32::from_be_bytes(*length) as usize);
        records.push(Record {
            timestamp: i64::from_be_bytes(*record.first_chunk().expect("timestamp")),
            attempts: u16::from_be_bytes(*record[8..].first_chunk().expect("attempts")),
            id: String::from_utf8(record[10..26].to_vec()).expect("id in text"),
            body: record[26..].to_vec(),
        });
        rest = next;
    }
    records
}

fn record(attempts: u16, body: &str) -> Vec<u8> {
    let mut bytes = (26 + body.len() as u32).to_be_bytes().to_vec();
    bytes.extend(TIMESTAMP.to_be_bytes());
    bytes.extend(attempts.to_be_bytes());
    bytes.extend(ID.as_bytes());
    bytes.extend(body.as_bytes());
    bytes
}

const METADATA: &str =
    r#"{"topics":[{"name":"t","paused":false,"channels":[{"name":"c","paused":false}]}],"version":"1.3.0"}"#;
const TIMESTAMP: i64 = 1_796_053_195_123_456_789;
const ID: &str = "18ae0e539e5a9000";
