//! Duty: one topic's log in segment files: the way from `append` to readable. Comes in: records, finished syncs.
//! Goes out: tickets, chunks, news for the watch. Must not know topics' names, other logs or when syncs run.
//!
//! Three locks, always taken in this order and none of them while the watch is told: `writer` (held during a
//! write), `pending` (short), and of `view` and `tail` one at a time (short). Others append while a write runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::commit::{UNMARKED_MAX, Writer};
use super::engine::Services;
use super::reader::Hints;
use super::segment::Home;
use super::view::View;
use crate::log::engine::{
    Appended, Chunk, DelayedRecord, Durability, Footprint, LogError, Retention, TopicLog,
};
use crate::log::news::{Announcer, News};
use crate::log::pending::Pending;
use crate::log::record::NewRecord;
use crate::log::sequence::{Sequence, SequenceRange};
use crate::log::tail::Tail;

/// One topic's log in segment files.
pub struct SegmentedLog {
    pub(super) this: Weak<Self>,
    pub(super) home: Home,
    pub(super) services: Arc<Services>,
    pub(super) announcer: Announcer,
    pub(super) writer: Mutex<Writer>,
    pub(super) pending: Mutex<Pending>,
    pub(super) view: Mutex<View>,
    pub(super) tail: Arc<Mutex<Tail>>,
    /// First sequence after the last record that can be read.
    pub(super) end: AtomicU64,
    pub(super) always: AtomicBool,
    pub(super) closed: AtomicBool,
    /// Records lost to damage since the log was opened.
    pub(super) damaged: AtomicU64,
    pub(super) hints: Mutex<Hints>,
    pub(super) retention: Mutex<Retention>,
    /// Held while the list of absent sequences is written.
    pub(super) absent_turn: Mutex<()>,
}

impl SegmentedLog {
    /// Records lost to damage since the log was opened: bad bytes and missing files, not torn ends.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// True when appends are refused for good.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The engine's test of the disk has passed: writes anew what a failed sync left, and tells that the disk
    /// works again.
    pub(super) fn recover_health(&self) {
        {
            let mut writer = self.writer.lock();
            if writer.hurt
                && let Err(error) = self.rescue(&mut writer)
            {
                self.fall_sick(&mut writer, error);
            } else if std::mem::take(&mut writer.sick) {
                self.announcer.push(News::Health(Ok(())));
            }
        }
        self.announcer.tell();
    }

    /// True when the watch was told that the disk fails.
    pub(super) fn is_sick(&self) -> bool {
        self.writer.lock().sick
    }

    /// Stops the log without caring for what is not written: it is about to be deleted.
    pub(super) fn abandon(&self) {
        self.closed.store(true, Ordering::Release);
        {
            let mut writer = self.writer.lock();
            let pending = self.pending.lock().take();
            for batch in writer.awaiting.drain(..).chain(pending) {
                self.fail(batch.commit, batch.range, LogError::Closed);
            }
            *writer = Writer {
                abandoned: true,
                ..Writer::default()
            };
        }
        let view = std::mem::take(&mut *self.view.lock());
        for segment in view.segments {
            segment.close();
        }
        self.services.budget.release(&self.tail);
        self.announcer.tell();
    }

    pub(super) fn describe(&self, what: &str, error: &std::io::Error) -> Arc<str> {
        format!("{what} in {}: {error}", self.home.folder.display()).into()
    }
}

impl TopicLog for SegmentedLog {
    fn append(&self, records: &[NewRecord<'_>]) -> Result<Appended, LogError> {
        let mut pending = self.pending.lock();
        if self.is_closed() {
            return Err(LogError::Closed);
        }
        Ok(pending.append(records, |bytes| self.services.budget.grant(&self.tail, bytes)))
    }

    fn flush(&self) {
        if self.pending.lock().is_empty() {
            return;
        }
        let overdue = {
            let mut writer = self.writer.lock();
            let batch = self.pending.lock().take();
            if let Some(batch) = batch {
                self.commit(&mut writer, batch);
            }
            writer.unmarked >= UNMARKED_MAX
        };
        self.announcer.tell();
        if overdue {
            // The disk does not keep up: whoever publishes waits for it, so that recovery stays bounded.
            self.services.syncer.round();
        }
    }

    fn end(&self) -> Sequence {
        Sequence::new(self.end.load(Ordering::Acquire))
    }

    fn oldest(&self) -> Sequence {
        let end = self.end();
        self.view.lock().oldest(end)
    }

    fn read_cached(&self, from: Sequence) -> Option<Chunk> {
        self.tail.lock().read(from)
    }

    fn read(&self, from: Sequence, max_bytes: usize) -> Result<Option<Chunk>, LogError> {
        self.read_from(from, self.end(), max_bytes)
    }

    fn delayed(&self, range: SequenceRange) -> Result<Vec<DelayedRecord>, LogError> {
        self.find_delayed(range)
    }

    fn seek_time(&self, unix_ns: i64) -> Result<Sequence, LogError> {
        self.find_time(unix_ns)
    }

    fn count(&self, range: SequenceRange) -> u64 {
        let end = self.end();
        self.view.lock().count(range, end)
    }

    fn void(&self, range: SequenceRange) -> Result<(), LogError> {
        let range = SequenceRange::new(range.start, range.end.min(self.end()));
        self.save_void(range)?;
        self.tail.lock().void(range);
        Ok(())
    }

    fn trim(&self, floor: Sequence) {
        self.remove_below(floor.min(self.end()));
    }

    fn set_retention(&self, retention: Retention) {
        *self.retention.lock() = retention;
    }

    fn set_durability(&self, durability: Durability) {
        self.always
            .store(durability == Durability::Always, Ordering::Relaxed);
    }

    fn footprint(&self) -> Footprint {
        let disk = self
            .view
            .lock()
            .segments
            .iter()
            .map(|segment| segment.extent().disk)
            .sum();
        let memory = self.tail.lock().bytes() as u64;
        Footprint { disk, memory }
    }

    fn close(&self) -> Result<(), LogError> {
        {
            let _pending = self.pending.lock();
            self.closed.store(true, Ordering::Release);
        }
        self.flush();
        let finished = self.finish();
        self.services.budget.release(&self.tail);
        self.announcer.tell();
        finished
    }
}
