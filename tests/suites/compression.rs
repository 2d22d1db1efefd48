//! C-28 to C-32: snappy and deflate (nsq-tcp 2.1.4).

use e2e::wire::{Client, command, snappy};
use e2e::{Broker, Node, statements};

statements! {
    both {
        c_28_deflate_is_raw_and_flushed,
        c_29_snappy_begins_with_the_stream_identifier,
        c_30_a_stream_identifier_before_each_command_is_accepted,
        c_31_a_command_may_span_chunks_with_padding_between,
        c_32_compression_needs_feature_negotiation,
        large_messages_pass_both_compressions,
    }
}

/// The client decodes raw deflate as it arrives, so the `OK` proves that no more input was needed.
fn c_28_deflate_is_raw_and_flushed(broker: &Broker) {
    let node = broker.start();
    let mut client = deflating(&node);
    client.publish("t", "body");
    client.subscribe("t", "c");
    client.ready(1);
    assert_eq!(client.message().body, b"body");
}

fn c_29_snappy_begins_with_the_stream_identifier(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.identify(SNAPPY);
    let identifier = client.bytes(snappy::IDENTIFIER.len());
    assert_eq!(identifier, snappy::IDENTIFIER);
    let header = client.bytes(4);
    let content = client.bytes(usize::from(header[1]));
    let mut plain = Vec::new();
    snappy::Decoder::default().decode(&[identifier, header, content].concat(), &mut plain);
    assert_eq!(plain, b"\0\0\0\x06\0\0\0\0OK");
}

fn c_30_a_stream_identifier_before_each_command_is_accepted(broker: &Broker) {
    let node = broker.start();
    let mut client = snapping(&node);
    for body in [b"one", b"two"] {
        let chunk = snappy::chunk(&command::publish("t", body));
        client.send_encoded(&[snappy::IDENTIFIER, &chunk].concat());
        client.expect_ok();
    }
    node.await_topic("t", |topic| topic["depth"] == 2);
}

fn c_31_a_command_may_span_chunks_with_padding_between(broker: &Broker) {
    let node = broker.start();
    let mut client = snapping(&node);
    let publish = command::publish("t", b"three chunks");
    let (line, rest) = publish.split_at(3);
    let (size, body) = rest.split_at(6);
    let mut stream = snappy::IDENTIFIER.to_vec();
    stream.extend(snappy::chunk(line));
    stream.extend(snappy::chunk(size));
    stream.extend(snappy::padding(17));
    stream.extend(snappy::chunk(body));
    client.send_encoded(&stream);
    client.expect_ok();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(1);
    assert_eq!(consumer.message().body, b"three chunks");
}

fn c_32_compression_needs_feature_negotiation(broker: &Broker) {
    let node = broker.start();
    for request in [r#"{"deflate":true}"#, r#"{"snappy":true}"#] {
        let mut client = node.client();
        assert_eq!(client.identify(request), "OK");
        client.expect_alive();
    }
}

fn large_messages_pass_both_compressions(broker: &Broker) {
    let node = broker.start();
    for (channel, mut client) in [("deflate", deflating(&node)), ("snappy", snapping(&node))] {
        // Compressible and not: digits, then the low bytes of a sequence that never settles.
        let mut body = "0123456789".repeat(20_000).into_bytes();
        body.extend((0..200_000_u32).map(|step| (step.wrapping_mul(2_654_435_761) >> 13) as u8));
        client.publish(channel, &body);
        client.subscribe(channel, "c");
        client.ready(1);
        assert!(
            client.message().body == body,
            "the body came through {channel} unchanged"
        );
    }
}

fn deflating(node: &Node) -> Client {
    let mut client = node.client();
    client.identify(DEFLATE);
    client.start_deflate();
    client.expect_ok();
    client
}

fn snapping(node: &Node) -> Client {
    let mut client = node.client();
    client.identify(SNAPPY);
    client.start_snappy();
    client.expect_ok();
    client
}

const DEFLATE: &str = r#"{"feature_negotiation":true,"deflate":true}"#;
const SNAPPY: &str = r#"{"feature_negotiation":true,"snappy":true}"#;
