//! Duty: a blocking HTTP/1.1 client that shows status, headers and body exactly as they came.
//!
//! One connection per request; redirects are not followed. Raw requests allow what no library would send.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::Value;

use crate::pki;

/// Where to connect.
#[derive(Clone, Debug)]
pub enum Door {
    /// Plain TCP.
    Tcp(SocketAddr),
    /// TLS over TCP.
    Tls(SocketAddr, Arc<ClientConfig>),
    /// A Unix socket.
    Unix(PathBuf),
}

/// A client of one door.
#[derive(Clone, Debug)]
pub struct Http {
    door: Door,
}

/// What came back.
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Headers in the order they came.
    pub headers: Vec<(String, String)>,
    /// Body without its transfer coding.
    pub body: Vec<u8>,
}

impl Http {
    /// A client of `door`.
    pub fn new(door: Door) -> Self {
        Self { door }
    }

    /// `GET`.
    pub fn get(&self, target: &str) -> Response {
        self.request("GET", target, b"")
    }

    /// `POST` with a Content-Length.
    pub fn post(&self, target: &str, body: impl AsRef<[u8]>) -> Response {
        self.request("POST", target, body.as_ref())
    }

    /// `PUT` with a Content-Length.
    pub fn put(&self, target: &str, body: impl AsRef<[u8]>) -> Response {
        self.request("PUT", target, body.as_ref())
    }

    /// Any method; a body, even an empty one, is announced by Content-Length unless the method is GET.
    pub fn request(&self, method: &str, target: &str, body: &[u8]) -> Response {
        let length = if method == "GET" {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        self.exchange(method, format!("{}{length}\r\n", head(method, target)), body)
    }

    /// `POST` of a body in chunks of 64 KiB, with no Content-Length.
    pub fn post_chunked(&self, target: &str, body: &[u8]) -> Response {
        let head = format!("{}Transfer-Encoding: chunked\r\n\r\n", head("POST", target));
        let mut coded = Vec::with_capacity(body.len() + 1024);
        for piece in body.chunks(64 * 1024) {
            coded.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            coded.extend_from_slice(piece);
            coded.extend_from_slice(b"\r\n");
        }
        coded.extend_from_slice(b"0\r\n\r\n");
        self.exchange("POST", head, &coded)
    }

    /// Sends `bytes`, half closes and waits until the server has closed; what it says does not matter.
    pub fn raw_and_forget(&self, bytes: &[u8]) {
        let mut stream = self.connect();
        send(&mut *stream, bytes);
        stream.half_close();
        // A reset is an end like any other.
        let _ = stream.read_to_end(&mut Vec::new());
    }

    fn exchange(&self, method: &str, head: String, body: &[u8]) -> Response {
        let mut stream = self.connect();
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        send(&mut *stream, &bytes);
        Response::read(&mut *stream, method == "HEAD")
    }

    fn connect(&self) -> Box<dyn Stream> {
        match &self.door {
            Door::Tcp(address) => Box::new(connect_tcp(*address)),
            Door::Tls(address, config) => {
                let session =
                    ClientConnection::new(Arc::clone(config), pki::server_name()).expect("TLS client");
                Box::new(StreamOwned::new(session, connect_tcp(*address)))
            }
            Door::Unix(path) => {
                let stream = UnixStream::connect(path).expect("connect to Unix socket");
                stream.set_read_timeout(Some(PATIENCE)).expect("read deadline");
                Box::new(stream)
            }
        }
    }
}

impl Response {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Expects exactly this status and body.
    pub fn expect(&self, status: u16, body: &str) {
        assert!(
            self.status == status && self.body == body.as_bytes(),
            "expected {status} {body}, got {self:?}"
        );
    }

    /// Expects an error in the V1 style: status, JSON message and both headers.
    pub fn expect_error(&self, status: u16, message: &str) {
        self.expect(status, &format!(r#"{{"message":"{message}"}}"#));
        assert_eq!(
            self.header("Content-Type"),
            Some("application/json; charset=utf-8"),
            "{self:?}"
        );
        assert_eq!(
            self.header("X-NSQ-Content-Type"),
            Some("nsq; version=1.0"),
            "{self:?}"
        );
    }

    /// Expects 200 with an empty body.
    pub fn expect_done(&self) {
        self.expect(200, "");
    }

    /// Expects 200 `OK`.
    pub fn expect_ok(&self) {
        self.expect(200, "OK");
    }

    fn read(stream: &mut dyn Stream, bodyless: bool) -> Self {
        let mut input = Input {
            stream,
            bytes: Vec::new(),
        };
        let head = input.until(b"\r\n\r\n");
        let head = String::from_utf8(head).expect("head in text");
        let mut lines = head.trim_end().split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .and_then(|code| code.parse().ok());
        let headers = lines
            .map(|line| line.split_once(':').expect("header line"))
            .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
            .collect();
        let mut response = Self {
            status: status.expect("status line"),
            headers,
            body: Vec::new(),
        };
        if !bodyless {
            response.body = input.body(
                response.header("Transfer-Encoding"),
                response.header("Content-Length"),
            );
        }
        response
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} {:?} \"{}\"",
            self.status,
            self.headers,
            self.body.escape_ascii()
        )
    }
}

trait Stream: Read + Write {
    /// Tells the server that nothing more comes.
    fn half_close(&mut self);
}

impl Stream for TcpStream {
    fn half_close(&mut self) {
        // Fails only when the server has closed already.
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Stream for UnixStream {
    fn half_close(&mut self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Stream for StreamOwned<ClientConnection, TcpStream> {
    fn half_close(&mut self) {
        self.conn.send_close_notify();
        let _ = self.flush();
    }
}

struct Input<'a> {
    stream: &'a mut dyn Stream,
    bytes: Vec<u8>,
}

impl Input<'_> {
    fn body(&mut self, coding: Option<&str>, length: Option<&str>) -> Vec<u8> {
        match (coding, length) {
            (Some("chunked"), _) => self.chunked(),
            (None, Some(length)) => self.exactly(length.parse().expect("Content-Length")),
            (None, None) => {
                while self.more() {}
                std::mem::take(&mut self.bytes)
            }
            (Some(other), _) => panic!("transfer coding {other}"),
        }
    }

    fn chunked(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = String::from_utf8(self.until(b"\r\n")).expect("chunk size");
            let length = usize::from_str_radix(line.trim(), 16).expect("chunk size");
            body.extend_from_slice(&self.exactly(length));
            self.exactly(2);
            if length == 0 {
                return body;
            }
        }
    }

    fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.bytes.windows(end.len()).position(|window| window == end) {
                return self.bytes.drain(..at + end.len()).collect();
            }
            assert!(
                self.more(),
                "connection closed after {:?}",
                self.bytes.escape_ascii().to_string()
            );
        }
    }

    fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.bytes.len() < length {
            assert!(self.more(), "connection closed inside a body");
        }
        self.bytes.drain(..length).collect()
    }

    fn more(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece) {
            Ok(length) => {
                self.bytes.extend_from_slice(&piece[..length]);
                length > 0
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
            Err(error) => panic!("read: {error}, after {} bytes", self.bytes.len()),
        }
    }
}

fn head(method: &str, target: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: nsqd\r\nConnection: close\r\n")
}

fn connect_tcp(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("connect");
    socket.set_read_timeout(Some(PATIENCE)).expect("read deadline");
    socket.set_write_timeout(Some(PATIENCE)).expect("write deadline");
    socket
}

/// A server may answer and close before it has read everything; the answer is what counts.
fn send(stream: &mut dyn Stream, bytes: &[u8]) {
    if let Err(error) = stream.write_all(bytes).and_then(|()| stream.flush()) {
        let closed = matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        assert!(closed, "send: {error}");
    }
}

const PATIENCE: Duration = Duration::from_secs(10);
