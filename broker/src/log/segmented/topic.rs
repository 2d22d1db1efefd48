//! Duty: one topic's log in segment files: the way from `append` to readable. Comes in: records, finished syncs.
//! Goes out: tickets, chunks, news for the watch. Must not know topics' names, other logs or when syncs run.
//!
//! Three locks, always taken in this order and none of them while the watch is told: `writer` (held during a
//! write), `pending` (short), and of `view` and `tail` one at a time (short). Others append while a write runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::engine::Services;
use super::reader::Hints;
use super::retention::Retention;
use super::segment::{Home, Segment};
use super::view::View;
use super::writer::{Place, Writing};
use crate::log::engine::{Appended, Chunk, Commit, DelayedRecord, Durability, Footprint, LogError, TopicLog};
use crate::log::news::{Announcer, News};
use crate::log::pending::{Batch, Pending};
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

/// What only the one who writes touches.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) place: Option<Place>,
    /// Written, but not answered before the next sync.
    pub(super) awaiting: VecDeque<Batch>,
    /// Segments that are not wholly synced and marked, oldest first.
    pub(super) dirty: Vec<Arc<Segment>>,
    /// True when files were made since the folder was last synced.
    pub(super) folder_dirty: bool,
    /// True when a sync failed and the unsynced records have not been written anew.
    pub(super) hurt: bool,
    /// True when the watch was told that the disk fails.
    pub(super) sick: bool,
    pub(super) asked: Asked,
    pub(super) unsynced_records: u64,
    /// Bytes that no mark covers.
    pub(super) unmarked: u64,
}

/// Whether a sync was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Asked {
    #[default]
    No,
    Later,
    Now,
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

    /// Makes the records of `batch` readable. The caller holds the writer's lock.
    pub(super) fn publish(&self, batch: Batch) {
        for piece in batch.pieces {
            self.tail.lock().push(piece);
        }
        self.end.store(batch.range.end.get(), Ordering::Release);
        self.announcer.push(News::Committed {
            commit: batch.commit,
            end: batch.range.end,
            delayed: batch.delayed,
        });
    }

    /// Fails the tickets of `commit`, whose sequences become a gap. The caller holds the writer's lock.
    pub(super) fn fail(&self, commit: Arc<Commit>, range: SequenceRange, error: LogError) {
        self.view.lock().forget(range);
        self.announcer.push(News::Failed { commit, error });
    }

    /// Tells that the disk fails.
    pub(super) fn fall_sick(&self, writer: &mut Writer, error: LogError) {
        tracing::error!(folder = %self.home.folder.display(), %error, "disk fails");
        writer.sick = true;
        self.announcer.push(News::Health(Err(error)));
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
            writer.dirty.clear();
            writer.place = None;
        }
        let segments = self.view.lock().segments.split_off(0);
        for segment in segments {
            segment.close();
        }
        self.services.budget.release(&self.tail);
        self.announcer.tell();
    }

    fn commit(&self, writer: &mut Writer, batch: Batch) {
        let ready = if writer.hurt { self.rescue(writer) } else { Ok(()) };
        match ready.and_then(|()| self.write(writer, &batch)) {
            Ok(()) => {
                if std::mem::take(&mut writer.sick) {
                    self.announcer.push(News::Health(Ok(())));
                }
                self.ask_sync(writer, &batch);
                if self.always.load(Ordering::Relaxed) || !writer.awaiting.is_empty() {
                    writer.awaiting.push_back(batch);
                } else {
                    self.publish(batch);
                }
            }
            Err(error) => {
                self.fail(batch.commit, batch.range, error.clone());
                self.fall_sick(writer, error);
            }
        }
    }

    fn write(&self, writer: &mut Writer, batch: &Batch) -> Result<(), LogError> {
        let limit = self.services.options.max_bytes_per_file;
        let mut writing = Writing::new(&self.home, limit, writer.place.take(), false);
        let written = batch
            .pieces
            .iter()
            .try_for_each(|piece| writing.put(&piece.bytes));
        if let Err(error) = written {
            let (place, clean) = writing.undo();
            writer.place = place;
            let text = self.describe("write", &error);
            return Err(if clean {
                LogError::Refused(text)
            } else {
                LogError::Unknown(text)
            });
        }
        let written = writing.finish();
        writer.place = written.place;
        writer.folder_dirty |= !written.created.is_empty();
        self.view.lock().segments.extend(written.created);
        for segment in written.touched {
            writer.mark_dirty(segment);
        }
        Ok(())
    }

    fn ask_sync(&self, writer: &mut Writer, batch: &Batch) {
        let options = &self.services.options;
        writer.unsynced_records += batch.range.len();
        writer.unmarked += batch
            .pieces
            .iter()
            .map(|piece| piece.bytes.len() as u64)
            .sum::<u64>();
        let urgent = self.always.load(Ordering::Relaxed)
            || writer.unsynced_records >= options.sync_every
            || writer.unmarked >= UNMARKED_MAX / 4;
        let now = match (urgent, writer.asked) {
            (_, Asked::Now) | (false, Asked::Later) => return,
            (urgent, _) => urgent,
        };
        self.ask(writer, now);
    }

    /// Asks the sync thread to come: at once, or within `sync_timeout`.
    pub(super) fn ask(&self, writer: &mut Writer, now: bool) {
        writer.asked = if now { Asked::Now } else { Asked::Later };
        if let Some(this) = self.this.upgrade() {
            self.services.syncer.ask(this, now);
        }
    }

    pub(super) fn describe(&self, what: &str, error: &std::io::Error) -> Arc<str> {
        format!("{what} in {}: {error}", self.home.folder.display()).into()
    }
}

impl Writer {
    /// A sync of everything written so far begins.
    pub(super) fn begin_sync(&mut self) {
        self.asked = Asked::No;
        self.unsynced_records = 0;
    }

    fn mark_dirty(&mut self, segment: Arc<Segment>) {
        if self.dirty.last().is_none_or(|last| !Arc::ptr_eq(last, &segment)) {
            self.dirty.push(segment);
        }
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
        let closed = self.sync_for_close();
        self.services.budget.release(&self.tail);
        closed
    }
}

/// Bytes that may be written without a mark.
const UNMARKED_MAX: u64 = 64 << 20;
