//! Duty: a set of sequences at one bit each. Comes in: sequences and runs of them. Goes out: membership, runs,
//! blocks as they are stored. Must not know what being in the set means.
//!
//! Blocks of 65,536 sequences exist only where the set has members; a full block keeps no bits.

use std::collections::BTreeMap;

use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::cursor::{BLOCK, FinishedBits, FinishedBlock};

/// A set of sequences.
#[derive(Clone, Debug, Default)]
pub(super) struct Bitmap {
    blocks: BTreeMap<u64, Block>,
}

impl Bitmap {
    /// Adds `sequence`; false when it was there already.
    pub(super) fn insert(&mut self, sequence: Sequence) -> bool {
        let (number, bit) = place(sequence);
        self.blocks.entry(number).or_default().insert(bit)
    }

    /// How many sequences from `from` on are members without a break, at least; 0 when `from` is none. A longer
    /// run is answered in parts.
    pub(super) fn members_from(&self, from: Sequence) -> u64 {
        let (number, bit) = place(from);
        self.blocks.get(&number).map_or(0, |block| block.run(bit))
    }

    /// How many members lie in `range`.
    pub(super) fn count(&self, range: SequenceRange) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let (first, from) = place(range.start);
        let (last, to) = place(range.end - 1);
        self.blocks
            .range(first..=last)
            .map(|(number, block)| {
                let from = if *number == first { from } else { 0 };
                let to = if *number == last { to + 1 } else { BLOCK as usize };
                block.count(from, to)
            })
            .sum()
    }

    /// Forgets every block that lies wholly below `floor`.
    pub(super) fn drop_below(&mut self, floor: Sequence) {
        while let Some(first) = self.blocks.first_entry() {
            if *first.key() >= floor.get() / BLOCK {
                break;
            }
            first.remove();
        }
    }

    /// Adds what of a stored block lies below `end`; it counts as unchanged.
    pub(super) fn load(&mut self, stored: &FinishedBlock, end: Sequence) {
        let mut words = match &stored.bits {
            FinishedBits::Full => Box::new([u64::MAX; WORDS]),
            FinishedBits::Some(words) => sized(words),
        };
        let below_end = end
            .get()
            .saturating_sub(stored.number.saturating_mul(BLOCK))
            .min(BLOCK) as usize;
        if below_end < BLOCK as usize {
            words[below_end / 64] &= !(u64::MAX << (below_end % 64));
            words[below_end / 64 + 1..].fill(0);
        }
        let ones = words.iter().map(|word| word.count_ones()).sum();
        if ones > 0 {
            let mut block = Block {
                ones,
                changed: false,
                bits: Bits::Some(words),
            };
            block.collapse();
            self.blocks.insert(stored.number, block);
        }
    }

    /// The blocks that changed since they were last asked for.
    pub(super) fn take_changed(&mut self) -> Vec<FinishedBlock> {
        self.blocks
            .iter_mut()
            .filter_map(|(number, block)| {
                let changed = std::mem::take(&mut block.changed);
                changed.then(|| FinishedBlock {
                    number: *number,
                    bits: block.stored(),
                })
            })
            .collect()
    }

    /// Makes [`Bitmap::take_changed`] answer every block.
    pub(super) fn mark_all_changed(&mut self) {
        self.blocks.values_mut().for_each(|block| block.changed = true);
    }

    /// Bytes allocated, but for the map's own nodes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.blocks
            .values()
            .map(|block| {
                size_of::<(u64, Block)>()
                    + match block.bits {
                        Bits::Full => 0,
                        Bits::Some(_) => size_of::<[u64; WORDS]>(),
                    }
            })
            .sum()
    }
}

#[derive(Clone, Debug)]
struct Block {
    ones: u32,
    changed: bool,
    bits: Bits,
}

#[derive(Clone, Debug)]
enum Bits {
    Full,
    Some(Box<[u64; WORDS]>),
}

impl Default for Block {
    fn default() -> Self {
        Self {
            ones: 0,
            changed: false,
            bits: Bits::Some(Box::new([0; WORDS])),
        }
    }
}

impl Block {
    fn insert(&mut self, bit: usize) -> bool {
        let Bits::Some(words) = &mut self.bits else {
            return false;
        };
        let word = &mut words[bit / 64];
        let mask = 1 << (bit % 64);
        if *word & mask != 0 {
            return false;
        }
        *word |= mask;
        self.ones += 1;
        self.changed = true;
        self.collapse();
        true
    }

    fn stored(&self) -> FinishedBits {
        match &self.bits {
            Bits::Full => FinishedBits::Full,
            Bits::Some(words) => FinishedBits::Some(words.to_vec().into_boxed_slice()),
        }
    }

    fn collapse(&mut self) {
        if u64::from(self.ones) == BLOCK {
            self.bits = Bits::Full;
        }
    }

    /// How many bits from `bit` to the end of the block are ones without a break.
    fn run(&self, bit: usize) -> u64 {
        let Bits::Some(words) = &self.bits else {
            return BLOCK - bit as u64;
        };
        let mut index = bit / 64;
        let first = u64::from((words[index] >> (bit % 64)).trailing_ones());
        if bit as u64 % 64 + first < 64 {
            return first;
        }
        let mut run = first;
        index += 1;
        while index < WORDS {
            let ones = u64::from(words[index].trailing_ones());
            run += ones;
            if ones < 64 {
                break;
            }
            index += 1;
        }
        run
    }

    fn count(&self, from: usize, to: usize) -> u64 {
        let Bits::Some(words) = &self.bits else {
            return (to - from) as u64;
        };
        (from / 64..to.div_ceil(64))
            .map(|index| {
                let mut word = words[index];
                if index == from / 64 {
                    word &= u64::MAX << (from % 64);
                }
                if index == to / 64 {
                    word &= !(u64::MAX << (to % 64));
                }
                u64::from(word.count_ones())
            })
            .sum()
    }
}

fn place(sequence: Sequence) -> (u64, usize) {
    (sequence.get() / BLOCK, (sequence.get() % BLOCK) as usize)
}

/// A stored block of another length than ours is read as far as both reach: what is missing is not finished.
fn sized(words: &[u64]) -> Box<[u64; WORDS]> {
    let mut sized = Box::new([0; WORDS]);
    for (to, from) in sized.iter_mut().zip(words) {
        *to = *from;
    }
    sized
}

const WORDS: usize = (BLOCK / 64) as usize;
