//! Duty: the table of messages in flight, found by sequence. Must not know what the entries' times mean or how
//! they are linked for the timers.
//!
//! Entries lie in fixed pages and keep their place; entries whose sequences share a hash are chained. 36 bytes an
//! entry and at most 8 for its place in the index.

use super::deadline::NONE;
use crate::log::sequence::Sequence;

/// Entries by place and by sequence.
#[derive(Debug)]
pub(super) struct FlightTable {
    #[expect(
        clippy::vec_box,
        reason = "a page is never moved, and growing never doubles the pages"
    )]
    pages: Vec<Box<[Entry; PAGE]>>,
    /// First unused entry; unused entries are chained.
    free: u32,
    len: usize,
    /// First of each chain of entries whose sequences share a hash; empty or a power of two.
    index: Vec<u32>,
}

/// Packed to four bytes: padding would cost a tenth of it.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed(4))]
pub(super) struct Entry {
    pub(super) sequence: u64,
    pub(super) attempts: u16,
    pub(super) stored: bool,
    pub(super) own_id: bool,
    /// [`NONE`] in an unused entry.
    pub(super) consumer: u32,
    /// Low 32 bits of the tick of delivery.
    pub(super) delivered: u32,
    /// Low 32 bits of the tick of the deadline.
    pub(super) due: u32,
    /// Neighbours in the timer list.
    pub(super) previous: u32,
    pub(super) next: u32,
    /// The table's own: next entry with the same hash, or next unused one.
    pub(super) chain: u32,
}

impl Entry {
    pub(super) const UNUSED: Self = Self {
        sequence: 0,
        attempts: 0,
        stored: false,
        own_id: false,
        consumer: NONE,
        delivered: 0,
        due: 0,
        previous: NONE,
        next: NONE,
        chain: NONE,
    };
}

impl FlightTable {
    pub(super) fn new() -> Self {
        Self {
            pages: Vec::new(),
            free: NONE,
            len: 0,
            index: Vec::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, at: u32) -> &Entry {
        &self.pages[at as usize / PAGE][at as usize % PAGE]
    }

    pub(super) fn get_mut(&mut self, at: u32) -> &mut Entry {
        &mut self.pages[at as usize / PAGE][at as usize % PAGE]
    }

    /// The place of `sequence`.
    pub(super) fn find(&self, sequence: Sequence) -> Option<u32> {
        if self.index.is_empty() {
            return None;
        }
        let mut at = self.index[self.bucket(sequence.get())];
        while at != NONE {
            let entry = self.get(at);
            if entry.sequence == sequence.get() {
                return Some(at);
            }
            at = entry.chain;
        }
        None
    }

    /// Adds an entry whose sequence is not there; answers its place.
    pub(super) fn insert(&mut self, entry: Entry) -> u32 {
        if self.len >= self.index.len() {
            self.grow_index();
        }
        if self.free == NONE {
            self.add_page();
        }
        let at = self.free;
        let bucket = self.bucket(entry.sequence);
        let chain = std::mem::replace(&mut self.index[bucket], at);
        let unused = std::mem::replace(self.get_mut(at), Entry { chain, ..entry });
        self.free = unused.chain;
        self.len += 1;
        at
    }

    /// Takes out the entry at `at`, which is in use.
    pub(super) fn remove(&mut self, at: u32) -> Entry {
        self.unchain(at);
        let unused = Entry {
            chain: self.free,
            ..Entry::UNUSED
        };
        let entry = std::mem::replace(self.get_mut(at), unused);
        self.free = at;
        self.len -= 1;
        if self.len == 0 && self.pages.len() > KEPT_PAGES {
            *self = Self::new();
        }
        entry
    }

    /// All entries in use, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> + '_ {
        self.pages
            .iter()
            .flat_map(|page| page.iter())
            .filter(|entry| entry.consumer != NONE)
    }

    /// Bytes allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pages.len() * size_of::<[Entry; PAGE]>()
            + self.pages.capacity() * size_of::<Box<[Entry; PAGE]>>()
            + self.index.capacity() * size_of::<u32>()
    }

    /// Fibonacci hashing: neighbours spread as well as multiples of any power of two do.
    fn bucket(&self, sequence: u64) -> usize {
        (sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.index.len().ilog2())) as usize
    }

    fn unchain(&mut self, at: u32) {
        let Entry { sequence, chain, .. } = *self.get(at);
        let bucket = self.bucket(sequence);
        let mut before = self.index[bucket];
        if before == at {
            self.index[bucket] = chain;
            return;
        }
        while self.get(before).chain != at {
            before = self.get(before).chain;
        }
        self.get_mut(before).chain = chain;
    }

    fn add_page(&mut self) {
        let first = (self.pages.len() * PAGE) as u32;
        let mut page = Box::new([Entry::UNUSED; PAGE]);
        for (entry, next) in page.iter_mut().zip(first + 1..) {
            entry.chain = next;
        }
        page[PAGE - 1].chain = self.free;
        self.free = first;
        self.pages.push(page);
    }

    fn grow_index(&mut self) {
        self.index = vec![NONE; (self.index.len() * 2).max(MIN_INDEX)];
        for at in 0..(self.pages.len() * PAGE) as u32 {
            let Entry {
                sequence, consumer, ..
            } = *self.get(at);
            if consumer != NONE {
                let bucket = self.bucket(sequence);
                let chain = std::mem::replace(&mut self.index[bucket], at);
                self.get_mut(at).chain = chain;
            }
        }
    }
}

/// Entries that are allocated together.
const PAGE: usize = 64;
/// An empty table keeps so much for the next turn: 36 KiB.
const KEPT_PAGES: usize = 16;
const MIN_INDEX: usize = 16;
