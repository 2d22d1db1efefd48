//! Duty: takes the ports and opens what is on disk, so that a fault is told before anything is served. Must not know
//! how the rooms work.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use nsqx_proto::limits::{Limits, ServerLimits};
use tokio::runtime::Handle;

use super::data::Data;
use super::metadata_file::{self, MetadataFile};
use super::migrate::intake::Intake;
use super::{Node, NodeError, Ports, restore};
use crate::admit::auth_query::AuthQuery;
use crate::channel::ChannelRules;
use crate::channel::saver::Saver;
use crate::channel::shared::Rooms;
use crate::channel::timekeeper::Timekeeper;
use crate::clock::Clock;
use crate::config::{Address, Changeable, ClientCertificate, Config, TlsRequired, TlsVersion};
use crate::desk::settings::TopicSettings;
use crate::http_client::{HttpClient, HttpClientSettings};
use crate::import::directory_lock::DirectoryLock;
use crate::import::nsqd_dat;
use crate::ingress::client::Clients;
use crate::ingress::doors::Doors;
use crate::ingress::listener::StdListener;
use crate::logging::LogControl;
use crate::store::handle::StoreThread;
use crate::tls::MinVersion;
use crate::tls::client_certificate::ClientPolicy;
use crate::tls::server::{ServerTls, ServerTlsSettings};
use crate::topic::directory::Directory;
use crate::topic::founding::Founding;
use crate::topic::health::Health;

/// A broker that has everything open and serves nothing yet.
pub(super) struct Started {
    pub(super) node: Arc<Node>,
    pub(super) listeners: Listeners,
    pub(super) store_thread: StoreThread,
    pub(super) client: HttpClient,
    /// Held until the process ends.
    pub(super) lock: DirectoryLock,
}

/// The ports, taken but shut.
pub(super) struct Listeners {
    pub(super) tcp: StdListener,
    pub(super) http: Option<StdListener>,
    pub(super) https: Option<StdListener>,
}

/// Opens everything but the ports, which it takes, and imports what a stock nsqd left here. Blocks.
///
/// # Errors
/// Whatever makes a start impossible; nothing is served then.
pub(super) fn start(
    mut config: Config,
    changeable: Changeable,
    host: String,
    clock: Clock,
    log_control: LogControl,
    runtime: &Handle,
) -> Result<Started, NodeError> {
    let unserved = config.unserved(&changeable);
    if !unserved.is_empty() {
        return Err(NodeError::Unserved(format!("--{}", unserved.join(", --"))));
    }
    let data_path = config.node.data_path.clone();
    let lock = DirectoryLock::acquire(&data_path)?;
    let tls = server_tls(&config)?;
    let client = http_client(&config)?;
    let auth = AuthQuery::new(&config.admit.auth_urls, client.clone(), clock)?.map(Arc::new);

    let listeners = reserve(&config)?;
    let port = |listener: &StdListener| i32::try_from(listener.port()).unwrap_or_default();
    let ports = Ports {
        tcp: port(&listeners.tcp),
        http: listeners.http.as_ref().map_or(0, port),
        https: listeners
            .https
            .as_ref()
            .map_or(0, |listener| port(listener) as u16),
    };
    config.announce(u16::try_from(ports.tcp).ok(), u16::try_from(ports.http).ok());

    let data = Data::open(lock, &config, clock)?;
    Intake::new(&data, &config, clock, runtime).own()?;
    let Data {
        store, engines, lock, ..
    } = data;
    let engines = Arc::new(engines);
    let catalogue = store.catalogue();
    let cursors = restore::cursors(&store, &catalogue)?;
    let (handle, store_thread) = StoreThread::start(store)?;

    let topic_settings = TopicSettings {
        durability: config.log.durability,
        retention_time: config.topic.retention_time,
        retention_bytes: config.topic.retention_bytes,
    };
    let health = Arc::new(Health::new(handle.watch_fault()));
    let timekeeper = Arc::new(Timekeeper::default());
    let saver = Arc::new(Saver::new(handle.clone(), config.channel.checkpoint_interval));
    let directory = Directory::new(Founding {
        store: handle,
        engines: Arc::clone(&engines),
        rooms: Rooms {
            clock,
            timekeeper: Arc::clone(&timekeeper),
            saver: Arc::clone(&saver),
            blocking: runtime.clone(),
            latency_window: (!config.metrics.latency_percentiles.is_empty())
                .then_some(config.metrics.latency_window),
        },
        health: Arc::clone(&health),
        rules: ChannelRules {
            mem_queue_size: config.topic.mem_queue_size,
            max_msg_timeout: config.channel.max_msg_timeout,
            max_req_timeout: config.channel.max_req_timeout,
            drop_oldest_beyond: None,
            durable: true,
        },
        max_consumers: config.channel.max_consumers.unwrap_or(0) as usize,
        default_extend: config.extension.default_extend,
        registration: OnceLock::new(),
        topic_settings,
        incarnations: AtomicU64::new(0),
    });
    restore::topics(&directory, &catalogue, &cursors)?;

    let doors = Arc::new(Doors {
        limits: limits(&config, auth.is_some()),
        server_limits: server_limits(&config, tls.is_some(), auth.is_some()),
        node_id: config.node.id,
        auto_create: config.topic.auto_create,
        clock,
        directory: Arc::clone(&directory),
        clients: Clients::default(),
        auth,
        tls: tls.map(Arc::new),
    });
    let node = Arc::new(Node {
        started: clock.wall() / 1_000_000_000,
        metadata_file: MetadataFile::new(data_path.clone()),
        config,
        changeable: parking_lot::Mutex::new(changeable),
        clock,
        ports,
        host,
        directory,
        doors,
        engines,
        health,
        timekeeper,
        saver,
        log_control,
    });
    runtime.block_on(adopt_metadata_file(&node, &catalogue))?;
    Ok(Started {
        node,
        listeners,
        store_thread,
        client,
        lock,
    })
}

/// Creates what an nsqd.dat adds that somebody else wrote; then the file is ours again.
async fn adopt_metadata_file(
    node: &Node,
    catalogue: &crate::store::catalogue::Catalogue,
) -> Result<(), NodeError> {
    let folder = &node.config.node.data_path;
    let print = node.metadata_file.fingerprint().await;
    let is_ours = [metadata_file::NEXT, metadata_file::PRESENT]
        .iter()
        .any(|fact| catalogue.fact(fact) == Some(&print[..]));
    if !is_ours && let Some((topics, warnings)) = nsqd_dat::read(folder)? {
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        for topic in topics {
            node.adopt(&topic).await;
        }
    }
    node.metadata_file.write(&node.directory).await;
    Ok(())
}

fn server_tls(config: &Config) -> Result<Option<ServerTls>, NodeError> {
    let Some(identity) = &config.tls.identity else {
        return Ok(None);
    };
    let settings = ServerTlsSettings {
        certificate: identity.certificate.clone(),
        key: identity.key.clone(),
        root_ca: config.tls.root_ca.clone(),
        client_policy: match config.tls.client_certificate {
            ClientCertificate::NotRequested => ClientPolicy::None,
            ClientCertificate::Any => ClientPolicy::Require,
            ClientCertificate::Verified => ClientPolicy::RequireVerify,
        },
        min_version: min_version(config),
    };
    Ok(Some(ServerTls::load(settings)?))
}

fn min_version(config: &Config) -> MinVersion {
    if config.tls.min_version == TlsVersion::V13 {
        MinVersion::Tls13
    } else {
        MinVersion::Tls12
    }
}

fn http_client(config: &Config) -> Result<HttpClient, NodeError> {
    Ok(HttpClient::new(&HttpClientSettings {
        connect_timeout: config.admit.connect_timeout,
        request_timeout: config.admit.request_timeout,
        root_ca: config.tls.root_ca.clone(),
        min_version: min_version(config),
    })?)
}

/// Takes the ports, so that a conflict is told at once; they stay shut until [`listen`].
fn reserve(config: &Config) -> Result<Listeners, NodeError> {
    let reserve = |address: &str| {
        StdListener::reserve(address).map_err(|source| NodeError::Listen {
            address: address.to_owned(),
            source,
        })
    };
    let any = |address: &Address| reserve(&text(address));
    Ok(Listeners {
        tcp: any(&config.ingress.tcp)?,
        http: config.ingress.http.as_ref().map(any).transpose()?,
        https: config.ingress.https.as_deref().map(reserve).transpose()?,
    })
}

/// Opens the ports.
///
/// # Errors
/// When somebody else opened one since it was taken.
pub(super) fn listen(config: &Config, listeners: &Listeners) -> Result<(), NodeError> {
    let ingress = &config.ingress;
    let doors = [
        (Some(text(&ingress.tcp)), Some(&listeners.tcp)),
        (ingress.http.as_ref().map(text), listeners.http.as_ref()),
        (ingress.https.clone().map(Into::into), listeners.https.as_ref()),
    ];
    for (address, listener) in doors {
        if let (Some(address), Some(listener)) = (address, listener) {
            let refused = |source| NodeError::Listen {
                address: address.into_owned(),
                source,
            };
            listener.listen().map_err(refused)?;
        }
    }
    Ok(())
}

fn text(address: &Address) -> Cow<'_, str> {
    match address {
        Address::Tcp(address) => address.into(),
        Address::Unix(path) => path.to_string_lossy(),
    }
}

fn limits(config: &Config, auth_required: bool) -> Limits {
    Limits {
        max_msg_size: config.ingress.max_msg_size,
        max_body_size: config.ingress.max_body_size,
        max_rdy_count: config.negotiate.max_rdy_count,
        max_req_timeout_ms: config.channel.max_req_timeout.as_millis() as u64,
        max_deferred_ms: config.topic.max_deferred_time.as_millis() as u64,
        tls_required: config.tls.required != TlsRequired::No,
        auth_required,
    }
}

fn server_limits(config: &Config, tls: bool, auth_required: bool) -> ServerLimits {
    let negotiate = &config.negotiate;
    ServerLimits {
        max_rdy_count: negotiate.max_rdy_count,
        max_heartbeat_interval_ms: negotiate.max_heartbeat_interval.as_millis() as u64,
        max_output_buffer_size: negotiate.max_output_buffer_size,
        output_buffer_timeout_ms: negotiate.output_buffer_timeout.as_millis() as u64,
        min_output_buffer_timeout_ms: negotiate.min_output_buffer_timeout.as_millis() as u64,
        max_output_buffer_timeout_ms: negotiate.max_output_buffer_timeout.as_millis() as u64,
        msg_timeout_ms: config.channel.msg_timeout.as_millis() as u64,
        max_msg_timeout_ms: config.channel.max_msg_timeout.as_millis() as u64,
        tls,
        deflate: negotiate.deflate,
        max_deflate_level: negotiate.max_deflate_level as u8,
        snappy: negotiate.snappy,
        auth_required,
        ..ServerLimits::default()
    }
}
