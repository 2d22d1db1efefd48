//! Duty: whatever a crash leaves on the disk, recovery keeps what was answered: a property test over random
//! operations, crash points and crash images.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::Clock;
use crate::log::contract::{Watched, read_all};
use crate::log::disk::recording::{Crash, Dice, Fails, RecordingDisk};
use crate::log::engine::{Durability, LogError, Retention, Ticket, TopicLog};
use crate::log::record::NewRecord;
use crate::log::sequence::{Sequence, SequenceRange};

#[derive(Clone, Debug)]
enum Step {
    Append { records: u8, size: u16 },
    Flush,
    Round,
    Void { from: u8, length: u8 },
    Trim(u8),
    Fail(Fails, bool),
    Heal,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let fails = prop_oneof![
        Just(Fails::Write),
        Just(Fails::Sync),
        Just(Fails::Truncate),
        Just(Fails::Open)
    ];
    prop_oneof![
        8 => (1_u8..6, 0_u16..300).prop_map(|(records, size)| Step::Append { records, size }),
        8 => Just(Step::Flush),
        4 => Just(Step::Round),
        1 => (any::<u8>(), 1_u8..20).prop_map(|(from, length)| Step::Void { from, length }),
        1 => any::<u8>().prop_map(Step::Trim),
        1 => (fails, any::<bool>()).prop_map(|(kind, once)| Step::Fail(kind, once)),
        2 => Just(Step::Heal),
        1 => Just(Step::Restart),
    ]
}

/// What an append or a void came to, and the moment on the disk at which that was known.
struct Done {
    range: SequenceRange,
    body: Vec<u8>,
    answered: Option<(usize, Result<(), LogError>)>,
    ticket: Ticket,
}

/// A history of operations on one log, with everything a crash needs to be judged by.
struct History {
    durability: Durability,
    disk: RecordingDisk,
    engine: SegmentedEngine,
    log: Arc<SegmentedLog>,
    appends: Vec<Done>,
    /// Void ranges and the moments they were answered.
    voids: Vec<(usize, SequenceRange)>,
    /// Floors and the moments of their trims.
    trims: Vec<(usize, Sequence)>,
    number: u32,
}

fn open(
    disk: &RecordingDisk,
    durability: Durability,
    at_least: Sequence,
) -> Result<(SegmentedEngine, Arc<SegmentedLog>), LogError> {
    let options = EngineOptions {
        max_bytes_per_file: 1500,
        max_open_files: 3,
        memory_tail: 4 << 10,
        sync_timeout: Duration::from_hours(1),
        ..EngineOptions::new(PathBuf::from("/topics"), Clock::start())
    };
    let engine = SegmentedEngine::without_thread(options, Arc::new(disk.clone()))?;
    let log = engine.open(
        1,
        LogOptions {
            start: Sequence::new(50),
            at_least,
            durability,
            retention: Retention::default(),
            watch: Arc::new(Watched::default()),
        },
    )?;
    Ok((engine, log))
}

impl History {
    fn new(durability: Durability) -> Self {
        let disk = RecordingDisk::default();
        let (engine, log) = open(&disk, durability, Sequence::default()).unwrap();
        Self {
            durability,
            disk,
            engine,
            log,
            appends: Vec::new(),
            voids: Vec::new(),
            trims: Vec::new(),
            number: 0,
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Append { records, size } => {
                self.number += 1;
                let mut body = self.number.to_le_bytes().to_vec();
                body.resize(4 + usize::from(size), self.number as u8);
                let record = NewRecord {
                    timestamp: i64::from(self.number),
                    delay_ms: u64::from(self.number % 3),
                    body: &body,
                    ..NewRecord::default()
                };
                let appended = self.log.append(&vec![record; usize::from(records)]).unwrap();
                self.appends.push(Done {
                    range: appended.range,
                    body,
                    answered: None,
                    ticket: appended.ticket,
                });
            }
            Step::Flush => self.log.flush(),
            Step::Round => {
                let _ = self.engine.probe();
                self.engine.sync_round();
            }
            Step::Void { from, length } => {
                let start = self.log.oldest() + u64::from(from);
                let range = SequenceRange::new(start, (start + u64::from(length)).min(self.log.end()));
                if !range.is_empty() && self.log.void(range).is_ok() {
                    self.voids.push((self.disk.moment(), range));
                }
            }
            Step::Trim(step) => {
                let floor = (self.log.oldest() + u64::from(step)).min(self.log.end());
                // The trim may have removed files by the time of any crash that comes after its beginning.
                self.trims.push((self.disk.moment(), floor));
                self.log.trim(floor);
            }
            Step::Fail(kind, true) => self.disk.fail_once(kind, 5),
            Step::Fail(kind, false) => self.disk.fail(kind, 28),
            Step::Heal => self.disk.heal(),
            Step::Restart => self.restart(),
        }
        let moment = self.disk.moment();
        for done in self.appends.iter_mut().filter(|done| done.answered.is_none()) {
            done.answered = done.ticket.outcome().map(|outcome| (moment, outcome));
        }
    }

    fn restart(&mut self) {
        self.disk.heal();
        self.engine.probe().unwrap();
        self.log.close().unwrap();
        let end = self.log.end();
        (self.engine, self.log) = open(&self.disk, self.durability, Sequence::default()).unwrap();
        assert!(self.log.end() >= end);
    }

    /// Crashes at `moment` and judges what recovery finds.
    fn crash(&self, moment: usize, crash: Crash) {
        let disk = self.disk.crash(moment, crash);
        let (engine, log) = open(&disk, self.durability, Sequence::default()).unwrap();
        self.judge(&log, moment, crash);
        let end = log.end();
        let known = self
            .promised(moment, crash)
            .map(|done| done.range.end)
            .max()
            .unwrap_or_default();
        assert!(end >= known, "{end} would be used again, {known} was answered");
        // The log goes on: what it takes now is there after yet another crash, beside what was there before.
        let fresh = log
            .append(&[NewRecord {
                body: b"fresh",
                ..NewRecord::default()
            }])
            .unwrap();
        log.flush();
        engine.sync_round();
        assert!(matches!(fresh.ticket.outcome(), Some(Ok(()))));
        let again = disk.crash(disk.moment(), Crash::Power(moment as u64));
        let (_engine, log) = open(&again, self.durability, Sequence::default()).unwrap();
        let read = self.judge(&log, moment, crash);
        assert_eq!(read.last(), Some(&(fresh.range.start.get(), b"fresh".to_vec())));
        assert_eq!(log.damaged(), 0);
    }

    /// The appends that must survive the crash.
    fn promised(&self, moment: usize, crash: Crash) -> impl Iterator<Item = &Done> {
        let kept = self.durability == Durability::Always || matches!(crash, Crash::Kill);
        self.appends
            .iter()
            .filter(move |done| kept && matches!(done.answered, Some((known, Ok(()))) if known <= moment))
    }

    fn judge(&self, log: &SegmentedLog, moment: usize, crash: Crash) -> Vec<(u64, Vec<u8>)> {
        let read = read_all(log, Sequence::default());
        let found: BTreeMap<u64, &Vec<u8>> = read.iter().map(|(sequence, body)| (*sequence, body)).collect();
        let void = |sequence| {
            self.voids
                .iter()
                .any(|(_, range)| range.contains(Sequence::new(sequence)))
        };
        let floor = self
            .trims
            .iter()
            .filter(|trim| trim.0 <= moment)
            .map(|trim| trim.1)
            .max()
            .unwrap_or_default();
        for done in self.promised(moment, crash) {
            for sequence in done.range.start.get()..done.range.end.get() {
                let there = found.get(&sequence).is_some_and(|body| **body == done.body);
                assert!(
                    there || void(sequence) || sequence < floor.get(),
                    "{sequence} is lost"
                );
            }
        }
        for done in &self.appends {
            let refused =
                matches!(done.answered, Some((known, Err(LogError::Refused(_)))) if known <= moment);
            let inside = found.range(done.range.start.get()..done.range.end.get()).next();
            let fresh = inside.is_some_and(|(_, body)| *body == b"fresh");
            assert!(
                !refused || inside.is_none() || fresh || matches!(crash, Crash::Power(_)),
                "{inside:?} was refused"
            );
        }
        for (known, range) in &self.voids {
            let inside = found.range(range.start.get()..range.end.get()).next();
            assert!(
                *known > moment || inside.is_none(),
                "{inside:?} came back from {range:?}"
            );
        }
        for (sequence, body) in &read {
            let origin = self
                .appends
                .iter()
                .find(|done| done.range.contains(Sequence::new(*sequence)));
            let genuine = origin.map_or(body == b"fresh", |done| done.body == *body || body == b"fresh");
            assert!(genuine, "{sequence} was invented");
        }
        assert_eq!(
            log.count(SequenceRange::new(Sequence::default(), Sequence::MAX)),
            read.len() as u64
        );
        read
    }
}

fn live_up(durability: Durability, steps: Vec<Step>) -> History {
    let mut history = History::new(durability);
    for step in steps {
        history.run(step);
    }
    history.disk.heal();
    history.judge(&history.log, history.disk.moment(), Crash::Kill);
    history
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_killed_process_loses_nothing_that_was_answered(
        steps in prop::collection::vec(step(), 1..50), seed: u64,
    ) {
        let history = live_up(Durability::Interval, steps);
        let mut dice = Dice(seed);
        for _ in 0..20 {
            history.crash(dice.below(history.disk.moment() + 1), Crash::Kill);
        }
    }

    #[test]
    fn a_power_cut_loses_nothing_that_was_answered_under_always(
        steps in prop::collection::vec(step(), 1..50), seed: u64,
    ) {
        let history = live_up(Durability::Always, steps);
        let mut dice = Dice(seed);
        for _ in 0..20 {
            let moment = dice.below(history.disk.moment() + 1);
            history.crash(moment, Crash::Power(seed ^ moment as u64));
            history.crash(moment, Crash::Kill);
        }
    }

    #[test]
    fn a_power_cut_under_interval_leaves_a_log_that_makes_sense(
        steps in prop::collection::vec(step(), 1..50), seed: u64,
    ) {
        let history = live_up(Durability::Interval, steps);
        let mut dice = Dice(seed);
        for _ in 0..20 {
            let moment = dice.below(history.disk.moment() + 1);
            history.crash(moment, Crash::Power(seed ^ moment as u64));
        }
    }
}
