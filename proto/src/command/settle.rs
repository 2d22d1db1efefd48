//! Duty: FIN, REQ and TOUCH (nsq-tcp 2.7 to 2.9), split by line for hex ids and by position for binary ones, which may
//! hold spaces and line ends (youzan-extension 2.1). Must not know messages in flight.

use super::{Command, Decoded, Line, Rules, Verb, invalid, invalid_parameter};
use crate::code::ErrorCode;
use crate::coding::{array_at, decimal};
use crate::message::{IdForm, MessageId};
use crate::refusal::WireError;

/// Reads a settling command from the words of its line.
pub(super) fn decode<'a>(rules: &Rules, verb: Verb, line: &Line<'a>) -> Decoded<'a> {
    let (Some(id), delay) = (line.word(1), line.word(2)) else {
        return Err(too_few(verb).into());
    };
    if verb == Verb::Req && delay.is_none() {
        return Err(too_few(verb).into());
    }
    let id = id.try_into().map_err(|_| invalid_id())?;
    let command = build(rules, verb, MessageId::from_bytes(id), delay)?;
    Ok((command, line.len))
}

/// `FIN <id>` with nothing else in the line.
pub(crate) fn quick_finish<'a>(rules: &Rules, input: &'a [u8]) -> Option<(Command<'a>, usize)> {
    let line: &[u8; FIN_LINE] = input.first_chunk()?;
    let id = array_at(line, FIN_LINE - 1 - ID_LEN).map(MessageId::from_bytes)?;
    let usual = match rules.ids {
        // Blanks and line ends inside an id make another line of it.
        IdForm::Hex => id.as_bytes().iter().all(|byte| *byte > b' '),
        IdForm::Binary => is_given_out(id),
    };
    let plain = usual && line[FIN_LINE - 1] == b'\n' && Verb::Fin.allowed_in(rules.state);
    plain.then_some((Command::Finish { id }, FIN_LINE))
}

/// True when the line that starts `input` has a binary id in it.
pub(crate) fn is_positional(rules: &Rules, input: &[u8]) -> bool {
    rules.ids == IdForm::Binary
        && !rules.must_encrypt
        && positional_verb(input).is_some_and(|verb| verb.allowed_in(rules.state))
}

/// Offset after the binary id of the line that starts `input`: its line end is to be looked for from there.
pub(crate) fn positional_id_end(input: &[u8]) -> usize {
    positional_verb(input).map_or(0, |verb| verb.name().len() + 1 + ID_LEN)
}

/// Reads a settling command with a binary id; the line has `line_len` bytes with its LF.
pub(crate) fn decode_positional<'a>(rules: &Rules, input: &'a [u8], line_len: usize) -> Decoded<'a> {
    let end = positional_id_end(input);
    let verb = positional_verb(input).ok_or_else(invalid_id)?;
    let id = array_at(input, end - ID_LEN)
        .map(MessageId::from_bytes)
        .ok_or_else(invalid_id)?;
    // What follows the id is cut like a line whose verb is whatever stands directly behind the id: it must be nothing.
    let rest = Line::cut(&input[end..line_len], line_len - end);
    if !rest.verb().is_empty() {
        return Err(invalid_id().into());
    }
    let delay = rest.word(1);
    if verb == Verb::Req && delay.is_none() {
        return Err(too_few(verb).into());
    }
    // Y-10; a hex id that nobody gave out is only "not in flight".
    if verb == Verb::Fin && !is_given_out(id) {
        return Err(WireError::new(ErrorCode::Invalid, "Invalid Message ID").into());
    }
    Ok((build(rules, verb, id, delay)?, line_len))
}

fn build<'a>(
    rules: &Rules,
    verb: Verb,
    id: MessageId,
    delay: Option<&[u8]>,
) -> Result<Command<'a>, WireError> {
    match verb {
        Verb::Fin => Ok(Command::Finish { id }),
        Verb::Touch => Ok(Command::Touch { id }),
        _ => {
            let word = delay.unwrap_or_default();
            let delay =
                decimal(word).ok_or_else(|| invalid_parameter(verb, " could not parse timeout ", word))?;
            Ok(Command::Requeue {
                id,
                delay_ms: delay.min(rules.limits.max_req_timeout_ms),
            })
        }
    }
}

/// True when the internal id of a binary id is above 0 as Youzan's server reads it.
fn is_given_out(id: MessageId) -> bool {
    id.internal_id(IdForm::Binary)
        .is_some_and(|number| number as i64 > 0)
}

fn positional_verb(input: &[u8]) -> Option<Verb> {
    [Verb::Fin, Verb::Req, Verb::Touch].into_iter().find(|verb| {
        let rest = input.strip_prefix(verb.name().as_bytes());
        rest.is_some_and(|rest| rest.first() == Some(&b' '))
    })
}

fn too_few(verb: Verb) -> WireError {
    invalid(verb, "", " insufficient number of params")
}

fn invalid_id() -> WireError {
    WireError::new(ErrorCode::Invalid, "invalid message ID")
}

const ID_LEN: usize = 16;
/// `FIN`, a space, the id, LF.
const FIN_LINE: usize = 4 + ID_LEN + 1;
