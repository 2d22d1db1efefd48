//! Duty: cursors as rows of the database and back. Comes in: deltas. Goes out: the cursor they add up to. Must
//! not know the catalogue.
//!
//! | key | value after the version byte |
//! |---|---|
//! | `p` channel u64 | floor u64; this row makes the channel exist |
//! | `b` channel u64, block u64, part u8 | finished bits of a quarter of a block, see below; no bits, no row |
//! | `u` channel u64, sequence u64 | attempts u16, due i64, delay in ms u64 |
//!
//! Numbers in keys are big-endian, so that rows sort by them; in values they are little-endian. A part is one of:
//! `0` the whole block is finished (part 0 only), `1` runs of finished bits (first u16, length - 1 u16, ...),
//! `2` 256 words of bits. Blocks are cut into parts because sled writes big leaves to files of their own.

use std::ops::{Bound, Range};

use super::StoreError;
use super::catalogue_rows::{VERSION, payload, unreadable};
use super::cursor::{
    BLOCK, ChannelNumber, CursorDelta, FinishedBits, FinishedBlock, StoredCursor, Unsettled,
};
use super::database::{Database, Staged};
use crate::log::sequence::Sequence;

/// Makes a channel exist with everything below `floor` finished.
pub(super) fn create(staged: &mut Staged<'_>, channel: ChannelNumber, floor: Sequence) {
    staged.put(key(FLOOR, channel, &[]), encode(&[&floor.get().to_le_bytes()]));
}

/// Applies a delta; does nothing for a channel that does not exist.
pub(super) fn save(
    staged: &mut Staged<'_>,
    channel: ChannelNumber,
    delta: &CursorDelta,
) -> Result<(), StoreError> {
    let key_of_floor = key(FLOOR, channel, &[]);
    let Some(stored) = staged.get(&key_of_floor)? else {
        return Ok(());
    };
    let before = decode_floor(&key_of_floor, &stored)?;
    let floor = if delta.reset {
        delta.floor
    } else {
        delta.floor.max(before)
    };
    if delta.reset {
        clear(staged, channel)?;
    } else if floor > before {
        staged.clear(rows(BLOCKS, channel, before.get() / BLOCK..floor.get() / BLOCK))?;
        staged.clear(rows(UNSETTLED, channel, before.get()..floor.get()))?;
    }
    if floor != before {
        create(staged, channel, floor);
    }
    for block in delta
        .blocks
        .iter()
        .filter(|block| block.number >= floor.get() / BLOCK)
    {
        put_block(staged, channel, block)?;
    }
    for sequence in &delta.settled {
        staged.remove(key(UNSETTLED, channel, &[sequence.get()]))?;
    }
    for message in delta.unsettled.iter().filter(|message| message.sequence >= floor) {
        let value = encode(&[
            &message.attempts.to_le_bytes(),
            &message.due.to_le_bytes(),
            &message.delay_ms.to_le_bytes(),
        ]);
        staged.put(key(UNSETTLED, channel, &[message.sequence.get()]), value);
    }
    Ok(())
}

/// Removes a channel's cursor.
pub(super) fn remove(staged: &mut Staged<'_>, channel: ChannelNumber) -> Result<(), StoreError> {
    staged.remove(key(FLOOR, channel, &[]))?;
    clear(staged, channel)
}

/// True when the channel exists.
pub(super) fn exists(database: &Database, channel: ChannelNumber) -> Result<bool, StoreError> {
    Ok(database.get(&key(FLOOR, channel, &[]))?.is_some())
}

/// Reads a channel's cursor; `None` for a channel that does not exist.
pub(super) fn load(database: &Database, channel: ChannelNumber) -> Result<Option<StoredCursor>, StoreError> {
    let key_of_floor = key(FLOOR, channel, &[]);
    let Some(stored) = database.get(&key_of_floor)? else {
        return Ok(None);
    };
    let mut cursor = StoredCursor {
        floor: decode_floor(&key_of_floor, &stored)?,
        ..StoredCursor::default()
    };
    for (key, value) in database.scan(rows(BLOCKS, channel, 0..u64::MAX))? {
        let (number, part) = block_place(&key)?;
        if cursor.blocks.last().is_none_or(|block| block.number != number) {
            let bits = FinishedBits::Some(vec![0; BLOCK_WORDS].into());
            cursor.blocks.push(FinishedBlock { number, bits });
        }
        let Some(block) = cursor.blocks.last_mut() else {
            continue;
        };
        decode_part(&key, payload(&key, &value)?, part, &mut block.bits)?;
    }
    for block in &mut cursor.blocks {
        block.collapse();
    }
    for (key, value) in database.scan(rows(UNSETTLED, channel, 0..u64::MAX))? {
        cursor
            .unsettled
            .push(decode_unsettled(&key, payload(&key, &value)?)?);
    }
    Ok(Some(cursor))
}

fn clear(staged: &mut Staged<'_>, channel: ChannelNumber) -> Result<(), StoreError> {
    staged.clear(rows(BLOCKS, channel, 0..u64::MAX))?;
    staged.clear(rows(UNSETTLED, channel, 0..u64::MAX))
}

fn put_block(
    staged: &mut Staged<'_>,
    channel: ChannelNumber,
    block: &FinishedBlock,
) -> Result<(), StoreError> {
    for part in 0..PARTS {
        let value = match &block.bits {
            FinishedBits::Full if part == 0 => Some(encode(&[&[FULL]])),
            FinishedBits::Full => None,
            FinishedBits::Some(words) => encode_part(words.get(words_of(part)).unwrap_or(&[])),
        };
        let mut key = key(BLOCKS, channel, &[block.number]);
        key.push(part as u8);
        staged.set(key, value)?;
    }
    Ok(())
}

/// The words as runs or as they are, whichever is shorter; nothing when no bit is set.
fn encode_part(words: &[u64]) -> Option<Vec<u8>> {
    let mut value = vec![VERSION, RUNS];
    let mut at = 0;
    while let Some(run) = next_run(words, at) {
        if value.len() >= words.len() * 8 {
            let words = words.iter().flat_map(|word| word.to_le_bytes());
            return Some([VERSION, BITS].into_iter().chain(words).collect());
        }
        value.extend((run.start as u16).to_le_bytes());
        value.extend(((run.end - run.start - 1) as u16).to_le_bytes());
        at = run.end;
    }
    (at > 0).then_some(value)
}

/// The first run of set bits at or after bit `from`.
fn next_run(words: &[u64], from: usize) -> Option<Range<usize>> {
    let start = next_bit(words, from, |word| word)?;
    Some(start..next_bit(words, start, |word| !word).unwrap_or(words.len() * 64))
}

/// The first bit at or after `from` that is set once `view` has looked at its word.
fn next_bit(words: &[u64], from: usize, view: impl Fn(u64) -> u64) -> Option<usize> {
    let mut mask = u64::MAX << (from % 64);
    for (at, word) in words.iter().enumerate().skip(from / 64) {
        let seen = view(*word) & mask;
        if seen != 0 {
            return Some(at * 64 + seen.trailing_zeros() as usize);
        }
        mask = u64::MAX;
    }
    None
}

fn decode_part(key: &[u8], payload: &[u8], part: usize, bits: &mut FinishedBits) -> Result<(), StoreError> {
    let (kind, data) = payload.split_first().ok_or_else(|| unreadable(key))?;
    if *kind == FULL {
        *bits = FinishedBits::Full;
        return Ok(());
    }
    let FinishedBits::Some(words) = bits else {
        return Err(unreadable(key));
    };
    let words = &mut words[words_of(part)];
    match *kind {
        RUNS => {
            let (runs, []) = data.as_chunks::<4>() else {
                return Err(unreadable(key));
            };
            for [a, b, c, d] in runs {
                let first = usize::from(u16::from_le_bytes([*a, *b]));
                let end = first + usize::from(u16::from_le_bytes([*c, *d])) + 1;
                if end > words.len() * 64 {
                    return Err(unreadable(key));
                }
                for bit in first..end {
                    words[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
        BITS if data.len() == words.len() * 8 => {
            for (word, bytes) in words.iter_mut().zip(data.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        _ => return Err(unreadable(key)),
    }
    Ok(())
}

impl FinishedBlock {
    /// Turns a block of set bits only into a full one.
    pub(super) fn collapse(&mut self) {
        if let FinishedBits::Some(words) = &self.bits
            && words.len() == BLOCK_WORDS
            && words.iter().all(|word| *word == u64::MAX)
        {
            self.bits = FinishedBits::Full;
        }
    }
}

fn block_place(key: &[u8]) -> Result<(u64, usize), StoreError> {
    match key.get(9..).map(|rest| (rest.first_chunk(), rest.get(8..))) {
        Some((Some(number), Some([part]))) if usize::from(*part) < PARTS => {
            Ok((u64::from_be_bytes(*number), usize::from(*part)))
        }
        _ => Err(unreadable(key)),
    }
}

fn decode_floor(key: &[u8], value: &[u8]) -> Result<Sequence, StoreError> {
    let floor = payload(key, value)?.try_into().map_err(|_| unreadable(key))?;
    Ok(Sequence::new(u64::from_le_bytes(floor)))
}

fn decode_unsettled(key: &[u8], payload: &[u8]) -> Result<Unsettled, StoreError> {
    let sequence = key.get(9..).and_then(|rest| rest.try_into().ok());
    let fields = payload.split_first_chunk::<2>().and_then(|(attempts, rest)| {
        let (due, delay) = rest.split_first_chunk::<8>()?;
        Some((*attempts, *due, <[u8; 8]>::try_from(delay).ok()?))
    });
    let (Some(sequence), Some((attempts, due, delay_ms))) = (sequence, fields) else {
        return Err(unreadable(key));
    };
    Ok(Unsettled {
        sequence: Sequence::new(u64::from_be_bytes(sequence)),
        attempts: u16::from_le_bytes(attempts),
        due: i64::from_le_bytes(due),
        delay_ms: u64::from_le_bytes(delay_ms),
    })
}

fn encode(parts: &[&[u8]]) -> Vec<u8> {
    let mut value = vec![VERSION];
    for part in parts {
        value.extend_from_slice(part);
    }
    value
}

fn key(kind: u8, channel: ChannelNumber, place: &[u64]) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend(channel.0.to_be_bytes());
    key.extend(place.iter().flat_map(|number| number.to_be_bytes()));
    key
}

/// The keys of one kind and channel whose next number lies in `range`.
fn rows(kind: u8, channel: ChannelNumber, range: Range<u64>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (
        Bound::Included(key(kind, channel, &[range.start])),
        Bound::Excluded(key(kind, channel, &[range.end])),
    )
}

fn words_of(part: usize) -> Range<usize> {
    part * PART_WORDS..(part + 1) * PART_WORDS
}

const FLOOR: u8 = b'p';
const BLOCKS: u8 = b'b';
const UNSETTLED: u8 = b'u';
const FULL: u8 = 0;
const RUNS: u8 = 1;
const BITS: u8 = 2;
const BLOCK_WORDS: usize = BLOCK as usize / 64;
const PARTS: usize = 4;
const PART_WORDS: usize = BLOCK_WORDS / PARTS;
