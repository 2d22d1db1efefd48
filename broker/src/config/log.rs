//! Duty: how records lie on disk and in memory, and when they are safe.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use nsqx_flags::{ByteSize, GoDuration};
use serde::{Serialize, Serializer};

use super::fault::Faults;
use crate::log::engine::Durability;

/// Raw flags of storage.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Storage")]
pub struct LogOptions {
    /// When a publish is answered: interval (written; synced as --sync-every and --sync-timeout say) or always
    /// (synced)
    #[arg(long, default_value = "interval", value_parser = durability())]
    #[serde(serialize_with = "durability_word")]
    pub durability: Durability,
    /// Records between syncs; 0 leaves it to --sync-timeout alone
    #[arg(long, default_value = "2500")]
    pub sync_every: i64,
    /// Longest time between syncs
    #[arg(long, default_value = "2s")]
    pub sync_timeout: GoDuration,
    /// Size at which a topic's file is closed and the next begun, bytes
    #[arg(long, default_value = "104857600")]
    pub max_bytes_per_file: i64,
    /// Newest records kept in memory, for all topics together
    #[arg(long, default_value = "16MiB")]
    pub memory_tail: ByteSize,
    /// Import stock nsqd's disk queues when the data path has any
    #[arg(long, default_value_t = true)]
    pub import_stock_data: bool,
}

/// Checked settings of storage.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// When a publish is answered, unless the topic says otherwise.
    pub durability: Durability,
    /// Records between syncs; `None` = only time counts.
    pub sync_every: Option<u64>,
    /// Longest time between syncs.
    pub sync_timeout: Duration,
    /// Size of a segment in bytes.
    pub max_bytes_per_file: u64,
    /// Bytes of newest records kept in memory by the whole broker.
    pub memory_tail: u64,
    /// Stock disk queues are imported at start.
    pub import_stock_data: bool,
}

impl LogOptions {
    pub(super) fn resolve(&self, faults: &mut Faults) -> LogConfig {
        let sync_every = faults.amount("sync-every", self.sync_every);
        LogConfig {
            durability: self.durability,
            sync_every: (sync_every > 0).then_some(sync_every),
            sync_timeout: faults.positive_time("sync-timeout", self.sync_timeout),
            max_bytes_per_file: faults.positive("max-bytes-per-file", self.max_bytes_per_file),
            memory_tail: self.memory_tail.as_bytes(),
            import_stock_data: self.import_stock_data,
        }
    }
}

/// The engine does not know its setting's words.
fn durability() -> impl clap::builder::TypedValueParser<Value = Durability> {
    PossibleValuesParser::new([INTERVAL, ALWAYS]).map(|word| match word.as_str() {
        ALWAYS => Durability::Always,
        _ => Durability::Interval,
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn durability_word<S: Serializer>(durability: &Durability, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match durability {
        Durability::Interval => INTERVAL,
        Durability::Always => ALWAYS,
    })
}

const INTERVAL: &str = "interval";
const ALWAYS: &str = "always";
