//! Duty: SUB (nsq-tcp 2.2) and its advanced and ordered forms (youzan-extension 2.4). Must not know channels.

use super::{Command, Decoded, Line, Rules, Verb, bad_name, invalid, partition};
use crate::code::ErrorCode;
use crate::coding::integer;
use crate::dialect::Dialect;
use crate::name::{ChannelRef, TopicRef};
use crate::quote::quoted;
use crate::refusal::WireError;

/// A wish to consume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// The topic.
    pub topic: TopicRef<'a>,
    /// The channel.
    pub channel: ChannelRef<'a>,
    /// Which partition the client thinks this is; none when it does not care.
    pub partition: Option<i32>,
    /// Which of the three verbs it was.
    pub mode: SubscribeMode,
    /// Where the only client of a channel wants to start; SUB_ADVANCED only.
    pub start: Option<StartOffset>,
}

/// Which verb subscribed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubscribeMode {
    /// SUB.
    #[default]
    Plain,
    /// SUB_ADVANCED: messages carry the 12 detail bytes.
    Advanced,
    /// SUB_ORDERED: detail bytes, and the channel keeps order.
    Ordered,
}

/// Where to start reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartOffset {
    /// First message at or after this time, seconds since the Unix epoch.
    Timestamp(i64),
    /// The end of the queue.
    End,
    /// Byte offset in the queue.
    VirtualQueue(i64),
    /// Count of messages from the beginning.
    MessageCount(i64),
}

impl SubscribeMode {
    /// The verb on the wire.
    pub const fn verb(self) -> Verb {
        match self {
            Self::Plain => Verb::Sub,
            Self::Advanced => Verb::SubAdvanced,
            Self::Ordered => Verb::SubOrdered,
        }
    }

    /// True for the two forms of Youzan's fork: binary ids and detail bytes.
    pub const fn is_extended(self) -> bool {
        !matches!(self, Self::Plain)
    }
}

pub(super) fn decode<'a>(rules: &Rules, verb: Verb, line: &Line<'a>) -> Decoded<'a> {
    if !rules.heartbeats {
        return Err(invalid(Verb::Sub, "cannot ", " with heartbeats disabled").into());
    }
    let (Some(topic), Some(channel)) = (line.word(1), line.word(2)) else {
        return Err(invalid(verb, "", " insufficient number of parameters").into());
    };
    let topic = TopicRef::parse(topic).map_err(|_| bad_name(ErrorCode::BadTopic, verb, "topic", topic))?;
    let channel =
        ChannelRef::parse(channel).map_err(|_| bad_name(ErrorCode::BadChannel, verb, "channel", channel))?;
    let mode = match verb {
        Verb::SubAdvanced => SubscribeMode::Advanced,
        Verb::SubOrdered => SubscribeMode::Ordered,
        _ => SubscribeMode::Plain,
    };
    // More words than the form has: for Youzan's server the partition then is not one.
    let words = if mode == SubscribeMode::Advanced {
        4..=5
    } else {
        4..=4
    };
    let word = line.word(3).filter(|_| words.contains(&line.count()));
    let strict = rules.dialect == Dialect::Youzan || mode.is_extended();
    let partition = partition(verb, strict, word)?;
    let start = match (mode, line.word(4)) {
        (SubscribeMode::Advanced, Some(word)) => Some(start_offset(word)?),
        _ => None,
    };
    Ok((
        Command::Subscribe(Subscribe {
            topic,
            channel,
            partition,
            mode,
            start,
        }),
        line.len,
    ))
}

fn start_offset(word: &[u8]) -> Result<StartOffset, WireError> {
    read_start_offset(word).ok_or_else(|| {
        let text = format!("SUB_ADVANCED start offset {} is not valid", quoted(word));
        WireError::new(ErrorCode::Invalid, text)
    })
}

fn read_start_offset(word: &[u8]) -> Option<StartOffset> {
    let colon = memchr::memchr(b':', word)?;
    let value = integer(&word[colon + 1..])?;
    match &word[..colon] {
        b"timestamp" => Some(StartOffset::Timestamp(value)),
        b"special" if value == -1 => Some(StartOffset::End),
        b"virtual_queue" => Some(StartOffset::VirtualQueue(value)),
        b"msgcount" => Some(StartOffset::MessageCount(value)),
        _ => None,
    }
}
