//! Duty: what of a channel is stored, as deltas, and the contract of whoever keeps it.

use serde::{Deserialize, Serialize};

use crate::log::sequence::{Sequence, SequenceRange};

/// The number that stands for a topic in the store and in folder names; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicNumber(pub u64);

/// The number that stands for a channel in the store; unique in the store, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelNumber(pub u64);

/// Sequences whose finished bits are stored together.
pub const BLOCK: u64 = 65_536;

/// Which of the [`BLOCK`] sequences from `number * BLOCK` on are finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedBlock {
    /// The block's first sequence divided by [`BLOCK`].
    pub number: u64,
    /// Its bits.
    pub bits: FinishedBits,
}

/// The bits of a [`FinishedBlock`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishedBits {
    /// Every sequence of the block is finished.
    Full,
    /// Bit `n` of word `w` stands for sequence `number * BLOCK + w * 64 + n`. 1024 words.
    Some(Box<[u64]>),
}

/// A message above the floor that is not finished and is not simply waiting for its first delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// The message.
    pub sequence: Sequence,
    /// Deliveries so far.
    pub attempts: u16,
    /// When it is due, in nanoseconds since the Unix epoch; 0 = at once.
    pub due: i64,
    /// The whole delay in milliseconds, so that a wall clock that jumped can not lengthen what is left of it.
    pub delay_ms: u64,
}

/// What changed in a channel since its last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CursorDelta {
    /// Everything below is finished.
    pub floor: Sequence,
    /// Drop all blocks and unsettled messages stored before applying the rest (empty, seek).
    pub reset: bool,
    /// Blocks at or above the floor whose bits changed. Blocks that lie wholly below the floor are dropped.
    pub blocks: Vec<FinishedBlock>,
    /// Unsettled messages that are new or changed.
    pub unsettled: Vec<Unsettled>,
    /// Messages that were stored as unsettled and no longer are.
    pub settled: Vec<Sequence>,
}

/// A channel as it was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredCursor {
    /// Everything below is finished.
    pub floor: Sequence,
    /// Finished bits at or above the floor, by block number.
    pub blocks: Vec<FinishedBlock>,
    /// Unsettled messages by sequence.
    pub unsettled: Vec<Unsettled>,
}

impl StoredCursor {
    /// First sequence above everything the cursor speaks of. A log that was recovered goes on at or above it, so
    /// that a sequence which a crash took from the log is never given to another message.
    pub fn end(&self) -> Sequence {
        let finished = self.blocks.iter().map(FinishedBlock::end).max();
        let unsettled = self.unsettled.iter().map(|message| message.sequence.next()).max();
        self.floor
            .max(finished.unwrap_or_default())
            .max(unsettled.unwrap_or_default())
    }

    /// Marks every sequence of `range` as finished.
    pub fn finish(&mut self, range: SequenceRange) {
        let mut from = range.start.max(self.floor).get();
        while from < range.end.get() {
            let number = from / BLOCK;
            let to = range.end.get().min((number + 1) * BLOCK);
            let at = self.blocks.partition_point(|block| block.number < number);
            if self.blocks.get(at).is_none_or(|block| block.number != number) {
                let bits = FinishedBits::Some(vec![0; WORDS].into());
                self.blocks.insert(at, FinishedBlock { number, bits });
            }
            self.blocks[at].finish((from % BLOCK) as usize, (to - number * BLOCK) as usize);
            from = to;
        }
    }

    /// True when the message is finished.
    pub fn is_finished(&self, sequence: Sequence) -> bool {
        let (number, bit) = (sequence.get() / BLOCK, (sequence.get() % BLOCK) as usize);
        let block = self.blocks.binary_search_by_key(&number, |block| block.number);
        sequence < self.floor
            || block.is_ok_and(|at| match &self.blocks[at].bits {
                FinishedBits::Full => true,
                FinishedBits::Some(words) => words
                    .get(bit / 64)
                    .is_some_and(|word| word >> (bit % 64) & 1 == 1),
            })
    }
}

impl FinishedBlock {
    /// Sets the bits from `from` up to but without `to`.
    fn finish(&mut self, from: usize, to: usize) {
        if to - from == BLOCK as usize {
            self.bits = FinishedBits::Full;
        }
        if let FinishedBits::Some(words) = &mut self.bits {
            for bit in from..to {
                words[bit / 64] |= 1 << (bit % 64);
            }
        }
    }

    /// First sequence above the highest finished one; 0 for a block without bits.
    fn end(&self) -> Sequence {
        let start = self.number.saturating_mul(BLOCK);
        match &self.bits {
            FinishedBits::Full => Sequence::new(start.saturating_add(BLOCK)),
            FinishedBits::Some(words) => words
                .iter()
                .enumerate()
                .rev()
                .find(|(_, word)| **word != 0)
                .map_or(Sequence::default(), |(at, word)| {
                    Sequence::new(start.saturating_add(at as u64 * 64 + u64::from(word.ilog2()) + 1))
                }),
        }
    }
}

const WORDS: usize = BLOCK as usize / 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_finished_across_blocks() {
        let range = |start, end| SequenceRange::new(Sequence::new(start), Sequence::new(end));
        let mut cursor = StoredCursor {
            floor: Sequence::new(10),
            ..StoredCursor::default()
        };
        let ranges = [
            range(5, 12),
            range(BLOCK - 1, 2 * BLOCK + 1),
            range(3 * BLOCK, 3 * BLOCK),
            range(20, 21),
        ];
        for range in ranges {
            cursor.finish(range);
        }
        let numbers: Vec<_> = cursor.blocks.iter().map(|block| block.number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(cursor.blocks[1].bits, FinishedBits::Full);
        for sequence in (0..100)
            .chain(BLOCK - 100..BLOCK + 100)
            .chain(2 * BLOCK - 100..4 * BLOCK)
        {
            let sequence = Sequence::new(sequence);
            let expected = sequence < cursor.floor || ranges.iter().any(|range| range.contains(sequence));
            assert_eq!(cursor.is_finished(sequence), expected, "{sequence}");
        }
    }

    #[test]
    fn the_end_lies_above_floor_bits_and_unsettled_messages() {
        let mut cursor = StoredCursor {
            floor: Sequence::new(7),
            ..StoredCursor::default()
        };
        assert_eq!(cursor.end(), Sequence::new(7));
        let mut words = vec![0; 1024].into_boxed_slice();
        words[2] = 0b101;
        cursor.blocks.push(FinishedBlock {
            number: 1,
            bits: FinishedBits::Some(words),
        });
        assert_eq!(cursor.end(), Sequence::new(BLOCK + 2 * 64 + 3));
        cursor.unsettled.push(Unsettled {
            sequence: Sequence::new(2 * BLOCK),
            attempts: 1,
            due: 0,
            delay_ms: 0,
        });
        assert_eq!(cursor.end(), Sequence::new(2 * BLOCK + 1));
        cursor.blocks.push(FinishedBlock {
            number: 3,
            bits: FinishedBits::Full,
        });
        assert_eq!(cursor.end(), Sequence::new(4 * BLOCK));
    }
}
