//! Duty: PUB, DPUB (nsq-tcp 2.3, 2.5) and the forms with trace id or header (youzan-extension 2.3). Line and
//! body come in, one value for all seven goes out: a topic and its messages. Must not know topics or logs.

use super::{
    Command, Decoded, Halt, Line, Part, Rules, Verb, bad_name, invalid, invalid_parameter, partition,
};
use crate::code::ErrorCode;
use crate::coding::{decimal, i32_at, u16_at, u64_at};
use crate::dialect::Dialect;
use crate::name::TopicRef;
use crate::refusal::WireError;

/// One or more messages for a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Publish<'a> {
    /// Decides the form of the answer: PUB_TRACE and MPUB_TRACE get a receipt, PUB_EXT when its header has a trace id.
    pub verb: Verb,
    /// The topic.
    pub topic: TopicRef<'a>,
    /// Which partition the client thinks this is; none when it does not care.
    pub partition: Option<i32>,
    /// Milliseconds to hold the message back (DPUB), at most `max_deferred_ms`; else 0.
    pub defer_ms: u64,
    /// At least one message.
    pub messages: Messages<'a>,
}

/// A message as it was published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewMessage<'a> {
    /// Trace id of the two TRACE verbs; 0 = none.
    pub trace_id: u64,
    /// Header of the two EXT verbs, not looked at; none when an MPUB_EXT message has a header of length 0.
    pub header: Option<&'a [u8]>,
    /// The body.
    pub body: &'a [u8],
}

/// The messages of one publish; an iterator over bytes whose sizes were checked before. A single publish is a batch of
/// one: on the wire both are a size and that many bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages<'a> {
    verb: Verb,
    rest: &'a [u8],
    remaining: usize,
}

impl<'a> Messages<'a> {
    /// `count` messages of `verb` that lie in `rest` with their size fields; the caller has checked them.
    pub(super) fn checked(verb: Verb, rest: &'a [u8], count: usize) -> Self {
        Self {
            verb,
            rest,
            remaining: count,
        }
    }

    /// Bytes of the messages that are left, with their size fields, trace ids and headers: what they cost to hold.
    pub fn wire_len(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = NewMessage<'a>;

    fn next(&mut self) -> Option<NewMessage<'a>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let size = i32_at(self.rest, 0)? as usize;
        let (content, rest) = self.rest.get(4..)?.split_at_checked(size)?;
        self.rest = rest;
        split_content(self.verb, content)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Messages<'_> {}

/// Takes trace id or header off the front of a message; nothing when it is too short for them.
fn split_content(verb: Verb, content: &[u8]) -> Option<NewMessage<'_>> {
    match verb {
        Verb::PubTrace | Verb::MpubTrace => {
            let body = content.get(8..)?;
            Some(NewMessage {
                trace_id: u64_at(content, 0)?,
                header: None,
                body,
            })
        }
        Verb::PubExt | Verb::MpubExt => {
            let (header, body) = content
                .get(2..)?
                .split_at_checked(usize::from(u16_at(content, 0)?))?;
            // A single publish with an empty header is one with a bad header, a message of a batch one without.
            let header = Some(header).filter(|header| verb == Verb::PubExt || !header.is_empty());
            Some(NewMessage {
                trace_id: 0,
                header,
                body,
            })
        }
        _ => Some(NewMessage {
            trace_id: 0,
            header: None,
            body: content,
        }),
    }
}

/// PUB, DPUB, PUB_TRACE, PUB_EXT.
pub(super) fn decode<'a>(rules: &Rules, verb: Verb, line: &Line<'a>, input: &'a [u8]) -> Decoded<'a> {
    let target = Target::read(rules, verb, line)?;
    let at = line.len;
    let size = i32_at(input, at).ok_or(Halt::more(verb, Part::Size, at + 4))?;
    let len = single_size(rules, verb, size)?;
    let topic = target.topic(verb)?;
    if len <= smallest_prefix(verb) {
        return Err(no_body(verb, size).into());
    }
    let (start, end) = (at + 4, at + 4 + len);
    let content = input.get(start..end).ok_or(Halt::more(verb, Part::Body, end))?;
    if !has_body(verb, content) {
        return Err(no_body(verb, size).into());
    }
    let messages = Messages {
        verb,
        rest: &input[at..end],
        remaining: 1,
    };
    let Target {
        partition, defer_ms, ..
    } = target;
    Ok((
        Command::Publish(Publish {
            verb,
            topic,
            partition,
            defer_ms,
            messages,
        }),
        end,
    ))
}

/// `PUB <topic>` with nothing else in the line and all of its body there.
pub(crate) fn quick_publish<'a>(rules: &Rules, input: &'a [u8]) -> Option<(Command<'a>, usize)> {
    let topic = TopicRef::leading(&input[QUICK_NAME_AT..])?;
    let at = QUICK_NAME_AT + topic.as_str().len();
    if input.get(at) != Some(&b'\n') {
        return None;
    }
    let at = at + 1;
    let size = u64::try_from(i32_at(input, at)?).ok()?;
    if size == 0 || size > rules.limits.max_msg_size {
        return None;
    }
    let end = at + 4 + size as usize;
    let messages = Messages {
        verb: Verb::Pub,
        rest: input.get(at..end)?,
        remaining: 1,
    };
    Some((
        Command::Publish(Publish {
            verb: Verb::Pub,
            topic,
            partition: None,
            defer_ms: 0,
            messages,
        }),
        end,
    ))
}

/// What the line of a publish says.
pub(super) struct Target<'a> {
    name: &'a [u8],
    /// The checked name, once it is its turn in the order of checks.
    pub(super) topic: Option<TopicRef<'a>>,
    pub(super) partition: Option<i32>,
    defer_ms: u64,
}

impl<'a> Target<'a> {
    pub(super) fn read(rules: &Rules, verb: Verb, line: &Line<'a>) -> Result<Self, WireError> {
        let too_few = || invalid(verb, "", " insufficient number of parameters");
        let name = line.word(1).ok_or_else(too_few)?;
        if verb == Verb::Dpub {
            let word = line.word(2).ok_or_else(too_few)?;
            let topic = Some(topic(verb, name)?);
            return Ok(Self {
                name,
                topic,
                partition: None,
                defer_ms: defer(rules, word)?,
            });
        }
        // Looked at only in a line of exactly three words, as Youzan's server does.
        let word = line.word(2).filter(|_| line.count() == 3);
        let partition = partition(verb, rules.dialect == Dialect::Youzan, word)?;
        let topic = if verb.is_stock() {
            Some(topic(verb, name)?)
        } else {
            None
        };
        Ok(Self {
            name,
            topic,
            partition,
            defer_ms: 0,
        })
    }

    /// Youzan's verbs check the name only behind the size.
    pub(super) fn topic(&self, verb: Verb) -> Result<TopicRef<'a>, WireError> {
        self.topic.map_or_else(|| topic(verb, self.name), Ok)
    }
}

fn topic(verb: Verb, name: &[u8]) -> Result<TopicRef<'_>, WireError> {
    TopicRef::parse(name).map_err(|_| match verb {
        Verb::Mpub => {
            let error = bad_name(ErrorCode::BadTopic, verb, "topic", name);
            // The code really stands there twice (C-45).
            WireError::quoting(ErrorCode::BadTopic, &[b"E_BAD_TOPIC ", error.description()])
        }
        _ if verb.is_stock() => bad_name(ErrorCode::BadTopic, verb, "topic", name),
        // Youzan's server knows no bad names here, only topics that do not exist.
        _ => WireError::topic_not_exist(),
    })
}

fn defer(rules: &Rules, word: &[u8]) -> Result<u64, WireError> {
    let delay =
        decimal(word).ok_or_else(|| invalid_parameter(Verb::Dpub, " could not parse timeout ", word))?;
    let max = rules.limits.max_deferred_ms;
    if delay > max {
        let text = format!("DPUB timeout {delay} out of range 0-{max}");
        return Err(WireError::new(ErrorCode::Invalid, text));
    }
    Ok(delay)
}

fn single_size(rules: &Rules, verb: Verb, size: i32) -> Result<usize, WireError> {
    let name = verb.name();
    if size <= 0 {
        let (code, what) = if verb.is_stock() {
            (ErrorCode::BadMessage, "message body")
        } else {
            (ErrorCode::BadBody, "body")
        };
        return Err(WireError::new(code, format!("{name} invalid {what} size {size}")));
    }
    let max = rules.limits.max_msg_size;
    if i64::from(size) as u64 > max {
        let text = if verb.is_stock() {
            format!("{name} message too big {size} > {max}")
        } else {
            format!("message too big {size} > {max}")
        };
        return Err(WireError::new(ErrorCode::BadMessage, text));
    }
    Ok(size as usize)
}

/// Bytes in front of the smallest body.
pub(super) fn smallest_prefix(verb: Verb) -> usize {
    match verb {
        Verb::PubTrace | Verb::MpubTrace => 8,
        Verb::PubExt | Verb::MpubExt => 2,
        _ => 0,
    }
}

pub(super) fn has_body(verb: Verb, content: &[u8]) -> bool {
    split_content(verb, content).is_some_and(|message| !message.body.is_empty())
}

pub(super) fn no_body(verb: Verb, size: i32) -> WireError {
    WireError::new(
        ErrorCode::BadBody,
        format!("{} invalid body size {size}", verb.name()),
    )
}

/// Behind `PUB` and a space.
const QUICK_NAME_AT: usize = 4;
