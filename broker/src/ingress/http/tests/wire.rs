//! What only shows on a socket.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::ingress::http::{Connections, Remote, serve};

struct Server {
    address: std::net::SocketAddr,
    desk: Arc<FakeDesk>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let desk = FakeDesk::new();
        let routes = service(Arc::clone(&desk) as Arc<dyn Desk>, Clock::start(), Door::Plain);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve(listener, routes, async {
            let _ = stopped.await;
        }));
        Self {
            address,
            desk,
            stop,
            task,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends `request` on a fresh connection and reads until the server closes it.
    async fn exchange(&self, request: &[u8]) -> String {
        let (mut receiving, mut sending) = self.connect().await.into_split();
        let request = request.to_vec();
        // A server that refuses a body need not take all of it.
        tokio::spawn(async move {
            let _ = sending.write_all(&request).await;
            // Keeps the sending side open until the answer was read.
            std::future::pending::<()>().await;
            drop(sending);
        });
        let mut answer = Vec::new();
        receiving.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }
}

/// Reads one answer without a body or with the body `OK`.
async fn read_answer(socket: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") && !answer.ends_with(b"\r\n\r\nOK") {
        let byte = socket.read_u8().await.unwrap();
        answer.push(byte);
        if answer.ends_with(b"\r\n\r\n") && String::from_utf8_lossy(&answer).contains("Content-Length: 2") {
            answer.push(socket.read_u8().await.unwrap());
            answer.push(socket.read_u8().await.unwrap());
        }
    }
    String::from_utf8(answer).unwrap()
}

fn chunks(line: &str, body: &[u8], size: usize) -> Vec<u8> {
    let mut request =
        format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
            .into_bytes();
    for chunk in body.chunks(size) {
        request.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        request.extend(chunk);
        request.extend(b"\r\n");
    }
    request.extend(b"0\r\n\r\n");
    request
}

fn with_length(line: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn h_34_head_has_headers_and_no_body() {
    let server = Server::start().await;
    let answer = server.exchange(&with_length("HEAD /ping", b"")).await;
    assert!(
        answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"),
        "{answer}"
    );
    assert!(answer.contains("Allow: GET, OPTIONS\r\n"), "{answer}");
    assert!(
        answer.contains("Content-Length: 32\r\n") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn h_22_an_empty_answer_says_its_length() {
    let server = Server::start().await;
    let answer = server
        .exchange(&with_length("POST /topic/create?topic=t", b""))
        .await;
    assert!(
        answer.contains("X-Nsq-Content-Type: nsq; version=1.0\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("Content-Length: 0\r\n") && !answer.contains("\r\nContent-Type"),
        "{answer}"
    );
}

#[tokio::test]
async fn h_36_redirects_carry_a_location() {
    let server = Server::start().await;
    let answer = server
        .exchange(&with_length("POST /topic/create/?topic=x", b"body"))
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 307 Temporary Redirect\r\n"),
        "{answer}"
    );
    assert!(answer.contains("Location: /topic/create?topic=x\r\n"), "{answer}");
    assert!(answer.contains("Content-Length: 0\r\n"), "{answer}");
}

#[tokio::test]
async fn h_06_h_15_chunked_bodies_have_the_same_limits() {
    let server = Server::start().await;
    let answer = server
        .exchange(&chunks("POST /pub?topic=t", &vec![b'x'; MAX_MSG], 7777))
        .await;
    assert!(answer.ends_with("\r\n\r\nOK"), "{answer}");
    assert_eq!(server.desk.bodies()[0].len(), MAX_MSG);
    for (line, size, code) in [
        ("POST /pub?topic=t", MAX_MSG + 1, "MSG_TOO_BIG"),
        ("POST /mpub?topic=t", MAX_BODY + 1, "BODY_TOO_BIG"),
    ] {
        let body = b"a\n".repeat(size / 2 + 1);
        for request in [
            chunks(line, &body[..size], 9999),
            with_length(line, &body[..size]),
        ] {
            let answer = server.exchange(&request).await;
            assert!(
                answer.starts_with("HTTP/1.1 413 Request Entity Too Large\r\n"),
                "{answer}"
            );
            assert!(
                answer.ends_with(&format!(r#"{{"message":"{code}"}}"#)),
                "{answer}"
            );
        }
    }
}

#[tokio::test]
async fn a_refused_body_does_not_cost_the_answer() {
    let server = Server::start().await;
    let answer = server
        .exchange(&with_length("POST /pub?topic=t", &vec![b'x'; 16 << 20]))
        .await;
    assert!(answer.ends_with(r#"{"message":"MSG_TOO_BIG"}"#), "{answer}");
}

#[tokio::test]
async fn malformed_chunks_publish_nothing() {
    let server = Server::start().await;
    let request =
        b"POST /pub?topic=t HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n";
    let answer = server.exchange(request).await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(server.desk.bodies().is_empty());
}

#[tokio::test]
async fn connections_are_kept_and_pipelining_keeps_the_order() {
    let server = Server::start().await;
    let mut socket = server.connect().await;
    for _ in 0..3 {
        socket
            .write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        assert!(read_answer(&mut socket).await.starts_with("HTTP/1.1 200 OK\r\n"));
    }
    let two = b"POST /pub?topic=t HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\naHEAD /ping HTTP/1.1\r\nHost: x\r\n\r\n";
    socket.write_all(two).await.unwrap();
    assert!(read_answer(&mut socket).await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(read_answer(&mut socket).await.starts_with("HTTP/1.1 405 "));
}

#[tokio::test]
async fn half_closed_and_old_clients_get_their_answer() {
    let server = Server::start().await;
    let mut socket = server.connect().await;
    socket.write_all(b"GET /ping HTTP/1.0\r\n\r\n").await.unwrap();
    socket.shutdown().await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("\r\n\r\nOK"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_head_beyond_its_limit_is_refused() {
    let server = Server::start().await;
    let head = format!(
        "GET /ping HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "x".repeat(70 * 1024)
    );
    let answer = server.exchange(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn a_stop_ends_idle_connections_at_once() {
    let server = Server::start().await;
    let mut socket = server.connect().await;
    socket
        .write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    read_answer(&mut socket).await;
    let began = Instant::now();
    server.stop.send(()).unwrap();
    server.task.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(socket.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_unix_socket_is_served_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("http.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let routes = service(FakeDesk::new(), Clock::start(), Door::Plain);
    let serving = serve(listener, routes, std::future::pending());
    let asking = async {
        let mut socket = UnixStream::connect(&path).await.unwrap();
        socket
            .write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = tokio::select! {
        answer = asking => answer,
        () = serving => unreachable!("nobody stops it"),
    };
    assert!(answer.ends_with("\r\n\r\nOK"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn slow_heads_end_the_connection_and_idling_does_not() {
    let mut connections = Connections::new(service(FakeDesk::new(), Clock::start(), Door::Plain));
    let (mut client, socket) = duplex(4096);
    connections.add(socket, Remote("test".into()));
    for _ in 0..2 {
        client
            .write_all(b"HEAD /ping HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(client.read_u8().await.unwrap());
        }
        tokio::time::sleep(Duration::from_hours(1)).await;
    }
    client.write_all(b"GET /ping HTTP/1.1\r\nHo").await.unwrap();
    let end = tokio::time::timeout(Duration::from_mins(1), client.read(&mut [0])).await;
    assert_eq!(end.expect("the connection is closed").unwrap(), 0);
}
