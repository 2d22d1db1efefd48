//! Duty: one record as bytes, in memory and on disk alike. Must not know files or sequences' meaning.
//!
//! Little-endian. The checksum covers everything after itself.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | length of everything after these four bytes |
//! | 4 | 4 | CRC-32C |
//! | 8 | 8 | sequence |
//! | 16 | 8 | timestamp, nanoseconds since the Unix epoch |
//! | 24 | 1 | flags: 1 delay, 2 trace id, 4 own id, 8 attempts, 16 load test, 32 tagged |
//! | 25 | 1 | version of the extended header, 0 = none |
//! | 26 | 2 | length of the extended header |
//! | 28 | 0/8 | delay in milliseconds (flag 1) |
//! | .. | 0/8 | trace id (flag 2) |
//! | .. | 0/16 | the id shown to consumers instead of one made from the sequence (flag 4) |
//! | .. | 0/2 | attempts so far (flag 8) |
//! | .. | n | extended header |
//! | .. | rest | body |

use super::sequence::Sequence;

/// A record before it has a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewRecord<'a> {
    /// Nanoseconds since the Unix epoch.
    pub timestamp: i64,
    /// Milliseconds to hold the record back after its hand-over; 0 = none.
    pub delay_ms: u64,
    /// Trace id; 0 = none.
    pub trace_id: u64,
    /// The id to show instead of one made from the sequence (imported messages).
    pub own_id: Option<[u8; 16]>,
    /// Deliveries that happened before (imported messages).
    pub attempts: u16,
    /// True for load-test traffic.
    pub load_test: bool,
    /// True when the header names a tag.
    pub tagged: bool,
    /// Version of the extended header, 0 = none.
    pub ext_version: u8,
    /// The extended header byte for byte; at most 65,535 bytes.
    pub ext: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

/// A record read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place in the log.
    pub sequence: Sequence,
    /// Nanoseconds since the Unix epoch.
    pub timestamp: i64,
    /// Milliseconds to hold the record back after its hand-over; 0 = none.
    pub delay_ms: u64,
    /// Trace id; 0 = none.
    pub trace_id: u64,
    /// The id to show instead of one made from the sequence.
    pub own_id: Option<[u8; 16]>,
    /// Deliveries that happened before it entered this log.
    pub attempts: u16,
    /// True for load-test traffic.
    pub load_test: bool,
    /// True when the header names a tag.
    pub tagged: bool,
    /// Version of the extended header, 0 = none.
    pub ext_version: u8,
    /// The extended header.
    pub ext: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end inside the record.
    #[error("record cut short")]
    Short,
    /// The length field is smaller than the fixed part.
    #[error("record length {0} is impossible")]
    Length(u32),
    /// The checksum does not fit the bytes.
    #[error("record checksum does not fit")]
    Checksum,
    /// Optional parts reach beyond the record.
    #[error("record parts reach beyond its end")]
    Parts,
}

impl NewRecord<'_> {
    /// Bytes that [`NewRecord::encode`] will add.
    pub fn encoded_len(&self) -> usize {
        FIXED
            + if self.delay_ms > 0 { 8 } else { 0 }
            + if self.trace_id > 0 { 8 } else { 0 }
            + if self.own_id.is_some() { 16 } else { 0 }
            + if self.attempts > 0 { 2 } else { 0 }
            + self.ext.len()
            + self.body.len()
    }

    /// Appends the record under `sequence` to `out`.
    pub fn encode(&self, sequence: Sequence, out: &mut impl bytes::BufMut) {
        let length = self.encoded_len();
        let mut fixed = [0; FIXED];
        fixed[0..4].copy_from_slice(&((length - 4) as u32).to_le_bytes());
        fixed[8..16].copy_from_slice(&sequence.get().to_le_bytes());
        fixed[16..24].copy_from_slice(&self.timestamp.to_le_bytes());
        fixed[25] = self.ext_version;
        fixed[26..28].copy_from_slice(&(self.ext.len() as u16).to_le_bytes());
        let mut optional = [0; OPTIONAL_MAX];
        let mut filled = 0;
        let mut add = |flag: u8, part: &[u8]| {
            fixed[24] |= flag;
            optional[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        };
        if self.delay_ms > 0 {
            add(DELAY, &self.delay_ms.to_le_bytes());
        }
        if self.trace_id > 0 {
            add(TRACE, &self.trace_id.to_le_bytes());
        }
        if let Some(id) = &self.own_id {
            add(OWN_ID, id);
        }
        if self.attempts > 0 {
            add(ATTEMPTS, &self.attempts.to_le_bytes());
        }
        if self.load_test {
            add(LOAD_TEST, &[]);
        }
        if self.tagged {
            add(TAGGED, &[]);
        }
        let optional = &optional[..filled];
        let mut crc = crc32c::crc32c(&fixed[8..]);
        if !optional.is_empty() {
            crc = crc32c::crc32c_append(crc, optional);
        }
        if !self.ext.is_empty() {
            crc = crc32c::crc32c_append(crc, self.ext);
        }
        crc = crc32c::crc32c_append(crc, self.body);
        fixed[4..8].copy_from_slice(&crc.to_le_bytes());
        out.put_slice(&fixed);
        out.put_slice(optional);
        out.put_slice(self.ext);
        out.put_slice(self.body);
    }
}

impl<'a> Record<'a> {
    /// Reads the record at the start of `bytes` without checking its checksum; answers it and its whole length.
    ///
    /// # Errors
    /// When the bytes end too early or the lengths in them do not fit together.
    pub fn decode(bytes: &'a [u8]) -> Result<(Self, usize), RecordError> {
        let whole = Self::whole_len(bytes)?;
        let record = bytes.get(..whole).ok_or(RecordError::Short)?;
        let (fixed, mut rest) = record.split_at(FIXED);
        let flags = fixed[24];
        let mut take = |flag: u8, count: usize| -> Result<Option<&'a [u8]>, RecordError> {
            if flags & flag == 0 {
                return Ok(None);
            }
            let (part, after) = rest.split_at_checked(count).ok_or(RecordError::Parts)?;
            rest = after;
            Ok(Some(part))
        };
        let delay_ms = take(DELAY, 8)?.map_or(0, number);
        let trace_id = take(TRACE, 8)?.map_or(0, number);
        let own_id = take(OWN_ID, 16)?.and_then(|id| id.try_into().ok());
        let attempts = take(ATTEMPTS, 2)?.map_or(0, number) as u16;
        let ext_len = usize::from(u16::from_le_bytes([fixed[26], fixed[27]]));
        let (ext, body) = rest.split_at_checked(ext_len).ok_or(RecordError::Parts)?;
        let record = Self {
            sequence: Sequence::new(number(&fixed[8..16])),
            timestamp: number(&fixed[16..24]) as i64,
            delay_ms,
            trace_id,
            own_id,
            attempts,
            load_test: flags & LOAD_TEST != 0,
            tagged: flags & TAGGED != 0,
            ext_version: fixed[25],
            ext,
            body,
        };
        Ok((record, whole))
    }

    /// As [`Record::decode`], but a record with a wrong checksum is an error.
    ///
    /// # Errors
    /// As [`Record::decode`], and [`RecordError::Checksum`].
    pub fn decode_checked(bytes: &'a [u8]) -> Result<(Self, usize), RecordError> {
        let whole = Self::whole_len(bytes)?;
        let record = bytes.get(..whole).ok_or(RecordError::Short)?;
        if u64::from(crc32c::crc32c(&record[8..])) != number(&record[4..8]) {
            return Err(RecordError::Checksum);
        }
        Self::decode(record)
    }

    /// Whole length in bytes of the record that starts `bytes`; at least the fixed part is present in `bytes`.
    ///
    /// # Errors
    /// When fewer bytes than the fixed part are there, or the length field is impossible.
    pub fn whole_len(bytes: &[u8]) -> Result<usize, RecordError> {
        let fixed = bytes.get(..FIXED).ok_or(RecordError::Short)?;
        let length = number(&fixed[..4]) as usize;
        if length + 4 < FIXED {
            return Err(RecordError::Length(length as u32));
        }
        Ok(length + 4)
    }
}

/// What delivery must know of a record, read without decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Whole length in bytes.
    pub length: usize,
    /// True when the record has neither a delay nor an id or attempts of its own.
    pub plain: bool,
}

impl Outline {
    /// Reads the outline of the record at the start of `bytes`.
    ///
    /// # Errors
    /// When the bytes end before the record does, or its length field is impossible.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or(RecordError::Short)?;
        let after = u32::from_le_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
        let length = after as usize + 4;
        if length < FIXED {
            return Err(RecordError::Length(after));
        }
        if length > bytes.len() {
            return Err(RecordError::Short);
        }
        Ok(Self {
            length,
            plain: fixed[24] & (DELAY | OWN_ID | ATTEMPTS) == 0,
        })
    }
}

/// Walks verified records that lie one after another.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// Walks `bytes`, which hold whole records only.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (record, whole) = Record::decode(self.rest).ok()?;
        self.rest = &self.rest[whole..];
        Some(record)
    }
}

/// Bytes that the first `count` records in `bytes` take; `bytes` hold whole records only.
pub fn span(bytes: &[u8], count: u64) -> usize {
    let mut at = 0;
    for _ in 0..count {
        match Record::whole_len(&bytes[at..]) {
            Ok(whole) => at += whole,
            Err(_) => break,
        }
    }
    at.min(bytes.len())
}

/// How many of the records in `bytes` fit into `room` bytes from the first one on, and their length. `bytes` hold
/// whole records only.
pub fn fitting(bytes: &[u8], room: usize) -> (u64, usize) {
    let mut count = 0;
    let mut at = 0;
    while let Ok(whole) = Record::whole_len(&bytes[at..])
        && at + whole <= room
    {
        at += whole;
        count += 1;
    }
    (count, at)
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Length of the part that every record has.
pub const FIXED: usize = 28;
const OPTIONAL_MAX: usize = 8 + 8 + 16 + 2;
const DELAY: u8 = 1;
const TRACE: u8 = 2;
const OWN_ID: u8 = 4;
const ATTEMPTS: u8 = 8;
const LOAD_TEST: u8 = 16;
const TAGGED: u8 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_survives_encode_and_decode(
            timestamp: i64, delay_ms: u64, trace_id: u64, own_id: Option<[u8; 16]>, attempts: u16, load_test: bool,
            tagged: bool, ext_version: u8, ext: Vec<u8>, body: Vec<u8>, sequence in 0_u64..1 << 50,
        ) {
            let new = NewRecord {
                timestamp, delay_ms, trace_id, own_id, attempts, load_test, tagged, ext_version, ext: &ext, body: &body,
            };
            let mut bytes = Vec::new();
            new.encode(Sequence::new(sequence), &mut bytes);
            prop_assert_eq!(bytes.len(), new.encoded_len());
            let (read, whole) = Record::decode_checked(&bytes).unwrap();
            prop_assert_eq!(whole, bytes.len());
            prop_assert_eq!(read, Record {
                sequence: Sequence::new(sequence), timestamp, delay_ms, trace_id, own_id, attempts, load_test, tagged,
                ext_version, ext: &ext, body: &body,
            });
        }

        #[test]
        fn any_flipped_bit_is_noticed(body: Vec<u8>, at: prop::sample::Index, bit in 0_u8..8) {
            let mut bytes = Vec::new();
            NewRecord { timestamp: 1, body: &body, ..NewRecord::default() }.encode(Sequence::new(7), &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(Record::decode_checked(&bytes).is_err());
        }

        #[test]
        fn any_bytes_end_in_a_record_or_an_error(bytes: Vec<u8>) {
            let _ = Record::decode(&bytes);
            let _ = Record::decode_checked(&bytes);
        }
    }
}
