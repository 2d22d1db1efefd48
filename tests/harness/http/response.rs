//! Duty: reads one HTTP/1.1 response and says whether it is the expected one.

use std::fmt;
use std::io::{ErrorKind, Read};

use serde_json::Value;

/// What came back.
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Headers in the order they came.
    pub headers: Vec<(String, String)>,
    /// Body without its transfer coding.
    pub body: Vec<u8>,
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

    /// Reads the head and, unless `bodyless`, the body.
    pub(super) fn read(stream: &mut dyn Read, bodyless: bool) -> Self {
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

struct Input<'a> {
    stream: &'a mut dyn Read,
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
