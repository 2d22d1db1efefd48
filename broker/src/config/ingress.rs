//! Duty: where clients come in and how much they may send at once.

use clap::Args;
use serde::Serialize;

use super::address::Address;
use super::fault::{ConfigFault, Faults};

/// Raw flags of the doors.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Listening")]
pub struct IngressOptions {
    /// Where TCP clients connect: host:port, or the path of a Unix socket
    #[arg(long, default_value = "0.0.0.0:4150")]
    pub tcp_address: String,
    /// Where HTTP clients connect: host:port, or the path of a Unix socket; empty is off
    #[arg(long, default_value = "0.0.0.0:4151")]
    pub http_address: String,
    /// Where HTTPS clients connect: host:port; empty is off. Used only with --tls-cert and --tls-key
    #[arg(long, default_value = "0.0.0.0:4152")]
    pub https_address: String,
    /// Largest message, bytes
    #[arg(long, default_value = "1048576")]
    pub max_msg_size: i64,
    /// Largest body of a command with several messages, bytes
    #[arg(long, default_value = "5242880")]
    pub max_body_size: i64,
    /// Threads that serve TCP clients; 0 is half the processors, at least one
    #[arg(long, default_value = "0")]
    pub data_threads: i64,
}

/// Checked settings of the doors.
#[derive(Clone, Debug)]
pub struct IngressConfig {
    /// The door for the NSQ protocol.
    pub tcp: Address,
    /// The door for HTTP, if there is one.
    pub http: Option<Address>,
    /// The `host:port` for HTTPS, if there is such a door.
    pub https: Option<String>,
    /// Largest message in bytes.
    pub max_msg_size: u64,
    /// Largest body of MPUB and its like in bytes.
    pub max_body_size: u64,
    /// Threads that serve TCP clients, at least one.
    pub data_threads: usize,
}

impl IngressOptions {
    pub(super) fn resolve(&self, tls: bool, faults: &mut Faults) -> IngressConfig {
        let tcp = Address::parse(&self.tcp_address);
        if tcp.is_none() {
            faults.add(ConfigFault::Empty("tcp-address"));
        }
        IngressConfig {
            tcp: tcp.unwrap_or_else(|| Address::Tcp(String::new())),
            http: Address::parse(&self.http_address),
            https: if tls { self.https(faults) } else { None },
            max_msg_size: faults.positive("max-msg-size", self.max_msg_size),
            max_body_size: faults.positive("max-body-size", self.max_body_size),
            data_threads: self.data_threads(faults),
        }
    }

    fn data_threads(&self, faults: &mut Faults) -> usize {
        match faults.within("data-threads", self.data_threads, 0, 1024) {
            0 => std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)),
            threads => threads as usize,
        }
    }

    fn https(&self, faults: &mut Faults) -> Option<String> {
        match Address::parse(&self.https_address)? {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) => {
                faults.add(ConfigFault::NotHostPort("https-address"));
                None
            }
        }
    }
}
