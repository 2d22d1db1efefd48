//! Duty: turns the bytes of one connection into commands, one step at a time, without copying or allocating. Must not
//! know sockets, topics or grants: what the server decides is told to it between two steps.

use super::features::Features;
use super::state::State;
use crate::command::{self, Command, Halt, Missing, Refusal, Rules, SubscribeMode, Verb, Walk};
use crate::dialect::Dialect;
use crate::limits::{LINE_MAX, Limits};
use crate::message::IdForm;
use crate::name::TopicRef;

/// The command decoder of one connection.
#[derive(Clone, Debug)]
pub struct Session {
    rules: Rules,
    tls_active: bool,
    progress: Progress,
}

/// What [`Session::next`] found at the start of its input.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<'a> {
    /// Call again with the same bytes and more behind them, at least [`Session::wanted`] in all.
    NeedMore,
    /// Ask whether this connection may publish to the topic; if so call again with the same bytes, if not answer with
    /// the AUTH error and close. Comes only for batches and only with [`Limits::auth_required`]; SUB and single publishes
    /// are checked when their command arrives (nsq-tcp 5.1).
    Authorise {
        /// MPUB or a relative.
        verb: Verb,
        /// The topic it names.
        topic: TopicRef<'a>,
    },
    /// A command; the next one starts after `consumed` bytes.
    Command {
        /// The command.
        command: Command<'a>,
        /// Bytes it took.
        consumed: usize,
    },
    /// Answer with the error, then close.
    Refuse(Refusal<'a>),
    /// Close without a frame: the line is longer than 16384 bytes.
    Close,
}

impl Session {
    /// A connection whose magic was read.
    pub fn new(limits: Limits) -> Self {
        let rules = Rules {
            limits,
            state: State::Init,
            dialect: Dialect::Stock,
            ids: IdForm::Hex,
            heartbeats: true,
            must_encrypt: limits.tls_required,
        };
        Self {
            rules,
            tls_active: false,
            progress: Progress::START,
        }
    }

    /// Looks at `input`, which starts with the first byte that no command has taken yet. Bytes seen before must come
    /// again unchanged; how they were cut into pieces makes no difference. After [`Step::Refuse`] and [`Step::Close`]
    /// there is no next step.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        if input.len() < self.progress.need {
            return Step::NeedMore;
        }
        if let Some((command, consumed)) = self.quick(input) {
            (self.progress.need, self.progress.scanned) = (1, 0);
            return Step::Command { command, consumed };
        }
        match self.decode(input) {
            Ok((command, consumed)) => {
                self.progress = Progress::START;
                Step::Command { command, consumed }
            }
            Err(Halt::More(missing)) => {
                self.progress.need = missing.need;
                Step::NeedMore
            }
            Err(Halt::Authorise(verb, topic)) => Step::Authorise { verb, topic },
            Err(Halt::Refuse(refusal)) => Step::Refuse(refusal),
            Err(Halt::Close) => Step::Close,
        }
    }

    /// Bytes that must be there, counted from the start of the command, before [`Session::next`] can say more.
    /// It is what the peer declared: grow a buffer towards it as bytes arrive, do not allocate it at once.
    pub fn wanted(&self) -> usize {
        self.progress.need
    }

    /// What to answer when the peer ends or its deadline passes after [`Session::next`] wanted more than `input`:
    /// nothing while a line is awaited, "failed to read" inside a body.
    pub fn interrupted<'a>(&self, input: &'a [u8]) -> Option<Refusal<'a>> {
        let mut walk = self.progress.walk;
        if self.progress.line_len == 0 {
            return None;
        }
        match command::decode(&self.rules, &mut walk, input, self.progress.line_len) {
            Err(Halt::More(Missing {
                of: Some((verb, part)),
                create_topic,
                ..
            })) => Some(Refusal {
                error: command::interrupted(verb, part),
                create_topic,
            }),
            _ => None,
        }
    }

    /// The connection's present state.
    pub fn state(&self) -> State {
        self.rules.state
    }

    /// The family of clients this connection belongs to, as far as it has shown.
    pub fn dialect(&self) -> Dialect {
        self.rules.dialect
    }

    /// How ids are written on this connection.
    pub fn id_form(&self) -> IdForm {
        self.rules.ids
    }

    /// IDENTIFY was accepted with these features.
    pub fn identified(&mut self, features: &Features) {
        self.rules.dialect = features.dialect;
        self.rules.heartbeats = features.heartbeat.is_some();
        self.rules.ids = if features.extend_support {
            IdForm::Binary
        } else {
            IdForm::Hex
        };
    }

    /// SUB was accepted. The two forms of Youzan's fork make it a Youzan connection with binary ids (architecture 4.0).
    pub fn subscribed(&mut self, mode: SubscribeMode) {
        self.rules.state = self.rules.state.subscribed();
        if mode.is_extended() {
            self.rules.dialect = Dialect::Youzan;
            self.rules.ids = IdForm::Binary;
        }
    }

    /// CLS was accepted.
    pub fn closing(&mut self) {
        self.rules.state = self.rules.state.closing();
    }

    /// TLS is up on this connection.
    pub fn tls_active(&mut self, active: bool) {
        self.tls_active = active;
        self.rules.must_encrypt = self.rules.limits.tls_required && !active;
    }

    /// Replaces the limits, which may change at run time; takes effect with the next command.
    pub fn set_limits(&mut self, limits: Limits) {
        self.rules.limits = limits;
        self.tls_active(self.tls_active);
    }

    fn decode<'a>(&mut self, input: &'a [u8]) -> command::Decoded<'a> {
        let positional = command::is_positional(&self.rules, input);
        if self.progress.line_len == 0 {
            let skip = if positional {
                command::positional_id_end(input)
            } else {
                0
            };
            self.progress.line_len = self.find_line_end(input, skip)?;
        }
        if positional {
            command::decode_positional(&self.rules, input, self.progress.line_len)
        } else {
            command::decode(
                &self.rules,
                &mut self.progress.walk,
                input,
                self.progress.line_len,
            )
        }
    }

    /// Length of the line with its LF, which is not looked for in the first `skip` bytes.
    fn find_line_end<'a>(&mut self, input: &[u8], skip: usize) -> Result<usize, Halt<'a>> {
        let line = &input[..input.len().min(LINE_MAX)];
        let start = self.progress.scanned.max(skip);
        if let Some(at) = line.get(start..).and_then(|rest| memchr::memchr(b'\n', rest)) {
            return Ok(start + at + 1);
        }
        if line.len() == LINE_MAX {
            return Err(Halt::Close);
        }
        self.progress.scanned = line.len();
        let need = line.len().max(skip) + 1;
        Err(Halt::More(Missing {
            need,
            of: None,
            create_topic: None,
        }))
    }

    /// The two lines that make up nearly all traffic, when there is nothing unusual about them. Whatever this does not
    /// take is looked at again by [`Session::decode`], which alone knows errors.
    fn quick<'a>(&self, input: &'a [u8]) -> Option<(Command<'a>, usize)> {
        if self.progress.line_len != 0 || self.rules.must_encrypt {
            return None;
        }
        match input {
            [b'F', b'I', b'N', b' ', ..] => command::quick_finish(&self.rules, input),
            [b'P', b'U', b'B', b' ', ..] => command::quick_publish(&self.rules, input),
            _ => None,
        }
    }
}

/// How far the command at the start of the input was read.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Bytes below which looking again is useless.
    need: usize,
    /// Bytes known to hold no line end.
    scanned: usize,
    /// Length of the line with its LF; 0 while it is not complete.
    line_len: usize,
    /// Inside a batch.
    walk: Walk,
}

impl Progress {
    const START: Self = Self {
        need: 1,
        scanned: 0,
        line_len: 0,
        walk: Walk {
            permitted: false,
            whole: 0,
            at: 0,
        },
    };
}
