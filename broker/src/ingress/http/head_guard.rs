//! Duty: closes connections that take too long to send a request head, and leaves idle kept-alive ones alone. Wraps
//! the socket; must not know HTTP beyond "a request was taken" and "its answer is there".

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A socket whose reads fail with `TimedOut` when a head takes longer than the limit: the first one from the start
/// of the connection, later ones from their first byte.
///
/// Of pipelined requests only those are watched that begin after the answer before them.
#[derive(Debug)]
pub(super) struct HeadGuard<S> {
    socket: S,
    turns: Turns,
    seen: u64,
    limit: Duration,
    patience: Option<Pin<Box<Sleep>>>,
}

/// Counts requests taken and answered; shared by the guard and whoever serves the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<AtomicU64>);

/// A request that is being served, until dropped.
#[derive(Debug)]
pub(super) struct Turn(Turns);

impl Turns {
    /// A whole head was read.
    pub(super) fn begin(&self) -> Turn {
        self.0.fetch_add(1, Ordering::Relaxed);
        Turn(self.clone())
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl<S> HeadGuard<S> {
    /// Guards `socket`, starting with the time for the first head.
    pub(super) fn new(socket: S, turns: Turns, limit: Duration) -> Self {
        Self {
            socket,
            seen: turns.count(),
            turns,
            limit,
            patience: Some(Box::pin(sleep(limit))),
        }
    }

    /// The socket without its guard.
    pub(super) fn into_inner(self) -> S {
        self.socket
    }

    /// Whether a head is awaited; forgets the time of the one before.
    fn awaits_head(&mut self) -> bool {
        let count = self.turns.count();
        if count != self.seen {
            self.seen = count;
            self.patience = None;
        }
        count.is_multiple_of(2)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let awaits_head = self.awaits_head();
        let filled = buffer.filled().len();
        let outcome = Pin::new(&mut self.socket).poll_read(cx, buffer);
        if !awaits_head {
            return outcome;
        }
        let began = outcome.is_ready() && buffer.filled().len() > filled;
        if began && self.patience.is_none() {
            self.patience = Some(Box::pin(sleep(self.limit)));
        }
        // The rest of the head has to come before the time is up, even if every read finds something.
        let patience = self.patience.as_mut();
        if patience.is_some_and(|patience| patience.as_mut().poll(cx).is_ready()) {
            Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
        } else {
            outcome
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadGuard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn the_first_head_has_to_come_in_time() {
        let (_client, server) = duplex(64);
        let mut guard = HeadGuard::new(server, Turns::default(), LIMIT);
        let error = guard.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn drops_of_bytes_do_not_buy_time() {
        let (mut client, server) = duplex(64);
        let mut guard = HeadGuard::new(server, Turns::default(), LIMIT);
        for _ in 0..5 {
            client.write_u8(b'x').await.unwrap();
            guard.read_u8().await.unwrap();
            tokio::time::advance(LIMIT / 5).await;
        }
        client.write_u8(b'x').await.unwrap();
        assert_eq!(guard.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_and_idle_connections_have_all_the_time() {
        let (mut client, server) = duplex(64);
        let turns = Turns::default();
        let mut guard = HeadGuard::new(server, turns.clone(), LIMIT);
        client.write_u8(b'h').await.unwrap();
        guard.read_u8().await.unwrap();
        let turn = turns.begin();
        tokio::time::advance(LIMIT * 3).await;
        client.write_u8(b'b').await.unwrap();
        assert_eq!(guard.read_u8().await.unwrap(), b'b');
        drop(turn);
        let idle = tokio::time::timeout(LIMIT * 3, guard.read_u8()).await;
        assert!(idle.is_err(), "an idle connection was closed");
        client.write_u8(b'h').await.unwrap();
        guard.read_u8().await.unwrap();
        assert_eq!(guard.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
