//! Duty: every file that a stock nsqd can leave behind is read for what it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::nsqd_dat::{ChannelEntry, TopicEntry};
use super::plan::Plan;
use super::stock_files::find;
use super::stock_meta::Position;
use super::stock_queue::{QueueReader, StockMessage};
use super::{ImportError, Warning, nsqd_dat};

#[test]
fn d_04_the_record_of_the_specification_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let record = "0000002318ecdd090a67b871000031386165353065333935613639303030\
                  6d6573736167652d31";
    write(dir.path(), "tp.diskqueue.000000.dat", &unhex(record));
    write(dir.path(), "tp.diskqueue.meta.dat", b"1\n0,0\n0,39\n");
    let (queues, warnings) = find(dir.path()).unwrap();
    assert_eq!(warnings, []);
    let mut reader = QueueReader::new(&queues[0], queues[0].start, MAX_BODY);
    let message = StockMessage {
        timestamp: 0x18ec_dd09_0a67_b871,
        attempts: 0,
        id: *b"18ae50e395a69000",
        body: b"message-1",
    };
    assert_eq!(reader.next_message().unwrap(), Some(message));
    assert_eq!(reader.next_message().unwrap(), None);
}

#[test]
fn d_05_records_behind_the_write_position_are_read() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.diskqueue.000000.dat", &records(0..3));
    write(dir.path(), "t.diskqueue.meta.dat", b"1\n0,31\n0,62\n");
    assert_eq!(read(dir.path()), (vec![1, 2], vec![]));
}

#[test]
fn a_queue_without_usable_positions_is_read_from_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.diskqueue.000000.dat", &records(0..2));
    write(dir.path(), "t.diskqueue.000001.dat", &records(2..3));
    let meta = dir.path().join("t.diskqueue.meta.dat");
    assert_eq!(
        read(dir.path()),
        (vec![0, 1, 2], vec![Warning::NoMeta(meta.clone())])
    );
    fs::write(&meta, "7\n1,").unwrap();
    assert_eq!(read(dir.path()), (vec![0, 1, 2], vec![Warning::Meta(meta)]));
}

#[test]
fn a_damaged_file_is_read_up_to_the_damage_and_the_next_one_whole() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("t.diskqueue.000000.dat");
    write(dir.path(), "t.diskqueue.000001.dat", &records(9..10));
    write(dir.path(), "t.diskqueue.meta.dat", b"3\n0,0\n1,31\n");
    let left = |bytes: &[u8]| (first.clone(), 31, bytes.len() as u64);
    for tail in [&[0; 2][..], &[0, 0, 0, 26, 1], &records(1..2)[..30]] {
        write(
            dir.path(),
            "t.diskqueue.000000.dat",
            &[&records(0..1), tail].concat(),
        );
        let (path, offset, left) = left(tail);
        assert_eq!(
            read(dir.path()),
            (vec![0, 9], vec![Warning::Short { path, offset, left }])
        );
    }
    for length in [25, -1, 0, MAX_BODY as i32 + 27] {
        let tail = [&length.to_be_bytes()[..], &[0; 200]].concat();
        write(
            dir.path(),
            "t.diskqueue.000000.dat",
            &[&records(0..1), &tail[..]].concat(),
        );
        let (path, offset, left) = left(&tail);
        assert_eq!(
            read(dir.path()),
            (
                vec![0, 9],
                vec![Warning::Length {
                    path,
                    offset,
                    length,
                    left
                }]
            )
        );
    }
}

#[test]
fn positions_that_do_not_fit_the_files_are_told() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.diskqueue.000000.dat", &records(0..1));
    write(dir.path(), "t.diskqueue.000001.dat", &records(1..2));
    write(dir.path(), "t.diskqueue.000003.dat", &records(3..4));
    write(dir.path(), "t.diskqueue.meta.dat", b"3\n1,500\n3,31\n");
    let warnings = vec![
        Warning::NoFile(dir.path().join("t.diskqueue.000002.dat")),
        Warning::Position {
            path: dir.path().join("t.diskqueue.000001.dat"),
            offset: 500,
        },
    ];
    assert_eq!(read(dir.path()), (vec![3], warnings));
    // What an emptied queue leaves: valid, and means empty.
    write(dir.path(), "t.diskqueue.meta.dat", b"0\n4,0\n4,0\n");
    assert_eq!(read(dir.path()), (vec![], vec![]));
}

#[test]
fn reading_goes_on_from_a_position() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.diskqueue.000000.dat", &records(0..2));
    write(dir.path(), "t.diskqueue.000001.dat", &records(2..4));
    let (queues, _) = find(dir.path()).unwrap();
    let mut position = queues[0].start;
    for number in 0..4 {
        let mut reader = QueueReader::new(&queues[0], position, MAX_BODY);
        assert_eq!(reader.next_message().unwrap().unwrap().timestamp, number);
        position = reader.position();
    }
    assert_eq!(position, Position { file: 1, offset: 62 });
    assert_eq!(
        QueueReader::new(&queues[0], position, MAX_BODY)
            .next_message()
            .unwrap(),
        None
    );
}

#[test]
fn file_names_are_taken_apart_at_the_right_places() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "a.diskqueue.b.diskqueue.000000.dat",
        "t.1:c.2#ephemeral.diskqueue.1000000.dat",
        "t.diskqueue.000000.dat.bad",
        "t.diskqueue.meta.dat.123.tmp",
        "nsqd.dat.99.tmp",
        "t:c:d.diskqueue.000000.dat",
        "t.diskqueue.00.dat",
        "t.diskqueue.x.dat",
        "other",
    ] {
        write(dir.path(), name, b"");
    }
    let (queues, warnings) = find(dir.path()).unwrap();
    let found: Vec<_> = queues
        .iter()
        .map(|queue| (queue.topic.as_str(), queue.channel.as_deref()))
        .collect();
    assert_eq!(found, [("a.diskqueue.b", None), ("t.1", Some("c.2#ephemeral"))]);
    assert_eq!(queues[1].files[0].number, 1_000_000);
    let names = [
        "t.diskqueue.00.dat",
        "t.diskqueue.x.dat",
        "t:c:d.diskqueue.000000.dat",
    ];
    let bad: Vec<_> = names.map(|name| Warning::FileName(dir.path().join(name))).into();
    assert_eq!(warnings[..3], bad[..]);
}

#[test]
fn a_plan_joins_nsqd_dat_and_queues() {
    let dir = tempfile::tempdir().unwrap();
    let content =
        r#"{"topics":[{"name":"t","paused":true,"channels":[{"name":"c"},{"name":"d","paused":true}]}]}"#;
    write(dir.path(), "nsqd.dat", content.as_bytes());
    write(dir.path(), "t.diskqueue.000000.dat", &records(0..2));
    write(dir.path(), "t.diskqueue.meta.dat", b"2\n0,0\n0,62\n");
    write(dir.path(), "t:c.diskqueue.000000.dat", &records(2..3));
    write(dir.path(), "t:c.diskqueue.meta.dat", b"1\n0,0\n0,31\n");
    write(dir.path(), "u:e.diskqueue.000000.dat", &records(3..4));
    write(dir.path(), "u:e.diskqueue.meta.dat", b"1\n0,0\n0,31\n");
    write(dir.path(), "te#ephemeral:nc.diskqueue.000000.dat", &records(4..5));
    write(
        dir.path(),
        "te#ephemeral:nc.diskqueue.meta.dat",
        b"1\n0,0\n0,31\n",
    );
    let before = listing(dir.path());
    let plan = Plan::make(dir.path(), MAX_BODY).unwrap();
    assert_eq!(plan.messages(), 4);
    assert_eq!(plan.warnings, [Warning::Orphan("te#ephemeral:nc".into())]);
    let names: Vec<_> = plan.topics.keys().map(String::as_str).collect();
    assert_eq!(names, ["t", "u"]);
    let topic = &plan.topics["t"];
    assert!(topic.listed && topic.paused);
    let queue = topic.queue.as_ref().unwrap();
    assert_eq!((queue.messages, queue.bytes), (2, 2));
    assert_eq!(topic.channels["c"].queue.as_ref().unwrap().messages, 1);
    assert!(topic.channels["d"].paused && topic.channels["d"].queue.is_none());
    assert!(!plan.topics["u"].listed && !plan.topics["u"].channels["e"].listed);
    assert_eq!(listing(dir.path()), before, "nothing is touched");
}

#[test]
fn c_85_d_01_an_empty_nsqd_dat_says_null() {
    assert_eq!(
        nsqd_dat::encode(&[]).unwrap(),
        r#"{"topics":null,"version":"1.3.0"}"#
    );
}

#[test]
fn nsqd_dat_is_written_as_stock_writes_it() {
    let dir = tempfile::tempdir().unwrap();
    let channel = |name: &str, paused| ChannelEntry {
        name: name.into(),
        paused,
    };
    let topic = |name: &str, paused, channels| TopicEntry {
        name: name.into(),
        paused,
        channels,
    };
    let topics = [
        topic(
            "tp",
            true,
            vec![channel("chn", false), channel("e#ephemeral", false)],
        ),
        topic("te#ephemeral", false, vec![channel("nc", false)]),
        topic("none", false, vec![]),
    ];
    nsqd_dat::write(dir.path(), "old").unwrap();
    nsqd_dat::write(dir.path(), &nsqd_dat::encode(&topics).unwrap()).unwrap();
    let path = dir.path().join("nsqd.dat");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        concat!(
            r#"{"topics":[{"name":"tp","paused":true,"channels":[{"name":"chn","paused":false}]},"#,
            r#"{"name":"none","paused":false,"channels":null}],"version":"1.3.0"}"#
        )
    );
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(listing(dir.path()).len(), 1, "no temporary file is left");
    let (read, warnings) = nsqd_dat::read(dir.path()).unwrap().unwrap();
    assert_eq!(
        read,
        [
            topic("tp", true, vec![channel("chn", false)]),
            topic("none", false, vec![])
        ]
    );
    assert_eq!(warnings, []);
}

#[test]
fn c_88_d_06_an_nsqd_dat_that_is_empty_or_not_json_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(
        nsqd_dat::read(dir.path()).unwrap().is_none(),
        "a missing file is a fresh start"
    );
    for content in ["", "{", "[]", r#"{"topics":5}"#, r#"{"topics":null} x"#] {
        write(dir.path(), "nsqd.dat", content.as_bytes());
        let error = nsqd_dat::read(dir.path()).unwrap_err();
        assert!(matches!(error, ImportError::NsqdDat { .. }), "{content}");
        let start = format!(
            "failed to parse metadata in {}",
            dir.path().join("nsqd.dat").display()
        );
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}

#[test]
fn c_88_an_entry_with_an_invalid_name_is_skipped() {
    let content = r#"{"version":"0.3","more":[1],"topics":[{"name":"a b"},{"paused":true},
        {"name":"t","x":1,"paused":null,"channels":[{"name":"c/d"},{"name":"c#ephemeral"}]},{"name":"u","channels":null}]}"#;
    let (topics, warnings) = nsqd_dat::decode(content.as_bytes()).unwrap();
    let channels = vec![ChannelEntry {
        name: "c#ephemeral".into(),
        paused: false,
    }];
    assert_eq!(
        topics,
        [
            TopicEntry {
                name: "t".into(),
                paused: false,
                channels
            },
            TopicEntry {
                name: "u".into(),
                ..TopicEntry::default()
            }
        ]
    );
    assert_eq!(
        warnings,
        [
            Warning::TopicName("a b".into()),
            Warning::TopicName(String::new()),
            Warning::ChannelName {
                topic: "t".into(),
                channel: "c/d".into()
            }
        ]
    );
    assert_eq!(nsqd_dat::decode(b"null").unwrap(), (vec![], vec![]));
}

/// Timestamps of the messages of the only queue, and all warnings.
fn read(dir: &Path) -> (Vec<i64>, Vec<Warning>) {
    let (queues, mut warnings) = find(dir).unwrap();
    let [queue] = &queues[..] else {
        panic!("{queues:?}");
    };
    let mut reader = QueueReader::new(queue, queue.start, MAX_BODY);
    let mut skipping = QueueReader::new(queue, queue.start, MAX_BODY);
    let mut messages = Vec::new();
    while let Some(message) = reader.next_message().unwrap() {
        let StockMessage {
            timestamp,
            attempts,
            id,
            body,
        } = message;
        assert_eq!(
            (attempts, id, body),
            (timestamp as u16, [b'a'; 16], [timestamp as u8].as_slice())
        );
        messages.push(timestamp);
        assert_eq!(skipping.skip_message().unwrap(), Some(1));
        assert_eq!(skipping.position(), reader.position());
    }
    assert_eq!(skipping.skip_message().unwrap(), None);
    assert_eq!(skipping.warnings(), reader.warnings());
    warnings.extend_from_slice(reader.warnings());
    (messages, warnings)
}

/// Records of 31 bytes.
fn records(numbers: std::ops::Range<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in numbers {
        bytes.extend(27_i32.to_be_bytes());
        bytes.extend(i64::from(number).to_be_bytes());
        bytes.extend(u16::from(number).to_be_bytes());
        bytes.extend([b'a'; 16]);
        bytes.push(number);
    }
    bytes
}

fn write(dir: &Path, name: &str, content: &[u8]) {
    fs::write(dir.join(name), content).unwrap();
}

fn listing(dir: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut listing: Vec<_> = entries
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                entry.metadata().unwrap().len(),
            )
        })
        .collect();
    listing.sort();
    listing
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

const MAX_BODY: u32 = 1024;
