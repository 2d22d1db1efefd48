//! Duty: listeners and connections of the HTTP door. Sockets come in, requests go to the routes, connections end
//! cleanly. Must not know routes.

use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt;

use super::head_guard::{HeadGuard, Turns};

/// The other end of a connection, as it is logged; an extension of every request.
#[derive(Clone, Debug)]
pub struct Remote(pub Arc<str>);

/// Serves connections of one listener until told to stop.
#[derive(Debug)]
pub struct Connections {
    service: Router,
    tasks: JoinSet<()>,
    stop: watch::Sender<()>,
}

/// Accepts connections from `listener` until `shutdown` completes, then lets requests finish for a few seconds.
/// For TCP, set `nodelay` with [`axum::serve::ListenerExt::tap_io`]. Dropping the future ends all connections.
pub async fn serve<L>(mut listener: L, service: Router, shutdown: impl Future<Output = ()>)
where
    L: Listener,
    L::Addr: Debug,
{
    let mut connections = Connections::new(service);
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            (socket, remote) = listener.accept() => {
                connections.add(socket, Remote(format!("{remote:?}").into()));
            }
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    connections.finish().await;
}

impl Connections {
    /// No connection yet. `service` is what [`super::service`] gives.
    pub fn new(service: Router) -> Self {
        Self {
            service,
            tasks: JoinSet::new(),
            stop: watch::Sender::new(()),
        }
    }

    /// Serves one more connection in a task of its own. TLS is over with its handshake here.
    pub fn add<S>(&mut self, socket: S, remote: Remote)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        while self.tasks.try_join_next().is_some() {}
        let connection = connection(socket, remote, self.service.clone(), self.stop.subscribe());
        self.tasks.spawn(connection);
    }

    /// Closes idle connections, lets running requests finish for a few seconds, then ends what is left.
    pub async fn finish(mut self) {
        drop(self.stop);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(GRACE, all).await.is_err() {
            tracing::warn!("requests cut off at shutdown");
        }
    }
}

async fn connection<S>(socket: S, remote: Remote, service: Router, mut stop: watch::Receiver<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let turns = Turns::default();
    let socket = HeadGuard::new(socket, turns.clone(), HEAD_TIMEOUT);
    let answer = service_fn(|request: Request<Incoming>| {
        let turn = turns.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(remote.clone());
        let answer = service.clone().oneshot(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(turn);
            answer
        })
    });
    let mut connection = http1::Builder::new()
        // It would count idle time too; the guard does not.
        .header_read_timeout(None)
        .max_header_size(MAX_HEAD)
        .title_case_headers(true)
        .half_close(true)
        .serve_connection(TokioIo::new(socket), answer);
    let mut stopping = false;
    let outcome = loop {
        tokio::select! {
            outcome = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break outcome,
            _ = stop.changed(), if !stopping => {
                stopping = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    match outcome {
        Ok(()) if stopping => {}
        Ok(()) => linger(connection.into_parts().io.into_inner().into_inner()).await,
        Err(error) => tracing::debug!(remote = %remote.0, %error, "connection broke"),
    }
}

/// Closes without losing the last answer: closing while the client still sends a body that was refused would make
/// its kernel throw the answer away.
async fn linger<S: AsyncRead + AsyncWrite + Unpin>(mut socket: S) {
    if socket.shutdown().await.is_err() {
        return;
    }
    let mut waste = [0; 8192];
    let rest = async { while matches!(socket.read(&mut waste).await, Ok(1..)) {} };
    // Whoever goes on sending has lost interest in the answer.
    let _ = timeout(LINGER, rest).await;
}

/// Time for a request head, from its first byte (the first of a connection: from its start).
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest request head in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Time for running requests at shutdown.
const GRACE: Duration = Duration::from_secs(5);
/// Time for a client to take the last answer of a connection.
const LINGER: Duration = Duration::from_millis(500);
