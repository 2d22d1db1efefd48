//! Duty: what the HTTP door asks of the broker: one trait and the plain values that cross it. Requests come in
//! checked (names, sizes, delays); answers go out. Must not know HTTP; whoever implements it knows the rooms.
//!
//! | file | duty |
//! |---|---|
//! | `batch` | the messages of one publish, in the body they came in |
//! | `settings` | what may be set per topic and channel |

pub mod batch;
pub mod settings;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use nsqx_flags::GoDuration;
use nsqx_proto::name::{ChannelName, TopicName};
use serde::Serialize;

use self::batch::Batch;
use self::settings::{ChannelPatch, ChannelSettings, TopicPatch, TopicSettings};
use crate::config::{ChangeError, Shown};
use crate::metrics::snapshot::{Filter, Snapshot};

/// An answer that may have to wait for the disk or for another thread.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Serves what the HTTP door lets through. Every answer is final: what it says is durable where it has to be.
/// Dropping an answer before it is there may or may not undo the request.
pub trait Desk: Send + Sync + 'static {
    /// The bounds of a publish.
    fn limits(&self) -> Limits;

    /// Who this broker is.
    fn info(&self) -> Info;

    /// Why `/ping` is not OK, if so.
    fn health(&self) -> Result<(), String>;

    /// Whether this broker should get traffic.
    fn readiness(&self) -> Readiness;

    /// Appends the messages of `batch` (there may be none) to `topic`, all or nothing, each to be held back for
    /// `delay_ms` milliseconds. [`DeskError::Exiting`] when the topic is going away or the write failed.
    fn publish(&self, topic: TopicName, batch: Batch, delay_ms: u64) -> Answer<'_, Result<(), DeskError>>;

    /// Does `operation` to a topic. Everything but `Create` fails with [`DeskError::TopicNotFound`] when there is
    /// none; `Create` of a topic that is there is cheap.
    fn topic(&self, operation: Operation, topic: TopicName) -> Answer<'_, Result<(), DeskError>>;

    /// Does `operation` to a channel of a topic that must exist. Everything but `Create` fails with
    /// [`DeskError::ChannelNotFound`] when there is no such channel.
    fn channel(
        &self,
        operation: Operation,
        topic: TopicName,
        channel: ChannelName,
    ) -> Answer<'_, Result<(), DeskError>>;

    /// Moves a channel; drops what it has in flight, returned or deferred.
    fn seek(
        &self,
        topic: TopicName,
        channel: ChannelName,
        to: SeekTo,
    ) -> Answer<'_, Result<Place, DeskError>>;

    /// Shows messages of a channel without changing anything.
    fn peek(
        &self,
        topic: TopicName,
        channel: ChannelName,
        peek: Peek,
    ) -> Answer<'_, Result<Vec<PeekedMessage>, DeskError>>;

    /// The settings of a topic.
    fn topic_settings(&self, topic: TopicName) -> Answer<'_, Result<TopicSettings, DeskError>>;

    /// Changes settings of a topic; answers the new ones.
    fn set_topic(&self, topic: TopicName, patch: TopicPatch) -> Answer<'_, Result<TopicSettings, DeskError>>;

    /// The settings of a channel.
    fn channel_settings(
        &self,
        topic: TopicName,
        channel: ChannelName,
    ) -> Answer<'_, Result<ChannelSettings, DeskError>>;

    /// Changes settings of a channel; answers the new ones.
    fn set_channel(
        &self,
        topic: TopicName,
        channel: ChannelName,
        patch: ChannelPatch,
    ) -> Answer<'_, Result<ChannelSettings, DeskError>>;

    /// Topics and producers now. May hold more than `filter` wants; whoever asked leaves the rest out.
    fn snapshot<'a>(&'a self, filter: &'a Filter) -> Answer<'a, Snapshot>;

    /// The value of the option with this config-file key (nsq-http 1.11); `None` when there is none.
    fn option(&self, key: &str) -> Option<Shown>;

    /// Changes an option until the next restart; answers the new value.
    fn set_option(&self, key: &str, value: &[u8]) -> Result<Shown, ChangeError>;
}

/// Why the desk refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeskError {
    /// No such topic.
    #[error("no such topic")]
    TopicNotFound,
    /// No such channel in the topic.
    #[error("no such channel")]
    ChannelNotFound,
    /// The topic or the broker is going away, or cannot write now; trying again later may help.
    #[error("exiting")]
    Exiting,
    /// The operation went wrong. The text is for the log.
    #[error("{0}")]
    Failed(String),
}

/// What can be done to a topic or a channel as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Make it unless it is there.
    Create,
    /// Remove it with its messages; its consumers are disconnected.
    Delete,
    /// Drop its messages.
    Empty,
    /// Stop the flow out of it.
    Pause,
    /// Resume the flow out of it.
    Unpause,
}

/// The bounds of a publish.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one message (`--max-msg-size`).
    pub max_msg_size: usize,
    /// Bytes of the body of `/mpub` (`--max-body-size`).
    pub max_body_size: usize,
    /// Longest delay a publish may ask for (`--max-deferred-time` or `--max-req-timeout`).
    pub max_delay: Duration,
}

/// Who the broker is: the body of `/info` (nsq-http 1.5), in its order.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// The NSQ version, without prefix.
    pub version: String,
    /// The compiler; shown in the text form of `/stats`.
    #[serde(skip)]
    pub built_with: String,
    /// `--broadcast-address`.
    pub broadcast_address: String,
    /// Name of the host.
    pub hostname: String,
    /// The bound port; -1 for a unix socket, 0 when there is none.
    pub http_port: i32,
    /// The bound port; -1 for a unix socket.
    pub tcp_port: i32,
    /// Unix seconds.
    pub start_time: i64,
    /// Written in nanoseconds.
    pub max_heartbeat_interval: GoDuration,
    /// Bytes.
    pub max_output_buffer_size: u64,
    /// Written in nanoseconds.
    pub max_output_buffer_timeout: GoDuration,
    /// 1 to 9.
    pub max_deflate_level: u8,
}

/// Whether the broker should get traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// True when it should.
    pub ready: bool,
    /// Why not; also warnings that do not make it unready.
    pub reasons: Vec<String>,
}

/// Where a channel is moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeekTo {
    /// The oldest record that is still there.
    Beginning,
    /// Behind the newest record.
    End,
    /// The first record at or after this time, in nanoseconds since the Unix epoch.
    Time(i64),
    /// This sequence, or the next one that is there.
    Sequence(u64),
}

/// Where a channel is after a seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Sequence of the next message.
    pub sequence: u64,
    /// Messages from there on.
    pub depth: u64,
}

/// Which messages to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peek {
    /// In which state.
    pub state: PeekState,
    /// At most so many messages.
    pub limit: usize,
    /// Stop before the bodies are longer than this in sum, but show at least one message.
    pub max_bytes: usize,
}

/// The states a message can be shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeekState {
    /// Waits for delivery.
    Ready,
    /// Delivered, not settled.
    InFlight,
    /// Held back until its time.
    Deferred,
}

/// A message as it is shown.
#[derive(Clone, Debug)]
pub struct PeekedMessage {
    /// The id consumers see.
    pub id: [u8; 16],
    /// Its place in the log.
    pub sequence: u64,
    /// Nanoseconds since the Unix epoch.
    pub timestamp: i64,
    /// Deliveries so far.
    pub attempts: u16,
    /// When a deferred message is due or a delivery times out, in nanoseconds since the Unix epoch.
    pub due: Option<i64>,
    /// The body.
    pub body: Bytes,
}
