//! Duty: the HTTP door against a desk that only remembers. Tests carry the numbers of the statements in nsq-http 8.

mod config;
mod own;
mod publish;
mod queues;
mod routing;
mod stats;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use nsqx_proto::name::{ChannelName, TopicName};
use parking_lot::Mutex;
use tower::ServiceExt;

use super::{Door, service};
use crate::clock::Clock;
use crate::config::{ChangeError, Shown};
use crate::desk::batch::Batch;
use crate::desk::settings::{ChannelPatch, ChannelSettings, TopicPatch, TopicSettings};
use crate::desk::{
    Answer, Desk, DeskError, Info, Limits, Operation, Peek, PeekedMessage, Place, Readiness, SeekTo,
};
use crate::metrics::snapshot::{Filter, Snapshot};

/// A desk that keeps what it is told and answers what it was told to.
#[derive(Default)]
struct FakeDesk(Mutex<State>);

#[derive(Default)]
struct State {
    topics: BTreeMap<String, BTreeSet<String>>,
    published: Vec<(String, Vec<u8>, u64)>,
    operations: Vec<String>,
    snapshot: Snapshot,
    settings: TopicSettings,
    paused: bool,
    peeked: Vec<PeekedMessage>,
    last_peek: Option<Peek>,
    sick: Option<String>,
    not_ready: Vec<String>,
    refuse: Option<DeskError>,
}

impl FakeDesk {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn with_channel(topic: &str, channel: &str) -> Arc<Self> {
        let desk = Self::new();
        let channels = BTreeSet::from([channel.to_owned()]);
        desk.0.lock().topics.insert(topic.to_owned(), channels);
        desk
    }

    fn bodies(&self) -> Vec<String> {
        let state = self.0.lock();
        let bodies = state.published.iter();
        bodies
            .map(|(_, body, _)| String::from_utf8_lossy(body).into_owned())
            .collect()
    }

    fn topics(&self) -> Vec<String> {
        self.0.lock().topics.keys().cloned().collect()
    }

    fn existing(&self, topic: &TopicName, channel: &ChannelName) -> Result<(), DeskError> {
        let state = self.0.lock();
        let channels = state.topics.get(topic.as_str()).ok_or(DeskError::TopicNotFound)?;
        let known = channels.contains(channel.as_str());
        known.then_some(()).ok_or(DeskError::ChannelNotFound)
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> Answer<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Desk for FakeDesk {
    fn limits(&self) -> Limits {
        Limits {
            max_msg_size: MAX_MSG,
            max_body_size: MAX_BODY,
            max_delay: Duration::from_hours(1),
        }
    }

    fn info(&self) -> Info {
        Info {
            version: "1.3.0".to_owned(),
            built_with: "test".to_owned(),
            broadcast_address: "127.0.0.1".to_owned(),
            hostname: "vm".to_owned(),
            http_port: -1,
            tcp_port: 4150,
            start_time: 1_796_053_195,
            max_heartbeat_interval: Duration::from_mins(1).into(),
            max_output_buffer_size: 65_536,
            max_output_buffer_timeout: Duration::from_secs(30).into(),
            max_deflate_level: 6,
        }
    }

    fn health(&self) -> Result<(), String> {
        self.0.lock().sick.clone().map_or(Ok(()), Err)
    }

    fn readiness(&self) -> Readiness {
        let reasons = self.0.lock().not_ready.clone();
        Readiness {
            ready: reasons.is_empty(),
            reasons,
        }
    }

    fn publish(&self, topic: TopicName, batch: Batch, delay_ms: u64) -> Answer<'_, Result<(), DeskError>> {
        let mut state = self.0.lock();
        if let Some(error) = &state.refuse {
            return ready(Err(error.clone()));
        }
        assert_ne!(topic.as_str(), "panic", "as asked");
        for message in batch.messages() {
            state
                .published
                .push((topic.to_string(), message.to_vec(), delay_ms));
        }
        ready(Ok(()))
    }

    fn topic(&self, operation: Operation, topic: TopicName) -> Answer<'_, Result<(), DeskError>> {
        let mut state = self.0.lock();
        if operation == Operation::Create {
            state.topics.entry(topic.to_string()).or_default();
            return ready(Ok(()));
        }
        if !state.topics.contains_key(topic.as_str()) {
            return ready(Err(DeskError::TopicNotFound));
        }
        state.operations.push(format!("{operation:?} {topic}"));
        ready(state.refuse.clone().map_or(Ok(()), Err))
    }

    fn channel(
        &self,
        operation: Operation,
        topic: TopicName,
        channel: ChannelName,
    ) -> Answer<'_, Result<(), DeskError>> {
        let mut state = self.0.lock();
        let Some(channels) = state.topics.get_mut(topic.as_str()) else {
            return ready(Err(DeskError::TopicNotFound));
        };
        if operation == Operation::Create {
            channels.insert(channel.to_string());
        }
        if !channels.contains(channel.as_str()) {
            return ready(Err(DeskError::ChannelNotFound));
        }
        state.operations.push(format!("{operation:?} {topic}/{channel}"));
        ready(Ok(()))
    }

    fn seek(
        &self,
        topic: TopicName,
        channel: ChannelName,
        to: SeekTo,
    ) -> Answer<'_, Result<Place, DeskError>> {
        if let Err(error) = self.existing(&topic, &channel) {
            return ready(Err(error));
        }
        self.0.lock().operations.push(format!("{to:?} {topic}/{channel}"));
        ready(Ok(Place {
            sequence: 7,
            depth: 3,
        }))
    }

    fn peek(
        &self,
        topic: TopicName,
        channel: ChannelName,
        peek: Peek,
    ) -> Answer<'_, Result<Vec<PeekedMessage>, DeskError>> {
        if let Err(error) = self.existing(&topic, &channel) {
            return ready(Err(error));
        }
        let mut state = self.0.lock();
        state.last_peek = Some(peek);
        ready(Ok(state.peeked.clone()))
    }

    fn topic_settings(&self, topic: TopicName) -> Answer<'_, Result<TopicSettings, DeskError>> {
        self.set_topic(topic, TopicPatch::default())
    }

    fn set_topic(&self, topic: TopicName, patch: TopicPatch) -> Answer<'_, Result<TopicSettings, DeskError>> {
        let mut state = self.0.lock();
        if !state.topics.contains_key(topic.as_str()) {
            return ready(Err(DeskError::TopicNotFound));
        }
        patch.apply(&mut state.settings);
        ready(Ok(state.settings))
    }

    fn channel_settings(
        &self,
        topic: TopicName,
        channel: ChannelName,
    ) -> Answer<'_, Result<ChannelSettings, DeskError>> {
        self.set_channel(topic, channel, ChannelPatch::default())
    }

    fn set_channel(
        &self,
        topic: TopicName,
        channel: ChannelName,
        patch: ChannelPatch,
    ) -> Answer<'_, Result<ChannelSettings, DeskError>> {
        if let Err(error) = self.existing(&topic, &channel) {
            return ready(Err(error));
        }
        let mut state = self.0.lock();
        let mut settings = ChannelSettings { paused: state.paused };
        patch.apply(&mut settings);
        state.paused = settings.paused;
        ready(Ok(settings))
    }

    fn snapshot<'a>(&'a self, _: &'a Filter) -> Answer<'a, Snapshot> {
        ready(self.0.lock().snapshot.clone())
    }

    fn option(&self, key: &str) -> Option<Shown> {
        match key {
            "data_path" => Some(Shown::Text("/var/lib/nsq".to_owned())),
            "tls_cert" => Some(Shown::Text(String::new())),
            "nsqlookupd_tcp_addresses" => Some(Shown::Json(serde_json::json!([]))),
            "msg_timeout" => Some(Shown::Json(60_000_000_000_u64.into())),
            _ => None,
        }
    }

    fn set_option(&self, key: &str, value: &[u8]) -> Result<Shown, ChangeError> {
        match (key, value) {
            ("log_level", b"DEBUG") => Ok(Shown::Json(1.into())),
            ("log_level", _) => Err(ChangeError::Value),
            _ => Err(ChangeError::Option),
        }
    }
}

/// A response, read to its end.
#[derive(Debug)]
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Sends `line` (method and target) with `body` through `door`.
async fn send_to(desk: &Arc<FakeDesk>, door: Door, line: &str, body: Body) -> Got {
    let (method, target) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(target).body(body).unwrap();
    let routes = service(Arc::clone(desk) as Arc<dyn Desk>, Clock::start(), door);
    let response = routes.oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    Got {
        status: head.status,
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

async fn send(desk: &Arc<FakeDesk>, line: &str, body: impl Into<Body>) -> Got {
    send_to(desk, Door::Plain, line, body.into()).await
}

/// Sends to a fresh desk and answers status and body.
async fn ask(line: &str, body: impl Into<Body>) -> (u16, String) {
    let got = send(&FakeDesk::new(), line, body).await;
    (got.status.as_u16(), got.body)
}

/// The refusal of a stock route.
fn refused(status: u16, code: &str) -> (u16, String) {
    (status, format!(r#"{{"message":"{code}"}}"#))
}

/// A body of unknown length in pieces of up to 10,000 bytes.
fn chunked(bytes: Vec<u8>) -> Body {
    let pieces: Vec<_> = bytes
        .chunks(10_000)
        .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
        .collect();
    Body::from_stream(futures_util::stream::iter(pieces))
}

const MAX_MSG: usize = 1_048_576;
const MAX_BODY: usize = 5_242_880;
const OK: (u16, &str) = (200, "OK");

impl PartialEq<(u16, &str)> for Got {
    fn eq(&self, other: &(u16, &str)) -> bool {
        self.status.as_u16() == other.0 && self.body == other.1
    }
}
