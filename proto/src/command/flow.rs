//! Duty: RDY (nsq-tcp 2.6) and INTERNAL_CREATE_TOPIC (youzan-extension 2.6), whose lines say everything. Must not know
//! credit.

use super::{Command, Decoded, Line, Rules, Verb, bad_name, bad_partition, invalid, invalid_parameter};
use crate::code::ErrorCode;
use crate::coding::{decimal, integer};
use crate::name::TopicRef;
use crate::quote::quoted;
use crate::refusal::WireError;
use crate::session::State;

pub(super) fn decode_ready<'a>(rules: &Rules, line: &Line<'a>) -> Decoded<'a> {
    if rules.state == State::Closing {
        return Ok((Command::Nop, line.len));
    }
    let word = line.word(1).unwrap_or(b"1");
    let count = decimal(word).ok_or_else(|| invalid_parameter(Verb::Rdy, " could not parse count ", word))?;
    let max = rules.limits.max_rdy_count;
    if count > max {
        let text = format!("RDY count {count} out of range 0-{max}");
        return Err(WireError::new(ErrorCode::Invalid, text).into());
    }
    Ok((Command::Ready { count }, line.len))
}

pub(super) fn decode_create_topic<'a>(line: &Line<'a>) -> Decoded<'a> {
    let verb = Verb::InternalCreateTopic;
    let (Some(name), Some(word)) = (line.word(1), line.word(2)) else {
        return Err(invalid(verb, "", " insufficient number of parameters").into());
    };
    let topic = TopicRef::parse(name).map_err(|_| bad_name(ErrorCode::BadTopic, verb, "topic", name))?;
    let partition: Option<i32> = integer(word);
    let Some(partition) = partition.filter(|number| *number >= 0) else {
        return Err(bad_partition(verb, word).into());
    };
    let extended = match line.word(3) {
        None => false,
        Some(word) => go_boolean(word).ok_or_else(|| {
            let text = format!("{} ext {} is not valid", verb.name(), quoted(word));
            WireError::new(ErrorCode::BadExt, text)
        })?,
    };
    Ok((
        Command::CreateTopic {
            topic,
            partition,
            extended,
        },
        line.len,
    ))
}

/// A boolean as Go's `ParseBool` reads it.
fn go_boolean(word: &[u8]) -> Option<bool> {
    match word {
        b"1" | b"t" | b"T" | b"TRUE" | b"true" | b"True" => Some(true),
        b"0" | b"f" | b"F" | b"FALSE" | b"false" | b"False" => Some(false),
        _ => None,
    }
}
