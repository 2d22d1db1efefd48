//! Duty: one running broker node with a data folder and ports of its own.
//!
//! In: flags, config, an existing data folder. Out: clients connected to it, its HTTP door, its folder, its
//! log. A node ends with its value; restarting keeps ports and data.

use std::fmt::Display;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tempfile::TempDir;

use crate::Broker;
use crate::eventually;
use crate::http::{Door, Http};
use crate::port;
use crate::process::{Exit, Process};
use crate::wire::Client;

/// A node about to be started.
#[derive(Clone, Debug)]
#[must_use]
pub struct NodeSetup {
    program: PathBuf,
    tcp: SocketAddr,
    http: SocketAddr,
    https: SocketAddr,
    sockets: Option<Sockets>,
    flags: Vec<String>,
    open_files: Option<u32>,
    data: Arc<TempDir>,
}

impl NodeSetup {
    /// Default flags, free loopback ports, an empty data folder.
    pub fn new(program: &Path) -> Self {
        let data = tempfile::Builder::new()
            .prefix("nsqd-")
            .tempdir()
            .expect("data folder");
        Self {
            program: program.to_owned(),
            tcp: port::free(),
            http: port::free(),
            https: port::free(),
            sockets: None,
            flags: Vec::new(),
            open_files: None,
            data: Arc::new(data),
        }
    }

    /// Adds `--name=value`; a flag given twice overrides or appends as the broker defines.
    pub fn flag(mut self, name: &str, value: impl Display) -> Self {
        self.flags.push(format!("--{name}={value}"));
        self
    }

    /// Adds several ready-made arguments.
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.flags.extend(arguments);
        self
    }

    /// Writes `text` as a config file into the data folder and names it with `--config`.
    pub fn config(self, text: &str) -> Self {
        let path = self.data.path().join("nsqd.toml");
        self.file("nsqd.toml", text).flag("config", path.display())
    }

    /// Listens on Unix sockets in the data folder instead of the TCP and HTTP ports.
    pub fn on_unix_sockets(mut self) -> Self {
        let folder = self.data.path();
        self.sockets = Some(Sockets {
            tcp: folder.join("tcp.sock"),
            http: folder.join("http.sock"),
        });
        self
    }

    /// Lets the node open at most so many files and sockets at once.
    pub fn open_files(mut self, limit: u32) -> Self {
        self.open_files = Some(limit);
        self
    }

    /// Uses the data folder of a node that runs already.
    pub fn on_data_of(mut self, other: &Node) -> Self {
        self.data = Arc::clone(&other.setup.data);
        self
    }

    /// The same node, data included, run by another broker.
    pub fn run_by(mut self, broker: &Broker) -> Self {
        broker.program().clone_into(&mut self.program);
        self
    }

    /// Puts a file into the data folder before the start.
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.data.path().join(name), content).expect("file in the data folder");
        self
    }

    /// The data folder.
    pub fn data_path(&self) -> &Path {
        self.data.path()
    }

    /// Starts the node and waits until it answers.
    ///
    /// # Panics
    /// When it ends instead, or is not ready within 10 s.
    pub fn start(self) -> Node {
        let mut node = self.launch();
        node.await_ready();
        node
    }

    /// Starts the node and waits for nothing.
    pub fn launch(self) -> Node {
        let process = Process::spawn(&mut self.command());
        Node { process, setup: self }
    }

    /// Starts the node and waits until it answers or has ended.
    ///
    /// # Errors
    /// How it ended.
    ///
    /// # Panics
    /// When it does neither within 10 s.
    pub fn start_or_exit(self) -> Result<Node, Exit> {
        let process = Process::spawn(&mut self.command());
        let mut node = Node { process, setup: self };
        let ended = eventually("the node is ready or ends", Duration::from_secs(10), || {
            if node.process.ended().is_some() {
                return Some(true);
            }
            node.setup.answers().then_some(false)
        });
        if ended {
            return Err(node.process.expect_exit(Duration::from_secs(1)));
        }
        Ok(node)
    }

    /// Starts a node that is expected to end by itself, and waits for its end, at most 10 s.
    pub fn expect_exit(self) -> Exit {
        Process::spawn(&mut self.command()).expect_exit(Duration::from_secs(10))
    }

    fn command(&self) -> Command {
        let mut command = match self.open_files {
            None => Command::new(&self.program),
            Some(limit) => {
                let mut shell = Command::new("sh");
                let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
                shell.arg("-c").arg(script).arg(&self.program);
                shell
            }
        };
        let (tcp, http) = match &self.sockets {
            Some(sockets) => (
                sockets.tcp.display().to_string(),
                sockets.http.display().to_string(),
            ),
            None => (self.tcp.to_string(), self.http.to_string()),
        };
        command
            .arg(format!("--tcp-address={tcp}"))
            .arg(format!("--http-address={http}"));
        command.arg(format!("--https-address={}", self.https));
        command.arg("--broadcast-address=127.0.0.1");
        command.arg(format!("--data-path={}", self.data.path().display()));
        command.args(&self.flags);
        command
    }

    /// Ports may be bound long before anybody serves them.
    fn answers(&self) -> bool {
        let ask = || {
            let mut door = TcpStream::connect(self.http)?;
            door.set_read_timeout(Some(Duration::from_secs(1)))?;
            door.write_all(b"GET /ping HTTP/1.1\r\nHost: nsqd\r\n\r\n")?;
            door.read(&mut [0])
        };
        ask().is_ok_and(|length| length > 0)
    }

    fn accepts_connections(&self) -> bool {
        match &self.sockets {
            Some(sockets) => [&sockets.tcp, &sockets.http]
                .iter()
                .all(|path| UnixStream::connect(path).is_ok()),
            None => [self.tcp, self.http]
                .iter()
                .all(|door| TcpStream::connect(door).is_ok()),
        }
    }
}

#[derive(Clone, Debug)]
struct Sockets {
    tcp: PathBuf,
    http: PathBuf,
}

/// A running node.
#[derive(Debug)]
#[must_use]
pub struct Node {
    // Dropped first: the data folder is removed when nothing writes to it any more.
    process: Process,
    setup: NodeSetup,
}

impl Node {
    /// A client that has sent the magic and nothing else.
    pub fn client(&self) -> Client {
        Client::connect(self.setup.tcp)
    }

    /// A connection on which nothing was sent.
    pub fn raw_client(&self) -> Client {
        Client::connect_silently(self.setup.tcp)
    }

    /// A client subscribed to `channel` of `topic` with default settings and RDY 0.
    pub fn consumer(&self, topic: &str, channel: &str) -> Client {
        let mut client = self.client();
        client.subscribe(topic, channel);
        client
    }

    /// As [`Self::consumer`], identified with the JSON object `settings` first.
    pub fn consumer_with(&self, settings: &str, topic: &str, channel: &str) -> Client {
        let mut client = self.client();
        client.identify(settings);
        client.subscribe(topic, channel);
        client
    }

    /// The plain HTTP door.
    pub fn http(&self) -> Http {
        Http::new(match &self.setup.sockets {
            Some(sockets) => Door::Unix(sockets.http.clone()),
            None => Door::Tcp(self.setup.http),
        })
    }

    /// The HTTPS door.
    pub fn https(&self, config: Arc<ClientConfig>) -> Http {
        Http::new(Door::Tls(self.setup.https, config))
    }

    /// Address of the TCP protocol.
    pub fn tcp_address(&self) -> SocketAddr {
        self.setup.tcp
    }

    /// Address of plain HTTP.
    pub fn http_address(&self) -> SocketAddr {
        self.setup.http
    }

    /// Address of HTTPS.
    pub fn https_address(&self) -> SocketAddr {
        self.setup.https
    }

    /// The data folder.
    pub fn data_path(&self) -> &Path {
        self.setup.data_path()
    }

    /// The text of `nsqd.dat` in the data folder; empty while there is none.
    pub fn metadata(&self) -> String {
        fs::read_to_string(self.data_path().join("nsqd.dat")).unwrap_or_default()
    }

    /// What the node wrote to standard error so far.
    pub fn log(&self) -> String {
        self.process.stderr()
    }

    /// Id of the process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// True while the process runs.
    pub fn is_running(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// Stops the node with SIGTERM and gives back its setup, data included.
    ///
    /// # Panics
    /// When it does not end within 10 s with code 0.
    pub fn terminate(self) -> NodeSetup {
        self.process.ask_to_stop();
        let exit = self.process.expect_exit(Duration::from_secs(10));
        assert_eq!(
            exit.code,
            Some(0),
            "exit code after SIGTERM; log:\n{}",
            exit.stderr
        );
        self.setup
    }

    /// Stops the node with SIGKILL and gives back its setup, data included.
    pub fn kill(mut self) -> NodeSetup {
        self.process.kill();
        self.setup
    }

    /// Stops the node with SIGTERM and starts it again on the same data and ports.
    pub fn restart(self) -> Self {
        self.terminate().start()
    }

    fn await_ready(&mut self) {
        eventually("the node accepts connections", Duration::from_secs(10), || {
            if let Some(status) = self.process.ended() {
                panic!("the node ended with {status}; log:\n{}", self.process.stderr());
            }
            self.setup.accepts_connections().then_some(())
        });
        // Whatever the answer is: what happens at the start, the first writing of metadata too, is done.
        self.http().get("/ping");
    }
}
