//! Duty: one connection to a broker, its layers of TLS and compression.
//!
//! In: bytes to send. Out: frames, silence or the end of the connection, each with a deadline. What a test
//! expects of them is in [`super::script`].

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::deflate::Deflate;
use super::frame::Frame;
use super::{command, snappy};
use crate::pki;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// A connection to the TCP port.
#[derive(Debug)]
pub struct Client {
    socket: TcpStream,
    transport: Transport,
    compression: Compression,
    received: Vec<u8>,
}

/// What happened on a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A frame arrived.
    Frame(Frame),
    /// The broker closed (or reset) the connection.
    Closed,
    /// Nothing happened before the deadline.
    Silence,
}

#[derive(Debug)]
enum Transport {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

#[derive(Debug)]
enum Compression {
    None,
    Snappy {
        decoder: snappy::Decoder,
        identified: bool,
    },
    Deflate(Box<Deflate>),
}

/// Connecting and sending.
impl Client {
    /// Connects and sends the magic.
    pub fn connect(address: SocketAddr) -> Self {
        let mut client = Self::connect_silently(address);
        client.send(MAGIC);
        client
    }

    /// Connects and sends nothing.
    pub fn connect_silently(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("connect");
        socket.set_nodelay(true).expect("no delay");
        let transport = Transport::Plain(socket.try_clone().expect("second handle"));
        Self {
            socket,
            transport,
            compression: Compression::None,
            received: Vec::new(),
        }
    }

    /// Sends `bytes` through the agreed compression and TLS.
    ///
    /// A broker may have closed already after an error; the next read tells, so that is no failure here.
    pub fn send(&mut self, bytes: &[u8]) {
        let encoded = match &mut self.compression {
            Compression::None => bytes.to_vec(),
            Compression::Snappy { identified, .. } => {
                let opening = if *identified { &[] } else { snappy::IDENTIFIER };
                *identified = true;
                [opening, &snappy::chunk(bytes)].concat()
            }
            Compression::Deflate(deflate) => deflate.encode(bytes),
        };
        self.send_encoded(&encoded);
    }

    /// Sends `bytes` below the compression.
    pub fn send_encoded(&mut self, bytes: &[u8]) {
        let written = match &mut self.transport {
            Transport::Plain(socket) => socket.write_all(bytes),
            Transport::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
        };
        if let Err(error) = written {
            let closed = matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
            assert!(closed, "send: {error}");
        }
    }

    /// Sends `line` LF.
    pub fn send_line(&mut self, line: &str) {
        self.send(&command::line(line));
    }

    /// Closes the writing half.
    pub fn half_close(&mut self) {
        self.socket.shutdown(Shutdown::Write).expect("half close");
    }
}

/// Looking at what arrives.
impl Client {
    /// The next event, waited for until `within` has passed.
    ///
    /// # Panics
    /// When the broker closes inside a frame.
    pub fn event(&mut self, within: Duration) -> Event {
        let event = self.event_until_killed(within);
        if event == Event::Closed {
            assert!(
                self.received.is_empty(),
                "closed inside a frame: {:?}",
                self.received
            );
        }
        event
    }

    /// As [`Self::event`], of a broker that may be killed inside a frame.
    pub fn event_until_killed(&mut self, within: Duration) -> Event {
        let deadline = Instant::now() + within;
        loop {
            if let Some(frame) = Frame::take_from(&mut self.received) {
                return Event::Frame(frame);
            }
            let mut bytes = Vec::new();
            match self.read(&mut bytes, deadline) {
                Received::Bytes => self.decode(&bytes),
                Received::Closed => return Event::Closed,
                Received::Silence => return Event::Silence,
            }
        }
    }

    /// Reads until the end of the connection and gives all bytes, not looked at.
    pub fn bytes_until_closed(&mut self) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        let mut bytes = std::mem::take(&mut self.received);
        loop {
            match self.read(&mut bytes, deadline) {
                Received::Bytes => {}
                Received::Closed => return bytes,
                Received::Silence => panic!("not closed within {PATIENCE:?}, got {}", bytes.escape_ascii()),
            }
        }
    }

    /// The next `count` bytes before any frame is cut; only before a compression has started.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        let mut bytes = std::mem::take(&mut self.received);
        while bytes.len() < count {
            let more = matches!(self.read(&mut bytes, deadline), Received::Bytes);
            assert!(more, "expected {count} bytes, got {}", bytes.escape_ascii());
        }
        self.received = bytes.split_off(count);
        bytes
    }

    fn read(&mut self, into: &mut Vec<u8>, deadline: Instant) -> Received {
        let left = deadline.saturating_duration_since(Instant::now());
        self.socket
            .set_read_timeout(Some(left.max(SHORTEST)))
            .expect("read deadline");
        let mut piece = vec![0; 64 * 1024];
        let result = match &mut self.transport {
            Transport::Plain(socket) => socket.read(&mut piece),
            Transport::Tls(tls) => tls.read(&mut piece),
        };
        match result {
            Ok(0) => Received::Closed,
            Ok(length) => {
                into.extend_from_slice(&piece[..length]);
                Received::Bytes
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Received::Silence,
                // A TLS alert comes as invalid data; the broker closes right behind it.
                ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::InvalidData => {
                    Received::Closed
                }
                _ => panic!("read: {error}"),
            },
        }
    }

    fn decode(&mut self, bytes: &[u8]) {
        match &mut self.compression {
            Compression::None => self.received.extend_from_slice(bytes),
            Compression::Snappy { decoder, .. } => decoder.decode(bytes, &mut self.received),
            Compression::Deflate(deflate) => deflate.decode(bytes, &mut self.received),
        }
    }
}

/// Upgrades after IDENTIFY (nsq-tcp 2.1.4).
impl Client {
    /// TLS handshake as agreed, and the `OK` behind it.
    ///
    /// # Errors
    /// When the handshake fails on our side. What the broker says about it is read next.
    pub fn start_tls(&mut self, config: &Arc<ClientConfig>) -> Result<(), std::io::Error> {
        assert!(self.received.is_empty(), "bytes before TLS: {:?}", self.received);
        let mut session = ClientConnection::new(Arc::clone(config), pki::server_name()).expect("TLS client");
        self.socket
            .set_read_timeout(Some(PATIENCE))
            .expect("read deadline");
        let mut socket = self.socket.try_clone().expect("second handle");
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        self.transport = Transport::Tls(Box::new(StreamOwned::new(session, socket)));
        Ok(())
    }

    /// Both directions are snappy from here on.
    pub fn start_snappy(&mut self) {
        self.compression = Compression::Snappy {
            decoder: snappy::Decoder::default(),
            identified: false,
        };
        self.decode_early_bytes();
    }

    /// Both directions are deflate from here on.
    pub fn start_deflate(&mut self) {
        self.compression = Compression::Deflate(Box::default());
        self.decode_early_bytes();
    }

    fn decode_early_bytes(&mut self) {
        let early = std::mem::take(&mut self.received);
        self.decode(&early);
    }
}

enum Received {
    Bytes,
    Closed,
    Silence,
}

const MAGIC: &[u8] = b"  V2";
/// How long anything that must come is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
const SHORTEST: Duration = Duration::from_millis(1);
