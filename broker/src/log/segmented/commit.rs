//! Duty: the way of one batch from pending to readable: written, then published, or refused. Comes in: batches.
//! Goes out: published records, failed tickets, requests for a sync. Must not know how syncs run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::segment::Segment;
use super::topic::SegmentedLog;
use super::writer::{Place, Writing};
use crate::log::engine::{Commit, LogError};
use crate::log::news::News;
use crate::log::pending::Batch;
use crate::log::sequence::SequenceRange;

/// What only the one who writes touches.
#[derive(Default)]
pub(super) struct Writer {
    /// The log was deleted: nothing of it is to be synced or written anew.
    pub(super) abandoned: bool,
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
    /// Writes `batch`; publishes it or keeps it for the next sync.
    pub(super) fn commit(&self, writer: &mut Writer, batch: Batch) {
        let ready = if writer.hurt {
            self.rescue(writer)
                .map_err(|error| LogError::Refused(error.to_string().into()))
        } else {
            Ok(())
        };
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
        if !std::mem::replace(&mut writer.sick, true) {
            tracing::error!(folder = %self.home.folder.display(), %error, "disk fails");
        }
        self.announcer.push(News::Health(Err(error)));
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

/// Bytes that may be written without a mark.
pub(super) const UNMARKED_MAX: u64 = 64 << 20;
