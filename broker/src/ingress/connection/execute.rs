//! Duty: what each command of a connection does. Comes in: decoded commands. Goes out: calls into topics and the
//! subscription, answers, jobs that have to be waited for. Must not know sockets.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use nsqx_proto::command::identify::IdentifyRequest;
use nsqx_proto::command::{Command, Refusal, Subscribe, auth};
use nsqx_proto::session::{Heartbeat, Protocol, Step, negotiate};
use nsqx_proto::{ChannelRef, ErrorCode, TopicRef, Verb, WireError, frame};

use super::Connection;
use super::publish::Run;
use super::subscription::{self, Subscription};
use super::upgrade::Upgrade;
use crate::admit::AuthRefusal;
use crate::admit::auth_query::{Applicant, Credential, Secret};
use crate::admit::authorise::{Claim, Verdict, authorise};
use crate::admit::grant::Permission;
use crate::clock::Moment;
use crate::topic::Topic;
use crate::topic::directory::DirectoryError;

/// A job that the next command has to wait for.
pub(super) type Waiting = Pin<Box<dyn Future<Output = Done> + Send>>;

/// What a job has brought.
pub(super) enum Done {
    /// The topic of the next command is there now, or can not be.
    Topic {
        verb: Verb,
        topic: Result<Arc<Topic>, DirectoryError>,
    },
    /// What a refused batch creates is there; now it is refused.
    Refused(WireError),
    /// SUB.
    Subscribed(Result<Subscription, WireError>),
    /// AUTH.
    Authenticated(Result<Credential, AuthRefusal>),
    /// The grants were renewed, or not.
    Renewed(Credential, Result<(), AuthRefusal>),
}

/// What to do after a command.
pub(super) enum Next {
    /// Go on behind it.
    Done,
    /// It has to be decoded again when the job that was started is done.
    Again,
}

impl Connection {
    /// Executes the commands in `input`; answers how many bytes are done with.
    pub(super) fn execute(&mut self, input: &[u8], now: Moment) -> usize {
        let mut at = 0;
        if !self.greeted {
            at = self.greet(input);
        }
        let mut run = Run::new(self.doors.clock.wall());
        while self.greeted && self.may_execute() {
            match self.session.next(&input[at..]) {
                Step::NeedMore => break,
                Step::Command { command, consumed } => {
                    self.heartbeat.heard(now.as_nanos());
                    match self.command(command, &mut run, now) {
                        Next::Done => at += consumed,
                        Next::Again => break,
                    }
                }
                Step::Authorise { verb, topic } => {
                    if matches!(
                        self.admit(verb, Permission::Publish, topic, None, now),
                        Next::Again
                    ) {
                        break;
                    }
                }
                Step::Refuse(refusal) => {
                    self.end_run(&mut run);
                    self.refuse(refusal);
                }
                Step::Close => self.ending = true,
            }
        }
        self.end_run(&mut run);
        self.settle(now);
        at
    }

    /// The first four bytes choose the protocol (nsq-tcp 1.1).
    fn greet(&mut self, input: &[u8]) -> usize {
        let Some(magic) = input.first_chunk::<4>() else {
            return 0;
        };
        if Protocol::from_magic(*magic) == Some(Protocol::V2) {
            self.greeted = true;
        } else {
            self.fail(WireError::bad_protocol());
        }
        magic.len()
    }

    fn command<'a>(&mut self, command: Command<'a>, run: &mut Run<'a>, now: Moment) -> Next {
        if let Command::Publish(publish) = command {
            return self.publish(publish, run, now);
        }
        match command {
            Command::Finish { id } => self.settle_later(Verb::Fin, id, 0, now),
            Command::Requeue { id, delay_ms } => self.settle_later(Verb::Req, id, delay_ms, now),
            Command::Touch { id } => self.settle_later(Verb::Touch, id, 0, now),
            Command::Nop => {}
            command => {
                self.end_run(run);
                self.settle(now);
                return self.rare_command(command, now);
            }
        }
        Next::Done
    }

    fn rare_command(&mut self, command: Command<'_>, now: Moment) -> Next {
        match command {
            Command::Ready { count } => {
                if let Some(subscription) = &mut self.subscription {
                    subscription.set_ready(count);
                }
            }
            Command::Identify { body } => self.identify(body, now),
            Command::Auth { secret } => self.authenticate(secret),
            Command::Subscribe(subscribe) => return self.subscribe(&subscribe, now),
            Command::Close => {
                if let Some(subscription) = &mut self.subscription {
                    subscription.set_ready(0);
                }
                self.session.closing();
                self.client.set_state(self.session.state());
                self.respond(frame::CLOSE_WAIT);
            }
            _ => self.unknown(Verb::InternalCreateTopic),
        }
        Next::Done
    }

    fn identify(&mut self, body: &[u8], now: Moment) {
        let settled = IdentifyRequest::decode(body).and_then(|request| {
            Ok((
                negotiate(&request, &self.doors.server_limits, &self.features)?,
                request,
            ))
        });
        match settled {
            Err(error) => self.fail(error),
            Ok(((features, answer), request)) => {
                self.session.identified(&features);
                self.client.identified(&request, &features);
                self.heartbeat = Heartbeat::start(now.as_nanos(), features.heartbeat, features.dialect);
                self.upgrade = Upgrade::after(&features);
                self.features = features;
                self.respond(&answer);
            }
        }
    }

    fn authenticate(&mut self, secret: &[u8]) {
        if self.credential.is_some() {
            return self.fail(WireError::auth_already_set());
        }
        let Some(query) = self.doors.auth.clone() else {
            return self.fail(WireError::auth_disabled());
        };
        let secret = Secret::new(secret);
        let (ip, tls, name) = self.client.applicant();
        self.waiting = Some(Box::pin(async move {
            let applicant = Applicant {
                remote_ip: ip,
                tls,
                common_name: &name,
            };
            Done::Authenticated(query.authenticate(secret, &applicant).await)
        }));
    }

    /// Asks whether the connection may do what a command wants. [`Next::Done`] means yes; else the connection is ending
    /// or has started to renew its grants.
    pub(super) fn admit(
        &mut self,
        verb: Verb,
        permission: Permission,
        topic: TopicRef<'_>,
        channel: Option<ChannelRef<'_>>,
        now: Moment,
    ) -> Next {
        let Some(query) = &self.doors.auth else {
            return Next::Done;
        };
        let claim = Claim {
            command: verb.name(),
            permission,
            topic: topic.as_str(),
            channel: channel.map_or("", ChannelRef::as_str),
        };
        match authorise(self.credential.as_ref().map(Credential::grants), &claim, now) {
            Verdict::Allowed => Next::Done,
            Verdict::Refused(refusal) => {
                self.fail(refusal.into());
                Next::Again
            }
            Verdict::Expired => {
                let query = query.clone();
                let (ip, tls, name) = self.client.applicant();
                if let Some(mut credential) = self.credential.take() {
                    self.waiting = Some(Box::pin(async move {
                        let applicant = Applicant {
                            remote_ip: ip,
                            tls,
                            common_name: &name,
                        };
                        let renewed = query.refresh(&mut credential, &applicant).await;
                        Done::Renewed(credential, renewed)
                    }));
                }
                Next::Again
            }
        }
    }

    fn subscribe(&mut self, subscribe: &Subscribe<'_>, now: Moment) -> Next {
        let verb = subscribe.mode.verb();
        if verb != Verb::Sub {
            self.unknown(verb);
            return Next::Done;
        }
        if !self.doors.auto_create && self.doors.directory.topic(subscribe.topic.as_str()).is_none() {
            self.fail(WireError::topic_not_exist());
            return Next::Done;
        }
        let admitted = self.admit(
            verb,
            Permission::Subscribe,
            subscribe.topic,
            Some(subscribe.channel),
            now,
        );
        if matches!(admitted, Next::Done) {
            let doors = Arc::clone(&self.doors);
            let consumer = subscription::Consumer {
                id: self.client.id(),
                features: self.features.clone(),
                signal: Arc::clone(&self.signal),
            };
            let (topic, channel) = (subscribe.topic.into(), subscribe.channel.into());
            self.waiting = Some(Box::pin(async move {
                Done::Subscribed(Subscription::open(&doors, topic, channel, consumer).await)
            }));
        }
        admitted
    }

    /// Waits for the job that the next command needs.
    pub(super) fn poll_waiting(&mut self, cx: &mut Context<'_>, now: Moment) {
        let Some(waiting) = &mut self.waiting else { return };
        let Poll::Ready(done) = waiting.as_mut().poll(cx) else {
            return;
        };
        self.waiting = None;
        self.input_is_news = true;
        self.heartbeat.heard(now.as_nanos());
        match done {
            Done::Topic { topic: Ok(topic), .. } => self.topic = Some(topic),
            Done::Topic {
                verb,
                topic: Err(error),
            } => {
                self.fail(WireError::publish_failed(
                    verb,
                    self.features.dialect,
                    error.reason(),
                ));
            }
            Done::Refused(error) | Done::Subscribed(Err(error)) => self.fail(error),
            Done::Subscribed(Ok(subscription)) => {
                self.session.subscribed(nsqx_proto::command::SubscribeMode::Plain);
                self.client.set_state(self.session.state());
                self.client.set_channel(subscription.channel());
                self.subscription = Some(subscription);
                self.respond(frame::OK);
            }
            Done::Authenticated(Ok(credential)) => {
                let grants = credential.grants();
                let answer = auth::answer(
                    grants.identity(),
                    grants.identity_url(),
                    grants.permission_count(),
                );
                self.client.set_grants(grants);
                self.credential = Some(credential);
                self.respond(&answer);
            }
            Done::Authenticated(Err(refusal)) => self.fail(refusal.into()),
            Done::Renewed(credential, renewed) => {
                self.credential = Some(credential);
                if let Err(refusal) = renewed {
                    self.fail(refusal.into());
                }
            }
        }
    }

    /// Answers a command that is wrong; the batch's topic comes into being all the same (nsq-tcp 2.4).
    pub(super) fn refuse(&mut self, refusal: Refusal<'_>) {
        let created = refusal.create_topic.filter(|_| self.doors.auto_create);
        let missing = created.filter(|name| self.doors.directory.topic(name.as_str()).is_none());
        let Some(topic) = missing else {
            return self.fail(refusal.error);
        };
        let (directory, topic) = (Arc::clone(&self.doors.directory), topic.into());
        self.waiting = Some(Box::pin(async move {
            if let Err(error) = directory.create(&topic).await {
                tracing::warn!(%topic, %error, "can not create the topic of a refused batch");
            }
            Done::Refused(refusal.error)
        }));
    }

    /// A command that exists but is not served.
    pub(super) fn unknown(&mut self, verb: Verb) {
        let text = format!("invalid command {}", verb.name());
        self.fail(WireError::new(ErrorCode::Invalid, text));
    }

    pub(super) fn respond(&mut self, data: &[u8]) {
        self.replies.response(data, &mut self.wire.output);
    }

    /// Answers with an error, after which nothing more is executed if it is fatal.
    pub(super) fn fail(&mut self, error: WireError) {
        self.ending |= error.is_fatal();
        if error.is_fatal() {
            self.span.in_scope(|| tracing::warn!(%error, "client refused"));
        }
        self.replies.error(error, &mut self.wire.output);
    }
}
