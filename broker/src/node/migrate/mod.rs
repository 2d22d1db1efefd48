//! Duty: the way from stock nsqd and back: stock queues into topics, topics into stock queues. Comes in: an open data
//! folder, a stock folder. Goes out: the one filled from the other. Nothing lives meanwhile: no topic, no port. Must
//! not know how stock files look.
//!
//! | file | duty |
//! |---|---|
//! | `intake` | a stock folder: what of it is to be imported |
//! | `topic_intake` | one topic: records into its log, and whose they are |
//! | `batch` | messages on their way from a queue to a log |
//! | `notes` | what the store remembers of imports |
//! | `outlet` | topics as a stock folder |

mod batch;
pub(super) mod intake;
mod notes;
mod outlet;
mod topic_intake;

use std::path::Path;

use tokio::runtime::Builder;

pub use self::intake::Imported;
use self::intake::Intake;
pub use self::outlet::Exported;
use super::NodeError;
use super::data::Data;
use crate::clock::Clock;
use crate::config::Config;
use crate::import::ImportError;
use crate::import::directory_lock::DirectoryLock;

/// `nsqd import --from`: brings what a stock nsqd left in `from` into the data path. What was imported from there
/// before is passed over.
///
/// # Errors
/// When a folder is in use or can not be read or written; the same call goes on where this one stopped.
pub fn import(config: &Config, from: &Path, clock: Clock) -> Result<Imported, NodeError> {
    let from = canonical(from)?;
    let runtime = Builder::new_current_thread().build()?;
    let data = Data::open(DirectoryLock::acquire(&config.node.data_path)?, config, clock)?;
    let intake = Intake::new(&data, config, clock, runtime.handle());
    let own = intake.own()?;
    if from == canonical(&data.folder)? {
        return Ok(own);
    }
    let _lock = DirectoryLock::acquire(&from)?;
    intake.other(&from)
}

/// `nsqd export --to`: writes everything that is not finished as the data folder of a stock nsqd. `to` must be empty
/// or missing. What the data path holds is left as it is, but stock data that lies there is imported first.
///
/// # Errors
/// When the data path is in use, or a folder can not be read or written; `to` is then of no use.
pub fn export(config: &Config, to: &Path, clock: Clock) -> Result<Exported, NodeError> {
    let runtime = Builder::new_current_thread().build()?;
    let data = Data::open(DirectoryLock::acquire(&config.node.data_path)?, config, clock)?;
    Intake::new(&data, config, clock, runtime.handle()).own()?;
    outlet::export(&data, config, to, clock)
}

fn canonical(folder: &Path) -> Result<std::path::PathBuf, ImportError> {
    let unreadable = |source| ImportError::Read {
        path: folder.to_owned(),
        source,
    };
    folder.canonicalize().map_err(unreadable)
}
