//! Registration against a lookupd on loopback: one made here, and the real one if there is one.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;
use crate::http_client::testing::FakeHttp;
use crate::http_client::{Endpoint, HttpClientSettings};
use crate::tls::MinVersion;

/// What this test's node hosts.
struct Node {
    topics: Mutex<Vec<Hosted>>,
    changed: watch::Sender<()>,
}

impl Inventory for Node {
    fn topics(&self) -> Vec<Hosted> {
        self.topics.lock().clone()
    }
}

impl Node {
    fn new(topics: Vec<Hosted>) -> Arc<Self> {
        Arc::new(Self {
            topics: Mutex::new(topics),
            changed: watch::channel(()).0,
        })
    }

    fn set(&self, topics: Vec<Hosted>) {
        *self.topics.lock() = topics;
        self.changed.send_replace(());
    }

    fn register(self: &Arc<Self>, addresses: &[String]) -> Registration {
        let registration = Registration::start(
            quick(),
            identity(),
            Arc::clone(self) as Arc<dyn Inventory>,
            self.changed.subscribe(),
            client(),
        );
        registration.set_addresses(addresses);
        registration
    }
}

fn hosted(topic: &str, incarnation: u64, channels: &[&str]) -> Hosted {
    Hosted {
        topic: topic.to_owned(),
        incarnation,
        channels: channels
            .iter()
            .map(|channel| ((*channel).to_owned(), incarnation))
            .collect(),
    }
}

fn quick() -> RegistrationSettings {
    RegistrationSettings {
        backoff_min: Duration::from_millis(10),
        backoff_max: Duration::from_millis(50),
        ping_interval: Duration::from_millis(50),
        ..RegistrationSettings::default()
    }
}

fn identity() -> Identity {
    Identity {
        broadcast_address: "127.0.0.1".to_owned(),
        hostname: "host".to_owned(),
        http_port: 4151,
        tcp_port: 4150,
        version: "1.3.0".to_owned(),
    }
}

fn client() -> HttpClient {
    HttpClient::new(&HttpClientSettings {
        connect_timeout: Duration::from_secs(2),
        request_timeout: Duration::from_secs(2),
        root_ca: None,
        min_version: MinVersion::default(),
    })
    .unwrap()
}

/// A lookupd that tells what it is told.
struct FakeLookupd {
    address: SocketAddr,
    heard: mpsc::UnboundedReceiver<String>,
    task: JoinHandle<()>,
}

impl FakeLookupd {
    /// Answers IDENTIFY with `info`, everything else with `OK`.
    async fn start(info: String) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), info)
    }

    fn start_on(listener: TcpListener, info: String) -> Self {
        let address = listener.local_addr().unwrap();
        let (sender, heard) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            // Connections end with their lookupd.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(stream, info.clone(), sender.clone()));
            }
        });
        Self { address, heard, task }
    }

    /// The next line that is no PING.
    async fn hear(&mut self) -> String {
        loop {
            let line = self.hear_any().await;
            if line != "PING" {
                return line;
            }
        }
    }

    async fn hear_any(&mut self) -> String {
        let heard = tokio::time::timeout(Duration::from_secs(10), self.heard.recv());
        heard.await.expect("nothing was heard").unwrap()
    }

    async fn hear_all(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..count {
            lines.push(self.hear().await);
        }
        lines
    }
}

impl Drop for FakeLookupd {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse(stream: TcpStream, info: String, heard: mpsc::UnboundedSender<String>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut magic = [0; 4];
    stream.read_exact(&mut magic).await.ok()?;
    assert_eq!(&magic, b"  V1");
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            heard.send("closed".to_owned()).ok()?;
            return None;
        }
        let mut line = line.trim_end().to_owned();
        let mut answer = "OK";
        if line == "IDENTIFY" {
            let length = stream.read_u32().await.ok()?;
            let mut body = vec![0; length as usize];
            stream.read_exact(&mut body).await.ok()?;
            line = format!("IDENTIFY {}", String::from_utf8(body).unwrap());
            answer = &info;
        }
        stream.write_u32(answer.len() as u32).await.ok()?;
        stream.write_all(answer.as_bytes()).await.ok()?;
        heard.send(line).ok()?;
    }
}

fn info(http_port: u16) -> String {
    format!(r#"{{"broadcast_address":"127.0.0.1","http_port":{http_port},"tcp_port":1,"version":"1.3.0"}}"#)
}

const IDENTIFY: &str = concat!(
    r#"IDENTIFY {"broadcast_address":"127.0.0.1","hostname":"host","http_port":4151,"#,
    r#""tcp_port":4150,"version":"1.3.0"}"#
);

#[tokio::test]
async fn a_lookupd_hears_who_the_node_is_and_what_it_hosts_and_then_pings() {
    let mut lookupd = FakeLookupd::start(info(1)).await;
    let node = Node::new(vec![
        hosted("bare", 1, &[]),
        hosted("t", 2, &["c", "d#ephemeral"]),
    ]);
    let _registration = node.register(&[lookupd.address.to_string()]);
    assert_eq!(lookupd.hear().await, IDENTIFY);
    assert_eq!(
        lookupd.hear_all(3).await,
        ["REGISTER bare", "REGISTER t c", "REGISTER t d#ephemeral"]
    );
    assert_eq!(lookupd.hear_any().await, "PING");
    assert_eq!(lookupd.hear_any().await, "PING");
}

#[tokio::test]
async fn changes_are_told_and_a_topic_made_anew_is_told_too() {
    let mut lookupd = FakeLookupd::start(info(1)).await;
    let node = Node::new(Vec::new());
    let _registration = node.register(&[lookupd.address.to_string()]);
    assert_eq!(lookupd.hear().await, IDENTIFY);
    node.set(vec![hosted("t", 1, &["c"])]);
    assert_eq!(lookupd.hear().await, "REGISTER t c");
    node.set(Vec::new());
    node.set(vec![hosted("t", 2, &[])]);
    let mut lines = lookupd.hear_all(3).await;
    assert_eq!(lines, ["UNREGISTER t c", "UNREGISTER t", "REGISTER t"]);
    node.set(Vec::new());
    lines = lookupd.hear_all(1).await;
    assert_eq!(lines, ["UNREGISTER t"]);
}

#[tokio::test]
async fn many_topics_are_registered_in_full() {
    let mut lookupd = FakeLookupd::start(info(1)).await;
    let topics = (0..1000)
        .map(|number| hosted(&format!("t{number:04}"), 1, &["c"]))
        .collect();
    let _registration = Node::new(topics).register(&[lookupd.address.to_string()]);
    assert_eq!(lookupd.hear().await, IDENTIFY);
    let lines = lookupd.hear_all(1000).await;
    let expected = (0..1000).map(|number| format!("REGISTER t{number:04} c"));
    assert!(expected.eq(lines));
}

#[tokio::test]
async fn a_restarted_lookupd_is_told_everything_again() {
    let mut lookupd = FakeLookupd::start(info(1)).await;
    let address = lookupd.address.to_string();
    let _registration = Node::new(vec![hosted("t", 1, &[])]).register(std::slice::from_ref(&address));
    assert_eq!(lookupd.hear_all(2).await, [IDENTIFY, "REGISTER t"]);
    drop(lookupd);
    let mut lookupd = loop {
        // The old listener's socket goes when its task has ended.
        match TcpListener::bind(&address).await {
            Ok(listener) => break FakeLookupd::start_on(listener, info(1)),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(lookupd.hear_all(2).await, [IDENTIFY, "REGISTER t"]);
}

#[tokio::test]
async fn a_lookupd_that_refuses_is_tried_again() {
    let mut lookupd = FakeLookupd::start("E_INVALID go away".to_owned()).await;
    let registration = Node::new(vec![hosted("t", 1, &[])]).register(&[lookupd.address.to_string()]);
    assert_eq!(
        lookupd.hear_all(4).await,
        [IDENTIFY, "closed", IDENTIFY, "closed"]
    );
    assert!(registration.lookup_channels("t").await.is_empty());
}

#[tokio::test]
async fn a_silent_lookupd_delays_no_other() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut lookupd = FakeLookupd::start(info(1)).await;
    let addresses = [
        silent.local_addr().unwrap().to_string(),
        lookupd.address.to_string(),
    ];
    let _registration = Node::new(vec![hosted("t", 1, &[])]).register(&addresses);
    let (_held, _) = silent.accept().await.unwrap();
    assert_eq!(lookupd.hear_all(2).await, [IDENTIFY, "REGISTER t"]);
}

#[tokio::test]
async fn the_list_can_be_changed_while_the_node_runs() {
    let (mut one, mut other) = (
        FakeLookupd::start(info(1)).await,
        FakeLookupd::start(info(1)).await,
    );
    let registration = Node::new(Vec::new()).register(&[one.address.to_string()]);
    assert_eq!(one.hear().await, IDENTIFY);
    registration.set_addresses(&[one.address.to_string(), other.address.to_string()]);
    assert_eq!(other.hear().await, IDENTIFY);
    registration.set_addresses(&[other.address.to_string()]);
    assert_eq!(one.hear().await, "closed");
    registration.set_addresses(&[]);
    assert_eq!(other.hear().await, "closed");
}

#[tokio::test]
async fn an_oversized_answer_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _registration = Node::new(Vec::new()).register(&[listener.local_addr().unwrap().to_string()]);
    for length in [i32::MAX, -1] {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_i32(length).await.unwrap();
        let mut rest = Vec::new();
        // A reset is an end as well: the node may close before it has read all.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.starts_with(b"  V1IDENTIFY\n"));
    }
}

/// Waits until `registration` has asked everyone in `wanted` for channels.
async fn lookup(registration: &Registration, topic: &str, wanted: &[&FakeHttp]) -> Vec<String> {
    loop {
        let channels = registration.lookup_channels(topic).await;
        if wanted.iter().all(|server| !server.requests().is_empty()) {
            return channels;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn channels_of_a_topic_are_those_that_any_lookupd_knows() {
    let answering = |status, body: &'static str| FakeHttp::start(move |_| Some((status, body.to_owned())));
    let one = answering(200, r#"{"channels":["b","a","e#ephemeral"]}"#).await;
    let other = answering(200, r#"{"channels":["c","b"]}"#).await;
    let failing = answering(500, "").await;
    let strange = answering(200, r#"{"channels":7}"#).await;
    let empty = answering(200, r#"{"channels":null}"#).await;
    let servers = [&one, &other, &failing, &strange, &empty];
    let (mut lookupds, mut addresses) = (Vec::new(), Vec::new());
    for server in servers {
        let lookupd = FakeLookupd::start(info(server.address.port())).await;
        addresses.push(lookupd.address.to_string());
        lookupds.push(lookupd);
    }
    let registration = Node::new(Vec::new()).register(&addresses);
    assert_eq!(lookup(&registration, "t.x", &servers).await, ["a", "b", "c"]);
    assert!(one.requests()[0].starts_with("GET /channels?topic=t.x HTTP/1.1\r\n"));
    // Those that are away now are asked where they were last.
    drop(lookupds);
    assert_eq!(registration.lookup_channels("t.x").await, ["a", "b", "c"]);
}

/// A real nsqlookupd that ends with the test.
struct RealLookupd {
    _process: tokio::process::Child,
    tcp: String,
    http: Endpoint,
}

impl RealLookupd {
    fn start(program: &str, tcp_port: u16, http_port: u16) -> Self {
        let tcp = format!("127.0.0.1:{tcp_port}");
        let process = tokio::process::Command::new(program)
            .args(["-broadcast-address", "127.0.0.1", "-tcp-address", &tcp])
            .args(["-http-address", &format!("127.0.0.1:{http_port}")])
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            _process: process,
            tcp,
            http: Endpoint::http("127.0.0.1", http_port, "").unwrap(),
        }
    }

    async fn has(&self, path: &str, wanted: &str) {
        let endpoint: Endpoint = format!("{}{path}", self.http.to_string().trim_end_matches('/'))
            .parse()
            .unwrap();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let body = client().get(&endpoint, "", 100_000).await;
            if body.as_ref().is_ok_and(|body| body == wanted) {
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{path}: {body:?}, want {wanted}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn free_ports() -> (u16, u16) {
    let listeners = [0, 1].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [one, other] = listeners.map(|listener| listener.local_addr().unwrap().port());
    (one, other)
}

#[tokio::test]
async fn the_stock_lookupd_keeps_what_it_is_told() {
    let Ok(program) = std::env::var("NSQX_STOCK_NSQLOOKUPD") else {
        println!("skipped: NSQX_STOCK_NSQLOOKUPD names no nsqlookupd");
        return;
    };
    let (tcp_port, http_port) = free_ports();
    let lookupd = RealLookupd::start(&program, tcp_port, http_port);
    let node = Node::new(vec![
        hosted("t", 1, &["c", "e#ephemeral"]),
        hosted("bare", 1, &[]),
    ]);
    let registration = node.register(std::slice::from_ref(&lookupd.tcp));
    lookupd
        .has("/channels?topic=t", r#"{"channels":["c","e#ephemeral"]}"#)
        .await;
    assert_eq!(registration.lookup_channels("t").await, ["c"]);

    node.set(vec![hosted("t", 1, &["c"])]);
    lookupd.has("/channels?topic=t", r#"{"channels":["c"]}"#).await;
    lookupd
        .has("/lookup?topic=bare", r#"{"channels":[],"producers":[]}"#)
        .await;

    drop(lookupd);
    let lookupd = RealLookupd::start(&program, tcp_port, http_port);
    lookupd.has("/topics", r#"{"topics":["t"]}"#).await;

    registration.set_addresses(&[]);
    lookupd.has("/nodes", r#"{"producers":[]}"#).await;
    registration.set_addresses(std::slice::from_ref(&lookupd.tcp));
    let nodes = Endpoint::http("127.0.0.1", http_port, "/nodes").unwrap();
    let registered: BTreeSet<_> = loop {
        let body = client().get(&nodes, "", 100_000).await.unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
        if let Some(topics) = answer["producers"][0]["topics"].as_array()
            && !topics.is_empty()
        {
            break topics.iter().map(ToString::to_string).collect();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(registered, BTreeSet::from([r#""t""#.to_owned()]));
}
