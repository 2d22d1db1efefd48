//! Duty: where a door listens: a TCP address or a socket file.

use std::fmt;
use std::path::PathBuf;

/// A place to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `host:port`; the host may be empty (all interfaces) or a name.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// What has the form `host:port` is one, everything else is a path; empty is no address.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            None
        } else if is_host_port(text) {
            Some(Self::Tcp(text.to_owned()))
        } else {
            Some(Self::Unix(PathBuf::from(text)))
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(text) => f.write_str(text),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// One colon outside of brackets, as Go splits it: `:4150`, `host:4150`, `[::1]:4150`.
fn is_host_port(text: &str) -> bool {
    let after_host = match text.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((_, tail)) => tail,
            None => return false,
        },
        None => text.trim_start_matches(|c| c != ':'),
    };
    after_host
        .strip_prefix(':')
        .is_some_and(|port| !port.contains([':', '[', ']']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_are_tcp_and_all_else_is_a_socket_file() {
        for tcp in ["0.0.0.0:4150", ":4150", "host:http", "[::1]:4150", "host:"] {
            assert_eq!(Address::parse(tcp), Some(Address::Tcp(tcp.to_owned())));
        }
        for path in [
            "/run/nsqd.sock",
            "nsqd.sock",
            "127.0.0.1",
            "::1",
            "[::1]",
            "a:b:c",
        ] {
            assert_eq!(Address::parse(path), Some(Address::Unix(path.into())));
        }
        assert_eq!(Address::parse(""), None);
    }
}
