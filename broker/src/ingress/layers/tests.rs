//! The layers against the libraries that peers use, and against hostile bytes.

use std::io::{Read, Write};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::tls::client_certificate::ClientPolicy;
use crate::tls::server::ServerTls;
use crate::tls::testing::{Authority, BOTH, client};

#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Snappy,
    Deflate(u8),
}

const IDENTIFIER: &[u8] = b"\xff\x06\0\0sNaPpY";

fn layers(kind: Kind) -> Layers {
    let mut layers = Layers::default();
    match kind {
        Kind::Plain => {}
        Kind::Snappy => layers.start_snappy(),
        Kind::Deflate(level) => layers.start_deflate(level),
    }
    layers
}

fn snappy() -> Layers {
    layers(Kind::Snappy)
}

/// Feeds all of `raw` and takes everything that comes of it.
fn feed(layers: &mut Layers, raw: &[u8], plain: &mut Vec<u8>) -> Result<(), LayerError> {
    layers.decode(raw, plain)?;
    while layers.has_more() {
        layers.decode(&[], plain)?;
    }
    Ok(())
}

fn chunk(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_le_bytes();
    [&[kind], &length[..3], content].concat()
}

fn plain_chunk(plain: &[u8]) -> Vec<u8> {
    let checksum = crc32c::crc32c(plain).rotate_right(15).wrapping_add(0xa282_ead8);
    chunk(1, &[&checksum.to_le_bytes(), plain].concat())
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Plain),
        Just(Kind::Snappy),
        (1_u8..=9).prop_map(Kind::Deflate)
    ]
}

/// Commands of all lengths: some that compress, some that do not.
fn commands() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let random = proptest::collection::vec(any::<u8>(), 0..300);
    let long = (any::<u8>(), 0_usize..200_000).prop_map(|(byte, length)| vec![byte; length]);
    proptest::collection::vec(prop_oneof![3 => random, 1 => long], 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_of_the_bytes_gives_the_same_commands(
        kind in kind(), commands in commands(), cuts in proptest::collection::vec(1_usize..5000, 1..20)
    ) {
        let (mut sender, mut receiver) = (layers(kind), layers(kind));
        let mut raw = Vec::new();
        for command in &commands {
            sender.encode(command, &mut raw);
        }
        let (mut plain, mut rest) = (Vec::new(), raw.as_slice());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            feed(&mut receiver, piece, &mut plain).unwrap();
            rest = after;
        }
        prop_assert!(plain == commands.concat());
    }

    #[test]
    fn each_flush_can_be_read_without_what_follows(kind in kind(), commands in commands()) {
        let (mut sender, mut receiver) = (layers(kind), layers(kind));
        for command in &commands {
            let (mut raw, mut plain) = (Vec::new(), Vec::new());
            sender.encode(command, &mut raw);
            feed(&mut receiver, &raw, &mut plain).unwrap();
            prop_assert!(plain == *command);
        }
    }

    #[test]
    fn garbage_ends_in_bytes_or_an_error(
        kind in kind(), valid_start: bool, pieces in proptest::collection::vec(any::<Vec<u8>>(), 0..10)
    ) {
        let mut receiver = layers(kind);
        let mut plain = Vec::new();
        if valid_start {
            let _ = feed(&mut receiver, IDENTIFIER, &mut plain);
        }
        for piece in &pieces {
            let _ = feed(&mut receiver, piece, &mut plain);
        }
    }

    #[test]
    fn a_flipped_bit_in_a_snappy_stream_never_changes_a_command(
        command in proptest::collection::vec(any::<u8>(), 1..200), at: prop::sample::Index, bit in 0_u8..8
    ) {
        let mut raw = Vec::new();
        snappy().encode(&command, &mut raw);
        let at = at.index(raw.len());
        raw[at] ^= 1 << bit;
        let mut plain = Vec::new();
        let outcome = feed(&mut snappy(), &raw, &mut plain);
        prop_assert!(outcome.is_err() || plain.is_empty());
    }

    #[test]
    fn snappy_is_what_the_snap_crate_reads_and_writes(commands in commands()) {
        let (mut raw, mut read) = (Vec::new(), Vec::new());
        let mut sender = snappy();
        for command in &commands {
            sender.encode(command, &mut raw);
        }
        snap::read::FrameDecoder::new(raw.as_slice()).read_to_end(&mut read).unwrap();
        prop_assert!(read == commands.concat());

        let mut writer = snap::write::FrameEncoder::new(Vec::new());
        for command in &commands {
            writer.write_all(command).unwrap();
            writer.flush().unwrap();
        }
        let mut plain = Vec::new();
        feed(&mut snappy(), &writer.into_inner().unwrap(), &mut plain).unwrap();
        prop_assert!(plain == commands.concat());
    }

    #[test]
    fn deflate_is_what_flate2_reads_and_writes(level in 1_u8..=9, commands in commands()) {
        let mut sender = layers(Kind::Deflate(level));
        let mut reader = flate2::write::DeflateDecoder::new(Vec::new());
        for command in &commands {
            let mut raw = Vec::new();
            sender.encode(command, &mut raw);
            prop_assert!(command.is_empty() || raw.ends_with(b"\0\0\xff\xff"));
            reader.write_all(&raw).unwrap();
            reader.flush().unwrap();
        }
        prop_assert!(*reader.get_ref() == commands.concat());

        let mut receiver = layers(Kind::Deflate(level));
        let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(u32::from(level)));
        for command in &commands {
            writer.write_all(command).unwrap();
            writer.flush().unwrap();
        }
        let mut plain = Vec::new();
        feed(&mut receiver, writer.get_ref(), &mut plain).unwrap();
        prop_assert!(plain == commands.concat());
    }
}

#[test]
fn the_identifier_may_come_before_every_command() {
    let mut plain = Vec::new();
    let raw = [
        IDENTIFIER,
        &plain_chunk(b"NOP\n"),
        IDENTIFIER,
        IDENTIFIER,
        &plain_chunk(b"CLS\n"),
    ]
    .concat();
    feed(&mut snappy(), &raw, &mut plain).unwrap();
    assert_eq!(plain, b"NOP\nCLS\n");
}

#[test]
fn a_command_may_span_chunks_with_padding_between() {
    let padding = chunk(0xfe, &vec![7; 100_000]);
    let skippable = chunk(0x80, b"whatever");
    let raw = [
        IDENTIFIER,
        &plain_chunk(b"PUB t\n\0\0"),
        &padding,
        &plain_chunk(b"\0\x05he"),
        &skippable,
        &chunk(0xfe, b""),
        &plain_chunk(b"llo"),
    ]
    .concat();
    let mut whole = Vec::new();
    feed(&mut snappy(), &raw, &mut whole).unwrap();
    assert_eq!(whole, b"PUB t\n\0\0\0\x05hello");

    let (mut layers, mut bytewise) = (snappy(), Vec::new());
    for byte in &raw {
        feed(&mut layers, &[*byte], &mut bytewise).unwrap();
    }
    assert_eq!(bytewise, whole);
}

#[test]
fn bytes_that_are_no_snappy_stream_are_refused() {
    let mut wrong_checksum = plain_chunk(b"NOP\n");
    wrong_checksum[5] ^= 1;
    let huge_block = [&[0; 4][..], &[0x81, 0x80, 0x04], &[0]].concat();
    let after_identifier = [
        (chunk(0x02, b""), SnappyError::Kind(0x02)),
        (chunk(0x7f, b""), SnappyError::Kind(0x7f)),
        (chunk(0xff, b"sNaPp!"), SnappyError::Identifier),
        (chunk(1, b"abc"), SnappyError::Length { kind: 1, length: 3 }),
        (
            chunk(1, &vec![0; 65_541]),
            SnappyError::Length {
                kind: 1,
                length: 65_541,
            },
        ),
        (
            chunk(0, &huge_block),
            SnappyError::Length {
                kind: 0,
                length: 65_537,
            },
        ),
        (wrong_checksum, SnappyError::Checksum),
    ];
    for (chunk, expected) in after_identifier {
        let mut plain = Vec::new();
        let outcome = feed(&mut snappy(), &[IDENTIFIER, &chunk].concat(), &mut plain);
        assert!(
            matches!(&outcome, Err(LayerError::Snappy(error)) if *error == expected),
            "{outcome:?}"
        );
        assert!(plain.is_empty());
    }
    let outcome = feed(&mut snappy(), b"  V2", &mut Vec::new());
    assert!(matches!(
        outcome,
        Err(LayerError::Snappy(SnappyError::Identifier))
    ));
}

#[test]
fn a_stream_that_swells_is_handed_out_in_steps() {
    let zeros = vec![0; 10 * 1024 * 1024];
    for kind in [Kind::Snappy, Kind::Deflate(9)] {
        let mut raw = Vec::new();
        layers(kind).encode(&zeros, &mut raw);
        let mut receiver = layers(kind);
        let (mut total, mut input) = (0, raw.as_slice());
        loop {
            let mut plain = Vec::new();
            receiver.decode(input, &mut plain).unwrap();
            assert!(plain.len() <= DECODE_STEP + 65_536, "{}", plain.len());
            total += plain.len();
            input = &[];
            if !receiver.has_more() {
                break;
            }
        }
        assert_eq!(total, zeros.len());
    }
}

#[test]
fn the_end_of_a_deflate_stream_is_an_end_of_file() {
    let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(b"NOP\n").unwrap();
    let raw = [writer.finish().unwrap(), b"rest".to_vec()].concat();
    let (mut receiver, mut plain) = (layers(Kind::Deflate(6)), Vec::new());
    feed(&mut receiver, &raw, &mut plain).unwrap();
    assert_eq!(plain, b"NOP\n");
    assert!(receiver.peer_has_closed());
}

/// A client that has gone through its handshake with the layers, byte by byte.
fn connected(
    policy: ClientPolicy,
    shown: Option<&str>,
    versions: usize,
) -> Result<(Layers, rustls::ClientConnection), LayerError> {
    let authority = Authority::new();
    let server = ServerTls::load(authority.server_settings(&authority.issue("server"), policy)).unwrap();
    let pair = shown.map(|name| authority.self_signed(name));
    let mut client = client(authority.client_config(pair.as_ref(), &BOTH[versions..=versions]));
    let mut layers = Layers::default();
    layers.start_tls(server.config())?;
    while client.is_handshaking() || layers.is_handshaking() {
        assert_eq!(layers.tls_facts().is_some(), !layers.is_handshaking());
        to_client(&mut layers, &mut client);
        let mut raw = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut raw).unwrap();
        }
        for byte in raw {
            layers.decode(&[byte], &mut Vec::new())?;
        }
    }
    to_client(&mut layers, &mut client);
    Ok((layers, client))
}

fn to_client(layers: &mut Layers, client: &mut rustls::ClientConnection) {
    let mut raw = Vec::new();
    layers.pending_raw(&mut raw);
    receive(client, &raw);
}

fn receive(client: &mut rustls::ClientConnection, mut raw: &[u8]) {
    while !raw.is_empty() {
        client.read_tls(&mut raw).unwrap();
        client.process_new_packets().unwrap();
    }
}

fn exchange_ok(layers: &mut Layers, client: &mut rustls::ClientConnection) -> Vec<u8> {
    let mut raw = Vec::new();
    layers.encode(b"OK", &mut raw);
    receive(client, &raw);
    let mut read = vec![0; 1000];
    let length = client.reader().read(&mut read).unwrap();
    read.truncate(length);
    read
}

fn send(client: &mut rustls::ClientConnection, plain: &[u8]) -> Vec<u8> {
    client.writer().write_all(plain).unwrap();
    let mut raw = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut raw).unwrap();
    }
    raw
}

#[test]
fn tls_carries_commands_and_tells_what_was_agreed() {
    for (versions, version) in ["TLS1.2", "TLS1.3"].into_iter().enumerate() {
        let (mut layers, mut client) = connected(ClientPolicy::Require, Some("client"), versions).unwrap();
        assert_eq!(exchange_ok(&mut layers, &mut client), b"OK");
        let facts = layers.tls_facts().unwrap();
        assert_eq!(
            (facts.version.as_str(), facts.common_name.as_str()),
            (version, "client")
        );
        assert_eq!((facts.protocol.as_str(), facts.protocol_is_mutual), ("", true));
        let mut plain = Vec::new();
        for byte in send(&mut client, b"NOP\n") {
            feed(&mut layers, &[byte], &mut plain).unwrap();
        }
        assert_eq!(plain, b"NOP\n");
        client.send_close_notify();
        let farewell = send(&mut client, b"");
        feed(&mut layers, &farewell, &mut plain).unwrap();
        assert!(layers.peer_has_closed());
    }
}

#[test]
fn a_client_without_a_certificate_has_no_name() {
    let (layers, _) = connected(ClientPolicy::None, Some("unasked"), 1).unwrap();
    assert_eq!(layers.tls_facts().unwrap().common_name, "");
}

#[test]
fn suites_that_stock_does_not_name_show_as_numbers() {
    let (layers, _) = connected(ClientPolicy::None, None, 1).unwrap();
    let suite = layers.tls_facts().unwrap().cipher_suite;
    let number = suite.strip_prefix("Unknown ").map(str::parse::<u16>);
    assert!(matches!(number, Some(Ok(0x1301..=0x1303))), "{suite}");
}

#[test]
fn compression_lies_inside_tls() {
    let (mut layers, mut client) = connected(ClientPolicy::None, None, 1).unwrap();
    assert_eq!(exchange_ok(&mut layers, &mut client), b"OK");
    layers.start_snappy();
    let second = exchange_ok(&mut layers, &mut client);
    assert_eq!(second, [IDENTIFIER, &plain_chunk(b"OK")].concat());
    let mut plain = Vec::new();
    let raw = send(&mut client, &[IDENTIFIER, &plain_chunk(b"NOP\n")].concat());
    for piece in raw.chunks(3) {
        feed(&mut layers, piece, &mut plain).unwrap();
    }
    assert_eq!(plain, b"NOP\n");

    let (mut layers, mut client) = connected(ClientPolicy::None, None, 0).unwrap();
    layers.start_deflate(6);
    let raw = exchange_ok(&mut layers, &mut client);
    let mut plain = Vec::new();
    feed(&mut self::layers(Kind::Deflate(6)), &raw, &mut plain).unwrap();
    assert_eq!(plain, b"OK");
}

#[test]
fn a_failed_handshake_leaves_an_alert_to_send() {
    let authority = Authority::new();
    let settings = authority.server_settings(&authority.issue("server"), ClientPolicy::None);
    let mut layers = Layers::default();
    layers
        .start_tls(ServerTls::load(settings).unwrap().config())
        .unwrap();
    assert!(layers.decode(b"GET / HTTP/1.1\r\n\r\n", &mut Vec::new()).is_err());
    let mut raw = Vec::new();
    layers.pending_raw(&mut raw);
    assert_eq!(raw.first(), Some(&21), "an alert record");
    assert!(connected(ClientPolicy::Require, None, 1).is_err());
}

#[test]
fn layers_may_move_between_threads() {
    fn is_send<T: Send + Sync>() {}
    is_send::<Layers>();
    is_send::<Arc<ServerTls>>();
}
