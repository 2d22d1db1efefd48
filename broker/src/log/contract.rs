//! Duty: the suite that every engine runs: the clauses of [`super::engine`] one by one. Comes in: a way to open
//! a log. Must not know any engine.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::engine::{DelayedRecord, LogError, TailWatch, TopicLog};
use super::record::NewRecord;
use super::sequence::{Sequence, SequenceRange};

/// A watch that remembers what it was told.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) ends: Mutex<Vec<u64>>,
    pub(crate) delayed: Mutex<Vec<DelayedRecord>>,
    pub(crate) health: Mutex<Vec<Result<(), LogError>>>,
}

impl TailWatch for Watched {
    fn advanced(&self, end: Sequence, delayed: &[DelayedRecord]) {
        self.ends.lock().push(end.get());
        self.delayed.lock().extend_from_slice(delayed);
    }

    fn health(&self, state: Result<(), &LogError>) {
        self.health.lock().push(state.map_err(Clone::clone));
    }
}

/// A new log that starts at [`START`].
pub(crate) struct Subject {
    pub(crate) log: Arc<dyn TopicLog>,
    pub(crate) watch: Arc<Watched>,
    /// Lets what was flushed become as durable as the log asks.
    pub(crate) settle: Box<dyn Fn() + Send + Sync>,
}

/// First sequence of every subject.
pub(crate) const START: u64 = 1000;

/// Runs every clause against the logs that `$open` makes, as tests of the module it stands in.
macro_rules! contract {
    ($open:expr) => {
        $crate::log::contract::contract!($open;
            sequences_are_given_at_once_and_in_call_order, nothing_pending_is_read_or_handed_over,
            a_flush_answers_tickets_and_tells_the_watch, a_ticket_wakes_who_waits, reads_are_in_order_and_dense,
            a_read_is_about_as_large_as_asked, void_ranges_are_never_seen, void_ranges_do_not_reach_into_the_future,
            counts_leave_out_what_is_not_there, a_seek_by_time_finds_the_first_at_or_after,
            delayed_records_are_found, a_trim_never_touches_what_is_needed, many_threads_lose_nothing,
            a_closed_log_refuses, an_empty_log_has_nothing_to_read);
    };
    ($open:expr; $($clause:ident),+) => {
        $(#[test]
        fn $clause() {
            $crate::log::contract::$clause(&$open());
        })+
    };
}
pub(crate) use contract;

impl Subject {
    /// Appends records with these bodies, flushes and settles.
    fn put<B: AsRef<[u8]>>(&self, bodies: &[B]) {
        let records: Vec<_> = bodies.iter().map(|body| record(1, body.as_ref())).collect();
        self.commit(&records);
    }

    fn commit(&self, records: &[NewRecord<'_>]) {
        let ticket = self.log.append(records).unwrap().ticket;
        self.log.flush();
        (self.settle)();
        assert!(matches!(ticket.outcome(), Some(Ok(()))));
    }

    /// Every record from `from` on, as sequence and body.
    fn all(&self, from: u64) -> Vec<(u64, Vec<u8>)> {
        read_all(&*self.log, Sequence::new(from))
    }
}

/// Every record of `log` from `from` on, as sequence and body; checks that chunks are in order and dense.
pub(crate) fn read_all(log: &dyn TopicLog, from: Sequence) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut from = from;
    while let Some(chunk) = log.read(from, 600).unwrap() {
        assert!(chunk.count > 0 && chunk.first >= from);
        let mut sequence = chunk.first;
        for record in chunk.records() {
            assert_eq!(record.sequence, sequence);
            found.push((sequence.get(), record.body.to_vec()));
            sequence = sequence.next();
        }
        assert_eq!(sequence, chunk.end());
        from = chunk.end();
    }
    found
}

fn record(timestamp: i64, body: &[u8]) -> NewRecord<'_> {
    NewRecord {
        timestamp,
        body,
        ..NewRecord::default()
    }
}

fn range(start: u64, end: u64) -> SequenceRange {
    SequenceRange::new(Sequence::new(START + start), Sequence::new(START + end))
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("body {number}")).collect()
}

pub(crate) fn sequences_are_given_at_once_and_in_call_order(subject: &Subject) {
    let first = subject.log.append(&[record(1, b"a"); 3]).unwrap();
    let second = subject.log.append(&[record(1, b"b")]).unwrap();
    assert_eq!(first.range, range(0, 3));
    assert_eq!(second.range, range(3, 4));
}

pub(crate) fn nothing_pending_is_read_or_handed_over(subject: &Subject) {
    let ticket = subject.log.append(&[record(1, b"a")]).unwrap().ticket;
    (subject.settle)();
    assert!(ticket.outcome().is_none());
    assert_eq!(subject.log.end().get(), START);
    assert!(subject.log.read(Sequence::default(), 100).unwrap().is_none());
    assert!(subject.log.read_cached(Sequence::new(START)).is_none());
    assert!(subject.watch.ends.lock().is_empty());
}

pub(crate) fn a_flush_answers_tickets_and_tells_the_watch(subject: &Subject) {
    let delayed = NewRecord {
        delay_ms: 50,
        ..record(7, b"b")
    };
    subject.put(&["a"]);
    let first = subject.log.append(&[record(1, b"a")]).unwrap().ticket;
    let second = subject.log.append(&[delayed]).unwrap().ticket;
    subject.log.flush();
    subject.log.flush();
    (subject.settle)();
    assert!(matches!(
        (first.outcome(), second.outcome()),
        (Some(Ok(())), Some(Ok(())))
    ));
    assert_eq!(*subject.watch.ends.lock(), [START + 1, START + 3]);
    assert_eq!(subject.log.end().get(), START + 3);
    let expected = DelayedRecord {
        sequence: Sequence::new(START + 2),
        published: 7,
        delay_ms: 50,
    };
    assert_eq!(*subject.watch.delayed.lock(), [expected]);
}

pub(crate) fn a_ticket_wakes_who_waits(subject: &Subject) {
    let ticket = subject.log.append(&[record(1, b"a")]).unwrap().ticket;
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = pin!(ticket.clone());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    subject.log.flush();
    (subject.settle)();
    assert!(matches!(waiting.as_mut().poll(&mut context), Poll::Ready(Ok(()))));
}

pub(crate) fn reads_are_in_order_and_dense(subject: &Subject) {
    let bodies = numbered(60);
    for part in bodies.chunks(7) {
        subject.put(part);
        assert_eq!(subject.all(START).len() as u64, subject.log.end().get() - START);
    }
    for (from, body) in bodies.iter().enumerate() {
        let read = subject.all(START + from as u64);
        assert_eq!(read.len(), 60 - from);
        assert_eq!(read[0], (START + from as u64, body.clone().into_bytes()));
    }
    assert_eq!(subject.all(0).len(), 60);
    assert_eq!(subject.log.oldest().get(), START);
}

pub(crate) fn a_read_is_about_as_large_as_asked(subject: &Subject) {
    subject.put(&vec![vec![0; 300]; 50]);
    let one = subject.log.read(Sequence::new(START), 1).unwrap().unwrap();
    assert_eq!(one.count, 1);
    let some = subject
        .log
        .read(Sequence::new(START + 10), 1000)
        .unwrap()
        .unwrap();
    assert!(some.count > 0 && some.bytes.len() <= 1000);
    let large = vec![5; 600_000];
    subject.put(&[&large]);
    assert_eq!(subject.all(START + 50), [(START + 50, large)]);
}

pub(crate) fn void_ranges_are_never_seen(subject: &Subject) {
    subject.put(&numbered(10));
    subject.log.void(range(0, 3)).unwrap();
    subject.log.void(range(5, 7)).unwrap();
    subject.put(&["more"]);
    let seen: Vec<u64> = subject
        .all(0)
        .into_iter()
        .map(|(sequence, _)| sequence - START)
        .collect();
    assert_eq!(seen, [3, 4, 7, 8, 9, 10]);
    assert_eq!(subject.all(START + 6)[0].0, START + 7);
    assert_eq!(subject.log.oldest().get(), START + 3);
    assert_eq!(subject.log.count(range(0, 11)), 6);
    assert_eq!(subject.log.seek_time(0).unwrap().get(), START + 3);
    let mut cached = Sequence::new(START);
    while let Some(chunk) = subject.log.read_cached(cached) {
        assert!(
            chunk
                .records()
                .all(|record| seen.contains(&(record.sequence.get() - START)))
        );
        cached = chunk.end();
    }
}

pub(crate) fn void_ranges_do_not_reach_into_the_future(subject: &Subject) {
    subject.put(&["a"]);
    subject.log.void(range(0, 100)).unwrap();
    subject.put(&["b"]);
    assert_eq!(subject.all(0), [(START + 1, b"b".to_vec())]);
}

pub(crate) fn counts_leave_out_what_is_not_there(subject: &Subject) {
    subject.put(&numbered(10));
    assert_eq!(subject.log.count(range(2, 5)), 3);
    assert_eq!(subject.log.count(range(8, 30)), 2);
    let everything = SequenceRange::new(Sequence::default(), Sequence::MAX);
    assert_eq!(subject.log.count(everything), 10);
    subject.log.void(range(4, 6)).unwrap();
    assert_eq!(subject.log.count(everything), 8);
    assert_eq!(subject.log.count(range(5, 6)), 0);
}

pub(crate) fn a_seek_by_time_finds_the_first_at_or_after(subject: &Subject) {
    let stamps = [10, 20, 15, 30, 25, 40];
    for stamp in stamps {
        subject.commit(&vec![record(stamp, &[0; 200]); 20]);
    }
    for (time, expected) in [
        (0, 0),
        (10, 0),
        (11, 20),
        (20, 20),
        (21, 60),
        (31, 100),
        (41, 120),
    ] {
        assert_eq!(
            subject.log.seek_time(time).unwrap().get(),
            START + expected,
            "{time}"
        );
    }
}

pub(crate) fn delayed_records_are_found(subject: &Subject) {
    for number in 0..200_u64 {
        let delay_ms = if number % 50 == 7 { number } else { 0 };
        let published = number as i64;
        subject.commit(&[NewRecord {
            delay_ms,
            ..record(published, &[0; 100])
        }]);
    }
    let found = subject.log.delayed(range(0, 200)).unwrap();
    assert_eq!(
        found.iter().map(|delayed| delayed.delay_ms).collect::<Vec<_>>(),
        [7, 57, 107, 157]
    );
    assert!(
        found
            .iter()
            .all(|delayed| delayed.sequence.get() - START == delayed.delay_ms)
    );
    assert!(
        found
            .iter()
            .all(|delayed| delayed.published as u64 == delayed.delay_ms)
    );
    subject.log.void(range(57, 58)).unwrap();
    assert_eq!(subject.log.delayed(range(8, 157)).unwrap().len(), 1);
}

pub(crate) fn a_trim_never_touches_what_is_needed(subject: &Subject) {
    let bodies = numbered(100);
    for part in bodies.chunks(10) {
        subject.put(part);
    }
    subject.log.trim(Sequence::new(START + 55));
    let oldest = subject.log.oldest().get();
    assert!(oldest <= START + 55);
    let left = subject.all(0);
    assert_eq!(left[0].0, oldest);
    assert_eq!(left.len() as u64, START + 100 - oldest);
    assert_eq!(subject.log.count(range(0, 100)), left.len() as u64);
}

pub(crate) fn many_threads_lose_nothing(subject: &Subject) {
    const THREADS: u64 = 4;
    const BATCHES: u64 = 60;
    let tickets = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, tickets) = (&subject.log, &tickets);
            scope.spawn(move || {
                for batch in 0..BATCHES {
                    let body = [thread.to_le_bytes(), batch.to_le_bytes()].concat();
                    let appended = log.append(&[record(1, &body); 5]).unwrap();
                    log.flush();
                    if batch % 16 == 0 {
                        (subject.settle)();
                    }
                    tickets.lock().push((appended.range, body, appended.ticket));
                }
            });
        }
    });
    (subject.settle)();
    let read = subject.all(START);
    assert_eq!(read.len() as u64, THREADS * BATCHES * 5);
    for (range, body, ticket) in tickets.into_inner() {
        assert!(matches!(ticket.outcome(), Some(Ok(()))));
        for sequence in range.start.get()..range.end.get() {
            assert_eq!(read[(sequence - START) as usize], (sequence, body.clone()));
        }
    }
    assert!(subject.watch.ends.lock().is_sorted());
    assert_eq!(
        *subject.watch.ends.lock().last().unwrap(),
        subject.log.end().get()
    );
}

pub(crate) fn a_closed_log_refuses(subject: &Subject) {
    let last = subject.log.append(&[record(1, b"last")]).unwrap().ticket;
    subject.log.close().unwrap();
    assert!(matches!(last.outcome(), Some(Ok(()))));
    assert!(matches!(
        subject.log.append(&[record(1, b"")]),
        Err(LogError::Closed)
    ));
    assert_eq!(subject.all(0), [(START, b"last".to_vec())]);
}

pub(crate) fn an_empty_log_has_nothing_to_read(subject: &Subject) {
    subject.log.flush();
    let start = Sequence::new(START);
    assert_eq!((subject.log.oldest(), subject.log.end()), (start, start));
    assert!(subject.log.read(start, 100).unwrap().is_none());
    assert_eq!(subject.log.seek_time(0).unwrap(), start);
    assert!(subject.log.delayed(range(0, 10)).unwrap().is_empty());
    assert_eq!(subject.log.count(range(0, 10)), 0);
    subject.log.trim(start);
}
