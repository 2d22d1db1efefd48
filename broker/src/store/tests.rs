//! Duty: what was stored comes back, after a restart, a fault and a crash.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

use super::catalogue::{ChannelState, HandedOver, Hold, TopicState};
use super::contract::{any_delta, normal};
use super::cursor::{ChannelNumber, CursorDelta, TopicNumber, Unsettled};
use super::cursors::{CursorStore, MemoryCursors};
use super::handle::StoreThread;
use super::{Store, StoreError};
use crate::log::sequence::{Sequence, SequenceRange};

#[test]
fn every_kind_of_change_is_in_an_image_taken_right_after_its_answer() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    let after_crash = |what: &str| {
        let image = dir.path().join(what);
        copy(&dir.path().join("store"), &image);
        let copy = Store::open(&image).unwrap();
        assert_eq!(copy.catalogue(), store.catalogue(), "{what}");
        copy
    };

    let topic = store
        .transact(|t| t.create_topic("orders", rich_topic()))
        .unwrap();
    after_crash("create topic");
    store
        .transact(|t| t.update_topic(topic, |state| state.paused = true))
        .unwrap();
    after_crash("pause topic");
    let channel = store
        .transact(|t| t.create_channel(topic, "billing", ChannelState::default(), Sequence::new(40)))
        .unwrap();
    let image = after_crash("create channel");
    assert_eq!(image.load(channel).unwrap().unwrap().floor, Sequence::new(40));
    store
        .transact(|t| {
            t.update_channel(channel, |state| {
                state.paused = true;
                state.settings = r#"{"load_test":"only"}"#.into();
            })
        })
        .unwrap();
    after_crash("channel settings");
    let delta = CursorDelta {
        floor: Sequence::new(50),
        unsettled: vec![Unsettled {
            sequence: Sequence::new(60),
            attempts: 3,
            due: 17,
            delay_ms: 5,
        }],
        ..CursorDelta::default()
    };
    store.save(&[(channel, delta)]).unwrap();
    let image = after_crash("save cursor");
    assert_eq!(image.load(channel), store.load(channel));
    assert_eq!(image.load(channel).unwrap().unwrap().floor, Sequence::new(50));
    store
        .transact(|t| t.set_fact("nsqd.dat", Some(vec![0, 255])))
        .unwrap();
    let image = after_crash("fact");
    assert_eq!(image.catalogue().fact("nsqd.dat"), Some([0, 255].as_slice()));
    store
        .transact(|t| t.set_fact("large", Some(vec![7; 300_000])))
        .unwrap();
    after_crash("a fact larger than a page");
    store.transact(|t| t.set_fact("nsqd.dat", None)).unwrap();
    after_crash("no fact");
    store.transact(|t| t.delete_channel(channel)).unwrap();
    let image = after_crash("delete channel");
    assert_eq!(image.load(channel), Ok(None));
    store
        .transact(|t| t.delete_topic(topic, Sequence::new(99)))
        .unwrap();
    let image = after_crash("delete topic");
    assert_eq!(image.catalogue().fresh_from(), Sequence::new(99));
}

#[test]
fn a_transaction_that_answers_an_error_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let topic = store
        .transact(|t| t.create_topic("a", TopicState::default()))
        .unwrap();
    let before = store.catalogue();
    let outcome = store.transact(|t| {
        t.create_channel(topic, "c", ChannelState::default(), Sequence::default())?;
        t.create_topic("b", TopicState::default())?;
        t.create_topic("a", TopicState::default())
    });
    assert_eq!(outcome, Err(StoreError::TopicExists("a".into())));
    assert_eq!(store.catalogue(), before);
    store
        .transact(|t| t.create_topic("b", TopicState::default()))
        .unwrap();
    let stored = store.catalogue();
    drop(store);
    assert_eq!(Store::open(dir.path()).unwrap().catalogue(), stored);
}

#[test]
fn a_transaction_that_fails_among_others_leaves_theirs_whole() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let create = |names: &'static [&str]| {
        move |t: &mut super::Transaction<'_>| {
            names
                .iter()
                .try_for_each(|name| t.create_topic(name, TopicState::default()).map(|_| ()))
        }
    };
    let mut state = store.state.lock();
    state.apply(create(&["a"])).unwrap();
    assert!(state.apply(create(&["b", "a"])).is_err());
    state.apply(create(&["c"])).unwrap();
    assert!(state.apply(create(&["d", "a"])).is_err());
    state.flush().unwrap();
    drop(state);
    let stored = store.catalogue();
    assert_eq!(
        stored
            .topics()
            .map(|(_, topic)| topic.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "c"]
    );
    drop(store);
    assert_eq!(Store::open(dir.path()).unwrap().catalogue(), stored);
}

#[test]
fn what_the_disk_refused_is_undone_and_its_numbers_stay_used() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let create = |t: &mut super::Transaction<'_>| t.create_topic("a", TopicState::default());
    let mut state = store.state.lock();
    let lost = state.apply(create).unwrap();
    state.fail(StoreError::Broken("no space".into()));
    assert_eq!(state.flush(), Err(StoreError::Broken("no space".into())));
    drop(state);
    assert_eq!(store.catalogue().topics().count(), 0);
    store.reopen(|_| Vec::new()).unwrap();
    assert_ne!(store.transact(create).unwrap(), lost);
    drop(store);
    assert_eq!(Store::open(dir.path()).unwrap().catalogue().topics().count(), 1);
}

#[test]
fn what_does_not_exist_or_exists_already_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (topic, channel) = (TopicNumber(7), ChannelNumber(8));
    let unknown_topic = Err(StoreError::UnknownTopic(topic));
    let unknown_channel = Err(StoreError::UnknownChannel(channel));
    assert_eq!(store.transact(|t| t.update_topic(topic, |_| ())), unknown_topic);
    assert_eq!(
        store.transact(|t| t.delete_topic(topic, Sequence::default())),
        unknown_topic
    );
    assert_eq!(
        store.transact(|t| t.update_channel(channel, |_| ())),
        unknown_channel
    );
    assert_eq!(store.transact(|t| t.delete_channel(channel)), unknown_channel);
    let create = |topic| {
        store.transact(|t| t.create_channel(topic, "c", ChannelState::default(), Sequence::default()))
    };
    assert_eq!(create(topic), Err(StoreError::UnknownTopic(topic)));
    let topic = store
        .transact(|t| t.create_topic("a", TopicState::default()))
        .unwrap();
    create(topic).unwrap();
    assert_eq!(create(topic), Err(StoreError::ChannelExists("c".into())));
}

#[test]
fn numbers_are_never_used_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let store = Store::open(dir.path()).unwrap();
        let topic = store
            .transact(|t| t.create_topic("a", TopicState::default()))
            .unwrap();
        seen.push(topic.0);
        store
            .transact(|t| t.delete_topic(topic, Sequence::default()))
            .unwrap();
    }
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn a_second_store_on_the_same_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _first = Store::open(dir.path()).unwrap();
    assert!(matches!(Store::open(dir.path()), Err(StoreError::Broken(_))));
}

#[test]
fn a_row_of_another_version_or_without_sense_is_an_error() {
    for (key, value, part) in [
        (b"n".as_slice(), b"\x02".as_slice(), "version 2"),
        (b"n", b"\x01abc", "can not be read"),
        (b"t\0\0\0\0\0\0\0\x01", b"\x01{}", "can not be read"),
        (b"t\0\0\0\0\0\0\0\x01", b"", "can not be read"),
        (b"t", b"\x01{}", "can not be read"),
        (b"p\0\0\0\0\0\0\0\x02", b"\x01short", "can not be read"),
        (
            b"b\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\x09",
            b"\x01\x01",
            "can not be read",
        ),
        (
            b"b\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\x00",
            b"\x01\x01\xff\xff\xff\xff",
            "can not be read",
        ),
        (
            b"b\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\x00",
            b"\x01\x02abc",
            "can not be read",
        ),
        (
            b"b\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\x00",
            b"\x01\x07",
            "can not be read",
        ),
        (
            b"u\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01",
            b"\x01abc",
            "can not be read",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        store_with_a_channel(dir.path());
        let sled = sled::open(dir.path().join("sled")).unwrap();
        sled.insert(key, value).unwrap();
        drop(sled);
        let error = Store::open(dir.path())
            .and_then(|store| store.load(ChannelNumber(2)))
            .unwrap_err();
        assert!(
            matches!(&error, StoreError::Damaged(text) if text.contains(part)),
            "{error}"
        );
    }
}

#[test]
fn a_missing_row_is_an_error() {
    for key in [
        b"n".as_slice(),
        b"t\0\0\0\0\0\0\0\x01",
        b"c\0\0\0\0\0\0\0\x02",
        b"p\0\0\0\0\0\0\0\x02",
    ] {
        let dir = tempfile::tempdir().unwrap();
        store_with_a_channel(dir.path());
        let sled = sled::open(dir.path().join("sled")).unwrap();
        sled.remove(key).unwrap().unwrap();
        drop(sled);
        assert!(
            matches!(Store::open(dir.path()), Err(StoreError::Damaged(_))),
            "{}",
            key.escape_ascii()
        );
    }
}

#[test]
fn a_damaged_file_ends_in_an_error_or_in_a_whole_catalogue() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let (_, channel) = store_with_a_channel(&whole);
    let catalogue = Store::open(&whole).unwrap().catalogue();
    let bytes = fs::read(whole.join("sled/db")).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let mut noticed = 0;
    for at in (0..used).step_by(used / 60 + 1) {
        let damaged = dir.path().join(format!("at-{at}"));
        copy(&whole, &damaged);
        let mut bytes = fs::read(damaged.join("sled/db")).unwrap();
        bytes[at] ^= 0x55;
        fs::write(damaged.join("sled/db"), bytes).unwrap();
        if let Ok(store) = Store::open(&damaged) {
            assert_eq!(store.catalogue(), catalogue, "byte {at}");
            assert!(store.load(channel).unwrap().is_some(), "byte {at}");
        } else {
            noticed += 1;
        }
    }
    assert!(noticed > 0);
    for cut in [0, 1, used as u64 / 2] {
        let damaged = dir.path().join(format!("cut-{cut}"));
        copy(&whole, &damaged);
        let file = fs::File::options()
            .write(true)
            .open(damaged.join("sled/db"))
            .unwrap();
        file.set_len(cut).unwrap();
        assert!(
            matches!(Store::open(&damaged), Err(StoreError::Damaged(_))),
            "cut at {cut}"
        );
    }
}

#[test]
fn an_emptied_database_is_not_taken_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    store_with_a_channel(dir.path());
    fs::remove_dir_all(dir.path().join("sled")).unwrap();
    assert!(matches!(Store::open(dir.path()), Err(StoreError::Damaged(_))));
}

#[test]
fn a_broken_store_refuses_changes_and_is_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (topic, channel) = store_with_a_channel(dir.path());
    let store = Store::open(dir.path()).unwrap();
    let before = store.catalogue();
    store.state.lock().fail(StoreError::Broken("no space".into()));
    assert_eq!(store.fault(), Some(StoreError::Broken("no space".into())));
    let refused = store.transact(|t| t.update_topic(topic, |state| state.paused = true));
    assert_eq!(refused, Err(StoreError::Broken("no space".into())));
    assert_eq!(store.catalogue(), before);

    // The folder is lost as well, and something else lies in its place.
    fs::remove_dir_all(dir.path().join("sled")).unwrap();
    fs::create_dir(dir.path().join("sled")).unwrap();
    fs::write(dir.path().join("sled/conf"), "this is not a sled configuration").unwrap();
    assert!(matches!(
        store.reopen(|_| Vec::new()),
        Err(StoreError::Damaged(_))
    ));
    assert_eq!(
        store.reopen(|_| Vec::new()),
        Err(StoreError::MissingCursor(channel))
    );
    assert!(store.fault().is_some());
    let delta = CursorDelta {
        floor: Sequence::new(70),
        ..CursorDelta::default()
    };
    store.reopen(|_| vec![(channel, delta)]).unwrap();
    assert_eq!(store.fault(), None);
    assert!(dir.path().join("sled.damaged-1").exists());
    store
        .transact(|t| t.update_topic(topic, |state| state.paused = true))
        .unwrap();
    let now = store.catalogue();
    drop(store);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.catalogue(), now);
    assert_eq!(store.load(channel).unwrap().unwrap().floor, Sequence::new(70));
}

#[test]
fn a_snapshot_that_was_being_written_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let (_, channel) = store_with_a_channel(dir.path());
    let snapshot = dir.path().join("sled/snap.00000000000000FF.generating");
    fs::write(snapshot, "the beginning of a snapshot").unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.load(channel).unwrap().is_some());
}

#[test]
fn many_callers_share_one_thread_and_every_answer_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let (handle, thread) = StoreThread::start(Store::open(dir.path()).unwrap()).unwrap();
    let answers: Vec<_> = (0..40)
        .map(|number| {
            handle.transact(move |t| t.create_topic(&format!("t{}", number % 20), TopicState::default()))
        })
        .collect();
    let outcomes: Vec<_> = answers.into_iter().map(super::handle::Answer::wait).collect();
    assert!(outcomes[..20].iter().all(Result::is_ok));
    assert!(
        outcomes[20..]
            .iter()
            .all(|outcome| matches!(outcome, Err(StoreError::TopicExists(_))))
    );
    drop(handle);
    thread.join();
    assert_eq!(Store::open(dir.path()).unwrap().catalogue().topics().count(), 20);
}

#[tokio::test]
async fn a_handle_is_awaited_by_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let (_, channel) = store_with_a_channel(dir.path());
    let (handle, thread) = StoreThread::start(Store::open(dir.path()).unwrap()).unwrap();
    let delta = CursorDelta {
        floor: Sequence::new(41),
        ..CursorDelta::default()
    };
    handle.save_cursors(vec![(channel, delta)]).await.unwrap();
    handle.reopen(|_| Vec::new()).await.unwrap();
    let count = handle.transact(|t| Ok(t.catalogue().topics().count())).await;
    assert_eq!(count, Ok(1));
    drop(handle);
    tokio::task::spawn_blocking(|| thread.join()).await.unwrap();
    assert_eq!(
        Store::open(dir.path())
            .unwrap()
            .load(channel)
            .unwrap()
            .unwrap()
            .floor,
        Sequence::new(41)
    );
}

#[test]
fn checkpoints_for_ever_do_not_fill_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for channel in 1..=20 {
        store.create(ChannelNumber(channel), Sequence::default()).unwrap();
    }
    let mut largest = 0;
    for round in 0..400_u64 {
        let words = (0..1024)
            .map(|word: u64| (word ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .collect();
        let block = super::cursor::FinishedBlock {
            number: 5,
            bits: super::cursor::FinishedBits::Some(words),
        };
        let delta = CursorDelta {
            floor: Sequence::new(round),
            blocks: vec![block],
            ..CursorDelta::default()
        };
        let batch: Vec<_> = (1..=20)
            .map(|channel| (ChannelNumber(channel), delta.clone()))
            .collect();
        store.save(&batch).unwrap();
        largest = largest.max(bytes_in(dir.path()));
    }
    let own_files = fs::read_dir(dir.path().join("sled/blobs")).unwrap().count();
    assert_eq!(own_files, 0, "pages stay small enough for sled's log");
    assert!(largest < 24 << 20, "{largest} bytes for 160 KiB of state");
}

#[derive(Clone, Debug)]
enum Op {
    CreateTopic(u8),
    UpdateTopic(u8, bool, u64),
    DeleteTopic(u8, u64),
    CreateChannel(u8, u8, u64),
    UpdateChannel(u8, u8, bool),
    DeleteChannel(u8, u8),
    Save(u8, u8, CursorDelta),
    Reopen,
}

fn any_op() -> impl Strategy<Value = Op> {
    let (topic, channel) = (0..4_u8, 0..4_u8);
    prop_oneof![
        3 => topic.clone().prop_map(Op::CreateTopic),
        2 => (topic.clone(), any::<bool>(), 0..1_u64 << 40).prop_map(|(t, p, s)| Op::UpdateTopic(t, p, s)),
        1 => (topic.clone(), 0..1_u64 << 40).prop_map(|(t, s)| Op::DeleteTopic(t, s)),
        4 => (topic.clone(), channel.clone(), 0..9_u64).prop_map(|(t, c, s)| Op::CreateChannel(t, c, s)),
        2 => (topic.clone(), channel.clone(), any::<bool>()).prop_map(|(t, c, p)| Op::UpdateChannel(t, c, p)),
        1 => (topic.clone(), channel.clone()).prop_map(|(t, c)| Op::DeleteChannel(t, c)),
        4 => (topic, channel, any_delta()).prop_map(|(t, c, delta)| Op::Save(t, c, delta)),
        2 => Just(Op::Reopen),
    ]
}

/// What the store should hold, by names.
#[derive(Default)]
struct Model {
    topics: BTreeMap<u8, (TopicNumber, TopicState)>,
    channels: BTreeMap<(u8, u8), (ChannelNumber, ChannelState)>,
    cursors: MemoryCursors,
    fresh_from: u64,
}

impl Model {
    fn check(&self, store: &Store) {
        let catalogue = store.catalogue();
        assert_eq!(catalogue.topics().count(), self.topics.len());
        assert_eq!(catalogue.channels().count(), self.channels.len());
        assert_eq!(catalogue.fresh_from().get(), self.fresh_from);
        for (name, (number, state)) in &self.topics {
            let topic = catalogue.topic(*number).unwrap();
            assert_eq!((&topic.name, &topic.state), (&name.to_string(), state));
        }
        for ((topic, name), (number, state)) in &self.channels {
            let channel = catalogue.channel(*number).unwrap();
            assert_eq!((&channel.name, &channel.state), (&name.to_string(), state));
            assert_eq!(channel.topic, self.topics[topic].0);
            assert_eq!(
                normal(store.load(*number).unwrap()),
                normal(self.cursors.load(*number).unwrap())
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_changes_survive_reopening(ops in vec(any_op(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        let mut model = Model::default();
        for op in ops {
            if let Op::Reopen = op {
                drop(store);
                store = Store::open(dir.path()).unwrap();
                model.check(&store);
            } else {
                perform(&store, &mut model, op);
            }
        }
        drop(store);
        model.check(&Store::open(dir.path()).unwrap());
    }
}

/// Does `op` to both; what the model does not know must be refused by the store.
fn perform(store: &Store, model: &mut Model, op: Op) {
    match op {
        Op::CreateTopic(name) => {
            let answer = store.transact(|t| t.create_topic(&name.to_string(), rich_topic()));
            assert_eq!(answer.is_err(), model.topics.contains_key(&name));
            if let Ok(number) = answer {
                model.topics.insert(name, (number, rich_topic()));
            }
        }
        Op::UpdateTopic(name, paused, at) => {
            if let Some((number, state)) = model.topics.get_mut(&name) {
                let change = |state: &mut TopicState| {
                    state.paused = paused;
                    state.handed_over = HandedOver::At(Sequence::new(at));
                };
                change(state);
                store.transact(|t| t.update_topic(*number, change)).unwrap();
            }
        }
        Op::DeleteTopic(name, end) => {
            if let Some((number, _)) = model.topics.remove(&name) {
                store
                    .transact(|t| t.delete_topic(number, Sequence::new(end)))
                    .unwrap();
                model.fresh_from = model.fresh_from.max(end);
                model.channels.retain(|(topic, _), _| *topic != name);
            }
        }
        Op::CreateChannel(topic, name, floor) => {
            let Some((number, _)) = model.topics.get(&topic) else {
                return;
            };
            let (floor, state) = (Sequence::new(floor), ChannelState::default());
            let answer = store.transact(|t| t.create_channel(*number, &name.to_string(), state, floor));
            assert_eq!(answer.is_err(), model.channels.contains_key(&(topic, name)));
            if let Ok(number) = answer {
                model
                    .channels
                    .insert((topic, name), (number, ChannelState::default()));
                model.cursors.create(number, floor).unwrap();
            }
        }
        Op::UpdateChannel(topic, name, paused) => {
            if let Some((number, state)) = model.channels.get_mut(&(topic, name)) {
                state.paused = paused;
                store
                    .transact(|t| t.update_channel(*number, |state| state.paused = paused))
                    .unwrap();
            }
        }
        Op::DeleteChannel(topic, name) => {
            if let Some((number, _)) = model.channels.remove(&(topic, name)) {
                store.transact(|t| t.delete_channel(number)).unwrap();
                assert_eq!(store.load(number), Ok(None));
            }
        }
        Op::Save(topic, name, delta) => {
            if let Some((number, _)) = model.channels.get(&(topic, name)) {
                let batch = [(*number, delta)];
                store.save(&batch).unwrap();
                model.cursors.save(&batch).unwrap();
            }
        }
        Op::Reopen => {}
    }
}

fn store_with_a_channel(dir: &Path) -> (TopicNumber, ChannelNumber) {
    let store = Store::open(dir).unwrap();
    store
        .transact(|t| {
            let topic = t.create_topic("orders", rich_topic())?;
            let channel = t.create_channel(topic, "billing", ChannelState::default(), Sequence::new(40))?;
            Ok((topic, channel))
        })
        .unwrap()
}

fn rich_topic() -> TopicState {
    TopicState {
        extend: true,
        paused: false,
        handed_over: HandedOver::At(Sequence::new(12)),
        holds: vec![Hold {
            range: SequenceRange::new(Sequence::new(1), Sequence::new(12)),
            ended: 1_700_000_000,
        }],
        settings: r#"{"durability":"always"}"#.into(),
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn bytes_in(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            if entry.file_type().unwrap().is_dir() {
                bytes_in(&entry.path())
            } else {
                entry.metadata().map_or(0, |metadata| metadata.len())
            }
        })
        .sum()
}
