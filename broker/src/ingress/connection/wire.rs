//! Duty: one connection's socket with its byte layers and its output: writes what is due, notes when the peer does not
//! read. Must not know commands or frames.

use std::task::{Context, Poll};
use std::time::Duration;

use super::workspace;
use crate::clock::Moment;
use crate::egress::output::{Buffering, Output};
use crate::ingress::layers::Layers;
use crate::ingress::listener::Stream;

/// The outside of a connection.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) stream: Stream,
    pub(super) layers: Layers,
    pub(super) output: Output,
    /// Encoded by the layers and not written yet.
    raw: Vec<u8>,
    raw_sent: usize,
    /// When the peer has to have read something, while something waits.
    deadline: Option<Moment>,
}

impl Wire {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            layers: Layers::default(),
            output: Output::default(),
            raw: Vec::new(),
            raw_sent: 0,
            deadline: None,
        }
    }

    /// Bytes that the socket has not taken.
    pub(super) fn waiting(&self) -> usize {
        self.output.len() + self.raw.len() - self.raw_sent
    }

    /// When the connection is to be given up because the peer does not read.
    pub(super) fn deadline(&self) -> Option<Moment> {
        self.deadline
    }

    /// Where bytes are appended that no layer touches: what a peer can read whose handshake has failed. What TLS itself
    /// still has to say goes first; the layers are gone.
    pub(super) fn behind_layers(&mut self) -> &mut Vec<u8> {
        self.layers.pending_raw(&mut self.raw);
        self.layers = Layers::default();
        &mut self.raw
    }

    /// Writes what may leave. Ready when the socket is broken. Each write has `patience`, if there is any (nsq-tcp 4.9).
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        buffering: Buffering,
        client_is_full: bool,
        now: Moment,
        patience: Option<Duration>,
    ) -> Poll<()> {
        loop {
            let plain = self.layers.is_plain() && self.raw_sent == self.raw.len();
            if !self.layers.is_plain() {
                self.encode(buffering, client_is_full);
            }
            let bytes = if plain {
                self.output.due(buffering, client_is_full)
            } else {
                &self.raw[self.raw_sent..]
            };
            if bytes.is_empty() {
                self.deadline = None;
                return Poll::Pending;
            }
            match self.stream.poll_write(cx, bytes) {
                Poll::Ready(Ok(written)) if written > 0 => {
                    if plain {
                        self.output.advance(written);
                    } else {
                        self.raw_sent += written;
                    }
                    self.deadline = None;
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    if self.deadline.is_none() {
                        self.deadline = patience.map(|patience| now + patience);
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Hands memory that is not needed now to the next connection.
    pub(super) fn release(&mut self) {
        if let Some(buffer) = self.output.release() {
            workspace::with(|workspace| workspace.give_back(buffer));
        }
        if self.raw_sent == self.raw.len() && self.raw.capacity() > 0 {
            self.raw = Vec::new();
            self.raw_sent = 0;
        }
    }

    fn encode(&mut self, buffering: Buffering, client_is_full: bool) {
        if self.raw_sent == self.raw.len() {
            self.raw.clear();
            self.raw_sent = 0;
            let due = self.output.due(buffering, client_is_full);
            let count = due.len();
            if count > 0 {
                self.layers.encode(due, &mut self.raw);
                self.output.advance(count);
            }
        }
        self.layers.pending_raw(&mut self.raw);
    }
}
