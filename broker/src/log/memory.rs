//! Duty: the engine without files, for ephemeral topics and for tests. Comes in: appends. Goes out: chunks.
//! Must not know files.

use std::sync::Arc;

use parking_lot::Mutex;

use super::absent::Absent;
use super::engine::{
    Appended, Chunk, DelayedRecord, Durability, Footprint, LogError, Retention, TailWatch, TopicLog,
};
use super::news::{Announcer, News};
use super::pending::Pending;
use super::record::NewRecord;
use super::sequence::{Sequence, SequenceRange};
use super::tail::Tail;

/// A log in memory. With a bound it is a ring: the oldest records go, and are counted.
pub struct MemoryLog {
    state: Mutex<State>,
    announcer: Announcer,
}

struct State {
    pending: Pending,
    tail: Tail,
    absent: Absent,
    oldest: Sequence,
    end: Sequence,
    max_records: u64,
    dropped: u64,
    closed: bool,
}

impl MemoryLog {
    /// An empty log whose first record gets the sequence `start`.
    pub fn new(start: Sequence, watch: Arc<dyn TailWatch>) -> Self {
        Self {
            state: Mutex::new(State {
                pending: Pending::new(start),
                tail: Tail::new(start),
                absent: Absent::default(),
                oldest: start,
                end: start,
                max_records: u64::MAX,
                dropped: 0,
                closed: false,
            }),
            announcer: Announcer::new(watch),
        }
    }

    /// Keeps at most the newest `records` records from now on.
    pub fn set_max_records(&self, records: u64) {
        let mut state = self.state.lock();
        state.max_records = records;
        state.enforce_bound();
    }

    /// Number of records that went because of the bound.
    pub fn dropped(&self) -> u64 {
        self.state.lock().dropped
    }
}

impl TopicLog for MemoryLog {
    fn append(&self, records: &[NewRecord<'_>]) -> Result<Appended, LogError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(LogError::Closed);
        }
        Ok(state.pending.append(records, |_| Arc::default()))
    }

    fn flush(&self) {
        {
            let mut state = self.state.lock();
            let Some(batch) = state.pending.take() else {
                return;
            };
            for piece in batch.pieces {
                state.tail.push(piece);
            }
            state.end = batch.range.end;
            state.enforce_bound();
            self.announcer.push(News::Committed {
                commit: batch.commit,
                end: batch.range.end,
                delayed: batch.delayed,
            });
        }
        self.announcer.tell();
    }

    fn end(&self) -> Sequence {
        self.state.lock().end
    }

    fn oldest(&self) -> Sequence {
        let state = self.state.lock();
        state.absent.skip(state.oldest)
    }

    fn read_cached(&self, from: Sequence) -> Option<Chunk> {
        let mut state = self.state.lock();
        let from = from.max(state.oldest);
        state.tail.read(from)
    }

    fn read(&self, from: Sequence, max_bytes: usize) -> Result<Option<Chunk>, LogError> {
        Ok(self.read_cached(from).map(|chunk| chunk.within(max_bytes)))
    }

    fn delayed(&self, range: SequenceRange) -> Result<Vec<DelayedRecord>, LogError> {
        let mut found = Vec::new();
        let mut from = range.start;
        while let Some(chunk) = self.read_cached(from).filter(|chunk| chunk.first < range.end) {
            found.extend(
                chunk
                    .records()
                    .filter(|record| record.delay_ms > 0 && record.sequence < range.end)
                    .map(|record| DelayedRecord::of(&record)),
            );
            from = chunk.end();
        }
        Ok(found)
    }

    fn seek_time(&self, unix_ns: i64) -> Result<Sequence, LogError> {
        let mut from = Sequence::default();
        while let Some(chunk) = self.read_cached(from) {
            if let Some(record) = chunk.records().find(|record| record.timestamp >= unix_ns) {
                return Ok(record.sequence);
            }
            from = chunk.end();
        }
        Ok(self.end())
    }

    fn count(&self, range: SequenceRange) -> u64 {
        self.state.lock().count(range)
    }

    fn void(&self, range: SequenceRange) -> Result<(), LogError> {
        let mut state = self.state.lock();
        let range = SequenceRange::new(range.start, range.end.min(state.end));
        if state.absent.insert(range) {
            state.tail.void(range);
        }
        Ok(())
    }

    fn trim(&self, floor: Sequence) {
        let mut state = self.state.lock();
        let floor = floor.min(state.end);
        state.drop_below(floor);
    }

    fn set_durability(&self, _durability: Durability) {}

    fn set_retention(&self, _retention: Retention) {}

    fn footprint(&self) -> Footprint {
        Footprint {
            disk: 0,
            memory: self.state.lock().tail.bytes() as u64,
        }
    }

    fn close(&self) -> Result<(), LogError> {
        self.state.lock().closed = true;
        self.flush();
        Ok(())
    }
}

impl State {
    fn count(&self, range: SequenceRange) -> u64 {
        let range = SequenceRange::new(range.start.max(self.oldest), range.end.min(self.end));
        range.len() - self.absent.overlap(range)
    }

    fn drop_below(&mut self, floor: Sequence) {
        self.oldest = self.oldest.max(floor);
        self.tail.forget_below(self.oldest);
        self.absent.forget_below(self.oldest);
    }

    fn enforce_bound(&mut self) {
        let held = self.count(SequenceRange::new(self.oldest, self.end));
        let mut excess = held.saturating_sub(self.max_records);
        self.dropped += excess;
        let mut floor = self.absent.skip(self.oldest);
        while excess > 0 {
            let step = self.absent.next(floor).since(floor).min(excess);
            floor = self.absent.skip(floor + step);
            excess -= step;
        }
        if floor > self.oldest {
            self.drop_below(floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::contract::{START, Subject, Watched, contract};

    fn open() -> Subject {
        let watch = Arc::new(Watched::default());
        Subject {
            log: Arc::new(MemoryLog::new(Sequence::new(START), watch.clone())),
            watch,
            settle: Box::new(|| ()),
        }
    }

    contract!(open);

    #[test]
    fn a_ring_drops_the_oldest_and_counts_them() {
        let log = MemoryLog::new(Sequence::new(100), Arc::new(Watched::default()));
        log.set_max_records(10);
        for _ in 0..5 {
            log.append(&[NewRecord::default(); 3]).unwrap();
            log.flush();
        }
        assert_eq!(
            (log.oldest().get(), log.end().get(), log.dropped()),
            (105, 115, 5)
        );
        assert_eq!(log.read_cached(Sequence::new(0)).unwrap().first.get(), 105);
        log.void(SequenceRange::new(Sequence::new(106), Sequence::new(110)))
            .unwrap();
        log.set_max_records(3);
        assert_eq!((log.oldest().get(), log.dropped()), (112, 8));
        assert_eq!(log.count(SequenceRange::new(Sequence::new(0), Sequence::MAX)), 3);
    }
}
