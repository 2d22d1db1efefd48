//! Duty: does what the HTTP door asks for. Must not know HTTP.

use std::sync::Arc;

use nsqx_proto::{ChannelName, Dialect, TopicName};

use super::{Node, peek};
use crate::channel::shared::SharedChannel;
use crate::config::{Change, ChangeError, Shown, render};
use crate::desk::batch::Batch;
use crate::desk::settings::{ChannelPatch, ChannelSettings, TopicPatch, TopicSettings};
use crate::desk::{
    Answer, Desk, DeskError, Info, Limits, Operation, Peek, PeekedMessage, Place, Readiness, SeekTo,
};
use crate::log::engine::{LogError, TopicLog};
use crate::log::record::NewRecord;
use crate::log::sequence::Sequence;
use crate::metrics::snapshot::{Filter, Snapshot};
use crate::store::StoreError;
use crate::topic::Topic;
use crate::topic::directory::DirectoryError;

impl Desk for Node {
    fn limits(&self) -> Limits {
        Limits {
            max_msg_size: self.config.ingress.max_msg_size as usize,
            max_body_size: self.config.ingress.max_body_size as usize,
            max_delay: self.config.topic.max_deferred_time,
        }
    }

    fn info(&self) -> Info {
        Info {
            version: Dialect::Stock.version().to_owned(),
            built_with: format!("rustc{}", env!("CARGO_PKG_RUST_VERSION")),
            broadcast_address: self.config.node.broadcast_address.clone(),
            hostname: self.host.clone(),
            http_port: self.ports.http,
            tcp_port: self.ports.tcp,
            start_time: self.started,
            max_heartbeat_interval: self.config.negotiate.max_heartbeat_interval.into(),
            max_output_buffer_size: self.config.negotiate.max_output_buffer_size,
            max_output_buffer_timeout: self.config.negotiate.max_output_buffer_timeout.into(),
            max_deflate_level: self.config.negotiate.max_deflate_level as u8,
        }
    }

    fn health(&self) -> Result<(), String> {
        self.health.state()
    }

    fn readiness(&self) -> Readiness {
        let fault = self.health.state().err();
        Readiness {
            ready: fault.is_none() && self.directory.is_open(),
            reasons: fault.into_iter().collect(),
        }
    }

    fn publish(&self, topic: TopicName, batch: Batch, delay_ms: u64) -> Answer<'_, Result<(), DeskError>> {
        Box::pin(async move {
            let topic = if self.config.topic.auto_create {
                self.directory.create(&topic).await?
            } else {
                self.live_topic(&topic)?
            };
            let timestamp = self.clock.wall();
            let records: Vec<NewRecord<'_>> = batch
                .messages()
                .map(|body| NewRecord {
                    timestamp,
                    delay_ms,
                    body,
                    ..NewRecord::default()
                })
                .collect();
            if records.is_empty() {
                return Ok(());
            }
            let appended = topic.append(&records);
            drop(records);
            let ticket = appended.map_err(not_published)?;
            topic.flush();
            ticket.await.map_err(not_published)
        })
    }

    fn topic(&self, operation: Operation, name: TopicName) -> Answer<'_, Result<(), DeskError>> {
        Box::pin(async move {
            if operation == Operation::Create {
                self.directory.create(&name).await?;
                return Ok(());
            }
            let topic = self.live_topic(&name)?;
            match operation {
                Operation::Delete => self.directory.delete(name.as_str()).await?,
                Operation::Empty => self.directory.empty_topic(&topic).await?,
                Operation::Pause => self.directory.pause_topic(&topic, true).await?,
                _ => self.directory.pause_topic(&topic, false).await?,
            }
            self.pauses_are_written(operation).await;
            Ok(())
        })
    }

    fn channel(
        &self,
        operation: Operation,
        topic: TopicName,
        name: ChannelName,
    ) -> Answer<'_, Result<(), DeskError>> {
        Box::pin(async move {
            let topic = self.live_topic(&topic)?;
            if operation == Operation::Create {
                self.directory.create_channel(&topic, &name).await?;
                return Ok(());
            }
            let channel = live_channel(&topic, &name)?;
            match operation {
                Operation::Delete => self.directory.delete_channel(&topic, name.as_str()).await?,
                Operation::Empty => {
                    channel.empty();
                    self.store_now(&topic, channel).await?;
                }
                Operation::Pause => self.directory.pause_channel(&topic, &channel, true).await?,
                _ => self.directory.pause_channel(&topic, &channel, false).await?,
            }
            self.pauses_are_written(operation).await;
            Ok(())
        })
    }

    fn seek(
        &self,
        topic: TopicName,
        channel: ChannelName,
        to: SeekTo,
    ) -> Answer<'_, Result<Place, DeskError>> {
        Box::pin(async move {
            let topic = self.live_topic(&topic)?;
            let channel = live_channel(&topic, &channel)?;
            let log = Arc::clone(topic.log());
            let wanted = self.blocking(move || place(&*log, to)).await?;
            let to = wanted.max(topic.log().oldest()).min(topic.handed_over());
            let of = Arc::clone(&topic);
            channel.seek(to, move |record| of.delay_start(record));
            self.store_now(&topic, Arc::clone(&channel)).await?;
            Ok(Place {
                sequence: to.get(),
                depth: channel.counts().depth,
            })
        })
    }

    fn peek(
        &self,
        topic: TopicName,
        channel: ChannelName,
        peek: Peek,
    ) -> Answer<'_, Result<Vec<PeekedMessage>, DeskError>> {
        Box::pin(async move {
            let topic = self.live_topic(&topic)?;
            let channel = live_channel(&topic, &channel)?;
            let (log, node, clock) = (Arc::clone(topic.log()), self.doors.node_id, self.clock);
            self.blocking(move || peek::messages(&channel, &*log, peek, node, clock))
                .await
        })
    }

    fn topic_settings(&self, topic: TopicName) -> Answer<'_, Result<TopicSettings, DeskError>> {
        Box::pin(async move { Ok(self.live_topic(&topic)?.settings()) })
    }

    fn set_topic(&self, topic: TopicName, patch: TopicPatch) -> Answer<'_, Result<TopicSettings, DeskError>> {
        Box::pin(async move {
            let topic = self.live_topic(&topic)?;
            Ok(self.directory.set_topic(&topic, patch).await?)
        })
    }

    fn channel_settings(
        &self,
        topic: TopicName,
        channel: ChannelName,
    ) -> Answer<'_, Result<ChannelSettings, DeskError>> {
        Box::pin(async move {
            let topic = self.live_topic(&topic)?;
            Ok(ChannelSettings {
                paused: live_channel(&topic, &channel)?.is_paused(),
            })
        })
    }

    fn set_channel(
        &self,
        topic: TopicName,
        channel: ChannelName,
        patch: ChannelPatch,
    ) -> Answer<'_, Result<ChannelSettings, DeskError>> {
        Box::pin(async move {
            let topic = self.live_topic(&topic)?;
            let channel = live_channel(&topic, &channel)?;
            if let Some(paused) = patch.paused {
                self.directory.pause_channel(&topic, &channel, paused).await?;
                self.metadata_file.write(&self.directory).await;
            }
            Ok(ChannelSettings {
                paused: channel.is_paused(),
            })
        })
    }

    fn snapshot<'a>(&'a self, filter: &'a Filter) -> Answer<'a, Snapshot> {
        Box::pin(async move { self.take_snapshot(filter) })
    }

    fn option(&self, key: &str) -> Option<Shown> {
        render(&self.config, &self.changeable.lock(), key)
    }

    fn set_option(&self, key: &str, value: &[u8]) -> Result<Shown, ChangeError> {
        let change = Change::parse(key, value)?;
        let (level, addresses) = {
            let mut changeable = self.changeable.lock();
            changeable.apply(change);
            (changeable.log_level, changeable.lookupd_tcp_addresses.clone())
        };
        self.log_control.set_level(level);
        if let Some(registration) = self.directory.founding().registration.get() {
            registration.set_addresses(&addresses);
        }
        self.option(key).ok_or(ChangeError::Option)
    }
}

impl Node {
    fn live_topic(&self, name: &TopicName) -> Result<Arc<Topic>, DeskError> {
        self.directory
            .topic(name.as_str())
            .ok_or(DeskError::TopicNotFound)
    }

    /// A pause is in nsqd.dat before it is answered (C-87).
    async fn pauses_are_written(&self, operation: Operation) {
        if matches!(operation, Operation::Pause | Operation::Unpause) {
            self.metadata_file.write(&self.directory).await;
        }
    }

    async fn store_now(&self, topic: &Topic, channel: Arc<SharedChannel>) -> Result<(), DeskError> {
        self.saver
            .save(&[channel], false)
            .await
            .map_err(DirectoryError::from)?;
        topic.trim();
        Ok(())
    }

    async fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<R, LogError> + Send + 'static,
    ) -> Result<R, DeskError> {
        let done = self.directory.founding().runtime().spawn_blocking(work).await;
        done.unwrap_or(Err(LogError::Closed))
            .map_err(|error| DirectoryError::from(error).into())
    }
}

fn live_channel(topic: &Topic, name: &ChannelName) -> Result<Arc<SharedChannel>, DeskError> {
    topic.channel(name.as_str()).ok_or(DeskError::ChannelNotFound)
}

fn place(log: &dyn TopicLog, to: SeekTo) -> Result<Sequence, LogError> {
    match to {
        SeekTo::Beginning => Ok(log.oldest()),
        SeekTo::End => Ok(log.end()),
        SeekTo::Time(nanos) => log.seek_time(nanos),
        SeekTo::Sequence(sequence) => Ok(Sequence::new(sequence)),
    }
}

/// Stock says the same whatever the cause (nsq-http 1.6); the log has the cause.
fn not_published(error: LogError) -> DeskError {
    if !matches!(error, LogError::Closed) {
        tracing::error!(%error, "can not publish");
    }
    DeskError::Exiting
}

impl From<DirectoryError> for DeskError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::TopicNotFound => Self::TopicNotFound,
            DirectoryError::ChannelNotFound => Self::ChannelNotFound,
            DirectoryError::Exiting
            | DirectoryError::Log(LogError::Closed)
            | DirectoryError::Store(StoreError::Closed) => Self::Exiting,
            // Trying again later may help (architecture 3, metadata store e).
            DirectoryError::Log(error) => {
                tracing::error!(%error, "refused");
                Self::Exiting
            }
            DirectoryError::Store(error) if error.is_of_disk() => {
                tracing::error!(%error, "refused");
                Self::Exiting
            }
            DirectoryError::Store(error) => Self::Failed(error.to_string()),
        }
    }
}
