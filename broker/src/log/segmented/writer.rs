//! Duty: puts records into segments: places them, rolls to a new segment, undoes what failed. Comes in: encoded
//! records. Goes out: written parts, to be made readable all at once. Must not know commits or syncs.

use std::io;
use std::sync::Arc;

use super::segment::{Home, Segment};
use crate::log::record::{self, Record};
use crate::log::sequence::Sequence;

/// Where the next record goes.
#[derive(Clone)]
pub(super) struct Place {
    /// The segment that takes it.
    pub(super) segment: Arc<Segment>,
    /// The offset in it.
    pub(super) at: u64,
}

/// Records on their way into segments. Nothing is readable before [`Writing::finish`].
pub(super) struct Writing<'a> {
    home: &'a Home,
    max_bytes_per_file: u64,
    aside: bool,
    before: Option<Place>,
    place: Option<Place>,
    parts: Vec<Part<'a>>,
    created: Vec<Arc<Segment>>,
}

struct Part<'a> {
    place: Place,
    bytes: &'a [u8],
}

/// What came of a writing.
pub(super) struct Written {
    /// Where the next record goes.
    pub(super) place: Option<Place>,
    /// Segments that are new.
    pub(super) created: Vec<Arc<Segment>>,
    /// Segments that took records, oldest first.
    pub(super) touched: Vec<Arc<Segment>>,
}

impl<'a> Writing<'a> {
    /// Goes on at `place`, or in a new segment when there is none. `aside`: see [`Segment::create`].
    pub(super) fn new(home: &'a Home, max_bytes_per_file: u64, place: Option<Place>, aside: bool) -> Self {
        Self {
            home,
            max_bytes_per_file,
            aside,
            before: place.clone(),
            place,
            parts: Vec::new(),
            created: Vec::new(),
        }
    }

    /// Writes whole records, and rolls to a new segment where they do not fit. A record that is larger than a
    /// segment gets one of its own.
    pub(super) fn put(&mut self, bytes: &'a [u8]) -> io::Result<()> {
        let mut rest = bytes;
        while let Ok((first, _)) = Record::decode(rest) {
            let place = match self.place.take() {
                Some(place) => place,
                None => self.roll(first.sequence)?,
            };
            let room = self.max_bytes_per_file.saturating_sub(place.at);
            let length = match fitting(rest, room) {
                0 if place.at == 0 => record::span(rest, 1),
                length => length,
            };
            if length == 0 {
                continue;
            }
            let (part, after) = rest.split_at(length);
            self.place = Some(Place {
                segment: Arc::clone(&place.segment),
                at: place.at + length as u64,
            });
            let (file, at) = (place.segment.file()?, place.at);
            self.parts.push(Part { place, bytes: part });
            file.write_at(part, at)?;
            rest = after;
        }
        Ok(())
    }

    /// Extends the segments by what was written.
    pub(super) fn finish(self) -> Written {
        let mut touched: Vec<Arc<Segment>> = Vec::new();
        for Part { place, bytes } in self.parts {
            place.segment.extend(place.at, bytes);
            if touched
                .last()
                .is_none_or(|last| !Arc::ptr_eq(last, &place.segment))
            {
                touched.push(place.segment);
            }
        }
        let last = self.place.as_ref().map(|place| &place.segment);
        let before = self.before.iter().map(|place| &place.segment);
        for segment in before.chain(&self.created) {
            if last.is_none_or(|last| !Arc::ptr_eq(last, segment)) {
                segment.seal();
            }
        }
        Written {
            place: self.place,
            created: self.created,
            touched,
        }
    }

    /// Takes back what was written. Answers where the next record goes, and whether the files are surely as
    /// before; a file that cannot be cut takes no further records.
    pub(super) fn undo(self) -> (Option<Place>, bool) {
        let mut clean = true;
        for segment in &self.created {
            let removed = if self.aside {
                segment.discard()
            } else {
                segment.remove()
            };
            clean &= removed.is_ok();
        }
        let Some(before) = self.before else {
            return (None, clean);
        };
        let attempted = self
            .parts
            .iter()
            .any(|part| Arc::ptr_eq(&part.place.segment, &before.segment));
        let cut = || before.segment.file()?.truncate(before.at);
        if attempted && cut().is_err() {
            before.segment.seal();
            return (None, false);
        }
        (Some(before), clean)
    }

    fn roll(&mut self, first: Sequence) -> io::Result<Place> {
        let segment = Arc::new(Segment::create(self.home, first, self.aside)?);
        self.created.push(Arc::clone(&segment));
        Ok(Place { segment, at: 0 })
    }
}

/// Length of the whole records in `bytes` that fit into `room` bytes.
fn fitting(bytes: &[u8], room: u64) -> usize {
    if bytes.len() as u64 <= room {
        return bytes.len();
    }
    record::fitting(bytes, usize::try_from(room).unwrap_or(usize::MAX)).1
}
