//! Duty: what `/stats` tells about each connection. Comes in: facts as they become known. Goes out: one row a
//! connection. Must not know sockets or commands.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use nsqx_proto::TopicName;
use nsqx_proto::command::identify::IdentifyRequest;
use nsqx_proto::session::{Features, State};
use parking_lot::Mutex;

use super::layers::TlsFacts;
use super::listener::Accepted;
use crate::admit::grant::Grants;
use crate::channel::shared::SharedChannel;
use crate::egress::signal::Signal;
use crate::ids::ConnectionId;
use crate::metrics::snapshot::{ClientStats, PubCount};

/// All connections of the broker.
#[derive(Default)]
pub struct Clients {
    known: DashMap<ConnectionId, Arc<Client>>,
    last: AtomicU64,
}

/// One connection.
pub struct Client {
    id: ConnectionId,
    peer: String,
    ip: Option<IpAddr>,
    signal: Arc<Signal>,
    facts: Mutex<Facts>,
}

struct Facts {
    row: ClientStats,
    common_name: String,
    published: BTreeMap<TopicName, u64>,
    channel: Weak<SharedChannel>,
}

impl Clients {
    /// Adds a connection that was accepted at `wall`, nanoseconds since the Unix epoch.
    pub fn add(&self, accepted: &Accepted, wall: i64) -> Arc<Client> {
        let id = ConnectionId(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let ip = accepted.ip.map(|ip| ip.to_string()).unwrap_or_default();
        let row = ClientStats {
            client_id: ip.clone(),
            hostname: ip,
            version: "V2",
            remote_address: accepted.peer.clone(),
            connect_ts: wall / 1_000_000_000,
            ..ClientStats::default()
        };
        let facts = Facts {
            row,
            common_name: String::new(),
            published: BTreeMap::new(),
            channel: Weak::new(),
        };
        let client = Arc::new(Client {
            id,
            peer: accepted.peer.clone(),
            ip: accepted.ip,
            signal: Arc::default(),
            facts: Mutex::new(facts),
        });
        self.known.insert(id, Arc::clone(&client));
        client
    }

    /// Forgets a connection that has ended.
    pub fn remove(&self, id: ConnectionId) {
        self.known.remove(&id);
    }

    /// Ends all connections without a frame.
    pub fn close_all(&self) {
        for client in &self.known {
            client.signal.close();
        }
    }

    /// One connection.
    pub fn get(&self, id: ConnectionId) -> Option<Arc<Client>> {
        self.known.get(&id).map(|client| Arc::clone(&client))
    }

    /// Rows of the connections that have published.
    pub fn producers(&self) -> Vec<ClientStats> {
        let all: Vec<_> = self.known.iter().map(|client| Arc::clone(&client)).collect();
        all.iter()
            .filter(|client| client.has_published())
            .map(|client| client.row())
            .collect()
    }
}

impl Client {
    /// Which connection it is.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Wakes its connection.
    pub fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    /// `ip:port`; empty for a unix socket.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// IDENTIFY was accepted.
    pub fn identified(&self, request: &IdentifyRequest, features: &Features) {
        let row = &mut self.facts.lock().row;
        row.client_id.clone_from(&request.client_id);
        row.hostname.clone_from(&request.hostname);
        row.user_agent.clone_from(&request.user_agent);
        row.sample_rate = features.sample_rate;
        row.deflate = features.deflate.is_some();
        row.snappy = features.snappy;
    }

    /// AUTH was accepted.
    pub fn set_grants(&self, grants: &Grants) {
        let row = &mut self.facts.lock().row;
        row.authed = true;
        grants.identity().clone_into(&mut row.auth_identity);
        grants.identity_url().clone_into(&mut row.auth_identity_url);
    }

    /// TLS is up.
    pub fn set_tls(&self, tls: TlsFacts) {
        let mut facts = self.facts.lock();
        facts.row.tls = true;
        facts.row.tls_version = tls.version;
        facts.row.tls_cipher_suite = tls.cipher_suite;
        facts.row.tls_negotiated_protocol = tls.protocol;
        facts.row.tls_negotiated_protocol_is_mutual = tls.protocol_is_mutual;
        facts.common_name = tls.common_name;
    }

    /// The connection is in this state now.
    pub fn set_state(&self, state: State) {
        self.facts.lock().row.state = state.number();
    }

    /// The connection consumes from `channel`.
    pub fn set_channel(&self, channel: &Arc<SharedChannel>) {
        self.facts.lock().channel = Arc::downgrade(channel);
    }

    /// `count` messages went to `topic`.
    pub fn published(&self, topic: &TopicName, count: u64) {
        let published = &mut self.facts.lock().published;
        match published.get_mut(topic) {
            Some(total) => *total += count,
            None => {
                published.insert(topic.clone(), count);
            }
        }
    }

    /// Who shows a secret: IP, whether by TLS, common name of the certificate.
    pub fn applicant(&self) -> (Option<IpAddr>, bool, String) {
        let facts = self.facts.lock();
        (self.ip, facts.row.tls, facts.common_name.clone())
    }

    /// What `/stats` shows.
    pub fn row(&self) -> ClientStats {
        let (mut row, channel) = {
            let facts = self.facts.lock();
            let mut row = facts.row.clone();
            row.pub_counts = facts
                .published
                .iter()
                .map(|(topic, count)| PubCount {
                    topic: topic.to_string(),
                    count: *count,
                })
                .collect();
            (row, facts.channel.upgrade())
        };
        if let Some(counts) = channel.and_then(|channel| channel.consumer_counts(self.id)) {
            row.ready_count = counts.ready;
            row.in_flight_count = counts.in_flight;
            row.message_count = counts.message_count;
            row.finish_count = counts.finish_count;
            row.requeue_count = counts.requeue_count;
        }
        row
    }

    fn has_published(&self) -> bool {
        !self.facts.lock().published.is_empty()
    }
}
