//! Duty: listening sockets, TCP or unix, and what they accept. Must not know protocols.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Where to listen: an address that is not host:port is the path of a unix socket (nsq-tcp 0).
#[derive(Debug)]
pub enum StdListener {
    /// TCP
    Tcp(std::net::TcpListener),
    /// Unix socket
    Unix(std::os::unix::net::UnixListener),
}

impl StdListener {
    /// Binds to `address` and listens.
    ///
    /// # Errors
    /// When the address is not usable.
    pub fn bind(address: &str) -> io::Result<Self> {
        let listener = Self::reserve(address)?;
        listener.listen()?;
        Ok(listener)
    }

    /// Binds to `address`, so that nobody else can, but refuses connections until [`StdListener::listen`].
    ///
    /// # Errors
    /// When the address is not usable.
    pub fn reserve(address: &str) -> io::Result<Self> {
        if is_host_port(address) {
            let host_port = address
                .strip_prefix(':')
                .map_or_else(|| address.to_owned(), |port| format!("0.0.0.0:{port}"));
            let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
            for address in host_port.to_socket_addrs()? {
                match bound(Domain::for_address(address), &address.into()) {
                    Ok(socket) => return Ok(Self::Tcp(socket.into())),
                    Err(error) => refused = error,
                }
            }
            return Err(refused);
        }
        Ok(Self::Unix(bound(Domain::UNIX, &SockAddr::unix(address)?)?.into()))
    }

    /// Lets connections in from now on.
    ///
    /// # Errors
    /// When somebody else listens on the address since before it was bound.
    pub fn listen(&self) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => SockRef::from(listener).listen(BACKLOG),
            Self::Unix(listener) => SockRef::from(listener).listen(BACKLOG),
        }
    }

    /// The bound TCP port; -1 for a unix socket, as `/info` shows it.
    pub fn port(&self) -> i64 {
        match self {
            Self::Tcp(listener) => listener
                .local_addr()
                .map_or(0, |address| i64::from(address.port())),
            Self::Unix(_) => -1,
        }
    }

    /// Another handle of the same socket.
    ///
    /// # Errors
    /// When the process has too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
            Self::Unix(listener) => Self::Unix(listener.try_clone()?),
        })
    }
}

/// A listening socket of the runtime that adopted it.
#[derive(Debug)]
pub enum Listener {
    /// TCP
    Tcp(TcpListener),
    /// Unix socket
    Unix(UnixListener),
}

impl Listener {
    /// Registers the socket with the current runtime.
    ///
    /// # Errors
    /// When the runtime can not watch the socket.
    pub fn adopt(listener: StdListener) -> io::Result<Self> {
        Ok(match listener {
            StdListener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            StdListener::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    /// The next connection. Failures (too many open files) are logged and tried again after a pause. Cancel safe.
    pub async fn accept(&self) -> Accepted {
        loop {
            let accepted = match self {
                Self::Tcp(listener) => listener
                    .accept()
                    .await
                    .map(|(stream, peer)| Accepted::tcp(stream, peer)),
                Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Accepted::unix(stream)),
            };
            match accepted {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::error!(%error, "can not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// A new connection.
#[derive(Debug)]
pub struct Accepted {
    /// Its socket.
    pub stream: Stream,
    /// `ip:port` of the peer; empty for a unix socket.
    pub peer: String,
    /// The peer's IP; `None` for a unix socket.
    pub ip: Option<IpAddr>,
}

impl Accepted {
    fn tcp(stream: TcpStream, peer: SocketAddr) -> Self {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "can not switch off Nagle's algorithm");
        }
        Self {
            stream: Stream::Tcp(stream),
            peer: peer.to_string(),
            ip: Some(peer.ip()),
        }
    }

    fn unix(stream: UnixStream) -> Self {
        Self {
            stream: Stream::Unix(stream),
            peer: String::new(),
            ip: None,
        }
    }
}

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// TCP
    Tcp(TcpStream),
    /// Unix socket
    Unix(UnixStream),
}

impl Stream {
    /// Reads what is there.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }

    /// Writes what the socket takes.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }
}

fn bound(domain: Domain, address: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::STREAM, None)?;
    if domain != Domain::UNIX {
        socket.set_reuse_address(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// True for `host:port` and `:port`; anything else is the path of a unix socket.
pub fn is_host_port(address: &str) -> bool {
    address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.contains('/') && !port.is_empty() && !port.contains('/'))
}

/// Connections that wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_reserved_port_is_taken_but_refuses_connections_until_it_listens() {
        let listener = StdListener::reserve("127.0.0.1:0").unwrap();
        let address = format!("127.0.0.1:{}", listener.port());
        assert_eq!(
            TcpStream::connect(&address).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
        listener.listen().unwrap();
        TcpStream::connect(&address).unwrap();
        assert_eq!(
            StdListener::reserve(&address).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
    }
}
