//! Duty: the catalogue as rows of the database and back. Every value begins with a version byte. Must not know
//! how rows are kept.
//!
//! | key | value after the version byte |
//! |---|---|
//! | `n` | next number u64, fresh_from u64, changes u64, topics and channels u64 (little-endian) |
//! | `t` number u64 | a topic, JSON |
//! | `c` number u64 | a channel, JSON |
//! | `f` name | a fact, its bytes |
//!
//! Numbers in keys are big-endian, so that rows sort by them.

use std::ops::Bound;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreError;
use super::catalogue::{Catalogue, Entry, Numbers};
use super::cursor::{ChannelNumber, TopicNumber};
use super::database::Database;
use crate::log::sequence::Sequence;

/// The row of an entry.
pub(super) fn row(entry: &Entry) -> Result<(Vec<u8>, Option<Vec<u8>>), StoreError> {
    Ok(match entry {
        Entry::Numbers(numbers) => (NUMBERS.to_vec(), Some(encode_numbers(numbers))),
        Entry::Topic(number, topic) => (
            numbered(TOPIC, number.0),
            topic.as_ref().map(encode_json).transpose()?,
        ),
        Entry::Channel(number, channel) => (
            numbered(CHANNEL, number.0),
            channel.as_ref().map(encode_json).transpose()?,
        ),
        Entry::Fact(name, value) => {
            let key = [&[FACT], name.as_bytes()].concat();
            (
                key,
                value
                    .as_ref()
                    .map(|value| [&[VERSION], value.as_slice()].concat()),
            )
        }
    })
}

/// Reads the whole catalogue; `None` from a database that never held one.
///
/// # Errors
/// [`StoreError::Damaged`] when a row can not be read, is missing, or contradicts another one.
pub(super) fn read(database: &Database) -> Result<Option<Catalogue>, StoreError> {
    let Some(numbers) = database.get(NUMBERS)? else {
        return Ok(None);
    };
    let mut catalogue = Catalogue::default();
    catalogue.put(Entry::Numbers(decode_numbers(&numbers)?));
    for (key, value) in kind(database, TOPIC)? {
        let topic = decode_json(&key, &value)?;
        catalogue.put(Entry::Topic(TopicNumber(number_of(&key)?), Some(topic)));
    }
    for (key, value) in kind(database, CHANNEL)? {
        let channel = decode_json(&key, &value)?;
        catalogue.put(Entry::Channel(ChannelNumber(number_of(&key)?), Some(channel)));
    }
    for (key, value) in kind(database, FACT)? {
        let name = String::from_utf8(key[1..].to_vec()).map_err(|_| unreadable(&key))?;
        catalogue.put(Entry::Fact(name, Some(payload(&key, &value)?.to_vec())));
    }
    check(&catalogue)?;
    Ok(Some(catalogue))
}

fn check(catalogue: &Catalogue) -> Result<(), StoreError> {
    let numbers = catalogue.numbers();
    if numbers.entries != catalogue.entry_count() {
        let (expected, found) = (numbers.entries, catalogue.entry_count());
        return Err(StoreError::damaged(format!(
            "{expected} topics and channels were stored, {found} are there"
        )));
    }
    let topics = catalogue.topics().map(|(number, _)| number.0);
    let channels = catalogue.channels().map(|(number, _)| number.0);
    if let Some(number) = topics.chain(channels).find(|number| *number >= numbers.next) {
        return Err(StoreError::damaged(format!(
            "number {number} was never given out"
        )));
    }
    if let Some((number, channel)) = catalogue
        .channels()
        .find(|(_, channel)| catalogue.topic(channel.topic).is_none())
    {
        let (number, topic) = (number.0, channel.topic.0);
        return Err(StoreError::damaged(format!(
            "channel {number} belongs to unknown topic {topic}"
        )));
    }
    Ok(())
}

fn kind(database: &Database, kind: u8) -> Result<Vec<(sled::IVec, sled::IVec)>, StoreError> {
    database.scan((Bound::Included(vec![kind]), Bound::Excluded(vec![kind + 1])))
}

fn numbered(kind: u8, number: u64) -> Vec<u8> {
    [&[kind], number.to_be_bytes().as_slice()].concat()
}

fn number_of(key: &[u8]) -> Result<u64, StoreError> {
    let number = key[1..].try_into().map_err(|_| unreadable(key))?;
    Ok(u64::from_be_bytes(number))
}

fn encode_numbers(numbers: &Numbers) -> Vec<u8> {
    let mut value = vec![VERSION];
    let fields = [
        numbers.next,
        numbers.fresh_from.get(),
        numbers.changes,
        numbers.entries,
    ];
    for number in fields {
        value.extend(number.to_le_bytes());
    }
    value
}

fn decode_numbers(value: &[u8]) -> Result<Numbers, StoreError> {
    let (words, []) = payload(NUMBERS, value)?.as_chunks::<8>() else {
        return Err(unreadable(NUMBERS));
    };
    let [next, fresh_from, changes, entries] = words else {
        return Err(unreadable(NUMBERS));
    };
    Ok(Numbers {
        next: u64::from_le_bytes(*next),
        fresh_from: Sequence::new(u64::from_le_bytes(*fresh_from)),
        changes: u64::from_le_bytes(*changes),
        entries: u64::from_le_bytes(*entries),
    })
}

fn encode_json(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![VERSION];
    serde_json::to_writer(&mut bytes, value).map_err(StoreError::damaged)?;
    Ok(bytes)
}

fn decode_json<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(payload(key, value)?).map_err(|_| unreadable(key))
}

/// What follows the version byte of a value.
pub(super) fn payload<'a>(key: &[u8], value: &'a [u8]) -> Result<&'a [u8], StoreError> {
    match value.split_first() {
        Some((&VERSION, payload)) => Ok(payload),
        Some((version, _)) => {
            let key = key.escape_ascii();
            Err(StoreError::damaged(format!(
                "row \"{key}\" has version {version}, this program knows {VERSION}"
            )))
        }
        None => Err(unreadable(key)),
    }
}

/// The error for a row whose key or value makes no sense.
pub(super) fn unreadable(key: &[u8]) -> StoreError {
    StoreError::damaged(format!("row \"{}\" can not be read", key.escape_ascii()))
}

/// First byte of every value.
pub(super) const VERSION: u8 = 1;
const NUMBERS: &[u8] = b"n";
const TOPIC: u8 = b't';
const CHANNEL: u8 = b'c';
const FACT: u8 = b'f';
