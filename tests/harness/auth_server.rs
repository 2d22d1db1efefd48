//! Duty: a fake of the auth server that nsqd asks (nsq-tcp 5).

use std::net::SocketAddr;

use serde_json::json;

use crate::http_stub::{Answer, HttpStub, Request};

/// A running auth server.
#[derive(Debug)]
pub struct AuthServer {
    stub: HttpStub,
}

impl AuthServer {
    /// Starts one that grants every topic and channel for an hour.
    pub fn start() -> Self {
        Self::granting(3600, ".*", &[".*"], &["publish", "subscribe"])
    }

    /// Starts one whose answer has one authorization.
    pub fn granting(ttl: u32, topic: &str, channels: &[&str], permissions: &[&str]) -> Self {
        Self::answering(200, &grant(ttl, topic, channels, permissions))
    }

    /// Starts one with this status and body.
    pub fn answering(status: u16, body: &str) -> Self {
        Self {
            stub: HttpStub::start(Answer {
                status,
                body: body.to_owned(),
            }),
        }
    }

    /// Where it listens: the value of `--auth-http-address`.
    pub fn address(&self) -> SocketAddr {
        self.stub.address()
    }

    /// From now on answers this.
    pub fn answer(&self, status: u16, body: &str) {
        self.stub.set_answer(Answer {
            status,
            body: body.to_owned(),
        });
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.stub.requests()
    }

    /// Stops listening.
    pub fn stop(&mut self) {
        self.stub.stop();
    }
}

/// The body of an answer with one authorization.
pub fn grant(ttl: u32, topic: &str, channels: &[&str], permissions: &[&str]) -> String {
    json!({
        "ttl": ttl,
        "identity": "alice",
        "identity_url": "http://example.org/alice",
        "authorizations": [{"topic": topic, "channels": channels, "permissions": permissions}],
    })
    .to_string()
}
