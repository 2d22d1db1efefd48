//! Duty: the state of the broker at one moment as plain data, in the field order of `/stats?format=json`
//! (nsq-http 1.10: stock's fields first, ours behind them), and what a question about it leaves out.
//! Must not know rooms, HTTP or how the numbers came about.

use serde::Serialize;

use super::latency::LatencySummary;
use super::memory::Memory;
use crate::desk::settings::{ChannelSettings, TopicSettings};

/// Topics and producers at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// In any order.
    pub topics: Vec<TopicStats>,
    /// Connections that have published, in any order.
    pub producers: Vec<ClientStats>,
}

/// One topic.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TopicStats {
    /// Its name.
    pub topic_name: String,
    /// Its channels, in any order.
    pub channels: Vec<ChannelStats>,
    /// Messages that no channel has got yet.
    pub depth: u64,
    /// The part of `depth` that stock would have on disk.
    pub backend_depth: u64,
    /// Messages published since start.
    pub message_count: u64,
    /// Their body bytes.
    pub message_bytes: u64,
    /// True while nothing flows to the channels.
    pub paused: bool,
    /// Over all channels.
    pub e2e_processing_latency: LatencySummary,
    /// Bytes of its files.
    pub disk_bytes: u64,
    /// Bytes of its records held in memory.
    pub memory_bytes: u64,
    /// Sequence of the oldest record that is still there; equal to `newest_sequence` + 1 without records.
    pub oldest_sequence: u64,
    /// Sequence of the newest record.
    pub newest_sequence: u64,
    /// Shown when the question names a topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<TopicSettings>,
}

/// One channel.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChannelStats {
    /// Its name.
    pub channel_name: String,
    /// Messages that wait for their (next) delivery, without in-flight and deferred ones.
    pub depth: u64,
    /// The part of `depth` that stock would have on disk.
    pub backend_depth: u64,
    /// Delivered, not yet settled.
    pub in_flight_count: u64,
    /// Held back until their time.
    pub deferred_count: u64,
    /// Messages put into the channel since start; a requeue does not count.
    pub message_count: u64,
    /// REQ commands since start.
    pub requeue_count: u64,
    /// Deliveries that timed out since start.
    pub timeout_count: u64,
    /// Consumers, also when `clients` is `None`.
    pub client_count: u64,
    /// The consumers, in any order; `None` when nobody asked.
    pub clients: Option<Vec<ClientStats>>,
    /// True while nothing is delivered.
    pub paused: bool,
    /// Publish to finish.
    pub e2e_processing_latency: LatencySummary,
    /// Deliveries since start.
    pub delivered_count: u64,
    /// FIN commands since start.
    pub finished_count: u64,
    /// Messages an ephemeral channel had no room for.
    pub dropped_count: u64,
    /// False while `depth` is an upper bound.
    pub depth_exact: bool,
    /// Shown when the question names a topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<ChannelSettings>,
}

/// One TCP connection, as consumer or as producer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClientStats {
    /// From IDENTIFY; the remote IP when absent.
    pub client_id: String,
    /// From IDENTIFY; the remote IP when absent.
    pub hostname: String,
    /// Always `V2`.
    pub version: &'static str,
    /// `ip:port`.
    pub remote_address: String,
    /// 0 init, 1 disconnected, 2 connected, 3 subscribed, 4 closing.
    pub state: u8,
    /// The last RDY.
    pub ready_count: u64,
    /// Delivered, not yet settled.
    pub in_flight_count: u64,
    /// Deliveries on this connection.
    pub message_count: u64,
    /// FIN on this connection.
    pub finish_count: u64,
    /// REQ on this connection.
    pub requeue_count: u64,
    /// Unix seconds.
    pub connect_ts: i64,
    /// Percent, 0 = all.
    pub sample_rate: u8,
    /// Negotiated.
    pub deflate: bool,
    /// Negotiated.
    pub snappy: bool,
    /// From IDENTIFY.
    pub user_agent: String,
    /// True after a successful AUTH.
    #[serde(skip_serializing_if = "is_false")]
    pub authed: bool,
    /// From the auth server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub auth_identity: String,
    /// From the auth server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub auth_identity_url: String,
    /// Messages published per topic. Stock shows one topic only (a defect); all are shown here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pub_counts: Vec<PubCount>,
    /// True on TLS.
    pub tls: bool,
    /// Empty without TLS.
    pub tls_cipher_suite: String,
    /// `TLS1.0` to `TLS1.3`, empty without TLS.
    pub tls_version: String,
    /// Empty when none was negotiated.
    pub tls_negotiated_protocol: String,
    /// As Go reports it.
    pub tls_negotiated_protocol_is_mutual: bool,
}

/// How many messages a connection published to a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PubCount {
    /// The topic.
    pub topic: String,
    /// Messages.
    pub count: u64,
}

/// Which part of the broker a question is about. Empty names mean all, as in stock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this topic.
    pub topic: String,
    /// Only channels of this name.
    pub channel: String,
    /// Lists of clients are asked for.
    pub clients: bool,
}

/// A snapshot with everything left out that the question did not ask for. `None` is `null` in JSON.
#[derive(Clone, Debug)]
pub struct View {
    /// Sorted by name, channels too; `None` when the one topic asked for does not exist.
    pub topics: Option<Vec<TopicStats>>,
    /// `None` when there are none.
    pub producers: Option<Vec<ClientStats>>,
}

/// The JSON form of `/stats`.
#[derive(Debug, Serialize)]
pub struct Stats<'a> {
    /// The NSQ version, without prefix.
    pub version: &'a str,
    /// `OK` or `NOK - ` and why.
    pub health: &'a str,
    /// Unix seconds.
    pub start_time: i64,
    /// See [`View::topics`].
    pub topics: &'a Option<Vec<TopicStats>>,
    /// Left out when nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// See [`View::producers`].
    pub producers: &'a Option<Vec<ClientStats>>,
}

impl Filter {
    /// True when the question is about the topic `name`.
    pub fn wants_topic(&self, name: &str) -> bool {
        self.topic.is_empty() || self.topic == name
    }

    /// True when the question is about channels called `name`.
    pub fn wants_channel(&self, name: &str) -> bool {
        self.channel.is_empty() || self.channel == name
    }

    /// Leaves out of `snapshot` what was not asked for (nsq-http 1.10, filter semantics) and sorts the rest.
    pub fn view(&self, snapshot: Snapshot) -> View {
        let Snapshot {
            mut topics,
            producers,
        } = snapshot;
        topics.retain(|topic| self.wants_topic(&topic.topic_name));
        if topics.is_empty() && !self.topic.is_empty() {
            return View {
                topics: None,
                producers: None,
            };
        }
        for topic in &mut topics {
            topic
                .channels
                .retain(|channel| self.wants_channel(&channel.channel_name));
            topic.channels.iter_mut().for_each(|channel| self.trim(channel));
            if self.topic.is_empty() {
                topic.settings = None;
            }
        }
        topics.retain(|topic| self.channel.is_empty() || !topic.channels.is_empty());
        sort(&mut topics);
        let producers = (self.clients && !producers.is_empty()).then(|| self.trim_clients(producers));
        View {
            topics: Some(topics),
            producers,
        }
    }

    fn trim(&self, channel: &mut ChannelStats) {
        let clients = channel.clients.take();
        if self.clients {
            channel.clients = Some(self.trim_clients(clients.unwrap_or_default()));
        }
        if self.topic.is_empty() {
            channel.settings = None;
        }
    }

    fn trim_clients(&self, mut clients: Vec<ClientStats>) -> Vec<ClientStats> {
        for client in &mut clients {
            client.pub_counts.retain(|count| self.wants_topic(&count.topic));
        }
        clients
    }
}

/// Sorts topics by name and the channels in each.
pub(super) fn sort(topics: &mut [TopicStats]) {
    topics.sort_by(|left, right| left.topic_name.cmp(&right.topic_name));
    for topic in topics {
        topic
            .channels
            .sort_by(|left, right| left.channel_name.cmp(&right.channel_name));
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}
