//! Duty: replays the golden sessions and messages of `vectors/`: the decoder, driven by the plainest server there could
//! be, must answer what the real one answered, byte for byte and however the bytes are cut.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its vectors has failed"
)]

mod plain_server;

use std::path::Path;

use nsqx_proto::dialect::Dialect;
use nsqx_proto::frame::Frame;
use nsqx_proto::message::{Delivery, Layout, put_message};

use plain_server::PlainServer;

#[test]
fn sessions_of_stock_nsqd() {
    for file in [
        "stock_lines",
        "stock_identify",
        "stock_subscribe",
        "stock_publish",
    ] {
        replay_sessions(file);
    }
}

#[test]
fn sessions_of_youzan_clients() {
    replay_sessions("youzan_publish");
}

#[test]
fn messages_of_stock_nsqd() {
    for vector in read("stock_messages") {
        check_message(&vector, Layout::default());
    }
}

#[test]
fn messages_for_youzan_consumers() {
    for vector in read("youzan_messages") {
        let layout = Layout {
            extended: vector.title.contains("extended"),
            detail: vector.title.contains("detail"),
            dialect: Dialect::Youzan,
            ..Layout::default()
        };
        check_message(&vector, layout);
    }
}

fn replay_sessions(file: &str) {
    for vector in read(file) {
        let what = format!("{file}: {}", vector.title);
        let (first, rest) = (
            vector.client.len() / 2,
            vector.client.len() - vector.client.len() / 2,
        );
        for cut in [
            vec![vector.client.len()],
            vec![first, rest],
            pieces(vector.client.len(), 4096),
        ] {
            check_session(&vector, &cut, &what);
        }
        if vector.client.len() < 1_000 {
            check_session(&vector, &pieces(vector.client.len(), 1), &what);
        }
    }
}

fn pieces(len: usize, size: usize) -> Vec<usize> {
    (0..len).step_by(size).map(|at| size.min(len - at)).collect()
}

fn check_session(vector: &Vector, cut: &[usize], what: &str) {
    let mut server = PlainServer::default();
    let mut rest = &vector.client[..];
    for size in cut {
        let (piece, after) = rest.split_at(*size);
        server.receive(piece);
        rest = after;
    }
    if vector.client_ends {
        server.end();
    }
    assert_eq!(
        server.sent().escape_ascii().to_string(),
        vector.server.escape_ascii().to_string(),
        "{what}, cut into {} pieces",
        cut.len()
    );
    assert_eq!(server.has_closed(), vector.server_ends, "{what}: closed");
}

fn check_message(vector: &Vector, layout: Layout) {
    let (frame, whole) = Frame::decode(&vector.server, 1_000).unwrap().unwrap();
    assert_eq!(whole, vector.server.len(), "{}", vector.title);
    let Frame::Message(data) = frame else {
        panic!("{frame:?}")
    };
    let message = Delivery::decode(data, layout).unwrap();
    let mut again = Vec::new();
    put_message(&mut again, layout, &message);
    assert_eq!(again, vector.server, "{}", vector.title);
}

/// One `[title]` of a vector file.
#[derive(Default)]
struct Vector {
    title: String,
    client: Vec<u8>,
    client_ends: bool,
    server: Vec<u8>,
    server_ends: bool,
}

fn read(file: &str) -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors")
        .join(file)
        .with_extension("txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut vectors: Vec<Vector> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(title) = line.strip_prefix('[') {
            let title = title.strip_suffix(']').unwrap().to_owned();
            vectors.push(Vector {
                title,
                ..Vector::default()
            });
            continue;
        }
        let vector = vectors.last_mut().unwrap();
        match line.split_at(2) {
            ("> ", "eof") => vector.client_ends = true,
            ("< ", "eof") => vector.server_ends = true,
            ("> ", bytes) => vector.client.extend(tokens(bytes)),
            ("< ", bytes) => vector.server.extend(tokens(bytes)),
            _ => panic!("{file}: {line}"),
        }
    }
    assert!(!vectors.is_empty());
    vectors
}

/// Quoted text with `\n`, `\r`, `\"`, `\\`, `\xNN`, perhaps `*` and a count behind it; hex digits in pairs; blanks between.
fn tokens(mut text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else {
            return bytes;
        };
        if first != '"' {
            let end = text.find(' ').unwrap_or(text.len());
            bytes.extend(
                text.as_bytes()[..end]
                    .chunks(2)
                    .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()),
            );
            text = &text[end..];
            continue;
        }
        let (quoted, rest) = quoted(&text[1..]);
        let digits = rest
            .strip_prefix('*')
            .map_or(0, |rest| 1 + rest.find(' ').unwrap_or(rest.len()));
        let times = rest[..digits].trim_start_matches('*').parse().unwrap_or(1);
        bytes.extend(quoted.repeat(times));
        text = &rest[digits..];
    }
}

fn quoted(text: &str) -> (Vec<u8>, &str) {
    let mut bytes = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (bytes, &text[at + 1..]),
            '\\' => match chars.next().unwrap().1 {
                'n' => bytes.push(b'\n'),
                'r' => bytes.push(b'\r'),
                'x' => {
                    bytes.push(u8::from_str_radix(&text[at + 2..at + 4], 16).unwrap());
                    chars.nth(1);
                }
                other => bytes.push(other as u8),
            },
            c => bytes.push(c as u8),
        }
    }
    panic!("no closing quote: {text}")
}
