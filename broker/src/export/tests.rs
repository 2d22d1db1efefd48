//! Duty: what is exported is what stock reads.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;

use super::ExportError;
use super::stock_queue::QueueWriter;
use crate::import::stock_files::find;
use crate::import::stock_meta::{Position, QueueMeta};
use crate::import::stock_queue::{QueueReader, StockMessage};

#[test]
fn d_02_files_roll_as_in_stock() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = QueueWriter::create(dir.path(), "tp", None, 100).unwrap();
    for _ in 0..5 {
        writer.append(&message(b"message-1")).unwrap();
    }
    writer.finish().unwrap();
    let length = |number| {
        fs::metadata(dir.path().join(format!("tp.diskqueue.{number:06}.dat")))
            .unwrap()
            .len()
    };
    assert_eq!([length(0), length(1), length(2)], [78, 78, 39]);
    let meta = fs::read_to_string(dir.path().join("tp.diskqueue.meta.dat")).unwrap();
    assert_eq!(meta, "5\n0,0\n2,39\n");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
}

#[test]
fn d_04_a_record_is_length_time_attempts_id_and_body() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = QueueWriter::create(dir.path(), "t", Some("c"), 1 << 20).unwrap();
    writer.append(&message(b"body")).unwrap();
    writer.finish().unwrap();
    let bytes = fs::read(dir.path().join("t:c.diskqueue.000000.dat")).unwrap();
    let expected = [
        b"\0\0\0\x1e\0\0\0\0\0\0\x03\xe8\0\x05".as_slice(),
        b"0123456789abcdef",
        b"body",
    ]
    .concat();
    assert_eq!(bytes, expected);
}

#[test]
fn a_message_larger_than_a_file_gets_one_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = QueueWriter::create(dir.path(), "t", None, 50).unwrap();
    for body in [[1; 200].as_slice(), b"x", &[2; 200]] {
        writer.append(&message(body)).unwrap();
    }
    let meta = writer.finish().unwrap();
    assert_eq!(meta.write, Position { file: 2, offset: 230 });
}

#[test]
fn an_empty_queue_is_only_a_position_file() {
    let dir = tempfile::tempdir().unwrap();
    let meta = QueueWriter::create(dir.path(), "t", None, 50)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(meta, QueueMeta::default());
    let (queues, warnings) = find(dir.path()).unwrap();
    assert_eq!((queues[0].files.len(), warnings.len()), (0, 0));
}

#[test]
fn nothing_is_overwritten_and_no_name_leaves_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let create = |topic, channel| QueueWriter::create(dir.path(), topic, channel, 50).map(|_| ());
    fs::write(dir.path().join("t.diskqueue.000000.dat"), "").unwrap();
    fs::write(dir.path().join("t:c.diskqueue.meta.dat"), "").unwrap();
    assert!(matches!(create("t", None), Err(ExportError::Exists(_))));
    assert!(matches!(create("t", Some("c")), Err(ExportError::Exists(_))));
    assert!(matches!(create("../t", None), Err(ExportError::Name(_))));
    assert!(matches!(create("t", Some("a/b")), Err(ExportError::Name(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn what_is_exported_is_imported(
        messages in vec((any::<i64>(), any::<u16>(), any::<[u8; 16]>(), vec(any::<u8>(), 0..300)), 0..40),
        max_bytes_per_file in 1_u64..2000,
        channel in prop::option::of("[.a-zA-Z0-9_-]{1,20}"),
        topic in "[.a-zA-Z0-9_-]{1,20}",
    ) {
        let dir = tempfile::tempdir().unwrap();
        let messages: Vec<_> = messages
            .iter()
            .map(|(timestamp, attempts, id, body)| StockMessage {
                timestamp: *timestamp, attempts: *attempts, id: *id, body,
            })
            .collect();
        let mut writer = QueueWriter::create(dir.path(), &topic, channel.as_deref(), max_bytes_per_file).unwrap();
        for message in &messages {
            writer.append(message).unwrap();
        }
        let meta = writer.finish().unwrap();
        prop_assert_eq!(meta.depth, messages.len() as u64);

        let (queues, warnings) = find(dir.path()).unwrap();
        prop_assert_eq!(warnings, vec![]);
        let [queue] = &queues[..] else { panic!("{queues:?}") };
        prop_assert_eq!((&queue.topic, &queue.channel), (&topic, &channel));
        for file in &queue.files {
            let length = fs::metadata(&file.path).unwrap().len();
            prop_assert!(length <= max_bytes_per_file.max(330));
        }
        let mut reader = QueueReader::new(queue, queue.start, 300);
        for message in &messages {
            let read = reader.next_message().unwrap();
            prop_assert_eq!(read, Some(*message));
        }
        prop_assert!(reader.next_message().unwrap().is_none());
        prop_assert_eq!(reader.warnings(), []);
    }
}

fn message(body: &[u8]) -> StockMessage<'_> {
    StockMessage {
        timestamp: 1000,
        attempts: 5,
        id: *b"0123456789abcdef",
        body,
    }
}
