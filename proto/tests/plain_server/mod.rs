//! Duty: the plainest server around the decoder: takes every topic, stores nothing, has nothing in flight. Bytes of a
//! client come in, the bytes it would be sent go out.

use nsqx_proto::command::identify::IdentifyRequest;
use nsqx_proto::command::{Command, Publish};
use nsqx_proto::frame::{self, Receipt};
use nsqx_proto::limits::{Limits, ServerLimits};
use nsqx_proto::message::{HeaderFacts, MessageId};
use nsqx_proto::session::{Features, Protocol, Session, Step, negotiate};
use nsqx_proto::{Verb, WireError};

/// One connection.
#[derive(Default)]
pub(crate) struct PlainServer {
    received: Vec<u8>,
    connection: Option<Connection>,
    out: Vec<u8>,
    closed: bool,
}

struct Connection {
    session: Session,
    features: Features,
    limits: ServerLimits,
    /// Messages stored so far, for receipts.
    stored: u64,
}

impl PlainServer {
    /// Bytes of the client.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        if self.connection.is_none() && !self.closed {
            let Some(magic) = self.received.first_chunk().copied() else {
                return;
            };
            self.received.drain(..4);
            if Protocol::from_magic(magic) != Some(Protocol::V2) {
                return self.refuse(&WireError::bad_protocol());
            }
            self.connection = Some(Connection::new());
        }
        let received = std::mem::take(&mut self.received);
        let rest = self.run(&received);
        self.received = rest.to_vec();
    }

    /// The client sends no more.
    pub(crate) fn end(&mut self) {
        let refusal = match &self.connection {
            Some(connection) if !self.closed => connection.session.interrupted(&self.received),
            _ => None,
        };
        if let Some(error) = refusal.map(|refusal| refusal.error) {
            self.refuse(&error);
        }
        self.closed = true;
    }

    /// Everything sent so far.
    pub(crate) fn sent(&self) -> &[u8] {
        &self.out
    }

    /// True when the server has closed the connection.
    pub(crate) fn has_closed(&self) -> bool {
        self.closed
    }

    fn run<'a>(&mut self, mut rest: &'a [u8]) -> &'a [u8] {
        while let (Some(connection), false) = (&mut self.connection, self.closed) {
            let answer = match connection.session.next(rest) {
                Step::NeedMore => return rest,
                Step::Authorise { .. } => continue,
                Step::Command { command, consumed } => {
                    rest = &rest[consumed..];
                    connection.execute(&command, &mut self.out)
                }
                Step::Refuse(refusal) => Err(refusal.error),
                Step::Close => {
                    self.closed = true;
                    Ok(())
                }
            };
            if let Err(error) = answer {
                self.refuse(&error);
            }
        }
        rest
    }

    fn refuse(&mut self, error: &WireError) {
        frame::put_error(&mut self.out, error);
        self.closed |= error.is_fatal();
    }
}

impl Connection {
    fn new() -> Self {
        let limits = ServerLimits::default();
        let features = Features::initial(&limits);
        Self {
            session: Session::new(Limits::default()),
            features,
            limits,
            stored: 0,
        }
    }

    fn execute(&mut self, command: &Command<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        match command {
            Command::Identify { body } => {
                let request = IdentifyRequest::decode(body)?;
                let (features, answer) = negotiate(&request, &self.limits, &self.features)?;
                self.session.identified(&features);
                self.features = features;
                frame::put_response(out, &answer);
            }
            Command::Auth { .. } => return Err(WireError::auth_disabled()),
            Command::Subscribe(subscribe) => {
                self.session.subscribed(subscribe.mode);
                frame::put_response(out, frame::OK);
            }
            Command::Publish(publish) => self.publish(publish, out)?,
            Command::Ready { .. } | Command::Nop => {}
            Command::Finish { id } => return Err(self.not_in_flight(Verb::Fin, *id)),
            Command::Requeue { id, .. } => return Err(self.not_in_flight(Verb::Req, *id)),
            Command::Touch { id } => return Err(self.not_in_flight(Verb::Touch, *id)),
            Command::Close => {
                self.session.closing();
                frame::put_response(out, frame::CLOSE_WAIT);
            }
            Command::CreateTopic { .. } => frame::put_response(out, frame::OK),
        }
        Ok(())
    }

    fn publish(&mut self, publish: &Publish<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut trace_id = None;
        for message in publish.messages.clone() {
            assert!(!message.body.is_empty());
            trace_id = match message.header {
                Some(header) => HeaderFacts::read(header)?.trace_id,
                None => Some(message.trace_id),
            };
        }
        let count = publish.messages.len() as u64;
        let receipt = Receipt {
            internal_id: self.stored + 1,
            trace_id: trace_id.unwrap_or_default(),
            offset: self.stored * RECORD,
            raw_size: (count * RECORD) as u32,
        };
        self.stored += count;
        match (publish.verb, trace_id) {
            (Verb::PubTrace, _) | (Verb::PubExt, Some(_)) => receipt.put(out),
            (Verb::MpubTrace, _) => Receipt {
                trace_id: 0,
                ..receipt
            }
            .put(out),
            _ => frame::put_response(out, frame::OK),
        }
        Ok(())
    }

    fn not_in_flight(&self, verb: Verb, id: MessageId) -> WireError {
        WireError::settle_failed(verb, id, self.session.id_form(), "ID not in flight")
    }
}

/// Every record is said to have this length.
const RECORD: u64 = 0x20;
