//! Duty: one function per fuzz target: any bytes must end in a value, "need more" or an error, never in a panic. Built for
//! tests and with the feature `fuzzing` only. Must not know where the bytes come from.

use crate::command::identify::{IdentifyAnswer, IdentifyRequest};
use crate::command::{Command, Subscribe, SubscribeMode};
use crate::dialect::Dialect;
use crate::frame::{Frame, Receipt, split_error};
use crate::limits::{Limits, ServerLimits};
use crate::lookup;
use crate::message::{Delivery, HeaderFacts, Layout, put_message};
use crate::session::{Features, Session, Step, negotiate};

/// Commands: the first byte chooses a connection, the rest is what it receives in one piece.
pub fn command(data: &[u8]) {
    let Some((choice, input)) = data.split_first() else {
        return;
    };
    let mut session = connection(*choice);
    for step in steps(&mut session, input, usize::MAX) {
        if let Step::Command {
            command: Command::Publish(publish),
            ..
        } = step
        {
            let (count, len) = (publish.messages.len(), publish.messages.wire_len());
            assert_eq!(publish.messages.clone().count(), count);
            assert!(
                publish
                    .messages
                    .map(|message| message.body.len() + 5)
                    .sum::<usize>()
                    <= len + count
            );
        }
    }
}

/// Commands again: the second byte chooses the size of the pieces; the steps must be those of one piece.
pub fn session(data: &[u8]) {
    let [choice, size, input @ ..] = data else { return };
    let mut whole = connection(*choice);
    let mut pieces = connection(*choice);
    assert_eq!(
        steps(&mut whole, input, usize::MAX),
        steps(&mut pieces, input, usize::from(*size).max(1))
    );
}

/// Frames, errors, receipts and messages as a client reads them. A message that can be read is written back as it was.
pub fn frame(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some((frame, whole))) = Frame::decode(rest, 1 << 20) {
        match frame {
            Frame::Response(data) => {
                let _ = (Receipt::decode(data), IdentifyAnswer::decode(data));
            }
            Frame::Error(data) => {
                let _ = split_error(data);
            }
            Frame::Message(data) => messages(data),
        }
        rest = &rest[whole..];
    }
}

/// Headers of messages and the bodies of IDENTIFY, negotiated with default limits.
pub fn header(data: &[u8]) {
    let _ = HeaderFacts::read(data);
    if let Ok(request) = IdentifyRequest::decode(data) {
        let limits = ServerLimits::default();
        let negotiated = negotiate(&request, &limits, &Features::initial(&limits));
        if let (Ok((_, answer)), true) = (negotiated, request.feature_negotiation) {
            assert!(IdentifyAnswer::decode(&answer).is_ok());
        }
    }
}

/// The lookup protocol, both sides.
pub fn lookup(data: &[u8]) {
    let mut session = lookup::Session::new(1 << 16);
    let mut rest = data;
    while let lookup::Step::Command { consumed, .. } = session.next(rest) {
        rest = &rest[consumed..];
    }
    let _ = session.interrupted(rest);
    let mut rest = data;
    while let Ok(Some((answer, whole))) = lookup::client::decode_response(rest, 1 << 16) {
        let _ = lookup::PeerInfo::decode_answer(answer);
        rest = &rest[whole..];
    }
}

/// Every step over `input` when it arrives in pieces of `size` bytes and a server agrees to everything.
pub(crate) fn steps<'a>(session: &mut Session, input: &'a [u8], size: usize) -> Vec<Step<'a>> {
    let (mut steps, mut at, mut seen) = (Vec::new(), 0, size.min(input.len()));
    loop {
        let step = session.next(&input[at..seen]);
        match &step {
            Step::NeedMore if seen == input.len() => {
                steps.extend(session.interrupted(&input[at..]).map(Step::Refuse));
                return steps;
            }
            Step::NeedMore => {
                seen = seen.saturating_add(size).min(input.len());
                continue;
            }
            Step::Command { command, consumed } => {
                at += consumed;
                agree(session, command);
            }
            Step::Authorise { .. } => {}
            Step::Refuse(_) | Step::Close => {
                steps.push(step);
                return steps;
            }
        }
        steps.push(step);
    }
}

fn agree(session: &mut Session, command: &Command<'_>) {
    match command {
        Command::Subscribe(Subscribe { mode, .. }) => session.subscribed(*mode),
        Command::Close => session.closing(),
        Command::Identify { body } => {
            let limits = ServerLimits::default();
            let request = IdentifyRequest::decode(body).unwrap_or_default();
            if let Ok((features, _)) = negotiate(&request, &limits, &Features::initial(&limits)) {
                session.identified(&features);
            }
        }
        _ => {}
    }
}

/// A connection with small limits; each bit of `choice` is one of its properties.
fn connection(choice: u8) -> Session {
    let bit = |at: u8| choice & 1 << at != 0;
    let mut session = Session::new(Limits {
        max_msg_size: 100,
        max_body_size: 1_000,
        auth_required: bit(0),
        tls_required: bit(1),
        ..Limits::default()
    });
    session.tls_active(bit(2));
    if bit(3) {
        session.subscribed(if bit(4) {
            SubscribeMode::Advanced
        } else {
            SubscribeMode::Plain
        });
    }
    if bit(5) {
        session.closing();
    }
    session
}

fn messages(data: &[u8]) {
    for choice in 0..4 {
        let (extended, detail) = (choice & 1 != 0, choice & 2 != 0);
        let layout = Layout {
            extended,
            detail,
            dialect: Dialect::Stock,
            ..Layout::default()
        };
        if let Ok(message) = Delivery::decode(data, layout) {
            let mut again = Vec::new();
            put_message(&mut again, layout, &message);
            // Versions that nobody sends are taken for JSON, so only the length is kept for them.
            assert_eq!(again.len(), 8 + data.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn replay(target: &str, run: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fuzz/corpus")
            .join(target);
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            run(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "no corpus for {target}");
    }

    #[test]
    fn the_corpora_pass() {
        replay("command", command);
        replay("session", session);
        replay("frame", frame);
        replay("header", header);
        replay("lookup", lookup);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_in_a_value_or_an_error(data: Vec<u8>) {
            command(&data);
            session(&data);
            frame(&data);
            header(&data);
            lookup(&data);
        }

        /// Bytes made of the words and numbers that the decoders look for reach further than random ones.
        #[test]
        fn words_in_any_order_give_the_same_steps_however_they_are_cut(
            choice: u8, size: u8, words in proptest::collection::vec(proptest::sample::select(WORDS), 0..40),
        ) {
            let input = words.concat();
            let data = [&[choice, size][..], &input].concat();
            session(&data);
            command(&data[1..]);
            lookup(&input);
        }
    }

    const WORDS: &[&[u8]] = &[
        b"FIN ",
        b"REQ ",
        b"TOUCH ",
        b"0123456789abcdef",
        b"\0\0\0\0\0\0\0\n\n\n\n\n    ",
        b" ",
        b"\n",
        b"\r\n",
        b"PUB t",
        b"DPUB t 1",
        b"MPUB t",
        b"MPUB_EXT t",
        b"MPUB_TRACE t",
        b"PUB_EXT t",
        b"PUB_TRACE t",
        b"SUB t c",
        b"SUB_ADVANCED t c 0 special:-1",
        b"RDY 1",
        b"CLS",
        b"NOP",
        b"AUTH",
        b"IDENTIFY",
        b"\0\0\0\0",
        b"\0\0\0\x01",
        b"\0\0\0\x02",
        b"\0\0\0\x09",
        b"\0\0\0\x0b",
        b"\0\0",
        b"\0\x02{}",
        b"{}",
        b"a",
        b"-1",
        b"$",
        b"REGISTER t c",
        b"{\"extend_support\":true}",
        b"\0\0\0\x17",
        b"PING",
        b"\xff\xff\xff\xff",
    ];
}
