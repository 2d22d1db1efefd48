//! Duty: what one log does in a round of syncs: what is to be synced, what follows when it was or when it
//! failed, the marks. Comes in: rounds. Goes out: answered commits, marks, the saved list of absent sequences.
//! Must not know other logs, nor when rounds happen.

use std::io;
use std::sync::Arc;

use super::commit::Writer;
use super::handles::is_lack_of_descriptors;
use super::segment::Segment;
use super::topic::SegmentedLog;
use super::writer::{Place, Writing};
use crate::log::absent::Absent;
use crate::log::disk::DiskFile;
use crate::log::engine::{LogError, TopicLog};
use crate::log::sequence::{Sequence, SequenceRange};

/// What one log wants synced: everything written before the round began.
pub(super) struct SyncJob {
    pub(super) log: Arc<SegmentedLog>,
    /// The files, oldest segment first.
    pub(super) targets: Vec<Target>,
    folder: bool,
}

/// One file to sync.
pub(super) struct Target {
    segment: Arc<Segment>,
    file: Arc<dyn DiskFile>,
    len: u64,
    end: Sequence,
}

impl SyncJob {
    /// Syncs the files one by one, and the folder when there are new ones.
    pub(super) fn sync_files(&self) -> io::Result<()> {
        for target in &self.targets {
            target.file.sync()?;
        }
        if self.folder {
            self.log.home.sync_folder()?;
        }
        Ok(())
    }
}

impl SegmentedLog {
    /// What is to be synced now; `None` when there is nothing, or nothing can be done.
    pub(super) fn sync_job(self: &Arc<Self>) -> Option<SyncJob> {
        let mut writer = self.writer.lock();
        writer.begin_sync();
        if writer.hurt || writer.abandoned {
            return None;
        }
        let job = self.collect_job(&writer);
        match job {
            Ok(job) => (!job.targets.is_empty() || job.folder).then(|| {
                writer.folder_dirty = false;
                job
            }),
            Err(error) => {
                self.put_off(&mut writer, &error);
                drop(writer);
                self.announcer.tell();
                None
            }
        }
    }

    /// Not a failed sync: nothing was asked of the disk but a file descriptor.
    fn put_off(&self, writer: &mut Writer, error: &io::Error) {
        let error = LogError::Disk(self.describe("open", error));
        self.fall_sick(writer, error);
        self.ask(writer, false);
    }

    fn collect_job(self: &Arc<Self>, writer: &Writer) -> io::Result<SyncJob> {
        let mut targets = Vec::new();
        for segment in &writer.dirty {
            let extent = segment.extent();
            if extent.synced_len < extent.len {
                targets.push(Target {
                    segment: Arc::clone(segment),
                    file: segment.file()?,
                    len: extent.len,
                    end: extent.end,
                });
            }
        }
        Ok(SyncJob {
            log: Arc::clone(self),
            targets,
            folder: writer.folder_dirty,
        })
    }

    /// A sync of `job` came to `outcome`: answers who waited for it.
    pub(super) fn synced(&self, job: &SyncJob, outcome: io::Result<()>) {
        {
            let mut writer = self.writer.lock();
            match outcome {
                _ if writer.abandoned => {}
                Ok(()) => {
                    for target in &job.targets {
                        target.segment.synced(target.len, target.end);
                    }
                    let end = job
                        .targets
                        .last()
                        .map_or(Sequence::default(), |target| target.end);
                    self.answer_below(&mut writer, end);
                }
                Err(error) if is_lack_of_descriptors(&error) => {
                    writer.folder_dirty |= job.folder;
                    self.put_off(&mut writer, &error);
                }
                Err(error) => self.sync_failed(&mut writer, &error),
            }
        }
        self.announcer.tell();
    }

    /// After a failed sync nobody can know what of the file is durable, and asking again would only hide it:
    /// the records are written anew, elsewhere.
    fn sync_failed(&self, writer: &mut Writer, error: &io::Error) {
        let folder = self.home.folder.display();
        tracing::error!(%folder, %error, "sync failed, writing the unsynced records anew");
        writer.hurt = true;
        writer.folder_dirty = true;
        if let Err(error) = self.rescue(writer) {
            for batch in std::mem::take(&mut writer.awaiting) {
                let unknown = LogError::Unknown(error.to_string().into());
                self.fail(batch.commit, batch.range, unknown);
            }
            self.fall_sick(writer, error);
        }
    }

    /// Writes every record that is not known to be synced into new segments and syncs them; then these take
    /// the place of the old ones. Answers who waited.
    pub(super) fn rescue(&self, writer: &mut Writer) -> Result<(), LogError> {
        let unsynced = writer.dirty.iter().find(|segment| {
            let extent = segment.extent();
            extent.synced_len < extent.len
        });
        if let Some(from) = unsynced.map(|segment| segment.extent().synced_end) {
            let mut fresh = Vec::new();
            let place = match self.write_anew(writer, from, &mut fresh) {
                Ok(place) => place,
                Err(error) => {
                    for segment in fresh {
                        let _ = segment.discard();
                    }
                    return Err(error);
                }
            };
            self.replace_segments(writer, from, fresh)
                .map_err(|error| LogError::Disk(self.describe("replace segments", &error)))?;
            writer.place = place;
        }
        writer.hurt = false;
        self.answer_below(writer, Sequence::MAX);
        self.ask(writer, false);
        Ok(())
    }

    fn write_anew(
        &self,
        writer: &Writer,
        from: Sequence,
        fresh: &mut Vec<Arc<Segment>>,
    ) -> Result<Option<Place>, LogError> {
        let failed = |error| LogError::Disk(self.describe("write anew", &error));
        let limit = self.services.options.max_bytes_per_file;
        let mut place: Option<Place> = None;
        let mut copy = |bytes: &[u8]| {
            let mut writing = Writing::new(&self.home, limit, place.take(), true);
            if let Err(error) = writing.put(bytes) {
                writing.undo();
                return Err(failed(error));
            }
            let written = writing.finish();
            fresh.extend(written.created);
            place = written.place;
            Ok(())
        };
        let (mut next, end) = (from, self.end());
        while let Some(chunk) = self.read_from(next, end, COPIED_AT_ONCE)? {
            copy(&chunk.bytes)?;
            next = chunk.end();
        }
        let awaiting = writer.awaiting.iter().flat_map(|batch| &batch.pieces);
        awaiting
            .map(|piece| &piece.bytes)
            .try_for_each(|bytes| copy(bytes))?;
        for segment in fresh.iter() {
            let extent = segment.extent();
            segment.file().and_then(|file| file.sync()).map_err(failed)?;
            segment.synced(extent.len, extent.end);
        }
        Ok(place)
    }

    /// Puts `fresh` in the place of everything from the sequence `from` on. Whatever a crash leaves of the two
    /// generations, recovery reads each record once: a segment ends where the next one begins.
    fn replace_segments(
        &self,
        writer: &mut Writer,
        from: Sequence,
        fresh: Vec<Arc<Segment>>,
    ) -> io::Result<()> {
        for segment in &fresh {
            segment.take_place()?;
        }
        let replaced = |base: Sequence| fresh.iter().any(|segment| segment.base == base);
        let old: Vec<Arc<Segment>> = self.view.lock().segments.clone();
        for segment in old.iter().filter(|segment| segment.base >= from) {
            if replaced(segment.base) {
                segment.close();
            } else {
                segment.remove()?;
            }
        }
        self.home.sync_folder()?;
        {
            let mut view = self.view.lock();
            view.segments.retain(|segment| segment.base < from);
            view.segments.extend(fresh.iter().cloned());
        }
        // Only now: who reads a segment that ends early looks again where the records are.
        if let Some(last) = old.iter().rfind(|segment| segment.base < from) {
            last.cut_to_synced();
        }
        self.hints.lock().clear();
        writer.dirty.retain(|segment| segment.base < from);
        writer.dirty.extend(fresh);
        writer.folder_dirty = false;
        Ok(())
    }

    /// Everything below `end` is durable: makes it readable and answers who waited.
    fn answer_below(&self, writer: &mut Writer, end: Sequence) {
        while let Some(batch) = writer.awaiting.pop_front_if(|batch| batch.range.end <= end) {
            self.publish(batch);
        }
    }

    /// Notes in the index files what is synced, so that recovery need not read it.
    pub(super) fn mark(&self) {
        let dirty = self.writer.lock().dirty.clone();
        let marked = self
            .save_absent()
            .and_then(|()| dirty.iter().try_for_each(|segment| segment.write_index()));
        let mut writer = self.writer.lock();
        writer.dirty.retain(|segment| {
            let settled = segment.is_settled();
            if settled {
                segment.unpin();
            }
            !settled
        });
        writer.unmarked = writer.dirty.iter().map(|segment| segment.unmarked()).sum();
        if let Err(error) = marked {
            // No record is at stake: it is tried again, and until then recovery reads more.
            tracing::warn!(folder = %self.home.folder.display(), %error, "mark not written");
            self.ask(&mut writer, false);
        }
    }

    /// Syncs and marks what is written; the log takes nothing any more, and touches no file afterwards.
    pub(super) fn finish(&self) -> Result<(), LogError> {
        if let Some(this) = self.this.upgrade() {
            self.services.syncer.round_for(&this);
        }
        let mut writer = self.writer.lock();
        let synced = writer.dirty.drain(..).fold(true, |synced, segment| {
            let extent = segment.extent();
            synced && extent.synced_len == extent.len
        });
        for batch in std::mem::take(&mut writer.awaiting) {
            let unknown = LogError::Unknown("closed before the sync".into());
            self.fail(batch.commit, batch.range, unknown);
        }
        writer.place = None;
        let mut view = self.view.lock();
        view.absent_changed = false;
        for segment in &view.segments {
            segment.close();
        }
        if synced {
            Ok(())
        } else {
            Err(LogError::Disk(self.describe(
                "close",
                &io::Error::other("not everything could be synced"),
            )))
        }
    }

    /// Makes `range` void, durably.
    pub(super) fn save_void(&self, range: SequenceRange) -> Result<(), LogError> {
        let _turn = self.absent_turn.lock();
        let mut absent = self.view.lock().absent.clone();
        if !absent.insert(range) {
            return Ok(());
        }
        self.write_absent(&absent)
            .map_err(|error| LogError::Disk(self.describe("save void range", &error)))?;
        // Gaps may have come meanwhile: only the range is taken over, not the list.
        let mut view = self.view.lock();
        view.absent.insert(range);
        Ok(())
    }

    /// Saves the list of absent sequences when it has changed.
    fn save_absent(&self) -> io::Result<()> {
        let _turn = self.absent_turn.lock();
        let absent = {
            let mut view = self.view.lock();
            if !view.absent_changed {
                return Ok(());
            }
            view.absent_changed = false;
            view.absent.clone()
        };
        self.write_absent(&absent)
            .inspect_err(|_| self.view.lock().absent_changed = true)
    }

    fn write_absent(&self, absent: &Absent) -> io::Result<()> {
        let home = &self.home;
        let (aside, name) = (home.folder.join(ABSENT_ASIDE), home.folder.join(ABSENT));
        let file = home.handles.with_room(|| home.disk.create(&aside))?;
        file.write_at(&absent.encode(), 0)?;
        file.sync()?;
        home.disk.rename(&aside, &name)?;
        home.sync_folder()
    }
}

/// Name of the list of absent sequences.
pub(super) const ABSENT: &str = "absent";
const ABSENT_ASIDE: &str = "absent.new";
const COPIED_AT_ONCE: usize = 256 << 10;
