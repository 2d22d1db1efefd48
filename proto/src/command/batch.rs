//! Duty: MPUB (nsq-tcp 2.4) and its forms with trace ids or headers (youzan-extension 2.3): many messages behind one line,
//! all or none. Line and body come in, a [`Publish`] goes out. Must not know topics or logs.
//!
//! A batch is driven by its count and the sizes in it; the size in front of it is only range-checked, since Java clients
//! declare four bytes too many.

use super::publish::{Messages, Publish, Target, has_body, no_body, smallest_prefix};
use super::{Command, Decoded, Halt, Line, Missing, Part, Refusal, Rules, Verb, Walk};
use crate::code::ErrorCode;
use crate::coding::i32_at;
use crate::name::TopicRef;
use crate::refusal::WireError;

/// MPUB, MPUB_TRACE, MPUB_EXT.
pub(super) fn decode<'a>(
    rules: &Rules,
    walk: &mut Walk,
    verb: Verb,
    line: &Line<'a>,
    input: &'a [u8],
) -> Decoded<'a> {
    let target = Target::read(rules, verb, line)?;
    if let Some(topic) = target.topic {
        permit(rules, walk, verb, topic)?;
    }
    let at = line.len;
    let size = i32_at(input, at).ok_or(Halt::more(verb, Part::Size, at + 4));
    let size = size.map_err(|halt| halt.creating(target.topic))?;
    batch_size(rules, verb, size).map_err(|error| Halt::from(error).creating(target.topic))?;
    let topic = target.topic(verb)?;
    permit(rules, walk, verb, topic)?;
    let messages = walk_batch(rules, walk, verb, input, at + 4).map_err(|halt| halt.creating(Some(topic)))?;
    let publish = Publish {
        verb,
        topic,
        partition: target.partition,
        defer_ms: 0,
        messages,
    };
    Ok((Command::Publish(publish), walk.at))
}

/// Walks on over the messages of a batch whose count is at `count_at`.
fn walk_batch<'a>(
    rules: &Rules,
    walk: &mut Walk,
    verb: Verb,
    input: &'a [u8],
    count_at: usize,
) -> Result<Messages<'a>, Halt<'a>> {
    let first = count_at + 4;
    let count = i32_at(input, count_at).ok_or(Halt::more(verb, Part::Count, first))?;
    let max = rules.limits.max_batch_count();
    let count = match u32::try_from(count) {
        Ok(number) if number > 0 && u64::from(number) <= max => number,
        _ => {
            let text = format!("{} invalid message count {count}", verb.name());
            return Err(WireError::new(ErrorCode::BadBody, text).into());
        }
    };
    walk.at = walk.at.max(first);
    while walk.whole < count {
        let (start, part) = (walk.at + 4, Part::MessageSize(walk.whole));
        let size = i32_at(input, walk.at).ok_or(Halt::more(verb, part, start))?;
        let len = message_size(rules, verb, size, walk.whole)?;
        let Some(content) = input.get(start..start + len) else {
            // The next size is to be judged as soon as it is there.
            let next_size = if walk.whole + 1 < count { 4 } else { 0 };
            return Err(Halt::more(verb, Part::Message, start + len + next_size));
        };
        if !has_body(verb, content) {
            return Err(no_body(verb, size).into());
        }
        walk.whole += 1;
        walk.at = start + len;
    }
    Ok(Messages::checked(verb, &input[first..walk.at], count as usize))
}

/// Stops once for the server's AUTH check, before the body of a batch is read.
fn permit<'a>(rules: &Rules, walk: &mut Walk, verb: Verb, topic: TopicRef<'a>) -> Result<(), Halt<'a>> {
    if rules.limits.auth_required && !walk.permitted {
        walk.permitted = true;
        return Err(Halt::Authorise(verb, topic));
    }
    Ok(())
}

impl<'a> Halt<'a> {
    fn creating(self, topic: Option<TopicRef<'a>>) -> Self {
        match self {
            Self::More(missing) => Self::More(Missing {
                create_topic: topic,
                ..missing
            }),
            Self::Refuse(refusal) => Self::Refuse(Refusal {
                create_topic: topic,
                ..refusal
            }),
            other => other,
        }
    }
}

fn batch_size(rules: &Rules, verb: Verb, size: i32) -> Result<(), WireError> {
    let (name, max) = (verb.name(), rules.limits.max_body_size);
    if size <= 0 {
        return Err(WireError::new(
            ErrorCode::BadBody,
            format!("{name} invalid body size {size}"),
        ));
    }
    if i64::from(size) as u64 > max {
        let text = if verb.is_stock() {
            format!("{name} body too big {size} > {max}")
        } else {
            format!("body too big {size} > {max}")
        };
        return Err(WireError::new(ErrorCode::BadBody, text));
    }
    Ok(())
}

fn message_size(rules: &Rules, verb: Verb, size: i32, at: u32) -> Result<usize, WireError> {
    let (name, max) = (verb.name(), rules.limits.max_msg_size);
    let too_small = size <= 0 || verb == Verb::MpubTrace && size as usize <= smallest_prefix(verb);
    if too_small {
        let text = format!("{name} invalid message({at}) body size {size}");
        return Err(WireError::new(ErrorCode::BadMessage, text));
    }
    if i64::from(size) as u64 > max {
        return Err(WireError::new(
            ErrorCode::BadMessage,
            format!("{name} message too big {size} > {max}"),
        ));
    }
    Ok(size as usize)
}
