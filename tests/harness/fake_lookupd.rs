//! Duty: a fake nsqlookupd that records every command of its peers, with time (nsq-tcp 7).
//!
//! Its HTTP side gives one fixed list of channels for every topic, or is closed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http_stub::{Answer, HttpStub, Request};
use crate::{eventually, port};

/// A running fake.
#[derive(Debug)]
pub struct FakeLookupd {
    tcp: SocketAddr,
    http: Option<HttpStub>,
    heard: Heard,
}

/// Something a peer sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When it came.
    pub at: Instant,
    /// The magic or the command line.
    pub line: String,
    /// The JSON of IDENTIFY, else null.
    pub body: Value,
}

type Heard = Arc<Mutex<Vec<Sent>>>;

impl FakeLookupd {
    /// A fake whose HTTP side lists `channels` for any topic.
    pub fn listing(channels: &[&str]) -> Self {
        let body = json!({ "channels": channels }).to_string();
        let http = HttpStub::start(Answer { status: 200, body });
        let port = http.address().port();
        Self::start(Some(http), port)
    }

    /// A fake that names an HTTP port on which nothing listens.
    pub fn without_http() -> Self {
        Self::start(None, port::free().port())
    }

    /// Where nsqd connects to.
    pub fn tcp_address(&self) -> SocketAddr {
        self.tcp
    }

    /// Everything sent by peers so far.
    pub fn sent(&self) -> Vec<Sent> {
        self.heard.lock().expect("heard").clone()
    }

    /// Waits for a command line and gives it.
    pub fn await_line(&self, line: &str, within: Duration) -> Sent {
        eventually(&format!("nsqd sends {line}"), within, || {
            self.sent().into_iter().find(|sent| sent.line == line)
        })
    }

    /// Waits for a command line that begins like this and gives it.
    pub fn await_line_starting(&self, start: &str, within: Duration) -> Sent {
        eventually(&format!("nsqd sends {start}"), within, || {
            self.sent().into_iter().find(|sent| sent.line.starts_with(start))
        })
    }

    /// Requests at the HTTP side.
    pub fn requests(&self) -> Vec<Request> {
        self.http.as_ref().map_or_else(Vec::new, HttpStub::requests)
    }

    fn start(http: Option<HttpStub>, http_port: u16) -> Self {
        let tcp = port::free();
        let listener = TcpListener::bind(tcp).expect("bind");
        let heard = Heard::default();
        let hearing = Arc::clone(&heard);
        // The thread ends with the test process; a peer that connects until then is still recorded.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hearing = Arc::clone(&hearing);
                thread::spawn(move || serve(&stream, &hearing, http_port));
            }
        });
        Self { tcp, http, heard }
    }
}

/// Answers one peer until it is gone; a peer's fault ends the connection as it would in nsqlookupd.
fn serve(stream: &TcpStream, heard: &Heard, http_port: u16) -> Option<()> {
    let mut input = BufReader::new(stream);
    let mut magic = [0; 4];
    input.read_exact(&mut magic).ok()?;
    let record = |line: &str, body| {
        heard.lock().expect("heard").push(Sent {
            at: Instant::now(),
            line: line.to_owned(),
            body,
        });
    };
    record(&String::from_utf8_lossy(&magic), Value::Null);
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut answer = "OK".to_owned();
        let mut body = Value::Null;
        if line.trim_end() == "IDENTIFY" {
            body = serde_json::from_slice(&read_sized(&mut input)?).ok()?;
            answer = json!({"broadcast_address": "127.0.0.1", "hostname": "fake", "http_port": http_port,
                "tcp_port": 1, "version": "1.3.0"})
            .to_string();
        }
        record(line.trim_end(), body);
        let mut output = stream;
        output.write_all(&(answer.len() as u32).to_be_bytes()).ok()?;
        output.write_all(answer.as_bytes()).ok()?;
    }
}

fn read_sized(input: &mut impl Read) -> Option<Vec<u8>> {
    let mut size = [0; 4];
    input.read_exact(&mut size).ok()?;
    let mut body = vec![0; u32::from_be_bytes(size) as usize];
    input.read_exact(&mut body).ok()?;
    Some(body)
}
