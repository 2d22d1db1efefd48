//! Duty: a real nsqlookupd process.

use std::env;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::http::{Door, Http};
use crate::process::Process;
use crate::{eventually, port};

/// A running nsqlookupd.
#[derive(Debug)]
pub struct Lookupd {
    program: PathBuf,
    tcp: SocketAddr,
    http: SocketAddr,
    process: Process,
}

impl Lookupd {
    /// Starts stock nsqlookupd, or says that none was given and returns `None`.
    pub fn start() -> Option<Self> {
        let Some(program) = env::var_os("NSQX_STOCK_NSQLOOKUPD") else {
            println!("skipped: stock nsqlookupd not given");
            return None;
        };
        let (program, tcp, http) = (PathBuf::from(program), port::free(), port::free());
        let process = launch(&program, tcp, http);
        Some(Self {
            program,
            tcp,
            http,
            process,
        })
    }

    /// Kills the process and starts another on the same ports; all registrations are gone.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = launch(&self.program, self.tcp, self.http);
    }

    /// Where nsqd connects to.
    pub fn tcp_address(&self) -> SocketAddr {
        self.tcp
    }

    /// Where consumers ask.
    pub fn http_address(&self) -> SocketAddr {
        self.http
    }

    /// Its HTTP door.
    pub fn http(&self) -> Http {
        Http::new(Door::Tcp(self.http))
    }

    /// Number of nsqd nodes it knows.
    pub fn node_count(&self) -> usize {
        self.http().get("/nodes").json()["producers"]
            .as_array()
            .map_or(0, Vec::len)
    }

    /// The answer of `/lookup` for `topic`; an object with a message when there is no such topic.
    pub fn lookup(&self, topic: &str) -> Value {
        self.http().get(&format!("/lookup?topic={topic}")).json()
    }

    /// Waits until a producer of `topic` is registered.
    pub fn await_producer(&self, topic: &str, within: Duration) {
        eventually("a producer of the topic is registered", within, || {
            self.lookup(topic)["producers"]
                .as_array()
                .is_some_and(|list| !list.is_empty())
                .then_some(())
        });
    }
}

fn launch(program: &PathBuf, tcp: SocketAddr, http: SocketAddr) -> Process {
    let mut command = Command::new(program);
    command
        .arg(format!("--tcp-address={tcp}"))
        .arg(format!("--http-address={http}"));
    command.arg("--broadcast-address=127.0.0.1");
    let process = Process::spawn(&mut command);
    eventually("nsqlookupd accepts connections", Duration::from_secs(10), || {
        [tcp, http]
            .iter()
            .all(|door| TcpStream::connect(door).is_ok())
            .then_some(())
    });
    process
}
