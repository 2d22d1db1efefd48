//! Duty: a connection's side of its subscription: takes messages, settles them, leaves. Must not know sockets.

use std::sync::Arc;
use std::time::Duration;

use nsqx_proto::message::codec::{Delivery, Layout, put_message};
use nsqx_proto::message::id::{internal_id, node_and_sequence};
use nsqx_proto::message::{IdForm, MessageId};
use nsqx_proto::session::Features;
use nsqx_proto::{ChannelName, Dialect, TopicName, Verb, WireError};

use super::{Connection, OUTPUT_LIMIT, workspace};
use crate::channel::shared::{Settle, SharedChannel, SubscribeError};
use crate::channel::{ConsumerRules, Deliveries, TakeLimit};
use crate::clock::Moment;
use crate::egress::signal::Signal;
use crate::ids::ConnectionId;
use crate::ingress::doors::Doors;
use crate::log::record::Record;
use crate::log::sequence::Sequence;
use crate::topic::Topic;
use crate::topic::directory::DirectoryError;

/// Who subscribes.
pub(super) struct Consumer {
    pub(super) id: ConnectionId,
    pub(super) features: Features,
    pub(super) signal: Arc<Signal>,
}

/// A consumer's place in a channel, given up when this is dropped.
pub(super) struct Subscription {
    doors: Arc<Doors>,
    topic: Arc<Topic>,
    channel: Arc<SharedChannel>,
    id: ConnectionId,
    /// There may be messages to take.
    news: bool,
    /// The channel keeps messages for this consumer until it takes or declines.
    offered: bool,
    /// The client takes no more messages now.
    full: bool,
    settles: Vec<Settle>,
    commands: Vec<(Verb, MessageId)>,
}

impl Subscription {
    /// Serves a SUB: creates what is missing and adds the consumer. A channel that vanishes meanwhile is made anew once.
    pub(super) async fn open(
        doors: &Arc<Doors>,
        topic: TopicName,
        channel: ChannelName,
        consumer: Consumer,
    ) -> Result<Self, WireError> {
        let rules = ConsumerRules {
            msg_timeout: consumer.features.msg_timeout,
            sample_rate: consumer.features.sample_rate,
            return_on_leave: consumer.features.dialect == Dialect::Youzan,
            seed: consumer.id.0,
        };
        for last in [false, true] {
            let failed = |error: DirectoryError| WireError::subscribe_failed(error.reason());
            let live_topic = doors.directory.create(&topic).await.map_err(failed)?;
            let live = doors.directory.create_channel(&live_topic, &channel).await;
            let subscribed = match live {
                Ok(live) => live
                    .subscribe(consumer.id, rules, Arc::clone(&consumer.signal))
                    .map(|()| live),
                Err(DirectoryError::Exiting) => Err(SubscribeError::Exiting),
                Err(error) => return Err(failed(error)),
            };
            match subscribed {
                Ok(channel) => {
                    return Ok(Self {
                        doors: Arc::clone(doors),
                        topic: live_topic,
                        channel,
                        id: consumer.id,
                        news: false,
                        offered: false,
                        full: true,
                        settles: Vec::new(),
                        commands: Vec::new(),
                    });
                }
                Err(SubscribeError::Full(limit)) => {
                    let (topic, channel) = (topic.borrowed(), channel.borrowed());
                    return Err(WireError::too_many_consumers(topic, channel, limit as u64));
                }
                Err(SubscribeError::Exiting) if last || !doors.directory.is_open() => break,
                Err(SubscribeError::Exiting) => tokio::time::sleep(VANISHED_PAUSE).await,
            }
        }
        let ephemeral = topic.is_ephemeral() || channel.is_ephemeral();
        let reason = if ephemeral {
            "to deleted topic/channel"
        } else {
            "exiting"
        };
        Err(WireError::subscribe_failed(reason))
    }

    /// The channel.
    pub(super) fn channel(&self) -> &Arc<SharedChannel> {
        &self.channel
    }

    /// RDY.
    pub(super) fn set_ready(&mut self, count: u64) {
        self.channel.set_ready(self.id, count);
        self.news = true;
    }

    /// The channel may have messages for this consumer.
    pub(super) fn has_news(&mut self) {
        self.news = true;
        self.offered = true;
    }

    /// Lets other consumers have what was offered while this connection can not take it.
    fn decline(&mut self, now: Moment) {
        if std::mem::take(&mut self.offered) {
            let limit = TakeLimit {
                messages: 0,
                bytes: 0,
            };
            self.channel.take(self.id, now, limit, &mut Deliveries::default());
        }
    }

    /// True when the client takes no more messages now.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }
}

impl Connection {
    /// True when there may be messages to take and there is room for them.
    pub(super) fn may_deliver(&self) -> bool {
        let has_news = self
            .subscription
            .as_ref()
            .is_some_and(|subscription| subscription.news);
        has_news && !self.ending && self.wire.waiting() < OUTPUT_TARGET
    }

    /// Takes messages from the channel and encodes them.
    pub(super) fn deliver(&mut self, now: Moment) {
        if self.ending {
            // What the channel would offer to a connection that goes is for the others.
            self.subscription = None;
        }
        let Some(subscription) = &mut self.subscription else {
            return;
        };
        let layout = Layout {
            dialect: self.features.dialect,
            ..Layout::default()
        };
        let node = self.doors.node_id;
        while subscription.news {
            let Some(room) = OUTPUT_TARGET
                .checked_sub(self.wire.waiting())
                .filter(|room| *room > 0)
            else {
                return subscription.decline(now);
            };
            subscription.offered = false;
            workspace::with(|workspace| {
                let limit = TakeLimit {
                    messages: TAKE_MESSAGES,
                    bytes: room,
                };
                let deliveries = &mut workspace.deliveries;
                deliveries.clear();
                let taken = subscription.channel.take(subscription.id, now, limit, deliveries);
                subscription.news = taken.more;
                subscription.full = taken.full;
                if deliveries.items.is_empty() {
                    return;
                }
                self.wire.output.adopt(|| workspace.spare());
                let out = self.wire.output.message();
                for item in &workspace.deliveries.items {
                    let chunk = &workspace.deliveries.chunks[item.chunk as usize];
                    let Ok((record, _)) = Record::decode(&chunk[item.offset as usize..]) else {
                        continue;
                    };
                    put_message(out, layout, &delivery(&record, node, item.attempts));
                }
            });
        }
    }

    /// Notes a FIN, REQ or TOUCH; a run of them is carried out under one lock.
    pub(super) fn settle_later(&mut self, verb: Verb, id: MessageId, delay_ms: u64, now: Moment) {
        let Some(subscription) = &mut self.subscription else {
            return;
        };
        // An id of its own goes first: an imported message may carry one that this node gave it in an earlier log.
        let by_sequence = || {
            let (node, sequence) = id.internal_id(IdForm::Hex).map(node_and_sequence)?;
            (node == self.doors.node_id).then_some(Sequence::new(sequence))
        };
        let own = subscription.channel.sequence_of(*id.as_bytes());
        let sequence = own.or_else(by_sequence).unwrap_or(Sequence::MAX);
        subscription.settles.push(match verb {
            Verb::Fin => Settle::Finish(sequence),
            Verb::Touch => Settle::Touch(sequence),
            _ => Settle::Requeue(sequence, Duration::from_millis(delay_ms)),
        });
        subscription.commands.push((verb, id));
        if subscription.settles.len() >= SETTLE_RUN {
            self.settle(now);
        }
    }

    /// Carries out what was noted.
    pub(super) fn settle(&mut self, now: Moment) {
        let Some(subscription) = &mut self.subscription else {
            return;
        };
        if subscription.settles.is_empty() {
            return;
        }
        let (replies, output, commands) = (&mut self.replies, &mut self.wire.output, &subscription.commands);
        subscription
            .channel
            .settle(subscription.id, now, &subscription.settles, |index, error| {
                let (verb, id) = commands[index];
                replies.error(
                    WireError::settle_failed(verb, id, IdForm::Hex, &error.to_string()),
                    output,
                );
            });
        subscription.settles.clear();
        subscription.commands.clear();
        subscription.news = true;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.channel.unsubscribe(self.id) == 0 && self.channel.name().is_ephemeral() {
            self.doors.directory.forget_channel(&self.topic, &self.channel);
        }
    }
}

fn delivery<'a>(record: &Record<'a>, node: u16, attempts: u16) -> Delivery<'a> {
    let id = match record.own_id {
        Some(own) => MessageId::from_bytes(own),
        None => MessageId::hex(internal_id(node, record.sequence.get())),
    };
    Delivery {
        timestamp: record.timestamp,
        attempts,
        id,
        header: nsqx_proto::message::header::Header::None,
        detail: nsqx_proto::message::codec::Detail::default(),
        body: record.body,
    }
}

/// Output in bytes up to which messages are taken; less than the limit for answers, so that both fit.
pub(super) const OUTPUT_TARGET: usize = OUTPUT_LIMIT / 4;
/// Messages taken under one lock.
const TAKE_MESSAGES: usize = 2_500;
/// Settling commands carried out under one lock.
const SETTLE_RUN: usize = 4_096;
/// Pause before a channel that vanished during SUB is made anew.
const VANISHED_PAUSE: Duration = Duration::from_millis(100);
