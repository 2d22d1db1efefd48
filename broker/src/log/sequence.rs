//! Duty: a record's place in its topic's log. Must not know what a record holds.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// Place of a record in its topic's log: dense from the log's start but for void ranges, below 2^50,
/// strictly growing, never used twice (architecture, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Sequence(u64);

impl Sequence {
    /// The largest sequence that fits beside ten bits of node in a message id.
    pub const MAX: Self = Self((1 << 50) - 1);

    /// Wraps a raw number; the caller vouches that it came from a log or is only compared with one.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sequence after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// How many sequences lie between `earlier` and this one; 0 when `earlier` is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Sequence {
    type Output = Self;
    fn add(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl Sub<u64> for Sequence {
    type Output = Self;
    fn sub(self, count: u64) -> Self {
        Self(self.0 - count)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Sequences from `start` up to but without `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SequenceRange {
    /// First sequence of the range.
    pub start: Sequence,
    /// First sequence after the range.
    pub end: Sequence,
}

impl SequenceRange {
    /// The range from `start` up to but without `end`.
    pub const fn new(start: Sequence, end: Sequence) -> Self {
        Self { start, end }
    }

    /// Number of sequences in the range.
    pub const fn len(self) -> u64 {
        self.end.since(self.start)
    }

    /// True when no sequence lies in the range.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// True when `sequence` lies in the range.
    pub fn contains(self, sequence: Sequence) -> bool {
        self.start <= sequence && sequence < self.end
    }
}
