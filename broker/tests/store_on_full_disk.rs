//! Duty: the metadata store on a disk that takes no more and later does. The disk is played by the limit on the
//! size of a file, which concerns a whole process: the test runs itself again under that limit.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use std::process::Command;

use nsqx_broker::log::sequence::Sequence;
use nsqx_broker::store::catalogue::{Catalogue, ChannelState, TopicState};
use nsqx_broker::store::cursor::{ChannelNumber, CursorDelta};
use nsqx_broker::store::cursors::CursorStore;
use nsqx_broker::store::{Store, StoreError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_full_disk_breaks_the_store_and_space_heals_it_without_a_restart() {
    if std::env::var_os(LIMITED).is_some() {
        return fill_and_free();
    }
    // The signal must be ignored, else reaching the limit ends the process instead of failing the write.
    let script = format!("trap '' XFSZ; ulimit -S -f {BLOCKS}; exec \"$0\" --exact \"$1\" --nocapture");
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(std::env::current_exe().unwrap())
        .arg("a_full_disk_breaks_the_store_and_space_heals_it_without_a_restart")
        .env(LIMITED, "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn fill_and_free() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut channels = Vec::new();
    let refused = loop {
        match create(&store, channels.len()) {
            Ok(channel) => channels.push(channel),
            Err(error) => break error,
        }
        assert!(channels.len() < 10_000, "the limit was never reached");
    };
    assert!(matches!(refused, StoreError::Broken(_)), "{refused}");
    assert!(!channels.is_empty());
    assert_eq!(store.fault(), Some(refused));
    assert_eq!(
        store.catalogue().topics().count(),
        channels.len(),
        "only what was answered is there"
    );
    assert!(matches!(create(&store, 0), Err(StoreError::Broken(_))));
    let cursors = |_: &Catalogue| {
        let delta = |number: usize| CursorDelta {
            floor: floor(number),
            ..CursorDelta::default()
        };
        channels
            .iter()
            .enumerate()
            .map(|(number, channel)| (*channel, delta(number)))
            .collect::<Vec<_>>()
    };
    limit_files_to(Some(4096));
    assert!(store.reopen(cursors).is_err(), "the disk is fuller than before");

    limit_files_to(None);
    store.reopen(cursors).unwrap();
    assert_eq!(store.fault(), None);
    create(&store, channels.len()).unwrap();
    let catalogue = store.catalogue();
    drop(store);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.catalogue(), catalogue);
    for (number, channel) in channels.iter().enumerate() {
        assert_eq!(store.load(*channel).unwrap().unwrap().floor, floor(number));
    }
}

fn create(store: &Store, number: usize) -> Result<ChannelNumber, StoreError> {
    store.transact(|transaction| {
        let state = TopicState {
            settings: "x".repeat(4000),
            ..TopicState::default()
        };
        let topic = transaction.create_topic(&format!("topic-{number}"), state)?;
        transaction.create_channel(topic, "channel", ChannelState::default(), floor(number))
    })
}

fn limit_files_to(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: bytes.or(maximum),
            maximum,
        },
    )
    .unwrap();
}

fn floor(number: usize) -> Sequence {
    Sequence::new(number as u64 + 5)
}

const LIMITED: &str = "NSQX_TEST_FILE_LIMIT";
/// Blocks of 512 or 1024 bytes, as the shell counts.
const BLOCKS: u32 = 4096;
