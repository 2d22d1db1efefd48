//! Duty: the life of one client connection as a single task: reads, executes, answers, delivers, beats and ends. Comes
//! in: an accepted socket. Goes out: calls into topics and channels, bytes. Must not know how topics store or channels
//! choose; what each command means is in `execute` and its neighbours.
//!
//! One poll is one *turn*: everything the socket has is read and executed, everything answered so far is written.
//! A turn that published ends by yielding once, so that other connections that are ready append to the same
//! batch; the next turn writes what all of them appended (decision 0003).

mod execute;
mod publish;
mod replies;
mod subscription;
mod upgrade;
mod wire;
mod workspace;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use nsqx_proto::frame;
use nsqx_proto::session::{Due, Features, Heartbeat, Session};
use tokio::io::ReadBuf;
use tokio::time::Sleep;
use tracing::Span;

use self::execute::Waiting;
use self::replies::Replies;
use self::subscription::Subscription;
use self::upgrade::Upgrade;
use self::wire::Wire;
use super::client::Client;
use super::doors::Doors;
use super::listener::Accepted;
use crate::admit::auth_query::Credential;
use crate::clock::Moment;
use crate::egress::output::Buffering;
use crate::egress::signal::Signal;
use crate::topic::Topic;

/// One client connection; a future that ends with it.
pub struct Connection {
    doors: Arc<Doors>,
    /// Entered where something is logged, not on each turn.
    span: Span,
    client: Arc<Client>,
    signal: Arc<Signal>,
    wire: Wire,
    session: Session,
    features: Features,
    greeted: bool,
    /// Received and not executed yet.
    input: Vec<u8>,
    /// `input` may hold a whole command although nothing was read since.
    input_is_news: bool,
    replies: Replies,
    /// The topic of the last publish.
    topic: Option<Arc<Topic>>,
    /// Topics that this connection has appended to and not flushed.
    appended: Vec<Arc<Topic>>,
    subscription: Option<Subscription>,
    credential: Option<Credential>,
    waiting: Option<Waiting>,
    upgrade: Option<Upgrade>,
    heartbeat: Heartbeat,
    timer: Pin<Box<Sleep>>,
    timer_at: Moment,
    /// The peer sends nothing more.
    ended: bool,
    /// Nothing more is executed; the connection ends when the output is written.
    ending: bool,
}

impl Connection {
    /// Takes over an accepted socket.
    pub fn new(doors: Arc<Doors>, accepted: Accepted) -> Self {
        let now = doors.clock.now();
        let features = Features::initial(&doors.server_limits);
        let heartbeat = Heartbeat::start(now.as_nanos(), features.heartbeat, features.dialect);
        let timer_at = now + features.heartbeat.unwrap_or_default();
        let client = doors.clients.add(&accepted, doors.clock.wall());
        let span = tracing::error_span!("connection", id = client.id().0, peer = client.peer());
        span.in_scope(|| tracing::info!("client connected"));
        Self {
            span,
            session: Session::new(doors.limits),
            timer: Box::pin(tokio::time::sleep_until(doors.clock.instant(timer_at).into())),
            timer_at,
            wire: Wire::new(accepted.stream),
            signal: Arc::clone(client.signal()),
            client,
            features,
            greeted: false,
            input: Vec::new(),
            input_is_news: false,
            replies: Replies::default(),
            topic: None,
            appended: Vec::new(),
            subscription: None,
            credential: None,
            waiting: None,
            upgrade: None,
            heartbeat,
            ended: false,
            ending: false,
            doors,
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.doors.clock.now();
        let reasons = self.signal.take();
        // A connection that was accepted while the others were told to end finds the broker closed.
        if reasons.close || !self.doors.directory.is_open() {
            return Poll::Ready(());
        }
        if reasons.deliver
            && let Some(subscription) = &mut self.subscription
        {
            subscription.has_news();
        }
        self.flush_topics();
        loop {
            self.poll_waiting(cx, now);
            if self
                .replies
                .poll(cx, self.features.dialect, &mut self.wire.output)
            {
                self.ending = true;
            }
            self.deliver(now);
            if self.write(cx, now).is_ready() {
                return Poll::Ready(());
            }
            if !self.receive(cx, now) {
                break;
            }
            if !self.appended.is_empty() {
                cx.waker().wake_by_ref();
                break;
            }
        }
        let (beat, next) = self.beat(now);
        match beat {
            Beat::Over => return Poll::Ready(()),
            Beat::Spoke if self.write(cx, now).is_ready() => return Poll::Ready(()),
            _ => {}
        }
        self.wait_for_deadlines(cx, next);
        self.wire.release();
        if self.input.is_empty() && self.input.capacity() > INPUT_KEPT {
            self.input = Vec::new();
        }
        Poll::Pending
    }

    /// Ends the turn of a publisher.
    fn flush_topics(&mut self) {
        for topic in self.appended.drain(..) {
            topic.flush();
        }
    }

    /// Reads and executes once; answers true when there may be more to do in this turn.
    fn receive(&mut self, cx: &mut Context<'_>, now: Moment) -> bool {
        if !self.may_execute() {
            return false;
        }
        if self.input_is_news || self.wire.layers.has_more() {
            self.decode_into_input(&[]);
            self.execute_input(now);
            return true;
        }
        if self.ended {
            self.peer_has_ended();
            return true;
        }
        workspace::with(|workspace| {
            let kept = if self.input.len() <= INPUT_COPIED {
                self.input.len()
            } else {
                0
            };
            let (head, room) = workspace.read.split_at_mut(kept);
            head.copy_from_slice(&self.input[..kept]);
            let mut room = ReadBuf::new(room);
            match self.wire.stream.poll_read(cx, &mut room) {
                Poll::Pending => return false,
                Poll::Ready(Err(_)) => self.ended = true,
                Poll::Ready(Ok(())) => {
                    let read = room.filled().len();
                    if read == 0 {
                        self.ended = true;
                    } else if self.wire.layers.is_plain() && kept == self.input.len() {
                        let input = &workspace.read[..kept + read];
                        let consumed = self.execute(input, now);
                        self.input.clear();
                        self.input.extend_from_slice(&input[consumed..]);
                    } else {
                        self.decode_into_input(&workspace.read[kept..kept + read]);
                        self.execute_input(now);
                    }
                }
            }
            true
        })
    }

    fn decode_into_input(&mut self, raw: &[u8]) {
        if self.wire.layers.is_plain() {
            self.input.extend_from_slice(raw);
        } else if let Err(error) = self.wire.layers.decode(raw, &mut self.input) {
            self.layer_failed(&error);
        }
    }

    fn execute_input(&mut self, now: Moment) {
        self.input_is_news = false;
        if self.upgrade.is_some() {
            return;
        }
        let mut input = std::mem::take(&mut self.input);
        let consumed = self.execute(&input, now);
        input.drain(..consumed);
        self.input = input;
    }

    /// True while the next command may be executed.
    fn may_execute(&self) -> bool {
        let may_read = self.upgrade.as_ref().is_none_or(Upgrade::is_handshaking);
        may_read
            && self.waiting.is_none()
            && !self.ending
            && self.wire.waiting() < OUTPUT_LIMIT
            && self.replies.len() < REPLIES_LIMIT
    }

    /// Nothing follows what was executed: tells the peer if it stopped inside a body, then ends.
    fn peer_has_ended(&mut self) {
        self.interrupted();
        self.ending = true;
    }

    fn interrupted(&mut self) {
        let input = std::mem::take(&mut self.input);
        if let Some(refusal) = self.session.interrupted(&input) {
            self.refuse(refusal);
        }
    }

    /// Sends a heartbeat that is due and gives up a peer that was silent, or did not read, for too long. Answers when
    /// to look again.
    fn beat(&mut self, now: Moment) -> (Beat, Option<Moment>) {
        let passed = |deadline: Option<Moment>| deadline.is_some_and(|deadline| deadline <= now);
        if passed(self.wire.deadline()) {
            return (Beat::Over, None);
        }
        let mut spoke = false;
        if passed(self.upgrade.as_ref().and_then(Upgrade::deadline)) {
            self.handshake_timed_out();
            spoke = true;
        }
        let next = loop {
            match self.heartbeat.poll(now.as_nanos()) {
                Due::Beat if self.upgrade.is_none() && self.greeted && !self.ending => {
                    frame::put_response(self.wire.output.reply(), frame::HEARTBEAT);
                    spoke = true;
                }
                Due::Beat => {}
                Due::GiveUp if self.is_busy() => self.heartbeat.heard(now.as_nanos()),
                Due::GiveUp if self.ending => return (Beat::Over, None),
                Due::GiveUp => {
                    self.peer_has_ended();
                    spoke = true;
                    break self.features.heartbeat.map(|patience| now + patience);
                }
                Due::At(nanos) => break Some(Moment::from_nanos(nanos)),
                Due::Never => break None,
            }
        };
        (if spoke { Beat::Spoke } else { Beat::Quiet }, next)
    }

    /// Has the task woken at the next deadline.
    fn wait_for_deadlines(&mut self, cx: &mut Context<'_>, beat: Option<Moment>) {
        let deadlines = [
            beat,
            self.wire.deadline(),
            self.upgrade.as_ref().and_then(Upgrade::deadline),
        ];
        let Some(nearest) = deadlines.into_iter().flatten().min() else {
            return;
        };
        if self.timer.is_elapsed() || nearest < self.timer_at {
            self.timer_at = nearest;
            self.timer
                .as_mut()
                .reset(self.doors.clock.instant(nearest).into());
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// True while it is not the peer that is being waited for.
    fn is_busy(&self) -> bool {
        self.waiting.is_some() || !self.replies.is_empty()
    }

    /// Writes what may leave; ready when the connection is over.
    fn write(&mut self, cx: &mut Context<'_>, now: Moment) -> Poll<()> {
        let buffering = Buffering {
            size: self.features.output_buffer_size as usize,
            timed: self.features.output_buffer_timeout.is_some(),
        };
        let full = self.ending || self.subscription.as_ref().is_none_or(Subscription::is_full);
        let patience = self.features.heartbeat;
        loop {
            if self
                .wire
                .poll_write(cx, buffering, full, now, patience)
                .is_ready()
            {
                return Poll::Ready(());
            }
            if self.wire.waiting() > 0 || !self.go_on_upgrading(now) {
                break;
            }
        }
        if self.ending && self.replies.is_empty() && self.wire.waiting() == 0 {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// What the look at the clock has brought.
enum Beat {
    Quiet,
    /// There is something to write.
    Spoke,
    /// The peer is given up.
    Over,
}

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.signal.listen(cx.waker());
        this.turn(cx)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.flush_topics();
        self.doors.clients.remove(self.client.id());
        self.span.in_scope(|| tracing::info!("client gone"));
    }
}

/// Output in bytes above which a connection executes no further commands until its peer has read.
const OUTPUT_LIMIT: usize = 1024 * 1024;
/// Answers that may wait for the disk before a connection executes no further commands.
const REPLIES_LIMIT: usize = 16 * 1024;
/// A started command up to this many bytes is copied in front of what is read next.
const INPUT_COPIED: usize = 16 * 1024;
/// Capacity that an idle connection may keep for its input.
const INPUT_KEPT: usize = 1024;
