//! Duty: proves with the real nsqd v1.3.0 that it reads what we export and that we read what it leaves. The
//! binary is named by the environment variable `NSQX_STOCK_NSQD`; without it nothing is proved and that is said.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nsqx_broker::export::stock_queue::QueueWriter;
use nsqx_broker::import::directory_lock::DirectoryLock;
use nsqx_broker::import::nsqd_dat::{self, ChannelEntry, TopicEntry};
use nsqx_broker::import::plan::Plan;
use nsqx_broker::import::stock_queue::{QueueReader, StockMessage};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn stock_nsqd_takes_an_exported_folder_and_gives_it_back() {
    let Some(binary) = std::env::var_os("NSQX_STOCK_NSQD") else {
        println!("skipped: NSQX_STOCK_NSQD does not name a stock nsqd");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let bodies: Vec<Vec<u8>> = (0..MESSAGES)
        .map(|number| vec![number as u8; 1 + number * 7])
        .collect();
    let messages: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| message(number, body))
        .collect();
    export(dir.path(), None, &messages[..3]);
    export(dir.path(), Some("c"), &messages[3..]);
    let channel = |name: &str, paused| ChannelEntry {
        name: name.into(),
        paused,
    };
    let topic = TopicEntry {
        name: "t".into(),
        // Paused, so that what lies in the topic's queue stays there.
        paused: true,
        channels: vec![channel("c", false), channel("idle", true)],
    };
    nsqd_dat::write(
        dir.path(),
        &nsqd_dat::encode(std::slice::from_ref(&topic)).unwrap(),
    )
    .unwrap();

    let nsqd = Nsqd::start(Path::new(&binary), dir.path());
    assert!(
        DirectoryLock::acquire(dir.path()).is_err(),
        "nsqd takes the same lock"
    );
    let stats = nsqd.get("/stats?format=json");
    let waiting = MESSAGES - 3;
    for part in [
        r#""topic_name":"t""#,
        r#""depth":3,"#,
        &format!(r#""depth":{waiting},"#),
    ] {
        assert!(stats.contains(part), "{part} is missing in {stats}");
    }
    let received = nsqd.receive("t", "c", waiting);
    for (frame, message) in received.iter().zip(&messages[3..]) {
        let attempts = message.attempts + 1;
        let expected = [
            &message.timestamp.to_be_bytes()[..],
            &attempts.to_be_bytes(),
            &message.id,
            message.body,
        ]
        .concat();
        assert_eq!(frame, &expected);
    }
    nsqd.stop();

    let _lock = DirectoryLock::acquire(dir.path()).unwrap();
    let plan = Plan::make(dir.path(), MAX_BODY).unwrap();
    assert_eq!(plan.warnings, []);
    let read = &plan.topics["t"];
    assert!(read.listed && read.paused && read.channels["idle"].paused && !read.channels["c"].paused);
    let queues = [
        read.queue.as_ref().unwrap(),
        read.channels["c"].queue.as_ref().unwrap(),
    ];
    let expected = [&messages[..3], &messages[3..]];
    for ((queue, expected), deliveries) in queues.iter().zip(expected).zip([0, 1]) {
        assert_eq!(queue.messages, expected.len() as u64);
        let mut reader = QueueReader::new(&queue.queue, queue.queue.start, MAX_BODY);
        let mut left: Vec<_> = expected.to_vec();
        while let Some(found) = reader.next_message().unwrap() {
            // In flight at the end: back in the queue in any order, with one more attempt.
            let at = left.iter().position(|message| message.id == found.id).unwrap();
            let mut message = left.remove(at);
            message.attempts += deliveries;
            assert_eq!(found, message);
        }
        assert!(left.is_empty());
    }
}

fn message(number: usize, body: &[u8]) -> StockMessage<'_> {
    let mut id = [b'0'; 16];
    id[14..].copy_from_slice(format!("{number:02x}").as_bytes());
    StockMessage {
        timestamp: 1_700_000_000_000_000_000 + number as i64,
        attempts: 2,
        id,
        body,
    }
}

fn export(dir: &Path, channel: Option<&str>, messages: &[StockMessage<'_>]) {
    let mut writer = QueueWriter::create(dir, "t", channel, 500).unwrap();
    for message in messages {
        writer.append(message).unwrap();
    }
    writer.finish().unwrap();
}

/// A running stock nsqd; killed when dropped.
struct Nsqd {
    process: Child,
    tcp: String,
    http: String,
}

impl Nsqd {
    fn start(binary: &Path, data_path: &Path) -> Self {
        let mut process = Command::new(binary)
            .args([
                "--tcp-address=127.0.0.1:0",
                "--http-address=127.0.0.1:0",
                "--max-bytes-per-file=500",
            ])
            .arg(format!("--data-path={}", data_path.display()))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let (mut tcp, mut http) = (None, None);
        while tcp.is_none() || http.is_none() {
            let line = lines.next().expect("nsqd has ended").unwrap();
            if let Some((_, address)) = line.split_once("TCP: listening on ") {
                tcp = Some(address.to_owned());
            }
            if let Some((_, address)) = line.split_once("HTTP: listening on ") {
                http = Some(address.to_owned());
            }
        }
        // nsqd must not block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            process,
            tcp: tcp.unwrap(),
            http: http.unwrap(),
        }
    }

    fn get(&self, path: &str) -> String {
        let mut connection = connect(&self.http);
        write!(connection, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The content of the first `count` message frames.
    fn receive(&self, topic: &str, channel: &str, count: usize) -> Vec<Vec<u8>> {
        let mut connection = connect(&self.tcp);
        write!(connection, "  V2SUB {topic} {channel}\nRDY {count}\n").unwrap();
        let mut received = Vec::new();
        while received.len() < count {
            let mut head = [0; 8];
            connection.read_exact(&mut head).unwrap();
            let [size, kind] = [0, 4].map(|at| u32::from_be_bytes(head[at..at + 4].try_into().unwrap()));
            let mut content = vec![0; size as usize - 4];
            connection.read_exact(&mut content).unwrap();
            if kind == 2 {
                received.push(content);
            }
        }
        received
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Nsqd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn connect(address: &str) -> TcpStream {
    let connection = TcpStream::connect(address).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    connection
}

const MESSAGES: usize = 23;
const MAX_BODY: u32 = 1 << 20;
