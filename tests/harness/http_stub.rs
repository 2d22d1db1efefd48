//! Duty: a small HTTP server that answers what a test tells it to and remembers what it was asked.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::port;

/// A running server.
pub struct HttpStub {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: Option<JoinHandle<()>>,
}

/// What to answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Body, sent as JSON.
    pub body: String,
}

/// What was asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method, target and version as they came.
    pub line: String,
    /// Header lines as they came.
    pub headers: Vec<String>,
}

struct Shared {
    answer: Mutex<Answer>,
    requests: Mutex<Vec<Request>>,
    stopping: AtomicBool,
}

impl HttpStub {
    /// Starts a server that gives `answer` to every request.
    pub fn start(answer: Answer) -> Self {
        let address = port::free();
        let listener = TcpListener::bind(address).expect("bind");
        let shared = Arc::new(Shared {
            answer: Mutex::new(answer),
            requests: Mutex::new(Vec::new()),
            stopping: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        let server = thread::spawn(move || serving.serve(&listener));
        Self {
            address,
            shared,
            server: Some(server),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on gives `answer`.
    pub fn set_answer(&self, answer: Answer) {
        *self.shared.answer.lock().expect("answer") = answer;
    }

    /// Everything asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().expect("requests").clone()
    }

    /// Stops listening.
    pub fn stop(&mut self) {
        let Some(server) = self.server.take() else { return };
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
        server.join().expect("server thread");
    }
}

impl Drop for HttpStub {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for HttpStub {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "HttpStub on {}", self.address)
    }
}

impl Shared {
    fn serve(&self, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            if let Ok(stream) = stream {
                self.answer_one(&stream);
            }
        }
    }

    fn answer_one(&self, mut stream: &TcpStream) {
        let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
        let mut lines = BufReader::new(stream).lines();
        let Some(Ok(line)) = lines.next() else { return };
        let headers = lines
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        self.requests
            .lock()
            .expect("requests")
            .push(Request { line, headers });
        let Answer { status, body } = self.answer.lock().expect("answer").clone();
        // A client that is gone needs no answer.
        let _ = write!(
            stream,
            "HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
    }
}
