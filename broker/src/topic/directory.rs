//! Duty: name to topic: finds, creates and deletes topics and their channels, durably. Comes in: names. Goes out: live
//! topics and channels. Must not know sockets, frames or consumers.
//!
//! What a client is told is in the store before it is told (architecture 3). Every change runs as a task of its own, so
//! that a client that leaves in the middle does not leave it half done; changes of one topic run one after the other.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;
use nsqx_proto::name::{ChannelName, TopicName};
use tokio::sync::{OnceCell, watch};

use super::Topic;
use super::founding::Founding;
use crate::channel::shared::SharedChannel;
use crate::desk::settings::{TopicPatch, TopicSettings};
use crate::log::engine::LogError;
use crate::store::StoreError;
use crate::store::catalogue::HandedOver;

/// All topics of the broker.
pub struct Directory {
    topics: DashMap<TopicName, Arc<OnceCell<Arc<Topic>>>>,
    founding: Founding,
    open: AtomicBool,
    changes: watch::Sender<()>,
}

/// Why a topic or channel can not be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DirectoryError {
    /// There is no such topic.
    #[error("no such topic")]
    TopicNotFound,
    /// There is no such channel.
    #[error("no such channel")]
    ChannelNotFound,
    /// The topic is being deleted or the broker stops.
    #[error("exiting")]
    Exiting,
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log refused.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl DirectoryError {
    /// What a client may be told; causes may name files.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TopicNotFound => "topic not found",
            Self::ChannelNotFound => "channel not found",
            // Unknown to the store: somebody else deleted what the change was for.
            Self::Exiting
            | Self::Log(LogError::Closed)
            | Self::Store(StoreError::Closed | StoreError::UnknownTopic(_) | StoreError::UnknownChannel(_)) => {
                "exiting"
            }
            Self::Store(_) | Self::Log(_) => "the change could not be stored",
        }
    }
}

impl Directory {
    /// An empty directory that makes topics by `founding`.
    pub fn new(founding: Founding) -> Arc<Self> {
        Arc::new(Self {
            topics: DashMap::new(),
            founding,
            open: AtomicBool::new(true),
            changes: watch::Sender::new(()),
        })
    }

    /// Adds a topic that was stored before.
    pub fn restore(&self, topic: Arc<Topic>) {
        self.topics
            .insert(topic.name().clone(), Arc::new(OnceCell::new_with(Some(topic))));
    }

    /// Told after each topic or channel that came or went.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// False when the broker stops.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Refuses to create from now on.
    pub fn close(&self) {
        self.open.store(false, Ordering::Release);
    }

    /// How topics and channels are made.
    pub fn founding(&self) -> &Founding {
        &self.founding
    }

    /// A topic that is there and stays.
    pub fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        self.topics
            .get(name)?
            .get()
            .filter(|topic| !topic.is_closed())
            .cloned()
    }

    /// True while there is a topic of this name or one is being made.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.topics.contains_key(name)
    }

    /// All topics, in any order.
    pub fn live_topics(&self) -> Vec<Arc<Topic>> {
        self.topics
            .iter()
            .filter_map(|slot| slot.get().cloned())
            .collect()
    }

    /// The topic, created if it is missing. Cancel safe.
    ///
    /// # Errors
    /// [`DirectoryError::Exiting`] when the broker stops, or what store or log say.
    pub async fn create(self: &Arc<Self>, name: &TopicName) -> Result<Arc<Topic>, DirectoryError> {
        if let Some(topic) = self.topic(name.as_str()) {
            return Ok(topic);
        }
        let (this, name) = (Arc::clone(self), name.clone());
        self.task(async move {
            loop {
                let topic = this.create_now(&name).await?;
                if !topic.is_closed() {
                    return Ok(topic);
                }
                // It is being deleted; whoever does that holds its turn.
                drop(topic.admin.lock().await);
            }
        })
        .await
    }

    /// The channel, created if it is missing. Cancel safe.
    ///
    /// # Errors
    /// [`DirectoryError::Exiting`] when the topic is being deleted, or what the store says.
    pub async fn create_channel(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
        name: &ChannelName,
    ) -> Result<Arc<SharedChannel>, DirectoryError> {
        if let Some(channel) = topic.channel(name.as_str()) {
            return Ok(channel);
        }
        let (this, topic, name) = (Arc::clone(self), Arc::clone(topic), name.clone());
        self.task(async move { this.create_channel_now(&topic, &name).await })
            .await
    }

    /// Deletes a topic with its channels and messages. Cancel safe.
    ///
    /// # Errors
    /// [`DirectoryError::TopicNotFound`], or what the store says; the topic is then as it was.
    pub async fn delete(self: &Arc<Self>, name: &str) -> Result<(), DirectoryError> {
        let topic = self.topic(name).ok_or(DirectoryError::TopicNotFound)?;
        let this = Arc::clone(self);
        self.task(async move { this.delete_topic_now(&topic).await })
            .await
    }

    /// Deletes a channel with its messages, and an ephemeral topic with its last channel. Cancel safe.
    ///
    /// # Errors
    /// [`DirectoryError::ChannelNotFound`], or what the store says; the channel is then as it was.
    pub async fn delete_channel(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
        name: &str,
    ) -> Result<(), DirectoryError> {
        let channel = topic.channel(name).ok_or(DirectoryError::ChannelNotFound)?;
        let (this, topic) = (Arc::clone(self), Arc::clone(topic));
        self.task(async move { this.delete_channel_now(&topic, &channel).await })
            .await
    }

    /// The last consumer of an ephemeral channel has left: deletes it unless another one came meanwhile.
    pub fn forget_channel(self: &Arc<Self>, topic: &Arc<Topic>, channel: &Arc<SharedChannel>) {
        if !self.is_open() {
            return;
        }
        let (this, topic, channel) = (Arc::clone(self), Arc::clone(topic), Arc::clone(channel));
        self.founding.runtime().spawn(async move {
            if channel.close_if_unused()
                && let Err(error) = this.delete_channel_now(&topic, &channel).await
                && !matches!(error, DirectoryError::ChannelNotFound | DirectoryError::TopicNotFound)
            {
                tracing::warn!(topic = %topic.name(), channel = %channel.name(), %error, "can not delete the channel");
            }
        });
    }

    /// Stops or resumes the hand-over of a topic, durably. Cancel safe.
    ///
    /// # Errors
    /// What the store says; the topic is then as it was.
    pub async fn pause_topic(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
        paused: bool,
    ) -> Result<(), DirectoryError> {
        let (this, topic) = (Arc::clone(self), Arc::clone(topic));
        self.task(async move {
            let _turn = topic.admin.lock().await;
            let was = topic.is_paused();
            if paused {
                topic.set_paused(true);
            }
            if let Err(error) = this.founding.store_topic(&topic, paused).await {
                topic.set_paused(was);
                return Err(error);
            }
            topic.set_paused(paused);
            this.changed();
            this.store_holds(&topic).await;
            Ok(())
        })
        .await
    }

    /// Stops or resumes delivery of a channel, durably. Cancel safe.
    ///
    /// # Errors
    /// What the store says; the channel is then as it was.
    pub async fn pause_channel(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
        channel: &Arc<SharedChannel>,
        paused: bool,
    ) -> Result<(), DirectoryError> {
        let (this, topic, channel) = (Arc::clone(self), Arc::clone(topic), Arc::clone(channel));
        self.task(async move {
            let _turn = topic.admin.lock().await;
            this.founding.store_channel(&channel, paused).await?;
            channel.set_paused(paused);
            this.changed();
            Ok(())
        })
        .await
    }

    /// Drops the messages that no channel has been given, durably. Cancel safe.
    ///
    /// # Errors
    /// What log and store say.
    pub async fn empty_topic(self: &Arc<Self>, topic: &Arc<Topic>) -> Result<(), DirectoryError> {
        let (this, topic) = (Arc::clone(self), Arc::clone(topic));
        self.task(async move {
            let _turn = topic.admin.lock().await;
            let range = topic.held_back();
            this.founding.void(&topic, range).await?;
            topic.drop_below(range.end);
            this.founding.store_topic(&topic, topic.is_paused()).await
        })
        .await
    }

    /// Changes settings of a topic, durably; answers the new ones. Cancel safe.
    ///
    /// # Errors
    /// What the store says; the topic is then as it was.
    pub async fn set_topic(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
        patch: TopicPatch,
    ) -> Result<TopicSettings, DirectoryError> {
        let (this, topic) = (Arc::clone(self), Arc::clone(topic));
        self.task(async move {
            let _turn = topic.admin.lock().await;
            let mut settings = topic.settings();
            patch.apply(&mut settings);
            this.founding.store_settings(&topic, settings).await?;
            topic.set(settings);
            Ok(settings)
        })
        .await
    }

    /// Lets the logs go of what is finished and never stored.
    pub fn trim_volatile(&self) {
        for topic in self.live_topics() {
            if topic.is_volatile() {
                topic.trim();
            }
        }
    }

    /// Lets the logs go of what these channels have finished and stored.
    pub fn trim(&self, channels: &[Arc<SharedChannel>]) {
        let logs: HashSet<*const ()> = channels.iter().map(|channel| channel.log_address()).collect();
        for topic in self.live_topics() {
            if logs.contains(&Arc::as_ptr(topic.log()).cast()) {
                topic.trim();
            }
        }
    }

    fn task<R: Send + 'static>(
        &self,
        work: impl Future<Output = Result<R, DirectoryError>> + Send + 'static,
    ) -> Pin<Box<dyn Future<Output = Result<R, DirectoryError>> + Send>> {
        let task = self.founding.runtime().spawn(work);
        Box::pin(async move { task.await.unwrap_or(Err(DirectoryError::Exiting)) })
    }

    async fn create_now(self: &Arc<Self>, name: &TopicName) -> Result<Arc<Topic>, DirectoryError> {
        if !self.is_open() {
            return Err(DirectoryError::Exiting);
        }
        let slot = Arc::clone(&self.topics.entry(name.clone()).or_default());
        let mut founded = false;
        let made = slot.get_or_try_init(|| {
            founded = true;
            self.founding.topic(name)
        });
        match made.await {
            Ok(topic) if founded => {
                self.changed();
                self.introduce(topic).await;
                Ok(Arc::clone(topic))
            }
            Ok(topic) => Ok(Arc::clone(topic)),
            Err(error) => {
                // Two hold an empty slot that nobody waits for: the map and this.
                self.topics.remove_if(name, |_, slot| {
                    slot.get().is_none() && Arc::strong_count(slot) <= 2
                });
                Err(error)
            }
        }
    }

    /// Creates the channels that the rest of the cluster knows, then lets records flow (nsq-tcp 7.6). Meanwhile other
    /// publishers append to the topic, which holds their messages.
    async fn introduce(self: &Arc<Self>, topic: &Arc<Topic>) {
        for name in self.founding.channels_elsewhere(topic.name()).await {
            if let Err(error) = self.create_channel_now(topic, &name).await {
                tracing::error!(topic = %topic.name(), channel = %name, %error, "can not create the channel");
            }
        }
        topic.start();
    }

    async fn create_channel_now(
        &self,
        topic: &Arc<Topic>,
        name: &ChannelName,
    ) -> Result<Arc<SharedChannel>, DirectoryError> {
        let _turn = topic.admin.lock().await;
        if let Some(channel) = topic.channel(name.as_str()) {
            return Ok(channel);
        }
        if topic.is_closed() || !self.is_open() {
            return Err(DirectoryError::Exiting);
        }
        let number = self.founding.channel_number(topic, name).await?;
        let made = topic.add_channel(|at| self.founding.channel(topic, name, number, at));
        self.changed();
        self.store_holds(topic).await;
        made.ok_or(DirectoryError::Exiting)
    }

    /// A hold has ended: remembers when, if it held delayed records, since their delays count from then (C-51). The change
    /// itself is done; what fails here is stored with the next one.
    async fn store_holds(&self, topic: &Topic) {
        if topic.holds_are_new()
            && let Err(error) = self.founding.store_topic(topic, topic.is_paused()).await
        {
            tracing::warn!(topic = %topic.name(), %error, "delays count from the publish until the topic is stored again");
        }
    }

    async fn delete_topic_now(&self, topic: &Arc<Topic>) -> Result<(), DirectoryError> {
        let _turn = topic.admin.lock().await;
        if topic.is_closed() {
            return Err(DirectoryError::TopicNotFound);
        }
        topic.seal();
        if let Err(error) = self.founding.forget_topic(topic).await {
            topic.unseal();
            return Err(error);
        }
        topic.close();
        let is_this =
            |slot: &Arc<OnceCell<Arc<Topic>>>| slot.get().is_some_and(|known| Arc::ptr_eq(known, topic));
        self.topics.remove_if(topic.name(), |_, slot| is_this(slot));
        self.changed();
        if let Err(error) = self.founding.raze(topic).await {
            tracing::error!(topic = %topic.name(), %error, "files of a deleted topic stay until the next start");
        }
        Ok(())
    }

    async fn delete_channel_now(
        &self,
        topic: &Arc<Topic>,
        channel: &Arc<SharedChannel>,
    ) -> Result<(), DirectoryError> {
        {
            let _turn = topic.admin.lock().await;
            if topic.is_closed() {
                return Err(DirectoryError::TopicNotFound);
            }
            let known = topic.channel(channel.name().as_str());
            if !known.is_some_and(|known| Arc::ptr_eq(&known, channel)) {
                return Err(DirectoryError::ChannelNotFound);
            }
            // The topic stands still from now on when it loses its last channel.
            let stands = (topic.channels().len() == 1).then(|| HandedOver::At(topic.remove_channel(channel)));
            if let Err(error) = self.founding.forget_channel(topic, channel, stands).await {
                if channel.number().is_some() {
                    topic.add_channel(|_| Arc::clone(channel));
                    return Err(error);
                }
                tracing::warn!(topic = %topic.name(), %error, "what the topic hands over is stored later");
            }
            channel.close();
            topic.remove_channel(channel);
            topic.trim();
            self.changed();
        }
        if topic.name().is_ephemeral() && topic.channels().is_empty() {
            // Somebody else may have been quicker.
            match self.delete_topic_now(topic).await {
                Err(DirectoryError::TopicNotFound) => {}
                other => return other,
            }
        }
        Ok(())
    }

    fn changed(&self) {
        self.changes.send_replace(());
    }
}
