//! Duty: what topics and channels are made of: numbers from the store, logs from the engines, machines with the node's
//! rules, and how all of it is undone. Must not know which topics exist.

use std::sync::Arc;

use nsqx_proto::name::{ChannelName, TopicName};
use tokio::runtime::Handle;

use super::directory::DirectoryError;
use super::{Parts, Topic};
use crate::channel::shared::{self, Rooms, SharedChannel};
use crate::channel::{Channel, ChannelRules};
use crate::log::engine::{LogError, TopicLog};
use crate::log::engines::Engines;
use crate::log::sequence::{Sequence, SequenceRange};
use crate::registration::Registration;
use crate::store::catalogue::{ChannelState, HandedOver, TopicState};
use crate::store::cursor::{ChannelNumber, TopicNumber};
use crate::store::handle::StoreHandle;

/// Makes and unmakes topics and channels.
pub struct Founding {
    /// The metadata store.
    pub store: StoreHandle,
    /// Where logs come from.
    pub engines: Arc<Engines>,
    /// The side rooms of every channel.
    pub rooms: Rooms,
    /// Rules of every channel that is not ephemeral.
    pub rules: ChannelRules,
    /// `--max-channel-consumers`; 0 = no limit.
    pub max_consumers: usize,
    /// `--default-extend`: new topics may carry extended headers.
    pub default_extend: bool,
    /// The rest of the cluster.
    pub registration: Arc<Registration>,
}

impl Founding {
    /// Where changes run.
    pub fn runtime(&self) -> &Handle {
        &self.rooms.blocking
    }

    /// A new topic; it hands nothing over before [`Topic::start`].
    ///
    /// # Errors
    /// What store and log say.
    pub async fn topic(&self, name: &TopicName) -> Result<Arc<Topic>, DirectoryError> {
        let fresh = first_sequence(self.rooms.clock.wall());
        if name.is_ephemeral() {
            let name = name.clone();
            return Ok(self.assemble(None, |watch| Ok(self.engines.volatile(fresh, watch)), |log| Parts {
                name,
                number: None,
                handed_over: log.end(),
                log,
                paused: false,
                held: Vec::new(),
            })?);
        }
        let (text, extend) = (name.to_string(), self.default_extend);
        let (number, start) = self
            .store
            .transact(move |transaction| {
                let start = fresh.max(transaction.catalogue().fresh_from());
                let state = TopicState { extend, handed_over: HandedOver::At(start), ..TopicState::default() };
                Ok((transaction.create_topic(&text, state)?, start))
            })
            .await?;
        let engines = Arc::clone(&self.engines);
        let (relay, log) = self
            .runtime()
            .spawn_blocking(move || {
                let relay = Arc::new(super::relay::Relay::default());
                engines.open(number, start, start, Arc::clone(&relay) as _).map(|log| (relay, log))
            })
            .await
            .unwrap_or(Err(LogError::Closed))?;
        let topic = Arc::new(Topic::new(
            Parts {
                name: name.clone(),
                number: Some(number),
                handed_over: log.end(),
                log,
                paused: false,
                held: Vec::new(),
            },
            self.rooms.clock,
        ));
        relay.connect(&topic);
        Ok(topic)
    }
}
