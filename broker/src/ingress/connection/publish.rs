//! Duty: publishes of one connection, gathered into runs: consecutive messages to one topic become one append. Must not
//! know sockets.

use std::sync::Arc;

use nsqx_proto::command::Publish;
use nsqx_proto::{Dialect, Verb, WireError};

use super::Connection;
use super::execute::{Done, Next};
use super::replies::publish_failed;
use crate::admit::grant::Permission;
use crate::clock::Moment;
use crate::log::record::NewRecord;
use crate::topic::Topic;

/// Messages that wait for their append; they still lie in the input.
pub(super) struct Run<'a> {
    stamp: i64,
    verb: Verb,
    commands: u32,
    records: Vec<NewRecord<'a>>,
}

impl Run<'_> {
    /// An empty run; its messages are stamped `stamp`, nanoseconds since the Unix epoch.
    pub(super) fn new(stamp: i64) -> Self {
        Self {
            stamp,
            verb: Verb::Pub,
            commands: 0,
            records: Vec::new(),
        }
    }
}

impl Connection {
    /// PUB, MPUB, DPUB.
    pub(super) fn publish<'a>(&mut self, publish: Publish<'a>, run: &mut Run<'a>, now: Moment) -> Next {
        if !publish.verb.is_stock() {
            self.end_run(run);
            self.unknown(publish.verb);
            return Next::Done;
        }
        // A batch was admitted before its body was read.
        if publish.verb != Verb::Mpub
            && matches!(
                self.admit(publish.verb, Permission::Publish, publish.topic, None, now),
                Next::Again
            )
        {
            return Next::Again;
        }
        let is_same = |topic: &Arc<Topic>| publish.topic == *topic.name() && !topic.is_closed();
        if !self.topic.as_ref().is_some_and(is_same) {
            self.end_run(run);
            self.topic = self.doors.directory.topic(publish.topic.as_str());
            if self.topic.is_none() {
                if self.doors.auto_create {
                    self.create_topic(&publish);
                } else {
                    self.fail(WireError::topic_not_exist());
                }
                return Next::Again;
            }
        }
        if run.verb != publish.verb {
            self.end_run(run);
            run.verb = publish.verb;
        }
        run.commands += 1;
        run.records.extend(publish.messages.map(|message| NewRecord {
            timestamp: run.stamp,
            delay_ms: publish.defer_ms,
            body: message.body,
            ..NewRecord::default()
        }));
        Next::Done
    }

    /// Appends the run. Its commands are answered when the append is; the topic is flushed when the turn ends.
    pub(super) fn end_run(&mut self, run: &mut Run<'_>) {
        if run.records.is_empty() {
            return;
        }
        let Some(topic) = &self.topic else { return };
        match topic.append(&run.records) {
            Ok(ticket) => {
                self.client.published(topic.name(), run.records.len() as u64);
                if !self.appended.iter().any(|known| Arc::ptr_eq(known, topic)) {
                    self.appended.push(Arc::clone(topic));
                }
                self.replies.published(ticket, run.verb, run.commands);
            }
            Err(error) => {
                tracing::error!(topic = %topic.name(), %error, "can not append");
                for _ in 0..run.commands {
                    self.fail(publish_failed(run.verb, self.features.dialect, &error));
                    if self.features.dialect == Dialect::Stock {
                        break;
                    }
                }
            }
        }
        run.records.clear();
        run.commands = 0;
    }

    fn create_topic(&mut self, publish: &Publish<'_>) {
        let (directory, verb) = (Arc::clone(&self.doors.directory), publish.verb);
        let name = publish.topic.into();
        self.waiting = Some(Box::pin(async move {
            Done::Topic {
                verb,
                topic: directory.create(&name).await,
            }
        }));
    }
}
