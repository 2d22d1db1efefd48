//! Duty: the sentences that tests are made of: commands with the answers they should get.
//!
//! In: a connected client. Out: what it received, or a panic that says what came instead.

use std::time::Duration;

use serde_json::Value;

use super::client::{Client, Event, PATIENCE};
use super::command;
use super::frame::{Frame, Message};

/// Commands that every test needs, with their expected answers.
impl Client {
    /// `IDENTIFY`; the response as JSON, or the string `OK`.
    pub fn identify(&mut self, json: &str) -> Value {
        self.send(&command::identify(json));
        let frame = self.frame();
        assert!(!frame.is_error(), "IDENTIFY: {frame:?}");
        serde_json::from_slice(&frame.data).unwrap_or_else(|_| Value::String(frame.text()))
    }

    /// `SUB`, answered by `OK`.
    pub fn subscribe(&mut self, topic: &str, channel: &str) {
        self.send_line(&format!("SUB {topic} {channel}"));
        self.expect_ok();
    }

    /// `PUB`, answered by `OK`.
    pub fn publish(&mut self, topic: &str, body: impl AsRef<[u8]>) {
        self.send(&command::publish(topic, body.as_ref()));
        self.expect_ok();
    }

    /// `DPUB` with a delay in milliseconds, answered by `OK`.
    pub fn publish_deferred(&mut self, topic: &str, delay: u64, body: impl AsRef<[u8]>) {
        self.send(&command::publish_deferred(topic, delay, body.as_ref()));
        self.expect_ok();
    }

    /// `RDY`.
    pub fn ready(&mut self, count: u32) {
        self.send_line(&format!("RDY {count}"));
    }

    /// `FIN`.
    pub fn finish(&mut self, id: &str) {
        self.send_line(&format!("FIN {id}"));
    }

    /// `REQ` with a delay in milliseconds.
    pub fn requeue(&mut self, id: &str, delay: u64) {
        self.send_line(&format!("REQ {id} {delay}"));
    }

    /// `TOUCH`.
    pub fn touch(&mut self, id: &str) {
        self.send_line(&format!("TOUCH {id}"));
    }
}

/// Expectations.
impl Client {
    /// The next frame.
    pub fn frame(&mut self) -> Frame {
        match self.event(PATIENCE) {
            Event::Frame(frame) => frame,
            other => panic!("expected a frame, got {other:?}"),
        }
    }

    /// The next message.
    pub fn message(&mut self) -> Message {
        self.message_within(PATIENCE)
    }

    /// The next message, waited for until `within` has passed.
    pub fn message_within(&mut self, within: Duration) -> Message {
        match self.event(within) {
            Event::Frame(frame) => frame.message(),
            other => panic!("expected a message within {within:?}, got {other:?}"),
        }
    }

    /// The next `count` messages.
    pub fn messages(&mut self, count: usize) -> Vec<Message> {
        (0..count).map(|_| self.message()).collect()
    }

    /// Expects a response frame with exactly `data`.
    pub fn expect_response(&mut self, data: &str) {
        assert_eq!(self.frame(), Frame::response(data));
    }

    /// Expects `OK`.
    pub fn expect_ok(&mut self) {
        self.expect_response("OK");
    }

    /// Expects an error frame with exactly `text`.
    pub fn expect_error(&mut self, text: &str) {
        assert_eq!(self.frame(), Frame::error(text));
    }

    /// Expects an error frame with exactly `text`, then the end of the connection.
    pub fn expect_fatal(&mut self, text: &str) {
        self.expect_error(text);
        self.expect_closed();
    }

    /// Expects an error frame that begins with `start`, then the end of the connection; gives the whole text.
    pub fn expect_fatal_starting(&mut self, start: &str) -> String {
        let frame = self.frame();
        assert!(
            frame.is_error() && frame.text().starts_with(start),
            "expected {start}, got {frame:?}"
        );
        self.expect_closed();
        frame.text()
    }

    /// Expects the end of the connection with no frame before it.
    pub fn expect_closed(&mut self) {
        assert_eq!(self.event(PATIENCE), Event::Closed);
    }

    /// Expects that nothing happens for `period`.
    pub fn expect_silence(&mut self, period: Duration) {
        assert_eq!(self.event(period), Event::Silence);
    }

    /// Expects that the connection still works: a publish to topic `alive` is answered, with no frame before.
    pub fn expect_alive(&mut self) {
        self.publish("alive", "?");
    }
}
