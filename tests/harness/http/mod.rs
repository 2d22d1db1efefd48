//! Duty: a blocking HTTP/1.1 client that shows status, headers and body exactly as they came.
//!
//! One connection per request; redirects are not followed. What comes back is a [`Response`].

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::pki;

mod response;

pub use response::Response;

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
