//! Duty: finds out what is in a log's folder and opens the log: trusts what marks cover, scans the rest, cuts a
//! torn end, steps over damage. Comes in: a folder. Goes out: an open log. Must not know how the log is used.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;

use super::commit::Writer;
use super::durable::ABSENT;
use super::engine::{LogOptions, Services};
use super::index::{Mark, Unwritten};
use super::marks::Marks;
use super::segment::{Findings, Home, INDEX, RECORDS, Segment, UNFINISHED};
use super::topic::SegmentedLog;
use super::view::View;
use super::walk::{Step, Walk};
use super::writer::Place;
use crate::log::absent::Absent;
use crate::log::disk::DiskFile;
use crate::log::engine::Durability;
use crate::log::news::Announcer;
use crate::log::pending::Pending;
use crate::log::sequence::{Sequence, SequenceRange};
use crate::log::tail::Tail;

impl SegmentedLog {
    /// Opens the log in `folder`.
    pub(super) fn open(
        services: &Arc<Services>,
        folder: Arc<Path>,
        options: LogOptions,
    ) -> io::Result<Arc<Self>> {
        let home = Home {
            folder,
            disk: Arc::clone(&services.disk),
            handles: Arc::clone(&services.handles),
        };
        if home.disk.create_dir(&home.folder)? {
            home.disk.sync_dir(&services.options.root)?;
        }
        let saved = load_absent(&home)?;
        let recovered = Recovery::run(&home, saved.clone())?;
        let Recovery {
            mut absent,
            segments,
            unsettled,
            end,
            damaged,
            ..
        } = recovered;
        let next = end
            .unwrap_or(options.start)
            .max(options.at_least)
            .max(absent.end());
        if let Some(end) = end {
            absent.insert(SequenceRange::new(end, next));
        }
        let place = place_after(&segments, services.options.max_bytes_per_file);
        let always = options.durability == Durability::Always;
        let dirty = !unsettled.is_empty();
        let log = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            home,
            services: Arc::clone(services),
            announcer: Announcer::new(options.watch),
            writer: Mutex::new(Writer {
                place,
                folder_dirty: dirty,
                dirty: unsettled,
                ..Writer::default()
            }),
            pending: Mutex::new(Pending::new(next)),
            view: Mutex::new(View {
                segments,
                absent_changed: absent != saved,
                absent,
            }),
            tail: Arc::new(Mutex::new(Tail::new(next))),
            end: AtomicU64::new(next.get()),
            always: AtomicBool::new(always),
            closed: AtomicBool::new(false),
            damaged: AtomicU64::new(damaged),
            hints: Mutex::default(),
            retention: Mutex::new(options.retention),
            absent_turn: Mutex::new(()),
        });
        if dirty && always {
            // Nothing may be handed out that a power cut could still take back.
            services.syncer.round_for(&log);
        } else if dirty {
            log.ask(&mut log.writer.lock(), false);
        }
        Ok(log)
    }
}

/// The last segment takes further records unless it is full.
fn place_after(segments: &[Arc<Segment>], max_bytes_per_file: u64) -> Option<Place> {
    let segment = segments.last()?;
    let extent = segment.extent();
    if extent.sealed {
        return None;
    }
    if extent.len >= max_bytes_per_file {
        segment.seal();
        return None;
    }
    Some(Place {
        segment: Arc::clone(segment),
        at: extent.len,
    })
}

/// What is known of a log while it is being recovered.
struct Recovery<'h> {
    home: &'h Home,
    absent: Absent,
    segments: Vec<Arc<Segment>>,
    /// Segments that are not wholly synced and marked.
    unsettled: Vec<Arc<Segment>>,
    /// First sequence after everything found so far; `None` in a log without segments.
    end: Option<Sequence>,
    damaged: u64,
}

impl<'h> Recovery<'h> {
    fn run(home: &'h Home, absent: Absent) -> io::Result<Self> {
        let bases = tidy(home)?;
        let mut recovery = Self {
            home,
            absent,
            segments: Vec::new(),
            unsettled: Vec::new(),
            end: None,
            damaged: 0,
        };
        for (at, base) in bases.iter().enumerate() {
            let bound = bases.get(at + 1).copied().unwrap_or(Sequence::MAX);
            recovery.segment(*base, bound)?;
        }
        Ok(recovery)
    }

    /// Takes in the segment whose name is `base`; the next one's is `bound`.
    fn segment(&mut self, base: Sequence, bound: Sequence) -> io::Result<()> {
        if let Some(end) = self.end {
            self.absent.insert(SequenceRange::new(end, base));
        }
        let file = self
            .home
            .handles
            .with_room(|| self.home.disk.open(&self.path(base, RECORDS)))?;
        let len = file.len()?;
        let marks = self.load_marks(base)?;
        let findings = match marks.last {
            Some(mark) if mark.sealed && mark.len <= len => Findings {
                len: mark.len,
                end: mark.end,
                mark,
                index_len: marks.index_len,
                unwritten: Unwritten::resuming(mark.highest),
                sealed: true,
            },
            _ => self.scan(&*file, len, &marks, SequenceRange::new(base, bound))?,
        };
        self.end = Some(findings.end.max(base));
        if findings.len == 0 {
            self.home.disk.unlink(&self.path(base, RECORDS))?;
            return self.home.disk.unlink(&self.path(base, INDEX));
        }
        let segment = Arc::new(Segment::recovered(self.home, base, findings));
        if bound < Sequence::MAX {
            segment.seal();
        }
        if !segment.is_settled() {
            self.unsettled.push(Arc::clone(&segment));
        }
        self.segments.push(segment);
        Ok(())
    }

    /// Reads a segment from its last mark on.
    fn scan(
        &mut self,
        file: &dyn DiskFile,
        len: u64,
        marks: &Marks,
        names: SequenceRange,
    ) -> io::Result<Findings> {
        let mark = marks.last.unwrap_or(Mark::start(names.start));
        let mut unwritten = Unwritten::resuming(mark.highest);
        let mut expected = SequenceRange::new(mark.first, names.end);
        let mut walk = Walk::new(file, mark.offset.min(len), len);
        let mut end_of_records = walk.offset();
        let mut stepped_over = false;
        loop {
            let at_end = match walk.step(expected)? {
                Step::Record(record, offset, length) => {
                    let gap = SequenceRange::new(expected.start, record.sequence);
                    if stepped_over {
                        self.lose(gap);
                    }
                    stepped_over = false;
                    self.absent.insert(gap);
                    unwritten.add(&record, offset, length);
                    expected.start = record.sequence.next();
                    end_of_records = offset + length as u64;
                    continue;
                }
                step => matches!(step, Step::End),
            };
            // Behind the last mark bad bytes are a torn end. Without any mark nobody knows, and whatever is
            // whole is kept.
            let torn = walk.offset() >= marks.synced_len && marks.last.is_some();
            if at_end || torn || !walk.resync(expected)? {
                break;
            }
            stepped_over = true;
        }
        self.lose(SequenceRange::new(
            expected.start,
            marks.synced_end.min(names.end),
        ));
        let end = expected.start.max(marks.synced_end.min(names.end));
        if end_of_records < len {
            tracing::warn!(folder = %self.home.folder.display(), segment = %names.start, bytes = len - end_of_records,
                from = %expected.start, "torn end of a log cut");
            file.truncate(end_of_records)?;
            file.sync()?;
        }
        Ok(Findings {
            len: end_of_records,
            end,
            mark: Mark {
                len: mark.len.min(end_of_records),
                ..mark
            },
            index_len: marks.index_len,
            unwritten,
            sealed: false,
        })
    }

    /// The records in `range` were synced and are not there.
    fn lose(&mut self, range: SequenceRange) {
        let lost = range.len() - self.absent.overlap(range);
        if lost > 0 {
            self.absent.insert(range);
            self.damaged += lost;
            let folder = self.home.folder.display();
            tracing::error!(%folder, from = %range.start, to = %range.end, records = lost, "records lost to damage");
        }
    }

    fn load_marks(&self, base: Sequence) -> io::Result<Marks> {
        let opened = self
            .home
            .handles
            .with_room(|| self.home.disk.open(&self.path(base, INDEX)));
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Marks::default()),
            opened => opened?,
        };
        Marks::load(&*file)
    }

    fn path(&self, base: Sequence, ending: &str) -> Box<Path> {
        self.home
            .folder
            .join(format!("{:020}{ending}", base.get()))
            .into()
    }
}

/// Removes what is unfinished or orphaned; answers the names of the segments in order.
fn tidy(home: &Home) -> io::Result<Vec<Sequence>> {
    let names = home.disk.list(&home.folder)?;
    let base = |name: &str, ending| Some(Sequence::new(name.strip_suffix(ending)?.parse().ok()?));
    let mut bases: Vec<Sequence> = names.iter().filter_map(|name| base(name, RECORDS)).collect();
    bases.sort_unstable();
    for name in &names {
        let orphaned = base(name, INDEX).is_some_and(|base| bases.binary_search(&base).is_err());
        if orphaned || name.ends_with(UNFINISHED) {
            home.disk.unlink(&home.folder.join(name))?;
        }
    }
    Ok(bases)
}

fn load_absent(home: &Home) -> io::Result<Absent> {
    let path = home.folder.join(ABSENT);
    let file = match home.handles.with_room(|| home.disk.open(&path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Absent::default()),
        opened => opened?,
    };
    let mut bytes = vec![0; file.len()? as usize];
    let filled = file.read_at(&mut bytes, 0)?;
    Ok(Absent::decode(&bytes[..filled]).unwrap_or_else(|| {
        tracing::error!(path = %path.display(), "list of void ranges is damaged: what was emptied may come back");
        Absent::default()
    }))
}
