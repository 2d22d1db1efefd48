//! Duty: what one topic takes in, told by what lies in its log and cursors afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::super::outlet;
use super::*;
use crate::args;
use crate::clock::Clock;
use crate::config::Config;
use crate::export::stock_queue::QueueWriter;
use crate::import::directory_lock::DirectoryLock;
use crate::import::nsqd_dat::{self, ChannelEntry, TopicEntry};
use crate::import::plan::Plan;
use crate::import::stock_files::find;
use crate::import::stock_queue::StockMessage;
use crate::node::data::Data;

#[test]
fn channel_messages_go_to_their_channel_and_topic_messages_to_all() {
    let place = Place::new();
    place.list("t", false, &["c", "d", "idle"]);
    place.lay("t", Some("c"), 0..3);
    place.lay("t", Some("d"), 3..4);
    place.lay("t", None, 4..6);
    place.lay("u", None, 6..8);
    let imported = place.import();
    assert_eq!((imported.topics, imported.queues, imported.messages), (2, 4, 8));
    let expected = [
        ("t:c", vec![0, 1, 2, 4, 5]),
        ("t:d", vec![3, 4, 5]),
        ("t:idle", vec![4, 5]),
        ("u", vec![6, 7]),
    ];
    place.expect(&expected);
    assert_eq!(place.import().messages, 0, "nothing comes twice");
    place.expect(&expected);
}

#[test]
fn a_paused_topic_keeps_its_messages_and_its_channels_get_theirs() {
    let place = Place::new();
    place.list("t", true, &["c", "d"]);
    place.lay("t", Some("c"), 0..2);
    place.lay("t", None, 2..5);
    place.import();
    place.expect(&[("t", vec![2, 3, 4]), ("t:c", vec![0, 1])]);
    // A later channel queue lies behind what the topic holds by then.
    place.lay("t", Some("d"), 5..7);
    place.import();
    place.expect(&[("t", vec![2, 3, 4]), ("t:c", vec![0, 1]), ("t:d", vec![5, 6])]);
}

#[test]
fn a_queue_that_grew_is_imported_from_where_it_ended() {
    let place = Place::new();
    place.lay("t", None, 0..2);
    assert_eq!(place.import().messages, 2);
    let file = place.dir.path().join("t.diskqueue.000000.dat");
    let more = fs::read(&file).unwrap();
    place.lay("more", None, 2..3);
    let added = fs::read(place.dir.path().join("more.diskqueue.000000.dat")).unwrap();
    fs::remove_file(place.dir.path().join("more.diskqueue.000000.dat")).unwrap();
    fs::remove_file(place.dir.path().join("more.diskqueue.meta.dat")).unwrap();
    fs::write(&file, [more, added].concat()).unwrap();
    assert_eq!(place.import().messages, 1);
    place.expect(&[("t", vec![0, 1, 2])]);
}

#[test]
fn after_a_crash_an_import_goes_on_behind_what_is_noted() {
    for settled_by_files in [true, false] {
        let place = Place::new();
        place.list("t", false, &["c", "d"]);
        place.lay("t", Some("c"), 0..2);
        place.lay("t", None, 2..4);
        place.with(|intake| {
            let plan = Plan::make(place.dir.path(), 100).unwrap();
            let topic = &plan.topics["t"];
            let mut torn = TopicIntake::begin(intake, "t", topic).unwrap();
            let queue = topic.channels["c"].queue.as_ref().unwrap();
            torn.take("", &queue.queue, |_| ()).unwrap();
            // Written, but the process ends before it is noted.
            torn.append(&[NewRecord {
                body: b"not noted",
                ..NewRecord::default()
            }])
            .unwrap();
        });
        let expected = if settled_by_files {
            place.import();
            [("t:c", vec![0, 1, 2, 3]), ("t:d", vec![2, 3])].to_vec()
        } else {
            // The stock files are gone: what was noted is still there.
            fs::remove_file(place.dir.path().join("t.diskqueue.000000.dat")).unwrap();
            fs::remove_file(place.dir.path().join("t:c.diskqueue.000000.dat")).unwrap();
            place.import();
            [("t:c", vec![0, 1])].to_vec()
        };
        place.expect(&expected);
        place.import();
        place.expect(&expected);
    }
}

#[test]
fn stock_data_that_is_not_wanted_is_refused() {
    let mut place = Place::new();
    place.lay("t", None, 0..2);
    place.lay("t", Some("c"), 2..3);
    place.config = config(place.dir.path(), "--import-stock-data=false");
    place.with(|intake| {
        let error = intake.own().unwrap_err();
        assert!(
            matches!(
                error,
                NodeError::StockData {
                    queues: 2,
                    messages: 3,
                    ..
                }
            ),
            "{error}"
        );
    });
}

/// A data folder in which stock nsqd has run.
struct Place {
    dir: TempDir,
    config: Config,
    clock: Clock,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path(), "--max-msg-size=100");
        Self {
            dir,
            config,
            clock: Clock::start(),
        }
    }

    fn list(&self, topic: &str, paused: bool, channels: &[&str]) {
        let channel = |name: &&str| ChannelEntry {
            name: (*name).into(),
            paused: false,
        };
        let channels = channels.iter().map(channel).collect();
        let entry = TopicEntry {
            name: topic.into(),
            paused,
            channels,
        };
        nsqd_dat::write(self.dir.path(), &nsqd_dat::encode(&[entry]).unwrap()).unwrap();
    }

    /// Makes a queue of numbered messages.
    fn lay(&self, topic: &str, channel: Option<&str>, numbers: std::ops::Range<u8>) {
        let mut writer = QueueWriter::create(self.dir.path(), topic, channel, 1000).unwrap();
        for number in numbers {
            writer.append(&message(number, &[number])).unwrap();
        }
        writer.finish().unwrap();
    }

    fn import(&self) -> super::super::Imported {
        self.with(|intake| intake.own().unwrap())
    }

    fn with<R>(&self, work: impl FnOnce(&Intake<'_>) -> R) -> R {
        let runtime = Runtime::new().unwrap();
        let data = self.open();
        work(&Intake::new(&data, &self.config, self.clock, runtime.handle()))
    }

    fn open(&self) -> Data {
        Data::open(
            DirectoryLock::acquire(self.dir.path()).unwrap(),
            &self.config,
            self.clock,
        )
        .unwrap()
    }

    /// Compares with what an export gives: queues by the beginnings of their file names, messages by their numbers.
    fn expect(&self, expected: &[(&str, Vec<u8>)]) {
        let to = tempfile::tempdir().unwrap();
        outlet::export(&self.open(), &self.config, to.path(), self.clock).unwrap();
        let mut found = BTreeMap::new();
        for queue in find(to.path()).unwrap().0 {
            let mut reader = QueueReader::new(&queue, queue.start, 100);
            let mut numbers = Vec::new();
            while let Some(read) = reader.next_message().unwrap() {
                let number = read.body[0];
                assert_eq!(read, message(number, &[number]));
                numbers.push(number);
            }
            let colon = queue
                .channel
                .map_or_else(String::new, |channel| format!(":{channel}"));
            found.insert(queue.topic + &colon, numbers);
        }
        let expected = expected
            .iter()
            .map(|(name, numbers)| ((*name).to_owned(), numbers.clone()));
        assert_eq!(found, expected.collect());
    }
}

fn message(number: u8, body: &[u8]) -> StockMessage<'_> {
    StockMessage {
        timestamp: i64::from(number),
        attempts: u16::from(number),
        id: [b'0' + number; 16],
        body,
    }
}

fn config(dir: &Path, flag: &str) -> Config {
    let data_path = format!("--data-path={}", dir.display());
    let words = ["nsqd", &data_path, flag].map(Into::into);
    args::parse(words, |_| None, "host")
        .map_err(|_| "a wrong command line")
        .unwrap()
        .config
}
