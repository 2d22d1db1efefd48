//! Duty: tells every nsqlookupd what this node hosts, and asks them what a new topic needs (nsq-tcp 7.5, 7.6).
//! Comes in: an inventory and word that it changed, the list of lookupds. Goes out: registrations, names of
//! channels. Must not know topics' insides.
//!
//! Each lookupd has its own task, so one that is slow or away delays no other. A task compares what it has
//! registered with what should be, and sends the difference: however creations and deletions race, the last
//! state wins.
//!
//! ```text
//! Inventory --changed--> keeper --Desired--> peer task --REGISTER, UNREGISTER, PING--> nsqlookupd
//! ```
//!
//! | file | duty |
//! |---|---|
//! | `desired` | what should be registered, what is, and the commands between the two |
//! | `wire` | the lookup protocol's bytes |
//! | `peer` | task: one lookupd |
//! | `lookup` | asks for the channels of a topic |

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::desired::Hosted;
pub use self::wire::Identity;

use self::desired::Desired;
use self::peer::{Peer, PeerSettings};
use crate::http_client::HttpClient;

mod desired;
mod lookup;
mod peer;
#[cfg(test)]
mod tests;
mod wire;

/// What this node hosts now.
pub trait Inventory: Send + Sync {
    /// All topics and their channels, ephemeral ones too, in any order. Must be quick.
    fn topics(&self) -> Vec<Hosted>;
}

/// How lookupds are talked to.
#[derive(Clone, Copy, Debug)]
pub struct RegistrationSettings {
    /// Longest time to a connection, name resolution included.
    pub connect_timeout: Duration,
    /// Longest time for each write and for each answer.
    pub io_timeout: Duration,
    /// Time between PINGs.
    pub ping_interval: Duration,
    /// Time to the second try to connect; grows from try to try.
    pub backoff_min: Duration,
    /// Longest time between tries.
    pub backoff_max: Duration,
    /// Longest answer of a lookupd in bytes (`--max-body-size`).
    pub max_answer: usize,
}

impl Default for RegistrationSettings {
    /// The timings of stock nsqd, but tries to reconnect start sooner.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(1),
            io_timeout: Duration::from_secs(1),
            ping_interval: Duration::from_secs(15),
            backoff_min: Duration::from_millis(250),
            backoff_max: Duration::from_secs(15),
            max_answer: 5 * 1024 * 1024,
        }
    }
}

/// The lookupds of this node. Dropping it closes their connections, which takes the node off their lists.
pub struct Registration {
    settings: Arc<PeerSettings>,
    client: HttpClient,
    desired: watch::Receiver<Arc<Desired>>,
    peers: Mutex<BTreeMap<String, Peer>>,
    _keeper: TaskGuard,
}

impl Registration {
    /// Starts without any lookupd. `changed` is told, after the fact, of every topic and channel that came or
    /// went; when its sender is gone the last inventory stays. Must be called inside a tokio runtime.
    pub fn start(
        settings: RegistrationSettings,
        identity: Identity,
        inventory: Arc<dyn Inventory>,
        changed: watch::Receiver<()>,
        client: HttpClient,
    ) -> Self {
        let (sender, desired) = watch::channel(Arc::new(Desired::new(inventory.topics())));
        Self {
            settings: Arc::new(PeerSettings {
                timing: settings,
                identity,
            }),
            client,
            desired,
            peers: Mutex::default(),
            _keeper: TaskGuard(tokio::spawn(keep_desired(inventory, changed, sender))),
        }
    }

    /// Makes `addresses` (`host:port`) the lookupds: new ones are connected, missing ones closed, others kept.
    /// Must be called inside a tokio runtime.
    pub fn set_addresses(&self, addresses: &[String]) {
        let mut peers = self.peers.lock();
        peers.retain(|address, _| addresses.contains(address));
        for address in addresses {
            if !peers.contains_key(address) {
                let peer = Peer::start(address.clone(), Arc::clone(&self.settings), self.desired.clone());
                peers.insert(address.clone(), peer);
            }
        }
    }

    /// The channels that the lookupds know for `topic`, without ephemeral ones, sorted: those to create with a
    /// new topic so that they miss none of its messages. Asks every lookupd that has ever answered, all at once;
    /// one that fails is logged and left out. Takes no longer than the slowest of them may. Cancel safe.
    ///
    /// The names come from other nodes and have to be parsed like any.
    pub async fn lookup_channels(&self, topic: &str) -> Vec<String> {
        let endpoints = self
            .peers
            .lock()
            .values()
            .filter_map(Peer::http_address)
            .collect();
        lookup::channels(&self.client, endpoints, topic).await
    }
}

/// Keeps `desired` at what the inventory says. Several changes in a row make one look at the inventory.
async fn keep_desired(
    inventory: Arc<dyn Inventory>,
    mut changed: watch::Receiver<()>,
    desired: watch::Sender<Arc<Desired>>,
) {
    loop {
        // Marked as seen before looking: what changes from here on is told again.
        changed.mark_unchanged();
        let now = Desired::new(inventory.topics());
        desired.send_if_modified(|before| {
            let differs = **before != now;
            if differs {
                *before = Arc::new(now);
            }
            differs
        });
        if changed.changed().await.is_err() {
            // The peers live for as long as `desired` has a sender.
            std::future::pending::<()>().await;
        }
    }
}

/// Ends a task when it goes.
struct TaskGuard(JoinHandle<()>);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}
