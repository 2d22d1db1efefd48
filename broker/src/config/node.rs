//! Duty: who this broker is: its number, its names for others, its data folder.

use std::path::PathBuf;

use clap::Args;
use md5::{Digest as _, Md5};
use serde::Serialize;

use super::fault::{ConfigFault, Faults};

/// Raw flags of the node.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Node")]
pub struct NodeOptions {
    /// Number of this broker in message ids, 0 to 1023; made from the host name when not given. Brokers that
    /// share a host need different ones
    #[arg(long = "node-id")]
    pub id: Option<i64>,
    /// Folder for messages and metadata; it must exist. Empty is the current folder
    #[arg(long, default_value = "")]
    pub data_path: String,
    /// Address that lookupd and clients are told; the host name when not given
    #[arg(long)]
    pub broadcast_address: Option<String>,
    /// TCP port that lookupd and clients are told; 0 is the port listened on
    #[arg(long, default_value = "0")]
    pub broadcast_tcp_port: i64,
    /// HTTP port that lookupd and clients are told; 0 is the port listened on
    #[arg(long, default_value = "0")]
    pub broadcast_http_port: i64,
    /// Addresses host:port of the lookupds to register with; may be given several times
    #[arg(long = "lookupd-tcp-address")]
    pub nsqlookupd_tcp_addresses: Vec<String>,
    /// Accepted without effect, stock has it; use --node-id
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub worker_id: bool,
}

/// Checked settings of the node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Number in message ids, below 1024.
    pub id: u16,
    /// Folder for everything that survives a restart.
    pub data_path: PathBuf,
    /// Address that others are told.
    pub broadcast_address: String,
    /// TCP port that others are told; 0 until [`super::Config::announce`] when it is the bound one.
    pub broadcast_tcp_port: u16,
    /// HTTP port that others are told; 0 until [`super::Config::announce`] when it is the bound one.
    pub broadcast_http_port: u16,
}

impl NodeOptions {
    pub(super) fn resolve(&self, host: &str, faults: &mut Faults) -> NodeConfig {
        let id = self.id.unwrap_or_else(|| default_id(host));
        if !(0..NODE_IDS).contains(&id) {
            faults.add(ConfigFault::NodeId);
        }
        let data_path = if self.data_path.is_empty() {
            "."
        } else {
            &self.data_path
        };
        NodeConfig {
            id: id as u16,
            data_path: PathBuf::from(data_path),
            broadcast_address: self.broadcast_address.clone().unwrap_or_else(|| host.to_owned()),
            broadcast_tcp_port: port("broadcast-tcp-port", self.broadcast_tcp_port, faults),
            broadcast_http_port: port("broadcast-http-port", self.broadcast_http_port, faults),
        }
    }
}

fn port(flag: &'static str, value: i64, faults: &mut Faults) -> u16 {
    faults.within(flag, value, 0, i64::from(u16::MAX)) as u16
}

/// Stock's default, so that a broker keeps its number: CRC-32 of the MD5 of the host name.
fn default_id(host: &str) -> i64 {
    i64::from(crc32fast::hash(&Md5::digest(host.as_bytes()))) % NODE_IDS
}

const NODE_IDS: i64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gets_the_number_that_stock_gives_it() {
        // Read from a stock nsqd 1.3.0 on a host of that name.
        assert_eq!(default_id("vm"), 617);
    }
}
