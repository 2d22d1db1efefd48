//! C-100 to C-107: TLS on the TCP port (nsq-tcp 2.1.4, 6).

use std::sync::Arc;
use std::time::{Duration, Instant};

use e2e::broker::Kind;
use e2e::node::NodeSetup;
use e2e::pki::Pki;
use e2e::wire::Client;
use e2e::{Broker, Node, statements};
use rustls::ClientConfig;

statements! {
    both {
        c_100_tls_begins_after_the_answer_in_the_clear,
        c_101_compression_runs_inside_tls,
        c_102_without_a_certificate_tls_is_declined,
        c_103_required_tls_refuses_everything_in_the_clear,
        c_104_require_takes_any_client_certificate,
        c_104_require_verify_takes_certificates_of_the_authority,
        c_105_a_client_policy_alone_requires_tls,
        c_106_an_old_tls_version_is_refused,
        c_107_garbage_instead_of_a_handshake_is_answered_in_the_clear,
        c_107_silence_instead_of_a_handshake_is_answered_after_five_seconds,
    }
}

fn c_100_tls_begins_after_the_answer_in_the_clear(broker: &Broker) {
    let pki = Pki::new();
    let node = with_certificate(broker, &pki).start();
    let mut client = secure(&node, &pki.client(), TLS);
    client.publish("t", "secret");
    client.subscribe("t", "c");
    client.ready(1);
    assert_eq!(client.message().body, b"secret");
    let seen = &node.channel("t", "c")["clients"][0];
    assert_eq!(seen["tls"], true);
}

fn c_101_compression_runs_inside_tls(broker: &Broker) {
    let pki = Pki::new();
    let node = with_certificate(broker, &pki).start();
    let mut client = secure(
        &node,
        &pki.client(),
        r#"{"feature_negotiation":true,"tls_v1":true,"snappy":true}"#,
    );
    client.start_snappy();
    client.expect_ok();
    client.publish("t", "snappy in tls");
    let mut client = secure(
        &node,
        &pki.client(),
        r#"{"feature_negotiation":true,"tls_v1":true,"deflate":true}"#,
    );
    client.start_deflate();
    client.expect_ok();
    client.publish("t", "deflate in tls");
    node.await_topic("t", |topic| topic["depth"] == 2);
}

fn c_102_without_a_certificate_tls_is_declined(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    assert_eq!(client.identify(TLS)["tls_v1"], false);
    client.expect_alive();
}

fn c_103_required_tls_refuses_everything_in_the_clear(broker: &Broker) {
    let pki = Pki::new();
    let node = with_certificate(broker, &pki).flag("tls-required", true).start();
    for line in ["NOP", "SUB t c", "FOO", ""] {
        let mut client = node.client();
        client.send_line(line);
        let name = line.split(' ').next().unwrap_or_default();
        client.expect_fatal(&format!(
            "E_INVALID cannot {name} in current state (TLS required)"
        ));
    }
    let mut client = node.client();
    client.identify(r#"{"feature_negotiation":true}"#);
    client.send_line("NOP");
    client.expect_fatal("E_INVALID cannot NOP in current state (TLS required)");
    secure(&node, &pki.client(), TLS).expect_alive();
}

fn c_104_require_takes_any_client_certificate(broker: &Broker) {
    let pki = Pki::new();
    let node = with_certificate(broker, &pki)
        .flag("tls-client-auth-policy", "require")
        .start();
    let self_signed = pki.client_as(pki.self_signed_client("anyone"));
    secure(&node, &self_signed, TLS).expect_alive();
    expect_handshake_refused(&node, &pki.client());
}

fn c_104_require_verify_takes_certificates_of_the_authority(broker: &Broker) {
    let pki = Pki::new();
    let node = with_certificate(broker, &pki)
        .flag("tls-client-auth-policy", "require-verify")
        .flag("tls-root-ca-file", pki.authority_file().display())
        .start();
    secure(&node, &pki.client_as(pki.signed_client("known")), TLS).expect_alive();
    expect_handshake_refused(&node, &pki.client_as(pki.self_signed_client("anyone")));
    expect_handshake_refused(&node, &pki.client());
}

fn c_105_a_client_policy_alone_requires_tls(broker: &Broker) {
    let pki = Pki::new();
    let node = with_certificate(broker, &pki)
        .flag("tls-client-auth-policy", "require")
        .start();
    let mut client = node.client();
    client.send_line("NOP");
    client.expect_fatal("E_INVALID cannot NOP in current state (TLS required)");
}

/// A server that accepts a client answers with a handshake record (ServerHello), one that refuses with an
/// alert, with the error frame or with nothing.
fn c_106_an_old_tls_version_is_refused(broker: &Broker) {
    let pki = Pki::new();
    let answer_with = |minimum: &str| {
        let node = with_certificate(broker, &pki)
            .flag("tls-min-version", minimum)
            .start();
        let mut client = node.client();
        assert_eq!(client.identify(TLS)["tls_v1"], true);
        client.send(&client_hello_of_tls_1_1());
        client.half_close();
        client.bytes_until_closed()
    };
    let refused = answer_with("tls1.2");
    assert_ne!(
        refused.first(),
        Some(&HANDSHAKE_RECORD),
        "{}",
        refused.escape_ascii()
    );
    // Shows that the hello is a good one. Ours may refuse TLS 1.1 whatever the flag says.
    if broker.kind() == Kind::Stock {
        let accepted = answer_with("tls1.1");
        assert_eq!(
            accepted.first(),
            Some(&HANDSHAKE_RECORD),
            "{}",
            accepted.escape_ascii()
        );
    }
}

fn c_107_garbage_instead_of_a_handshake_is_answered_in_the_clear(broker: &Broker) {
    let pki = Pki::new();
    let node = with_certificate(broker, &pki).start();
    let mut client = node.client();
    client.identify(TLS);
    client.send(b"this is certainly no ClientHello\n");
    expect_identify_failed(&client.bytes_until_closed());
}

fn c_107_silence_instead_of_a_handshake_is_answered_after_five_seconds(broker: &Broker) {
    let pki = Pki::new();
    let node = with_certificate(broker, &pki).start();
    let mut client = node.client();
    client.identify(TLS);
    let began = Instant::now();
    expect_identify_failed(&client.bytes_until_closed());
    let waited = began.elapsed();
    assert!(
        (Duration::from_millis(4900)..Duration::from_secs(7)).contains(&waited),
        "after {waited:?}"
    );
}

/// An error frame, maybe behind a TLS alert.
fn expect_identify_failed(bytes: &[u8]) {
    let text = b"E_IDENTIFY_FAILED IDENTIFY failed ";
    let at = bytes.windows(text.len()).position(|window| window == text);
    let at = at.unwrap_or_else(|| panic!("no error frame in {}", bytes.escape_ascii()));
    let size = (4 + bytes.len() - at) as u32;
    assert_eq!(
        bytes[at - 8..at],
        [&size.to_be_bytes()[..], &1_u32.to_be_bytes()].concat()
    );
}

/// With TLS 1.3 our side of the handshake may be done before the broker refuses.
fn expect_handshake_refused(node: &Node, config: &Arc<ClientConfig>) {
    let mut client = node.client();
    assert_eq!(client.identify(TLS)["tls_v1"], true);
    if client.start_tls(config).is_ok() {
        client.expect_closed();
    }
}

fn secure(node: &Node, config: &Arc<ClientConfig>, request: &str) -> Client {
    let mut client = node.client();
    assert_eq!(client.identify(request)["tls_v1"], true);
    client.start_tls(config).expect("handshake");
    client.expect_ok();
    client
}

fn with_certificate(broker: &Broker, pki: &Pki) -> NodeSetup {
    broker.node().arguments(pki.server_flags())
}

/// A ClientHello that knows nothing newer than TLS 1.1 (RFC 4346, curves after RFC 8422).
fn client_hello_of_tls_1_1() -> Vec<u8> {
    let version = [3, 2];
    let suites = [
        0xc0, 0x09, 0xc0, 0x0a, 0xc0, 0x13, 0xc0, 0x14, 0x00, 0x2f, 0x00, 0x35,
    ];
    let curves = [0x00, 0x0a, 0, 4, 0, 2, 0x00, 0x17];
    let point_formats = [0x00, 0x0b, 0, 2, 1, 0];
    let mut hello = version.to_vec();
    hello.extend([7; 32]);
    hello.push(0);
    hello.extend((suites.len() as u16).to_be_bytes());
    hello.extend(suites);
    hello.extend([1, 0]);
    hello.extend(((curves.len() + point_formats.len()) as u16).to_be_bytes());
    hello.extend(curves);
    hello.extend(point_formats);
    let mut record = vec![HANDSHAKE_RECORD];
    record.extend(version);
    record.extend((hello.len() as u16 + 4).to_be_bytes());
    record.extend([1, 0]);
    record.extend((hello.len() as u16).to_be_bytes());
    record.extend(hello);
    record
}

const TLS: &str = r#"{"feature_negotiation":true,"tls_v1":true}"#;
const HANDSHAKE_RECORD: u8 = 22;
