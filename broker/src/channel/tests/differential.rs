//! Duty: random histories, run by the machine and by the model, must look the same from outside at every step.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;

use super::bed::{Bed, Got, RULES, START, apply};
use super::model::{Model, ModelConsumer};
use crate::channel::{Channel, ChannelRules, ConsumerRules};
use crate::clock::Moment;
use crate::ids::ConnectionId;
use crate::log::record::NewRecord;
use crate::log::sequence::Sequence;
use crate::store::cursor::StoredCursor;

#[derive(Clone, Debug)]
enum Step {
    Publish(u64),
    /// Delay in milliseconds, and whether the announcement comes with the hand-over.
    PublishDelayed(u64, bool),
    AnnounceLate,
    /// Memory holds the newest of so many parts out of 256 of the log.
    Cache(u8),
    Supply,
    Gap(u64),
    Subscribe {
        timeout: u64,
        return_on_leave: bool,
        ready: u64,
    },
    Unsubscribe(Index),
    Ready(Index, u64),
    Take(Index, usize),
    Run,
    Finish(Index),
    FinishAny(Index, Index),
    Requeue(Index, u64),
    Touch(Index),
    Advance(u64),
    Pause,
    Unpause,
    Empty,
    Seek(Index),
    Checkpoint,
    FullCheckpoint,
    Crash,
    CleanStop,
}

/// Steps that keep to what can be told apart when fresh messages may overtake returned ones.
fn step_on_disk() -> impl Strategy<Value = Step> {
    let known = step(true).prop_filter_map("needs no gaps and no late announcements", |step| match step {
        Step::Gap(_) => None,
        Step::PublishDelayed(delay, _) => Some(Step::PublishDelayed(delay, true)),
        step => Some(step),
    });
    prop_oneof![10 => known, 1 => any::<u8>().prop_map(Step::Cache), 2 => Just(Step::Supply)]
}

fn step(durable: bool) -> impl Strategy<Value = Step> {
    let usual = prop_oneof![
        6 => (1_u64..12).prop_map(Step::Publish),
        3 => (0_u64..3000, any::<bool>()).prop_map(|(delay, at_once)| Step::PublishDelayed(delay, at_once)),
        2 => Just(Step::AnnounceLate),
        2 => (100_u64..4000, any::<bool>(), 0_u64..9)
            .prop_map(|(timeout, return_on_leave, ready)| Step::Subscribe { timeout, return_on_leave, ready }),
        1 => any::<Index>().prop_map(Step::Unsubscribe),
        2 => (any::<Index>(), 0_u64..9).prop_map(|(who, ready)| Step::Ready(who, ready)),
        6 => (any::<Index>(), 0_usize..9).prop_map(|(who, limit)| Step::Take(who, limit)),
        4 => Just(Step::Run),
        10 => any::<Index>().prop_map(Step::Finish),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(who, which)| Step::FinishAny(who, which)),
        5 => (any::<Index>(), prop_oneof![Just(0_u64), 1_u64..2000, Just(10_000_000_000)])
            .prop_map(|(which, delay)| Step::Requeue(which, delay)),
        3 => any::<Index>().prop_map(Step::Touch),
        5 => (0_u64..2500).prop_map(Step::Advance),
        1 => Just(Step::Pause),
        2 => Just(Step::Unpause),
    ];
    if !durable {
        return usual.boxed();
    }
    prop_oneof![
        40 => usual,
        1 => prop_oneof![4 => 1_u64..20, 1 => 1_u64..200_000].prop_map(Step::Gap),
        1 => Just(Step::Empty),
        1 => any::<Index>().prop_map(Step::Seek),
        4 => Just(Step::Checkpoint),
        1 => Just(Step::FullCheckpoint),
        2 => Just(Step::Crash),
        1 => Just(Step::CleanStop),
    ]
    .boxed()
}

/// Both sides of one history.
struct Pair {
    bed: Bed,
    model: Model,
    rules: ChannelRules,
    stored: StoredCursor,
    late: Vec<(u64, Moment)>,
    consumers: u64,
    /// Some records are on disk, so that fresh messages may overtake a returned one that is being read.
    disk: bool,
    /// Consumers whose last look ended by its limit: they owe another one.
    looking: Vec<u64>,
}

impl Pair {
    fn new(rules: ChannelRules) -> Self {
        Self {
            bed: Bed::with_rules(rules),
            model: Model::new(rules),
            rules,
            stored: StoredCursor {
                floor: Sequence::new(START),
                ..StoredCursor::default()
            },
            late: Vec::new(),
            consumers: 0,
            disk: false,
            looking: Vec::new(),
        }
    }

    fn pick_consumer(&self, pick: Index) -> Option<u64> {
        let ids: Vec<u64> = self.model.consumers.keys().copied().collect();
        (!ids.is_empty()).then(|| ids[pick.index(ids.len())])
    }

    fn hand_over(&mut self, records: &[u64], announced: &[(u64, Moment)]) {
        let end = self.bed.log.end;
        let announcements: Vec<_> = announced
            .iter()
            .map(|(at, due)| (Sequence::new(*at), *due))
            .collect();
        self.bed
            .channel
            .hand_over(Sequence::new(end), records.len() as u64, &announcements);
        self.model.hand_over(end, records, announced);
    }

    fn take(&mut self, consumer: u64, limit: usize) {
        let (taken, got) = self.bed.take_at_most(consumer, limit, usize::MAX);
        if self.disk {
            for Got { sequence, attempts } in &got {
                let expected = self.model.take_this(consumer, *sequence, self.bed.now);
                assert_eq!(Some(*attempts), expected, "{sequence} taken by {consumer}");
            }
        } else {
            assert_eq!(
                got,
                self.model.take(consumer, limit, self.bed.now),
                "taken by {consumer}"
            );
        }
        self.looking.retain(|looking| *looking != consumer);
        if taken.more {
            self.looking.push(consumer);
        }
    }

    /// Everybody who is due to look looks, as often as it takes, and what is wanted is read.
    fn run(&mut self) {
        loop {
            while let Some(consumer) = self.looking.pop() {
                self.take(consumer, 5);
            }
            while let Some(ConnectionId(consumer)) = self.bed.channel.wake_next() {
                self.take(consumer, usize::MAX);
            }
            if self.looking.is_empty() && !self.supply() {
                break;
            }
        }
        assert!(
            !self.model.has_ready() || !self.model.has_credit(),
            "nobody was woken although there is something for somebody with credit"
        );
    }

    /// Reads what is wanted; false when nothing is.
    fn supply(&mut self) -> bool {
        let wanted = self.bed.channel.wanted();
        if let Some(asked) = wanted {
            self.bed.channel.supply(asked, self.bed.log.read(asked));
        }
        wanted.is_some()
    }

    fn restart(&mut self) {
        let wall = wall(self.bed.now);
        let (log, now) = (&self.bed.log, self.bed.now);
        let end = Sequence::new(log.end);
        self.bed.channel =
            Channel::restore(self.rules, &self.stored, end, |range| log.count(range), now, wall);
        if self.model.paused {
            self.bed.channel.pause();
        }
        self.model.crash(now);
        self.late.clear();
        self.looking.clear();
        let announced: Vec<(u64, Moment)> = self.model.delayed.iter().map(|(at, due)| (*at, *due)).collect();
        self.hand_over(&[], &announced);
    }

    fn run_step(&mut self, step: Step) {
        match step {
            Step::Publish(count) => {
                let first = self.bed.log.end;
                for _ in 0..count {
                    self.bed.log.append(NewRecord::default());
                }
                let records: Vec<u64> = (first..first + count).collect();
                self.hand_over(&records, &[]);
            }
            Step::PublishDelayed(delay, at_once) => {
                let due = self.bed.now + Duration::from_millis(delay);
                let delay_ms = delay.max(1);
                let sequence = self.bed.log.append(NewRecord {
                    delay_ms,
                    ..NewRecord::default()
                });
                self.model.delayed.insert(sequence, due);
                if at_once {
                    self.hand_over(&[sequence], &[(sequence, due)]);
                } else {
                    self.hand_over(&[sequence], &[]);
                    self.late.push((sequence, due));
                }
            }
            Step::AnnounceLate => {
                let late = std::mem::take(&mut self.late);
                self.hand_over(&[], &late);
            }
            Step::Cache(part) => {
                let cached = (self.bed.log.end - START) * u64::from(part) / 256;
                self.bed.log.cached_from = self.bed.log.end - cached;
            }
            Step::Supply => {
                self.supply();
            }
            Step::Gap(count) => {
                self.bed.log.skip(count);
                let sequence = self.bed.log.append(NewRecord::default());
                self.hand_over(&[sequence], &[]);
            }
            Step::Subscribe {
                timeout,
                return_on_leave,
                ready,
            } => self.subscribe(timeout, return_on_leave, ready),
            Step::Pause => {
                self.bed.channel.pause();
                self.model.paused = true;
            }
            Step::Unpause => {
                self.bed.channel.unpause();
                self.model.paused = false;
            }
            Step::Advance(ms) => {
                self.bed.now = self.bed.now + Duration::from_millis(ms) + Duration::from_nanos(ms * 13);
                self.bed.channel.advance(self.bed.now);
                self.model.advance(self.bed.now);
            }
            Step::Run => self.run(),
            Step::Unsubscribe(_) | Step::Ready(..) | Step::Take(..) => self.run_consumer_step(&step),
            Step::Finish(_) | Step::FinishAny(..) | Step::Requeue(..) | Step::Touch(_) => {
                self.run_settle_step(&step);
            }
            _ => self.run_whole_step(&step),
        }
    }

    fn subscribe(&mut self, timeout: u64, return_on_leave: bool, ready: u64) {
        self.consumers += 1;
        let msg_timeout = Duration::from_millis(timeout);
        let rules = ConsumerRules {
            msg_timeout,
            sample_rate: 0,
            return_on_leave,
            seed: 0,
        };
        self.bed.subscribe_as(self.consumers, ready, rules);
        self.model.consumers.insert(
            self.consumers,
            ModelConsumer {
                ready: 0,
                msg_timeout,
                return_on_leave,
            },
        );
        self.model.set_ready(self.consumers, ready);
    }

    fn run_consumer_step(&mut self, step: &Step) {
        let (Step::Unsubscribe(pick) | Step::Ready(pick, _) | Step::Take(pick, _)) = step else {
            return;
        };
        let Some(consumer) = self.pick_consumer(*pick) else {
            return;
        };
        match step {
            Step::Unsubscribe(_) => {
                self.bed.channel.unsubscribe(ConnectionId(consumer));
                self.model.unsubscribe(consumer);
                self.looking.retain(|looking| *looking != consumer);
            }
            Step::Ready(_, ready) => {
                self.bed.channel.set_ready(ConnectionId(consumer), *ready);
                self.model.set_ready(consumer, *ready);
            }
            Step::Take(_, limit) => {
                self.take(consumer, *limit);
            }
            _ => {}
        }
    }

    fn run_settle_step(&mut self, step: &Step) {
        if let Step::FinishAny(who, which) = step {
            let Some(consumer) = self.pick_consumer(*who) else {
                return;
            };
            let sequence = START + which.index((self.model.end - START + 2).min(400) as usize) as u64;
            let expected = self.model.finish(consumer, sequence);
            assert_eq!(self.bed.finish(consumer, sequence), expected);
            return;
        }
        let (Step::Finish(pick) | Step::Requeue(pick, _) | Step::Touch(pick)) = step else {
            return;
        };
        let Some((sequence, consumer)) = self.model.pick_flight(*pick) else {
            return;
        };
        let now = self.bed.now;
        let (expected, got) = match step {
            Step::Finish(_) => (
                self.model.finish(consumer, sequence),
                self.bed.finish(consumer, sequence),
            ),
            Step::Touch(_) => (
                self.model.touch(consumer, sequence, now),
                self.bed.touch(consumer, sequence),
            ),
            Step::Requeue(_, delay) => {
                let delay = Duration::from_millis(*delay);
                (
                    self.model.requeue(consumer, sequence, delay, now),
                    self.bed.requeue(consumer, sequence, delay),
                )
            }
            _ => return,
        };
        assert_eq!(got, expected, "{step:?} of {sequence}");
    }

    fn run_whole_step(&mut self, step: &Step) {
        let now = self.bed.now;
        match step {
            Step::Empty => {
                self.bed.channel.empty();
                self.model.empty();
            }
            Step::Seek(pick) => {
                let to = START + pick.index((self.model.end - START + 1) as usize) as u64;
                let range = crate::log::sequence::SequenceRange::new(
                    Sequence::new(to),
                    Sequence::new(self.model.end),
                );
                self.bed
                    .channel
                    .seek(Sequence::new(to), self.bed.log.count(range));
                self.model.seek(to);
                self.late.clear();
                let announced: Vec<_> = self
                    .model
                    .delayed
                    .iter()
                    .filter(|(at, _)| **at >= to)
                    .map(|(at, due)| (*at, *due))
                    .collect();
                self.hand_over(&[], &announced);
            }
            Step::Checkpoint => {
                if let Some(delta) = self.bed.channel.checkpoint(wall(now), now) {
                    apply(&mut self.stored, delta);
                }
                self.model.checkpoint();
                assert_eq!(
                    self.bed.channel.checkpoint(wall(now), now),
                    None,
                    "nothing is new after a checkpoint"
                );
            }
            Step::FullCheckpoint => {
                self.stored = StoredCursor::default();
                apply(
                    &mut self.stored,
                    self.bed.channel.full_checkpoint(wall(now), now).unwrap(),
                );
                self.model.full_checkpoint();
            }
            Step::Crash => self.restart(),
            Step::CleanStop => {
                if let Some(delta) = self.bed.channel.final_checkpoint(wall(now), now) {
                    apply(&mut self.stored, delta);
                }
                self.model.final_checkpoint();
                self.restart();
            }
            _ => {}
        }
    }

    fn compare(&self, after: &str) {
        let counts = self.bed.channel.counts();
        let model = &self.model;
        assert_eq!(counts.depth, model.depth(), "depth after {after}");
        assert_eq!(counts.in_flight, model.in_flight(), "in flight after {after}");
        assert_eq!(counts.deferred, model.deferred(), "deferred after {after}");
        assert_eq!(counts.timeout_count, model.timeouts, "timeouts after {after}");
        assert_eq!(counts.dropped, model.dropped, "dropped after {after}");
        assert_eq!(counts.lost, 0, "lost after {after}");
        assert_eq!(
            self.bed.channel.floor().get(),
            model.floor(),
            "floor after {after}"
        );
        for (id, consumer) in &model.consumers {
            let counts = self.bed.channel.consumer_counts(ConnectionId(*id)).unwrap();
            assert_eq!(
                (counts.ready, counts.in_flight),
                (consumer.ready, model.in_flight_of(*id)),
                "consumer {id} after {after}"
            );
        }
    }
}

/// The wall clock that goes with `now`.
fn wall(now: Moment) -> i64 {
    1_700_000_000_000_000_000 + now.as_nanos() as i64
}

fn run(rules: ChannelRules, disk: bool, steps: Vec<Step>) {
    let mut pair = Pair::new(rules);
    pair.disk = disk;
    for step in steps {
        let shown = format!("{step:?}");
        pair.run_step(step);
        pair.compare(&shown);
    }
    pair.run();
    pair.compare("the end");
}

/// Four times as many histories as usual: 1,024 of each kind unless `PROPTEST_CASES` says otherwise.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases * 4,
        max_shrink_iters: 20_000,
        ..usual
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_channel_does_what_the_model_does(
        mem_queue_size in 0_u64..20,
        steps in proptest::collection::vec(step(true), 1..120),
    ) {
        run(ChannelRules { mem_queue_size, max_msg_timeout: Duration::from_secs(5), ..RULES }, false, steps);
    }

    #[test]
    fn a_channel_whose_records_are_on_disk_does_what_the_model_does(
        mem_queue_size in 0_u64..20,
        steps in proptest::collection::vec(step_on_disk(), 1..120),
    ) {
        run(ChannelRules { mem_queue_size, max_msg_timeout: Duration::from_secs(5), ..RULES }, true, steps);
    }

    #[test]
    fn an_ephemeral_channel_does_what_the_model_does(
        bound in 0_u64..20,
        steps in proptest::collection::vec(step(false), 1..120),
    ) {
        let rules = ChannelRules {
            mem_queue_size: bound,
            max_msg_timeout: Duration::from_secs(5),
            drop_oldest_beyond: Some(bound),
            durable: false,
            ..RULES
        };
        run(rules, false, steps);
    }
}
