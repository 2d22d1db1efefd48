//! Duty: what only this engine promises: durability, segments, budgets, recovery from a disk that fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::clock::Clock;
use crate::log::contract::{Watched, read_all};
use crate::log::disk::recording::{Crash, Fails, RecordingDisk};
use crate::log::engine::{Durability, LogError, Retention, Ticket, TopicLog};
use crate::log::record::NewRecord;
use crate::log::sequence::{Sequence, SequenceRange};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;
const EMFILE: i32 = 24;

/// An engine on a recording disk with one log.
struct Bench {
    disk: RecordingDisk,
    engine: SegmentedEngine,
    log: Arc<SegmentedLog>,
    watch: Arc<Watched>,
}

fn options(max_bytes_per_file: u64) -> EngineOptions {
    EngineOptions {
        max_bytes_per_file,
        sync_every: 10,
        max_open_files: 4,
        ..EngineOptions::new(PathBuf::from("/topics"), Clock::start())
    }
}

fn log_options(watch: &Arc<Watched>, durability: Durability) -> LogOptions {
    LogOptions {
        start: Sequence::new(100),
        at_least: Sequence::default(),
        durability,
        retention: Retention::default(),
        watch: watch.clone(),
    }
}

impl Bench {
    fn new(durability: Durability, max_bytes_per_file: u64) -> Self {
        Self::on(RecordingDisk::default(), durability, max_bytes_per_file)
    }

    fn on(disk: RecordingDisk, durability: Durability, max_bytes_per_file: u64) -> Self {
        let watch = Arc::new(Watched::default());
        let engine =
            SegmentedEngine::without_thread(options(max_bytes_per_file), Arc::new(disk.clone())).unwrap();
        let log = engine.open(7, log_options(&watch, durability)).unwrap();
        Self {
            disk,
            engine,
            log,
            watch,
        }
    }

    /// The same disk after a crash now.
    fn crashed(&self, crash: Crash, durability: Durability, max_bytes_per_file: u64) -> Self {
        Self::on(
            self.disk.crash(self.disk.moment(), crash),
            durability,
            max_bytes_per_file,
        )
    }

    fn put(&self, count: usize, body: &[u8]) -> Ticket {
        let record = NewRecord {
            timestamp: 1,
            body,
            ..NewRecord::default()
        };
        let ticket = self.log.append(&vec![record; count]).unwrap().ticket;
        self.log.flush();
        ticket
    }

    fn sequences(&self) -> Vec<u64> {
        read_all(&*self.log, Sequence::default())
            .into_iter()
            .map(|(sequence, _)| sequence)
            .collect()
    }

    fn forget_memory(&self) {
        self.log.tail.lock().clear();
    }

    fn healthy(&self) -> bool {
        self.watch.health.lock().last().is_none_or(Result::is_ok)
    }

    fn segment_files(&self) -> Vec<(PathBuf, usize)> {
        let mut files = self.disk.files();
        files.retain(|(path, _)| path.extension().is_some_and(|ending| ending == "log"));
        files
    }
}

fn ok(ticket: &Ticket) -> bool {
    matches!(ticket.outcome(), Some(Ok(())))
}

fn range(start: u64, end: u64) -> SequenceRange {
    SequenceRange::new(Sequence::new(start), Sequence::new(end))
}

mod contract {
    use super::*;
    use crate::log::contract::{START, Subject, contract};

    fn subject(durability: Durability, max_bytes_per_file: u64, from_disk: bool) -> Subject {
        let watch = Arc::new(Watched::default());
        let disk = Arc::new(RecordingDisk::default());
        let engine = SegmentedEngine::without_thread(options(max_bytes_per_file), disk).unwrap();
        let options = LogOptions {
            start: Sequence::new(START),
            ..log_options(&watch, durability)
        };
        let log = engine.open(1, options).unwrap();
        let settled = Arc::clone(&log);
        let settle = move || {
            engine.sync_round();
            if from_disk {
                settled.tail.lock().clear();
            }
        };
        Subject {
            log,
            watch,
            settle: Box::new(settle),
        }
    }

    mod interval {
        fn open() -> super::Subject {
            super::subject(super::Durability::Interval, 1 << 20, false)
        }
        super::contract!(open);
    }

    mod always_from_small_files {
        fn open() -> super::Subject {
            super::subject(super::Durability::Always, 1000, true)
        }
        super::contract!(open);
    }

    mod interval_from_files {
        fn open() -> super::Subject {
            super::subject(super::Durability::Interval, 5000, true)
        }
        super::contract!(open);
    }
}

#[test]
fn always_answers_after_a_sync_that_began_after_the_write() {
    let bench = Bench::new(Durability::Always, 1 << 20);
    let first = bench.put(1, b"a");
    let second = bench.put(1, b"b");
    assert!(first.outcome().is_none() && bench.sequences().is_empty());
    bench.engine.sync_round();
    assert!(ok(&first) && ok(&second));
    assert_eq!(bench.sequences(), [100, 101]);
}

#[test]
fn an_interval_that_follows_always_does_not_overtake() {
    let bench = Bench::new(Durability::Always, 1 << 20);
    let first = bench.put(1, b"a");
    bench.log.set_durability(Durability::Interval);
    let second = bench.put(1, b"b");
    assert!(second.outcome().is_none());
    bench.engine.sync_round();
    assert!(ok(&first) && ok(&second));
    assert!(ok(&bench.put(1, b"c")));
}

struct Wake(std::sync::mpsc::Sender<()>);
impl std::task::Wake for Wake {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn the_sync_thread_answers_without_being_called() {
    let folder = tempfile::tempdir().unwrap();
    let watch = Arc::new(Watched::default());
    let engine =
        SegmentedEngine::start(EngineOptions::new(folder.path().join("topics"), Clock::start())).unwrap();
    let logs: Vec<_> = (0..40)
        .map(|number| {
            engine
                .open(number, log_options(&watch, Durability::Always))
                .unwrap()
        })
        .collect();
    let (done, answered) = std::sync::mpsc::channel();
    let waker = Arc::new(Wake(done)).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut tickets: Vec<_> = logs
        .iter()
        .map(|log| {
            let ticket = log.append(&[NewRecord::default(); 3]).unwrap().ticket;
            log.flush();
            ticket
        })
        .collect();
    while let Some(ticket) = tickets.last_mut() {
        if std::pin::Pin::new(ticket).poll(&mut context).is_ready() {
            assert!(ok(&tickets.pop().unwrap()));
        } else {
            answered.recv_timeout(Duration::from_mins(1)).unwrap();
        }
    }
    drop(logs);
    drop(engine);
    let engine =
        SegmentedEngine::start(EngineOptions::new(folder.path().join("topics"), Clock::start())).unwrap();
    let mut numbers = engine.numbers().unwrap();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<_>>());
    for number in numbers {
        let log = engine
            .open(number, log_options(&watch, Durability::Interval))
            .unwrap();
        assert_eq!(read_all(&*log, Sequence::default()).len(), 3);
        log.close().unwrap();
        engine.remove(number).unwrap();
    }
    assert!(engine.numbers().unwrap().is_empty());
}

#[test]
fn segments_are_named_by_their_first_sequence_and_bounded() {
    let bench = Bench::new(Durability::Interval, 1000);
    for _ in 0..10 {
        bench.put(10, &[0; 72]);
    }
    bench.put(1, &[0; 5000]);
    bench.put(1, &[0; 72]);
    let files = bench.segment_files();
    let names: Vec<_> = files
        .iter()
        .map(|(path, _)| path.file_stem().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["00000000000000000100", "00000000000000000110"]);
    assert!(files[..10].iter().all(|(_, bytes)| *bytes == 1000));
    assert_eq!(files[10].1, 5028);
    assert_eq!(files[11].1, 100);
    bench.forget_memory();
    assert_eq!(bench.sequences().len(), 102);
}

#[test]
fn a_full_disk_refuses_and_recovers_without_a_publish() {
    for durability in [Durability::Interval, Durability::Always] {
        let bench = Bench::new(durability, 1000);
        bench.put(5, b"before");
        bench.engine.sync_round();
        bench.disk.fail(Fails::Write, ENOSPC);
        let refused = bench.put(20, &[0; 100]);
        assert!(matches!(refused.outcome(), Some(Err(LogError::Refused(_)))));
        assert!(!bench.healthy());
        assert!(bench.engine.probe().is_err());
        assert_eq!(bench.sequences().len(), 5);
        bench.disk.heal();
        bench.engine.probe().unwrap();
        assert!(bench.healthy());
        let after = bench.put(2, b"after");
        bench.engine.sync_round();
        assert!(ok(&after));
        assert_eq!(bench.sequences(), [100, 101, 102, 103, 104, 125, 126]);
        assert_eq!(bench.log.count(range(0, 1000)), 7);
        bench.forget_memory();
        assert_eq!(bench.sequences().len(), 7);
        let again = bench.crashed(Crash::Kill, durability, 1000);
        assert_eq!(again.sequences(), [100, 101, 102, 103, 104, 125, 126]);
        assert_eq!(again.log.count(range(0, 1000)), 7);
    }
}

#[test]
fn a_disk_without_room_is_noticed_before_anybody_publishes() {
    let bench = Bench::new(Durability::Interval, 1000);
    bench.engine.probe().unwrap();
    bench.disk.fail(Fails::Room, ENOSPC);
    assert!(bench.engine.probe().is_err());
    bench.disk.heal();
    // What it says is believed once a write has proved it.
    bench.disk.fail(Fails::Write, ENOSPC);
    assert!(bench.engine.probe().is_err());
    bench.disk.heal();
    bench.engine.probe().unwrap();
}

#[test]
fn a_write_that_can_not_be_taken_back_seals_the_segment() {
    let bench = Bench::new(Durability::Interval, 10_000);
    bench.put(5, b"before");
    bench.disk.fail(Fails::Write, EIO);
    bench.disk.fail(Fails::Truncate, EIO);
    let failed = bench.put(20, &[0; 100]);
    assert!(matches!(failed.outcome(), Some(Err(LogError::Unknown(_)))));
    bench.disk.heal();
    assert!(ok(&bench.put(1, b"after")));
    bench.forget_memory();
    assert_eq!(bench.sequences(), [100, 101, 102, 103, 104, 125]);
    bench.engine.sync_round();
    let again = bench.crashed(Crash::Kill, Durability::Interval, 10_000);
    assert_eq!(again.sequences(), [100, 101, 102, 103, 104, 125]);
}

#[test]
fn too_many_open_files_refuse_and_recover() {
    let bench = Bench::new(Durability::Interval, 1000);
    bench.put(9, &[0; 72]);
    bench.disk.fail(Fails::Open, EMFILE);
    let refused = bench.put(9, &[0; 72]);
    let Some(Err(LogError::Refused(text))) = refused.outcome() else {
        panic!("{:?}", refused.outcome());
    };
    assert!(text.contains("Too many open files"), "{text}");
    assert!(bench.engine.probe().is_err());
    bench.disk.heal();
    bench.engine.probe().unwrap();
    assert!(bench.healthy());
    assert!(ok(&bench.put(9, &[0; 72])));
    assert_eq!(bench.sequences().len(), 18);
}

#[test]
fn a_deleted_log_asks_nothing_more_of_the_disk() {
    let bench = Bench::new(Durability::Interval, 1000);
    bench.put(5, &[0; 72]);
    bench.engine.remove(7).unwrap();
    let moment = bench.disk.moment();
    bench.engine.sync_round();
    assert_eq!(bench.disk.moment(), moment);
    assert!(bench.healthy());
}

#[test]
fn a_sync_without_file_descriptors_is_put_off() {
    let bench = Bench::new(Durability::Interval, 1000);
    bench.put(5, &[0; 72]);
    bench.disk.fail(Fails::Open, EMFILE);
    bench.engine.sync_round();
    assert!(!bench.healthy());
    assert!(ok(&bench.put(1, b"written all the same")));
    bench.disk.heal();
    bench.engine.sync_round();
    let crashed = bench.crashed(Crash::Power(1), Durability::Interval, 1000);
    assert_eq!(crashed.sequences().len(), 6);
}

#[test]
fn after_a_failed_sync_the_unsynced_records_are_written_anew() {
    let bench = Bench::new(Durability::Interval, 1000);
    bench.put(5, &[1; 72]);
    bench.engine.sync_round();
    bench.put(12, &[2; 72]);
    bench.log.set_durability(Durability::Always);
    let waiting = bench.put(3, &[3; 72]);
    bench.disk.fail(Fails::Sync, EIO);
    bench.engine.sync_round();
    assert!(matches!(waiting.outcome(), Some(Err(LogError::Unknown(_)))));
    assert!(!bench.healthy());
    assert!(matches!(
        bench.put(1, b"no").outcome(),
        Some(Err(LogError::Refused(_)))
    ));
    assert_eq!(bench.sequences().len(), 17);
    bench.disk.heal();
    bench.engine.probe().unwrap();
    assert!(bench.healthy());
    let after = bench.put(1, &[4; 72]);
    bench.engine.sync_round();
    assert!(ok(&after));
    let expected: Vec<u64> = (100..117).chain([121]).collect();
    assert_eq!(bench.sequences(), expected);
    for seed in 0..20 {
        let again = bench.crashed(Crash::Power(seed), Durability::Interval, 1000);
        assert_eq!(again.sequences(), expected);
    }
    let files: Vec<_> = bench.segment_files();
    assert!(files.iter().all(|(_, bytes)| *bytes <= 1000), "{files:?}");
}

#[test]
fn a_sync_that_fails_once_still_answers_who_waits() {
    let bench = Bench::new(Durability::Always, 1000);
    let first = bench.put(4, &[1; 72]);
    bench.disk.fail_once(Fails::Sync, EIO);
    bench.engine.sync_round();
    assert!(ok(&first));
    assert_eq!(bench.sequences(), [100, 101, 102, 103]);
    for seed in 0..20 {
        let again = bench.crashed(Crash::Power(seed), Durability::Always, 1000);
        assert_eq!(again.sequences(), [100, 101, 102, 103]);
    }
}

#[test]
fn damage_is_stepped_over_and_counted_once() {
    let bench = Bench::new(Durability::Interval, 100_000);
    bench.put(200, &[7; 172]);
    bench.log.close().unwrap();
    let (path, _) = bench.segment_files().pop().unwrap();
    bench.disk.damage(&path, |bytes| {
        bytes[50 * 200 + 100] ^= 1;
        bytes[120 * 200] ^= 0x80;
    });
    let again = bench.restarted();
    let seen = again.sequences();
    assert_eq!(seen.len(), 198);
    assert!(!seen.contains(&150) && !seen.contains(&220));
    assert_eq!(again.log.damaged(), 2);
    assert_eq!(again.sequences().len(), 198);
    assert_eq!(again.log.damaged(), 2);
    assert_eq!(again.log.count(range(0, 1000)), 198);
    assert!(ok(&again.put(1, b"goes on")));
}

#[test]
fn a_torn_end_is_cut_and_is_no_damage() {
    let bench = Bench::new(Durability::Interval, 100_000);
    bench.put(20, &[7; 172]);
    bench.engine.sync_round();
    bench.put(5, &[7; 172]);
    let (path, whole) = bench.segment_files().pop().unwrap();
    bench.disk.damage(&path, |bytes| {
        bytes[22 * 200 + 30] ^= 1;
        bytes.extend([0; 50]);
    });
    let again = bench.restarted();
    assert_eq!(again.sequences(), (100..122).collect::<Vec<_>>());
    assert_eq!(again.segment_files(), [(path, whole - 3 * 200)]);
    assert_eq!(again.log.damaged(), 0);
    assert!(ok(&again.put(1, b"goes on")));
    assert_eq!(again.log.end().get(), 123);
}

#[test]
fn a_file_that_lost_its_synced_end_is_damage() {
    let bench = Bench::new(Durability::Interval, 1000);
    bench.put(15, &[7; 172]);
    bench.log.close().unwrap();
    let (first, _) = bench.segment_files().remove(0);
    bench.disk.damage(&first, |bytes| bytes.truncate(500));
    let again = bench.restarted();
    let expected: Vec<u64> = (100..102).chain(105..115).collect();
    assert_eq!(again.sequences(), expected);
    assert_eq!(again.log.damaged(), 3);
    assert_eq!(again.log.count(range(0, 1000)), 12);
}

#[test]
fn an_index_that_is_missing_or_damaged_is_built_anew() {
    for change in [Index::Missing, Index::Damaged] {
        let bench = Bench::new(Durability::Interval, 20_000);
        bench.put(400, &[7; 172]);
        bench.log.close().unwrap();
        for (path, _) in bench.segment_files() {
            let path = path.with_extension("idx");
            match change {
                Index::Missing => bench.disk.unlink_behind(&path),
                Index::Damaged => bench.disk.damage(&path, |bytes| bytes[60] ^= 1),
            }
        }
        let again = bench.restarted();
        assert_eq!(again.sequences().len(), 400);
        for from in (100..500).step_by(37) {
            let chunk = again.log.read(Sequence::new(from), 1).unwrap().unwrap();
            assert_eq!(chunk.first.get(), from);
        }
        assert_eq!(again.log.damaged(), 0);
    }
}

#[derive(Clone, Copy)]
enum Index {
    Missing,
    Damaged,
}

#[test]
fn a_missing_segment_is_reported_and_the_rest_is_read() {
    let bench = Bench::new(Durability::Interval, 1000);
    for _ in 0..5 {
        bench.put(10, &[0; 72]);
    }
    bench.log.close().unwrap();
    let gone = bench.segment_files()[2].0.clone();
    bench.disk.unlink_behind(&gone);
    bench.forget_memory();
    assert_eq!(bench.sequences().len(), 40);
    assert_eq!(bench.log.damaged(), 10);
    let again = bench.restarted();
    assert_eq!(again.sequences().len(), 40);
    assert_eq!(again.log.count(range(0, 1000)), 40);
}

#[test]
fn finished_segments_go_and_their_sequences_never_come_back() {
    let bench = Bench::new(Durability::Interval, 1000);
    for _ in 0..5 {
        bench.put(10, &[0; 72]);
    }
    bench.engine.sync_round();
    bench.log.trim(Sequence::new(125));
    assert_eq!(bench.log.oldest().get(), 120);
    assert_eq!(bench.segment_files().len(), 3);
    bench.log.set_retention(Retention {
        bytes: Some(2000),
        time: None,
    });
    bench.log.trim(Sequence::new(150));
    assert_eq!(bench.log.oldest().get(), 120);
    bench.log.set_retention(Retention::default());
    bench.log.trim(Sequence::new(150));
    assert_eq!(bench.log.oldest().get(), 140);
    let again = bench.restarted();
    assert_eq!(again.log.end().get(), 150);
    assert_eq!(again.sequences(), (140..150).collect::<Vec<_>>());
}

#[test]
fn what_the_store_remembers_bounds_the_next_sequence() {
    let bench = Bench::new(Durability::Interval, 1000);
    bench.put(3, b"a");
    bench.log.close().unwrap();
    let disk = bench.disk.crash(bench.disk.moment(), Crash::Kill);
    let engine = SegmentedEngine::without_thread(options(1000), Arc::new(disk)).unwrap();
    let options = LogOptions {
        at_least: Sequence::new(500),
        ..log_options(&bench.watch, Durability::Interval)
    };
    let log = engine.open(7, options).unwrap();
    assert_eq!(log.end().get(), 500);
    let appended = log.append(&[NewRecord::default()]).unwrap();
    assert_eq!(appended.range.start.get(), 500);
    log.flush();
    assert_eq!(log.count(range(0, 1000)), 4);
    assert_eq!(
        log.read(Sequence::new(103), 100).unwrap().unwrap().first.get(),
        500
    );
}

#[test]
fn memory_stays_within_its_budget_over_all_logs() {
    let watch = Arc::new(Watched::default());
    let options = EngineOptions {
        memory_tail: 1 << 20,
        ..options(1 << 20)
    };
    let engine = SegmentedEngine::without_thread(options, Arc::new(RecordingDisk::default())).unwrap();
    let logs: Vec<_> = (0..20)
        .map(|number| {
            engine
                .open(number, log_options(&watch, Durability::Interval))
                .unwrap()
        })
        .collect();
    for _ in 0..20 {
        for log in &logs {
            log.append(
                &[NewRecord {
                    body: &[0; 1000],
                    ..NewRecord::default()
                }; 10],
            )
            .unwrap();
            log.flush();
        }
    }
    let memory: u64 = logs.iter().map(|log| log.footprint().memory).sum();
    assert!(memory > 100 << 10 && memory <= 1 << 20, "{memory}");
    for log in &logs {
        assert_eq!(read_all(&**log, Sequence::default()).len(), 200);
    }
}

#[test]
fn a_deleted_log_answers_what_waits_and_leaves_nothing() {
    let bench = Bench::new(Durability::Always, 1000);
    let waiting = bench.put(3, b"a");
    bench.engine.remove(7).unwrap();
    assert!(matches!(waiting.outcome(), Some(Err(LogError::Closed))));
    assert!(matches!(
        bench.log.append(&[NewRecord::default()]),
        Err(LogError::Closed)
    ));
    bench.engine.sync_round();
    assert!(bench.disk.files().is_empty());
    let again = bench
        .engine
        .open(7, log_options(&bench.watch, Durability::Always))
        .unwrap();
    assert!(again.read(Sequence::default(), 100).unwrap().is_none());
}

#[test]
fn a_log_can_be_open_only_once() {
    let bench = Bench::new(Durability::Interval, 1000);
    assert!(
        bench
            .engine
            .open(7, log_options(&bench.watch, Durability::Interval))
            .is_err()
    );
    bench.log.close().unwrap();
    assert!(
        bench
            .engine
            .open(7, log_options(&bench.watch, Durability::Interval))
            .is_ok()
    );
}

impl Bench {
    /// The log opened again on the same disk.
    fn restarted(&self) -> Self {
        Self::on(self.disk.clone(), Durability::Interval, 1000)
    }
}
