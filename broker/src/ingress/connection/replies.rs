//! Duty: the answers of one connection in the order of their commands, although a publish is answered later than what
//! follows it. Comes in: answers and tickets. Goes out: frames, when they may leave. Must not know sockets or topics.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use nsqx_proto::command::Verb;
use nsqx_proto::dialect::Dialect;
use nsqx_proto::frame;
use nsqx_proto::refusal::WireError;

use crate::egress::output::Output;
use crate::log::engine::{LogError, Ticket};

/// Answers that are not in the output yet.
#[derive(Debug, Default)]
pub(super) struct Replies {
    waiting: VecDeque<Reply>,
}

#[derive(Debug)]
enum Reply {
    Response(Vec<u8>),
    Error(WireError),
    Published {
        ticket: Ticket,
        verb: Verb,
        commands: u32,
    },
}

impl Replies {
    /// Answers a command.
    pub(super) fn response(&mut self, data: &[u8], output: &mut Output) {
        if self.waiting.is_empty() {
            frame::put_response(output.reply(), data);
        } else {
            self.waiting.push_back(Reply::Response(data.to_vec()));
        }
    }

    /// Answers a command with an error.
    pub(super) fn error(&mut self, error: WireError, output: &mut Output) {
        if self.waiting.is_empty() {
            frame::put_error(output.reply(), &error);
        } else {
            self.waiting.push_back(Reply::Error(error));
        }
    }

    /// `commands` publishes with `verb` are answered when `ticket` completes.
    pub(super) fn published(&mut self, ticket: Ticket, verb: Verb, commands: u32) {
        self.waiting.push_back(Reply::Published {
            ticket,
            verb,
            commands,
        });
    }

    /// True when every command has its answer in the output.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Number of answers that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Moves what may leave to the output; registers for the rest. Answers true after a fatal error, behind which
    /// nothing follows.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, dialect: Dialect, output: &mut Output) -> bool {
        let fatal = self.poll_until_fatal(cx, dialect, output);
        if fatal {
            self.waiting.clear();
        }
        fatal
    }

    fn poll_until_fatal(&mut self, cx: &mut Context<'_>, dialect: Dialect, output: &mut Output) -> bool {
        while let Some(first) = self.waiting.front_mut() {
            match first {
                Reply::Response(data) => frame::put_response(output.reply(), data),
                Reply::Error(error) => {
                    frame::put_error(output.reply(), error);
                    if error.is_fatal() {
                        return true;
                    }
                }
                Reply::Published {
                    ticket,
                    verb,
                    commands,
                } => match Pin::new(ticket).poll(cx) {
                    Poll::Pending => return false,
                    Poll::Ready(Ok(())) => {
                        let reply = output.reply();
                        for _ in 0..*commands {
                            reply.extend_from_slice(OK_FRAME);
                        }
                    }
                    Poll::Ready(Err(error)) => {
                        let error = publish_failed(*verb, dialect, &error);
                        for _ in 0..if error.is_fatal() { 1 } else { *commands } {
                            frame::put_error(output.reply(), &error);
                        }
                        if error.is_fatal() {
                            return true;
                        }
                    }
                },
            }
            self.waiting.pop_front();
        }
        false
    }
}

/// What a publisher is told when its messages were not stored. The cause is for the log; it may name files.
pub(super) fn publish_failed(verb: Verb, dialect: Dialect, error: &LogError) -> WireError {
    let reason = match error {
        LogError::Closed => "exiting",
        LogError::Unknown(_) => "outcome unknown",
        _ => "the message could not be stored",
    };
    WireError::publish_failed(verb, dialect, reason)
}

const OK_FRAME: &[u8] = &[0, 0, 0, 6, 0, 0, 0, 0, b'O', b'K'];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::engine::Commit;
    use std::sync::Arc;
    use std::task::Waker;

    fn poll(replies: &mut Replies, output: &mut Output) -> bool {
        replies.poll(&mut Context::from_waker(Waker::noop()), Dialect::Stock, output)
    }

    #[test]
    fn c_09_answers_keep_the_order_of_their_commands() {
        let (mut replies, mut output) = (Replies::default(), Output::default());
        let commit = Arc::new(Commit::default());
        replies.published(commit.ticket(), Verb::Pub, 2);
        replies.response(b"CLOSE_WAIT", &mut output);
        assert!(!poll(&mut replies, &mut output));
        assert!(output.is_empty());
        commit.complete(Ok(()));
        assert!(!poll(&mut replies, &mut output));
        let mut expected = [OK_FRAME, OK_FRAME].concat();
        frame::put_response(&mut expected, b"CLOSE_WAIT");
        assert_eq!(output.reply(), &expected);
        assert!(replies.is_empty());
    }

    #[test]
    fn a_failed_publish_is_fatal_and_nothing_follows_it() {
        let (mut replies, mut output) = (Replies::default(), Output::default());
        let commit = Arc::new(Commit::default());
        replies.published(commit.ticket(), Verb::Pub, 3);
        replies.response(b"CLOSE_WAIT", &mut output);
        commit.complete(Err(LogError::Closed));
        assert!(poll(&mut replies, &mut output));
        let mut expected = Vec::new();
        frame::put_error(
            &mut expected,
            &WireError::publish_failed(Verb::Pub, Dialect::Stock, "exiting"),
        );
        assert_eq!(output.reply(), &expected);
    }
}
