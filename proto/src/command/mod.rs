//! Duty: what a client may say, as one value per command whose texts and bodies still lie in the bytes received.
//! The files below read one kind of command each; [`encode`] writes them for clients. Must not know sockets or rooms
//! of a broker.

pub mod auth;
pub mod encode;
pub mod filter;
pub mod identify;
pub mod publish;
pub mod subscribe;
pub mod verb;

mod batch;
mod flow;
mod line;
mod settle;

use crate::code::ErrorCode;
use crate::coding::i32_at;
use crate::dialect::Dialect;
use crate::limits::Limits;
use crate::message::{IdForm, MessageId};
use crate::name::TopicRef;
use crate::quote::quoted;
use crate::refusal::WireError;
use crate::session::State;

pub(crate) use line::Line;
pub(crate) use publish::quick_publish;
pub use publish::{Messages, NewMessage, Publish};
pub(crate) use settle::{decode_positional, is_positional, positional_id_end, quick_finish};
pub use subscribe::{StartOffset, Subscribe, SubscribeMode};
pub use verb::Verb;

/// A decoded command. Everything that can be checked without knowing topics, channels or grants has been checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Command<'a> {
    /// The body goes to [`identify::IdentifyRequest::decode`] and [`crate::session::features::negotiate`].
    Identify {
        /// JSON, not looked at yet.
        body: &'a [u8],
    },
    /// Answered with JSON of [`auth::answer`].
    Auth {
        /// The secret, verbatim; at least one byte.
        secret: &'a [u8],
    },
    /// SUB, SUB_ADVANCED, SUB_ORDERED.
    Subscribe(Subscribe<'a>),
    /// PUB, MPUB, DPUB and the forms with header or trace id.
    Publish(Publish<'a>),
    /// RDY.
    Ready {
        /// Most messages in flight on this connection, within `max_rdy_count`.
        count: u64,
    },
    /// FIN.
    Finish {
        /// In the form of the connection, not looked at.
        id: MessageId,
    },
    /// REQ.
    Requeue {
        /// In the form of the connection, not looked at.
        id: MessageId,
        /// Milliseconds, already cut down to `max_req_timeout_ms`.
        delay_ms: u64,
    },
    /// TOUCH.
    Touch {
        /// In the form of the connection, not looked at.
        id: MessageId,
    },
    /// CLS; the server answers `CLOSE_WAIT` and calls [`crate::session::Session::closing`].
    Close,
    /// NOP, or a command that has no effect in the present state (RDY after CLS).
    Nop,
    /// INTERNAL_CREATE_TOPIC.
    CreateTopic {
        /// The topic.
        topic: TopicRef<'a>,
        /// Not negative.
        partition: i32,
        /// True for a topic with extended headers.
        extended: bool,
    },
}

/// An error found while decoding. All of these end the connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal<'a> {
    /// What the client is told.
    pub error: WireError,
    /// A topic that comes into being although its batch was refused: stock creates it before it reads the body
    /// (nsq-tcp 2.4), after the AUTH check, which the server still has to do.
    pub create_topic: Option<TopicRef<'a>>,
}

/// What the decoders may know of their connection at this moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) limits: Limits,
    pub(crate) state: State,
    pub(crate) dialect: Dialect,
    pub(crate) ids: IdForm,
    pub(crate) heartbeats: bool,
    /// TLS is required and not active: only IDENTIFY is allowed.
    pub(crate) must_encrypt: bool,
}

/// A decoded command and the bytes it took, or why there is none.
pub(crate) type Decoded<'a> = Result<(Command<'a>, usize), Halt<'a>>;

/// Why decoding stopped before the end of a command.
#[derive(Clone, Debug)]
pub(crate) enum Halt<'a> {
    /// Bytes are missing.
    More(Missing<'a>),
    /// The line is too long: the connection ends without a frame.
    Close,
    /// The batch may go on once the server has checked its topic.
    Authorise(Verb, TopicRef<'a>),
    /// The command is wrong.
    Refuse(Refusal<'a>),
}

/// Which bytes are missing: decides when to look again, and what a peer is told that never sends them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missing<'a> {
    /// Bytes from the start of the command that must be there before looking again makes sense.
    pub(crate) need: usize,
    /// Of which command; none while its line is not complete.
    pub(crate) of: Option<(Verb, Part)>,
    /// As in [`Refusal`].
    pub(crate) create_topic: Option<TopicRef<'a>>,
}

/// A part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The size field behind the line.
    Size,
    /// A body without inner structure.
    Body,
    /// The count of a batch.
    Count,
    /// The size field of this message of a batch, counted from 0.
    MessageSize(u32),
    /// A message of a batch.
    Message,
}

impl From<WireError> for Halt<'_> {
    fn from(error: WireError) -> Self {
        Self::Refuse(Refusal {
            error,
            create_topic: None,
        })
    }
}

impl Halt<'_> {
    pub(crate) fn more(verb: Verb, part: Part, need: usize) -> Self {
        Self::More(Missing {
            need,
            of: Some((verb, part)),
            create_topic: None,
        })
    }
}

/// Where the batch that is being read stands, so that a batch which arrives in many pieces is walked once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    /// The server has permitted the batch.
    pub(crate) permitted: bool,
    /// Messages that are all there.
    pub(crate) whole: u32,
    /// Offset of the next message's size field; 0 before the first.
    pub(crate) at: usize,
}

/// Reads the command whose line, `line_len` bytes with its LF, starts `input`.
pub(crate) fn decode<'a>(rules: &Rules, walk: &mut Walk, input: &'a [u8], line_len: usize) -> Decoded<'a> {
    let line = Line::cut(input, line_len);
    let verb = Verb::from_word(line.verb());
    if rules.must_encrypt && verb != Some(Verb::Identify) {
        let parts = [&b"cannot "[..], line.verb(), b" in current state (TLS required)"];
        return Err(WireError::quoting(ErrorCode::Invalid, &parts).into());
    }
    let Some(verb) = verb else {
        return Err(WireError::quoting(ErrorCode::Invalid, &[b"invalid command ", line.verb()]).into());
    };
    if !verb.allowed_in(rules.state) {
        return Err(invalid(verb.plain_form(), "cannot ", " in current state").into());
    }
    match verb {
        Verb::Identify => {
            let (body, end) = sized_body(verb, rules.limits.max_body_size, input, line_len)?;
            Ok((Command::Identify { body }, end))
        }
        Verb::Auth => auth::decode(rules, &line, input),
        Verb::Sub | Verb::SubAdvanced | Verb::SubOrdered => subscribe::decode(rules, verb, &line),
        Verb::Pub | Verb::Dpub | Verb::PubTrace | Verb::PubExt => publish::decode(rules, verb, &line, input),
        Verb::Mpub | Verb::MpubTrace | Verb::MpubExt => batch::decode(rules, walk, verb, &line, input),
        Verb::Rdy => flow::decode_ready(rules, &line),
        Verb::Fin | Verb::Req | Verb::Touch => settle::decode(rules, verb, &line),
        Verb::Cls => Ok((Command::Close, line_len)),
        Verb::Nop => Ok((Command::Nop, line_len)),
        Verb::InternalCreateTopic => flow::decode_create_topic(&line),
    }
}

/// What a peer is told that stopped sending inside a body.
pub(crate) fn interrupted(verb: Verb, part: Part) -> WireError {
    let name = verb.name();
    let (code, text) = match part {
        Part::Size if matches!(verb, Verb::Pub | Verb::Dpub) => (
            ErrorCode::BadMessage,
            format!("{name} failed to read message body size"),
        ),
        Part::Size => (ErrorCode::BadBody, format!("{name} failed to read body size")),
        Part::Body if verb.publishes() => (
            ErrorCode::BadMessage,
            format!("{name} failed to read message body"),
        ),
        Part::Body => (ErrorCode::BadBody, format!("{name} failed to read body")),
        Part::Count => (ErrorCode::BadBody, format!("{name} failed to read message count")),
        Part::MessageSize(at) => (
            ErrorCode::BadMessage,
            format!("{name} failed to read message({at}) body size"),
        ),
        Part::Message => (
            ErrorCode::BadMessage,
            format!("{name} failed to read message body"),
        ),
    };
    WireError::new(code, text)
}

/// The body of IDENTIFY and AUTH: size field, then that many bytes. Answers the body and the end of the command.
fn sized_body(verb: Verb, max: u64, input: &[u8], at: usize) -> Result<(&[u8], usize), Halt<'_>> {
    let size = i32_at(input, at).ok_or(Halt::more(verb, Part::Size, at + 4))?;
    let name = verb.name();
    let Ok(len) = u32::try_from(size).map(u64::from) else {
        return Err(WireError::new(ErrorCode::BadBody, format!("{name} invalid body size {size}")).into());
    };
    if len > max {
        return Err(WireError::new(ErrorCode::BadBody, format!("{name} body too big {size} > {max}")).into());
    }
    if len == 0 {
        return Err(WireError::new(ErrorCode::BadBody, format!("{name} invalid body size {size}")).into());
    }
    let (start, end) = (at + 4, at + 4 + len as usize);
    let body = input.get(start..end).ok_or(Halt::more(verb, Part::Body, end))?;
    Ok((body, end))
}

/// `E_INVALID` with the verb's name between two texts.
fn invalid(verb: Verb, before: &str, after: &str) -> WireError {
    WireError::new(ErrorCode::Invalid, format!("{before}{}{after}", verb.name()))
}

/// `E_INVALID`: the verb's name, a text, the parameter as it came.
fn invalid_parameter(verb: Verb, text: &str, parameter: &[u8]) -> WireError {
    let parts = [verb.name().as_bytes(), text.as_bytes(), parameter];
    WireError::quoting(ErrorCode::Invalid, &parts)
}

fn bad_name(code: ErrorCode, verb: Verb, what: &str, raw: &[u8]) -> WireError {
    WireError::new(
        code,
        format!("{} {what} name {} is not valid", verb.name(), quoted(raw)),
    )
}

/// The partition parameter. Absent, empty and -1 mean the same (architecture 4). A stock connection's surplus words are
/// nothing to complain about; for Youzan's clients a word in this place must be an integer.
fn partition(verb: Verb, strict: bool, word: Option<&[u8]>) -> Result<Option<i32>, WireError> {
    let word = match word {
        None | Some(b"") => return Ok(None),
        Some(word) => word,
    };
    match crate::coding::integer::<i32>(word) {
        Some(-1) => Ok(None),
        Some(number) => Ok(Some(number)),
        None if strict => Err(bad_partition(verb, word)),
        None => Ok(None),
    }
}

fn bad_partition(verb: Verb, word: &[u8]) -> WireError {
    let text = format!("{} topic partition {} is not valid", verb.name(), quoted(word));
    WireError::new(ErrorCode::BadPartition, text)
}
