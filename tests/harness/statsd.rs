//! Duty: a UDP sink for statsd datagrams.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// A listening sink.
#[derive(Debug)]
pub struct Statsd {
    socket: UdpSocket,
}

impl Statsd {
    /// Listens on a free loopback port.
    pub fn start() -> Self {
        Self {
            socket: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind"),
        }
    }

    /// The value of `--statsd-address`.
    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("address")
    }

    /// Datagrams as text until one of them satisfies `enough`, at most `within`.
    ///
    /// # Panics
    /// When none does.
    pub fn datagrams_until(&self, within: Duration, enough: impl Fn(&str) -> bool) -> Vec<String> {
        let deadline = Instant::now() + within;
        let mut datagrams = Vec::new();
        loop {
            let left = deadline
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1));
            self.socket.set_read_timeout(Some(left)).expect("read deadline");
            let mut bytes = vec![0; 65_536];
            match self.socket.recv(&mut bytes) {
                Ok(length) => {
                    let text = String::from_utf8(bytes[..length].to_vec()).expect("text");
                    let last = enough(&text);
                    datagrams.push(text);
                    if last {
                        return datagrams;
                    }
                }
                Err(error) => panic!("{error} after {within:?}, got {datagrams:?}"),
            }
        }
    }
}
