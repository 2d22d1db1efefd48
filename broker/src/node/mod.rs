//! Duty: the broker as a whole: builds the rooms from last to first, owns them, stops them in order. Only this room
//! knows all others. Must not hold rules of any room.
//!
//! | file | duty |
//! |---|---|
//! | `start` | opens what is on disk, binds the ports |
//! | `data` | the data folder with its store and its logs |
//! | `migrate` | from stock nsqd and back |
//! | `restore` | topics and channels as they were |
//! | `serve` | runs the doors and side rooms until told to stop, then stops in order |
//! | `desk` | what the HTTP door asks for |
//! | `snapshot` | the broker's state as `/stats` shows it |
//! | `inventory` | what lookupds are told |
//! | `metadata_file` | nsqd.dat |
//! | `peek` | messages as they stand in a channel |

mod data;
mod desk;
mod inventory;
mod metadata_file;
pub mod migrate;
mod peek;
mod restore;
mod serve;
mod snapshot;
mod start;

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::channel::saver::Saver;
use crate::channel::timekeeper::Timekeeper;
use crate::clock::Clock;
use crate::config::{Changeable, Config};
use crate::export::ExportError;
use crate::http_client::BadEndpoint;
use crate::import::ImportError;
use crate::ingress::doors::Doors;
use crate::log::engine::LogError;
use crate::log::engines::Engines;
use crate::logging::LogControl;
use crate::store::StoreError;
use crate::tls::TlsError;
use crate::topic::directory::Directory;
use crate::topic::health::Health;

pub use self::serve::run;

/// The rooms of a running broker.
pub struct Node {
    config: Config,
    changeable: Mutex<Changeable>,
    clock: Clock,
    /// Unix seconds.
    started: i64,
    ports: Ports,
    host: String,
    directory: Arc<Directory>,
    doors: Arc<Doors>,
    engines: Arc<Engines>,
    health: Arc<Health>,
    timekeeper: Arc<Timekeeper>,
    saver: Arc<Saver>,
    log_control: LogControl,
    metadata_file: metadata_file::MetadataFile,
}

/// The ports that were bound: -1 for a unix socket, 0 for none.
#[derive(Clone, Copy, Debug, Default)]
struct Ports {
    tcp: i32,
    http: i32,
    https: u16,
}

/// Why the broker can not start or has to end.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The data path can not be used, or holds files of stock nsqd that can not be read.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Stock data can not be written.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// What the store remembers of an import makes no sense.
    #[error("the note {name:?} in the metadata store can not be understood: {source}")]
    Note {
        /// Name of the fact.
        name: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The metadata store can not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A log can not be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The certificate can not be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An auth server's address is none.
    #[error(transparent)]
    Endpoint(#[from] BadEndpoint),
    /// A port can not be bound.
    #[error("listen ({address}) failed - {source}")]
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A thread or runtime can not be made.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
    /// Flags ask for something that this version does not do.
    #[error("this version does not act on {0}; remove it from the command line, file or environment")]
    Unserved(String),
    /// A stored name is none.
    #[error("the metadata store names a topic or channel {0:?}, which is not a valid name")]
    StoredName(String),
    /// Stock data lies in the data path and is not to be imported.
    #[error(
        "{path} holds messages of stock nsqd ({messages} in {queues} queues) and --import-stock-data is false"
    )]
    StockData {
        /// The data path.
        path: PathBuf,
        /// Queues with messages.
        queues: usize,
        /// Messages in them.
        messages: u64,
    },
}
