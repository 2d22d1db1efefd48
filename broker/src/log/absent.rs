//! Duty: the sequences of a log that hold no record: void ranges, gaps of failed appends, jumps after a
//! restart, damage. Comes in: ranges. Goes out: where the next record can be, how many sequences of a range
//! are absent. Must not know why a range is absent, nor files.

use super::sequence::{Sequence, SequenceRange};

/// Ranges without records: sorted, disjoint, never touching each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Absent {
    ranges: Vec<SequenceRange>,
}

impl Absent {
    /// Adds `range`; answers false when all of it was absent already.
    pub(super) fn insert(&mut self, range: SequenceRange) -> bool {
        if range.is_empty() || self.overlap(range) == range.len() {
            return false;
        }
        let from = self.ranges.partition_point(|known| known.end < range.start);
        let to = self.ranges.partition_point(|known| known.start <= range.end);
        let mut merged = range;
        for known in &self.ranges[from..to] {
            merged.start = merged.start.min(known.start);
            merged.end = merged.end.max(known.end);
        }
        self.ranges.splice(from..to, [merged]);
        true
    }

    /// The first sequence at or after `sequence` that is not absent.
    pub(super) fn skip(&self, sequence: Sequence) -> Sequence {
        match self.ranges.get(self.reaching(sequence)) {
            Some(known) if known.contains(sequence) => known.end,
            _ => sequence,
        }
    }

    /// The first absent sequence at or after `sequence`; the largest sequence when there is none.
    pub(super) fn next(&self, sequence: Sequence) -> Sequence {
        self.ranges
            .get(self.reaching(sequence))
            .map_or(Sequence::MAX, |known| known.start.max(sequence))
    }

    /// How many sequences of `range` are absent.
    pub(super) fn overlap(&self, range: SequenceRange) -> u64 {
        self.ranges[self.reaching(range.start)..]
            .iter()
            .take_while(|known| known.start < range.end)
            .map(|known| known.end.min(range.end).since(known.start.max(range.start)))
            .sum()
    }

    /// First sequence after the last absent one.
    pub(super) fn end(&self) -> Sequence {
        self.ranges.last().map_or(Sequence::default(), |last| last.end)
    }

    /// Forgets ranges that end at or below `floor`.
    pub(super) fn forget_below(&mut self, floor: Sequence) {
        self.ranges
            .drain(..self.ranges.partition_point(|known| known.end <= floor));
    }

    /// The ranges as bytes: CRC-32C of the rest, then start and end of each, little-endian.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        for range in &self.ranges {
            bytes.extend_from_slice(&range.start.get().to_le_bytes());
            bytes.extend_from_slice(&range.end.get().to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads what [`Absent::encode`] wrote; `None` when the bytes are damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (crc, body) = bytes.split_first_chunk::<4>()?;
        let (ranges, rest) = body.as_chunks::<16>();
        if u32::from_le_bytes(*crc) != crc32c::crc32c(body) || !rest.is_empty() {
            return None;
        }
        let mut absent = Self::default();
        for range in ranges {
            let (start, end) = range.split_first_chunk::<8>()?;
            absent.insert(SequenceRange::new(
                Sequence::new(u64::from_le_bytes(*start)),
                Sequence::new(u64::from_le_bytes(end.try_into().ok()?)),
            ));
        }
        Some(absent)
    }

    /// Index of the first range that ends after `sequence`.
    fn reaching(&self, sequence: Sequence) -> usize {
        self.ranges.partition_point(|known| known.end <= sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(start: u64, end: u64) -> SequenceRange {
        SequenceRange::new(Sequence::new(start), Sequence::new(end))
    }

    proptest! {
        #[test]
        fn ranges_answer_as_a_plain_set_does(
            added in prop::collection::vec((0_u64..200, 0_u64..30), 0..20), probe in (0_u64..240, 0_u64..60),
        ) {
            let mut absent = Absent::default();
            let mut set = std::collections::BTreeSet::new();
            for (start, length) in added {
                let fresh = absent.insert(range(start, start + length));
                let before = set.len();
                set.extend(start..start + length);
                prop_assert_eq!(fresh, set.len() > before);
            }
            prop_assert!(absent.ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            let (start, length) = probe;
            let inside = set.range(start..start + length).count() as u64;
            prop_assert_eq!(absent.overlap(range(start, start + length)), inside);
            let present = (start..=240).find(|sequence| !set.contains(sequence)).unwrap();
            prop_assert_eq!(absent.skip(Sequence::new(start)).get(), present);
            let next = set.range(start..).next().map_or(Sequence::MAX.get(), |sequence| *sequence);
            prop_assert_eq!(absent.next(Sequence::new(start)).get(), next);
            prop_assert_eq!(Absent::decode(&absent.encode()), Some(absent));
        }

        #[test]
        fn a_flipped_bit_is_noticed(at in 0_usize..20, bit in 0_u8..8) {
            let mut absent = Absent::default();
            absent.insert(range(3, 9));
            let mut bytes = absent.encode();
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Absent::decode(&bytes), None);
        }
    }
}
