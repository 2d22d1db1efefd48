//! Duty: an HTTP server for tests. Comes in: a function from request to answer. Goes out: what was asked.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A server on loopback that lives as long as this.
pub(crate) struct FakeHttp {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

/// Status, body; `None` never answers.
pub(crate) type Answer = Option<(u16, String)>;

impl FakeHttp {
    pub(crate) async fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_with(None, answer).await
    }

    pub(crate) async fn start_with(
        tls: Option<Arc<ServerConfig>>,
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (asked, answer) = (Arc::clone(&requests), Arc::new(answer));
        let acceptor = tls.map(TlsAcceptor::from);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (asked, answer, acceptor) = (Arc::clone(&asked), Arc::clone(&answer), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(stream, &asked, &*answer).await,
                        // A client that does not trust the server goes away in the handshake.
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) => serve(stream, &asked, &*answer).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        Self {
            address,
            requests,
            task,
        }
    }

    /// The heads of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

impl Drop for FakeHttp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    asked: &Mutex<Vec<String>>,
    answer: &(impl Fn(&str) -> Answer + Sync),
) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    asked.lock().push(head.clone());
    let Some((status, body)) = answer(&head) else {
        std::future::pending().await
    };
    let length = body.len();
    let response =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(response.as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}
