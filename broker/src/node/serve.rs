//! Duty: runs the doors and the side rooms until told to stop, then stops in order: doors first, so that nothing new
//! comes in, then cursors, logs and the store. Must not know how the rooms work.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use nsqx_proto::{ChannelName, Dialect, TopicName};
use tokio::runtime::{Builder, Handle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::start::{Listeners, Started, listen, start};
use super::{Node, NodeError};
use crate::args::Invocation;
use crate::channel::shared::SharedChannel;
use crate::clock::Clock;
use crate::config::TlsRequired;
use crate::desk::Desk;
use crate::http_client::HttpClient;
use crate::import::nsqd_dat::TopicEntry;
use crate::ingress::connection::Connection;
use crate::ingress::http::{self, Connections, Door, Remote};
use crate::ingress::listener::{Listener, Stream};
use crate::ingress::workers::Workers;
use crate::logging::LogControl;
use crate::metrics::snapshot::Filter;
use crate::metrics::statsd_push;
use crate::registration::{Identity, Registration, RegistrationSettings};
use crate::tls::server::ServerTls;
use crate::topic::health::Source;

/// Runs a broker until SIGINT or SIGTERM.
///
/// # Errors
/// When it can not start.
pub fn run(
    invocation: Invocation,
    host: String,
    clock: Clock,
    log_control: LogControl,
) -> Result<(), NodeError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(SIDE_THREADS)
        .thread_name("side")
        .enable_all()
        .build()?;
    let started = start(
        invocation.config,
        invocation.changeable,
        host,
        clock,
        log_control,
        runtime.handle(),
    )?;
    let Started {
        node,
        listeners,
        store_thread,
        client,
        lock,
    } = started;
    let (stop, stopped) = watch::channel(false);
    let (workers, signals) = {
        let _context = runtime.enter();
        let signals = Signals::catch()?;
        listen(&node.config, &listeners)?;
        register(&node, client);
        let doors = Arc::clone(&node.doors);
        let serve = move |accepted| Connection::new(Arc::clone(&doors), accepted);
        (
            Workers::start(node.config.ingress.data_threads, &listeners.tcp, &stopped, serve)?,
            signals,
        )
    };
    let tasks = {
        let _context = runtime.enter();
        side_rooms(&node, &listeners, &stopped)?
    };
    tracing::info!(
        tcp = node.ports.tcp,
        http = node.ports.http,
        "nsqd v1.3.0 is ready"
    );
    runtime.block_on(signals.until_told_to_stop(&node));

    tracing::info!("stopping");
    node.directory.close();
    stop.send_replace(true);
    node.doors.clients.close_all();
    workers.join();
    runtime.block_on(async {
        drain(tasks).await;
        node.close().await;
    });
    drop(node);
    runtime.shutdown_timeout(Duration::from_secs(5));
    store_thread.join();
    drop(lock);
    Ok(())
}

/// Tells lookupds what is here from now on.
fn register(node: &Arc<Node>, client: HttpClient) {
    let identity = Identity {
        broadcast_address: node.config.node.broadcast_address.clone(),
        hostname: node.host.clone(),
        http_port: node.config.node.broadcast_http_port,
        tcp_port: node.config.node.broadcast_tcp_port,
        version: Dialect::Stock.version().to_owned(),
    };
    let settings = RegistrationSettings {
        max_answer: node.config.ingress.max_body_size as usize,
        ..RegistrationSettings::default()
    };
    let directory = Arc::clone(&node.directory);
    let changes = directory.changes();
    let registration = Registration::start(settings, identity, directory, changes, client);
    registration.set_addresses(&node.changeable.lock().lookupd_tcp_addresses);
    let _ = node.directory.founding().registration.set(registration);
}

/// Starts what runs beside the data threads.
fn side_rooms(
    node: &Arc<Node>,
    listeners: &Listeners,
    stopped: &watch::Receiver<bool>,
) -> Result<JoinSet<()>, NodeError> {
    let mut tasks = JoinSet::new();
    let until = || {
        let mut stopped = stopped.clone();
        async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }
    };
    let desk = Arc::clone(node) as Arc<dyn Desk>;
    let door = match node.config.tls.required {
        TlsRequired::Yes => Door::PlainRefusing {
            https_port: node.ports.https,
        },
        _ => Door::Plain,
    };
    if let Some(listener) = &listeners.http {
        let service = http::service(Arc::clone(&desk), node.clock, door);
        let listener = Listener::adopt(listener.try_clone()?)?;
        tasks.spawn(serve_http(listener, Connections::new(service), until()));
    }
    if let (Some(listener), Some(tls)) = (&listeners.https, &node.doors.tls) {
        let service = http::service(desk, node.clock, Door::Tls);
        let listener = Listener::adopt(listener.try_clone()?)?;
        tasks.spawn(serve_https(
            listener,
            Arc::clone(tls),
            Connections::new(service),
            until(),
        ));
    }
    let mut works = vec![
        timekeeper(Arc::clone(node)),
        saver(Arc::clone(node)),
        prober(Arc::clone(node)),
    ];
    works.push(Box::pin(metadata_writer(Arc::clone(node))));
    if node.config.metrics.statsd.is_some() {
        works.push(Box::pin(statsd(Arc::clone(node))));
    }
    for work in works {
        let until = until();
        tasks.spawn(async move {
            tokio::select! { () = work => {}, () = until => {} }
        });
    }
    Ok(tasks)
}

type Work = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn timekeeper(node: Arc<Node>) -> Work {
    Box::pin(async move { node.timekeeper.run(node.clock).await })
}

fn saver(node: Arc<Node>) -> Work {
    Box::pin(async move {
        let trim = |channels: &[Arc<SharedChannel>]| {
            let (directory, channels) = (Arc::clone(&node.directory), channels.to_vec());
            // Files are deleted.
            Handle::current().spawn_blocking(move || directory.trim(&channels));
        };
        node.saver.run(trim).await;
    })
}

/// Finds out that the disk fails or works again, without waiting for a publish.
fn prober(node: Arc<Node>) -> Work {
    Box::pin(async move {
        loop {
            tokio::time::sleep(PROBE_INTERVAL).await;
            let engines = Arc::clone(&node.engines);
            let Ok(probed) = Handle::current().spawn_blocking(move || engines.probe()).await else {
                return;
            };
            let works = probed.is_ok();
            node.health.report(Source::Disk, probed);
            if works {
                node.mend_store().await;
            }
            let directory = Arc::clone(&node.directory);
            let _ = Handle::current()
                .spawn_blocking(move || directory.trim_volatile())
                .await;
        }
    })
}

/// Writes nsqd.dat after topics or channels came or went.
async fn metadata_writer(node: Arc<Node>) {
    let mut changes = node.directory.changes();
    while changes.changed().await.is_ok() {
        node.metadata_file.write(&node.directory).await;
    }
}

async fn statsd(node: Arc<Node>) {
    let Some(config) = &node.config.metrics.statsd else {
        return;
    };
    let filter = Filter::default();
    let snapshot = || async { node.take_snapshot(&filter) };
    statsd_push::push(config, snapshot).await;
}

async fn serve_http(listener: Listener, mut connections: Connections, stop: impl Future<Output = ()>) {
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let remote = Remote(accepted.peer.into());
                match accepted.stream {
                    Stream::Tcp(socket) => connections.add(socket, remote),
                    Stream::Unix(socket) => connections.add(socket, remote),
                }
            }
            () = &mut stop => break,
        }
    }
    connections.finish().await;
}

async fn serve_https(
    listener: Listener,
    tls: Arc<ServerTls>,
    mut connections: Connections,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut handshakes = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // The address is host:port, so that nothing but TCP comes here.
                let Stream::Tcp(socket) = accepted.stream else { continue };
                let acceptor = tokio_rustls::TlsAcceptor::from(tls.config());
                handshakes.spawn(async move {
                    let socket = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(socket)).await.ok()?.ok()?;
                    Some((socket, Remote(accepted.peer.into())))
                });
            }
            Some(done) = handshakes.join_next(), if !handshakes.is_empty() => {
                if let Ok(Some((socket, remote))) = done {
                    connections.add(socket, remote);
                }
            }
            () = &mut stop => break,
        }
    }
    connections.finish().await;
}

/// Signals that do not end the process by themselves. They are caught from before the ports open, so that whoever has
/// been answered can stop the broker cleanly; an import before that may end at any moment.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Ends with SIGINT or SIGTERM; SIGHUP reads the certificate anew.
    async fn until_told_to_stop(mut self, node: &Node) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hangup.recv() => node.reload(),
            }
        }
    }
}

async fn drain(mut tasks: JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

impl Node {
    /// Creates what an entry of an nsqd.dat names.
    pub(super) async fn adopt(&self, entry: &TopicEntry) {
        if let Err(error) = self.try_to_adopt(entry).await {
            tracing::error!(topic = entry.name, %error, "can not create what nsqd.dat names");
        }
    }

    async fn try_to_adopt(&self, entry: &TopicEntry) -> Result<(), crate::desk::DeskError> {
        let missing = |_| crate::desk::DeskError::TopicNotFound;
        let topic = self
            .directory
            .create(&TopicName::parse(&entry.name).map_err(missing)?)
            .await?;
        if entry.paused {
            self.directory.pause_topic(&topic, true).await?;
        }
        for channel in &entry.channels {
            let live = self
                .directory
                .create_channel(&topic, &ChannelName::parse(&channel.name).map_err(missing)?)
                .await?;
            if channel.paused {
                self.directory.pause_channel(&topic, &live, true).await?;
            }
        }
        Ok(())
    }

    fn reload(&self) {
        if let Some(tls) = &self.doors.tls {
            match tls.reload() {
                Ok(()) => tracing::info!("certificate read anew"),
                Err(error) => tracing::error!(%error, "can not read the certificate, the old one stays"),
            }
        }
    }

    /// Opens a broken store again and brings it up to date.
    async fn mend_store(&self) {
        if self.directory.founding().store.fault().is_none() {
            return;
        }
        let directory = Arc::clone(&self.directory);
        let reopened = self
            .saver
            .reopen(move |catalogue| directory.cursors(catalogue))
            .await;
        if let Err(error) = reopened {
            return tracing::debug!(%error, "the metadata store is still broken");
        }
        if let Err(error) = self.directory.settle().await {
            tracing::error!(%error, "the metadata store is not up to date");
        }
        self.metadata_file.write(&self.directory).await;
    }

    /// Stores everything that a clean stop keeps and closes the logs.
    async fn close(&self) {
        self.mend_store().await;
        let topics = self.directory.live_topics();
        let channels: Vec<_> = topics.iter().flat_map(|topic| topic.channels()).collect();
        if let Err(error) = self.saver.save(&channels, true).await {
            tracing::error!(%error, "can not store cursors");
        }
        self.metadata_file.write(&self.directory).await;
        for topic in &topics {
            topic.close();
            let log = Arc::clone(topic.log());
            let closed = Handle::current().spawn_blocking(move || log.close()).await;
            if let Ok(Err(error)) = closed {
                tracing::error!(topic = %topic.name(), %error, "can not close the log");
            }
        }
    }
}

/// Threads for HTTP, lookupds, statsd, auth servers and the store's answers.
const SIDE_THREADS: usize = 2;
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
