//! Duty: one nsqlookupd: stay connected, keep it at what should be registered, PING it (nsq-tcp 7.5). Comes in:
//! the desired state. Goes out: commands on a socket, the lookupd's HTTP address. Must not know other lookupds.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, timeout};

use super::desired::{Desired, Registered};
use super::wire::{Command, Identity, LookupdInfo, MAGIC, answer_length};
use super::{RegistrationSettings, TaskGuard};

/// A lookupd and the task that serves it. Dropping it closes the connection.
pub(super) struct Peer {
    info: Arc<Mutex<Option<LookupdInfo>>>,
    _task: TaskGuard,
}

/// What all peers share.
pub(super) struct PeerSettings {
    pub(super) timing: RegistrationSettings,
    pub(super) identity: Identity,
}

/// Why a connection to a lookupd is of no more use.
#[derive(Debug, thiserror::Error)]
enum PeerError {
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("connection broke: {0}")]
    Io(#[from] io::Error),
    #[error("no {0} in time")]
    Timeout(&'static str),
    #[error("lookupd closed the connection")]
    Closed,
    #[error("answer without a command to it")]
    Unasked,
    #[error("answer longer than {0} bytes, or of negative length")]
    AnswerLength(usize),
    #[error("refused IDENTIFY: {0:?}")]
    Refused(String),
    #[error("cannot encode: {0}")]
    Encode(#[from] serde_json::Error),
}

impl Peer {
    pub(super) fn start(
        address: String,
        settings: Arc<PeerSettings>,
        desired: watch::Receiver<Arc<Desired>>,
    ) -> Self {
        let info = Arc::default();
        let task = PeerTask {
            address,
            settings,
            desired,
            info: Arc::clone(&info),
        };
        Self {
            info,
            _task: TaskGuard(tokio::spawn(task.run())),
        }
    }

    /// Host and port of its HTTP side; `None` until it has answered an IDENTIFY with them.
    pub(super) fn http_address(&self) -> Option<(String, u16)> {
        let info = self.info.lock();
        let info = info.as_ref()?;
        (!info.broadcast_address.is_empty()).then(|| (info.broadcast_address.clone(), info.http_port))
    }
}

struct PeerTask {
    address: String,
    settings: Arc<PeerSettings>,
    desired: watch::Receiver<Arc<Desired>>,
    info: Arc<Mutex<Option<LookupdInfo>>>,
}

impl PeerTask {
    /// Connects again and again, waiting longer after each connection that did not last.
    async fn run(mut self) {
        let timing = self.settings.timing;
        let mut backoff = timing.backoff_min;
        loop {
            let began = Instant::now();
            let Err(error) = self.serve().await else {
                return;
            };
            if began.elapsed() >= timing.backoff_max {
                backoff = timing.backoff_min;
            }
            tracing::warn!(lookupd = %self.address, %error, retry_in = ?backoff, "lookupd is not served");
            tokio::time::sleep(jittered(backoff)).await;
            backoff = (backoff * 2).min(timing.backoff_max);
        }
    }

    /// Serves one connection until it fails; `Ok` when the node is ending.
    async fn serve(&mut self) -> Result<(), PeerError> {
        let timing = self.settings.timing;
        let mut connection = Connection::open(&self.address, timing).await?;
        self.identify(&mut connection).await?;
        tracing::info!(lookupd = %self.address, "lookupd connected");
        let mut registered = Registered::default();
        self.synchronise(&mut connection, &mut registered).await?;
        let mut ping = tokio::time::interval_at(Instant::now() + timing.ping_interval, timing.ping_interval);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                changed = self.desired.changed() => match changed {
                    Ok(()) => self.synchronise(&mut connection, &mut registered).await?,
                    Err(_) => return Ok(()),
                },
                _ = ping.tick() => {
                    connection.ask(&[Command::Ping]).await?;
                }
                error = connection.broken() => return Err(error),
            }
        }
    }

    async fn identify(&self, connection: &mut Connection) -> Result<(), PeerError> {
        let identify = Command::Identify(self.settings.identity.clone());
        let answer = connection.ask(&[identify]).await?;
        // A refusal is text, too, and is no JSON.
        let Ok(info) = serde_json::from_slice(&answer) else {
            return Err(PeerError::Refused(excerpt(&answer)));
        };
        *self.info.lock() = Some(info);
        Ok(())
    }

    /// Sends what is missing between what this lookupd knows and what it should know.
    async fn synchronise(
        &mut self,
        connection: &mut Connection,
        registered: &mut Registered,
    ) -> Result<(), PeerError> {
        let desired = Arc::clone(&self.desired.borrow_and_update());
        let commands = registered.difference(&desired);
        for batch in commands.chunks(BATCH) {
            let answer = connection.ask(batch).await?;
            if answer.starts_with(b"E_") {
                tracing::warn!(lookupd = %self.address, answer = excerpt(&answer), "lookupd refused a command");
            }
        }
        registered.set(&desired);
        Ok(())
    }
}

struct Connection {
    stream: TcpStream,
    timing: RegistrationSettings,
    out: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    /// The name is resolved anew each time, so that a lookupd can move.
    async fn open(address: &str, timing: RegistrationSettings) -> Result<Self, PeerError> {
        let stream = timeout(timing.connect_timeout, TcpStream::connect(address))
            .await
            .map_err(|_| PeerError::Timeout("connection"))?
            .map_err(PeerError::Connect)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            timing,
            out: MAGIC.to_vec(),
            answer: Vec::new(),
        })
    }

    /// Sends all commands at once and takes their answers. Gives the first one that is an error, else the last.
    async fn ask(&mut self, commands: &[Command]) -> Result<Vec<u8>, PeerError> {
        for command in commands {
            command.encode(&mut self.out)?;
        }
        timeout(self.timing.io_timeout, self.stream.write_all(&self.out))
            .await
            .map_err(|_| PeerError::Timeout("write"))??;
        self.out.clear();
        let mut telling = Vec::new();
        for _ in commands {
            timeout(self.timing.io_timeout, self.read_answer())
                .await
                .map_err(|_| PeerError::Timeout("answer"))??;
            if !telling.starts_with(b"E_") {
                telling.clone_from(&self.answer);
            }
        }
        Ok(telling)
    }

    async fn read_answer(&mut self) -> Result<(), PeerError> {
        let mut head = [0; 4];
        self.read_exact_or_closed(&mut head).await?;
        let max = self.timing.max_answer;
        let length = answer_length(head, max).ok_or(PeerError::AnswerLength(max))?;
        self.answer.clear();
        // Grows with what arrives, not with what is announced.
        let read = (&mut self.stream)
            .take(length as u64)
            .read_to_end(&mut self.answer)
            .await?;
        if read < length {
            Err(PeerError::Closed)
        } else {
            Ok(())
        }
    }

    async fn read_exact_or_closed(&mut self, buffer: &mut [u8]) -> Result<(), PeerError> {
        match self.stream.read_exact(buffer).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(PeerError::Closed),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until an idle connection ends. Without it a restarted lookupd would be noticed by a PING only.
    async fn broken(&mut self) -> PeerError {
        let mut byte = [0; 1];
        match self.stream.read(&mut byte).await {
            Ok(0) => PeerError::Closed,
            Ok(_) => PeerError::Unasked,
            Err(error) => error.into(),
        }
    }
}

/// Between half and the whole of `time`, so that nodes do not return to a restarted lookupd in one moment.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// The start of an answer as text for the log.
fn excerpt(answer: &[u8]) -> String {
    String::from_utf8_lossy(&answer[..answer.len().min(EXCERPT_MAX)]).into_owned()
}

/// Commands that are under way at once. Small enough that neither side waits for the other to read.
const BATCH: usize = 64;
const EXCERPT_MAX: usize = 200;
