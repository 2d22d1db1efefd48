//! C-90 to C-99: AUTH and the auth server (nsq-tcp 2.12, 5).

use std::thread;
use std::time::Duration;

use e2e::auth_server::{AuthServer, grant};
use e2e::wire::{Client, command};
use e2e::{Broker, Node, statements};

statements! {
    both {
        c_90_auth_needs_an_auth_server,
        c_91_publishing_and_subscribing_need_auth,
        c_92_auth_asks_the_server_and_answers_with_the_identity,
        c_93_a_bad_answer_fails_auth,
        c_93_an_unreachable_server_fails_auth,
        c_94_no_authorizations_are_refused,
        c_95_publishing_needs_a_channel_pattern_that_matches_nothing,
        c_96_patterns_are_unanchored,
        c_97_an_expired_answer_is_asked_for_once_more,
        c_97_an_expired_answer_that_cannot_be_renewed_is_fatal,
        c_98_auth_cannot_be_repeated,
        c_98_auth_after_sub_is_refused,
        c_99_a_subscription_outlives_its_answer,
    }
}

fn c_90_auth_needs_an_auth_server(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send(&command::auth("secret"));
    client.expect_fatal("E_AUTH_DISABLED AUTH disabled");
}

fn c_91_publishing_and_subscribing_need_auth(broker: &Broker) {
    let server = AuthServer::start();
    let node = node_asking(broker, &server);
    let answer = node.client().identify(r#"{"feature_negotiation":true}"#);
    assert_eq!(answer["auth_required"], true);
    for (name, bytes) in [
        ("SUB", command::line("SUB t c")),
        ("PUB", command::publish("t", b"x")),
        ("MPUB", command::publish_many("t", &[b"x"])),
        ("DPUB", command::publish_deferred("t", 100, b"x")),
    ] {
        let mut client = node.client();
        client.send_line("NOP");
        client.send(&bytes);
        client.expect_fatal(&format!("E_AUTH_FIRST AUTH required before {name}"));
    }
    assert!(server.requests().is_empty());
    assert!(node.topic("t").is_null());
}

fn c_92_auth_asks_the_server_and_answers_with_the_identity(broker: &Broker) {
    let server = AuthServer::start();
    let node = node_asking(broker, &server);
    authorized(&node);
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let expected = "GET /auth?common_name=&remote_ip=127.0.0.1&secret=se%26cret&tls=false HTTP/1.1";
    assert_eq!(requests[0].line, expected);
    let accept = "accept: application/vnd.nsq; version=1.0";
    assert!(
        requests[0]
            .headers
            .iter()
            .any(|header| header.to_lowercase() == accept),
        "{requests:?}"
    );
}

fn c_93_a_bad_answer_fails_auth(broker: &Broker) {
    let server = AuthServer::start();
    let node = node_asking(broker, &server);
    let good = grant(3600, ".*", &[".*"], &["publish"]);
    for (status, body) in [
        (200, grant(0, ".*", &[".*"], &["publish"])),
        (200, grant(3600, ".*", &[".*"], &["publish", "admin"])),
        (200, grant(3600, "(", &[".*"], &["publish"])),
        (200, grant(3600, ".*", &["["], &["publish"])),
        (500, good.clone()),
        (200, "not json".to_owned()),
        (200, format!(r#"{{"data":{good}}}"#)),
    ] {
        server.answer(status, &body);
        let mut client = node.client();
        client.send(&command::auth("secret"));
        client.expect_fatal("E_AUTH_FAILED AUTH failed");
    }
}

fn c_93_an_unreachable_server_fails_auth(broker: &Broker) {
    let mut server = AuthServer::start();
    let node = node_asking(broker, &server);
    server.stop();
    let mut client = node.client();
    client.send(&command::auth("secret"));
    client.expect_fatal("E_AUTH_FAILED AUTH failed");
}

fn c_94_no_authorizations_are_refused(broker: &Broker) {
    let server = AuthServer::answering(200, r#"{"ttl":3600,"identity":"alice","authorizations":[]}"#);
    let node = node_asking(broker, &server);
    let mut client = node.client();
    client.send(&command::auth("secret"));
    client.expect_fatal("E_UNAUTHORIZED AUTH no authorizations found");
}

fn c_95_publishing_needs_a_channel_pattern_that_matches_nothing(broker: &Broker) {
    let server = AuthServer::granting(3600, ".*", &["ch"], &["publish"]);
    let node = node_asking(broker, &server);
    let mut client = authorized(&node);
    client.send(&command::publish("t", b"x"));
    client.expect_fatal(r#"E_UNAUTHORIZED AUTH failed for PUB on "t" """#);
    server.answer(200, &grant(3600, ".*", &[".*"], &["publish"]));
    let mut client = authorized(&node);
    client.publish("t", "x");
    client.send_line("SUB t ch");
    client.expect_fatal(r#"E_UNAUTHORIZED AUTH failed for SUB on "t" "ch""#);
}

fn c_96_patterns_are_unanchored(broker: &Broker) {
    let server = AuthServer::granting(3600, "est", &[".*"], &["publish"]);
    let node = node_asking(broker, &server);
    authorized(&node).publish("xtesty", "x");
    server.answer(200, &grant(3600, "^est$", &[".*"], &["publish"]));
    let mut client = authorized(&node);
    client.send(&command::publish("xtesty", b"x"));
    client.expect_fatal(r#"E_UNAUTHORIZED AUTH failed for PUB on "xtesty" """#);
    authorized(&node).publish("est", "x");
}

fn c_97_an_expired_answer_is_asked_for_once_more(broker: &Broker) {
    let server = AuthServer::granting(1, ".*", &[".*"], &["publish"]);
    let node = node_asking(broker, &server);
    let mut client = authorized(&node);
    client.publish("t", "x");
    assert_eq!(server.requests().len(), 1);
    thread::sleep(EXPIRED);
    client.publish("t", "x");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].line, requests[1].line);
}

fn c_97_an_expired_answer_that_cannot_be_renewed_is_fatal(broker: &Broker) {
    let mut server = AuthServer::granting(1, ".*", &[".*"], &["publish"]);
    let node = node_asking(broker, &server);
    let mut client = authorized(&node);
    server.stop();
    thread::sleep(EXPIRED);
    client.send(&command::publish("t", b"x"));
    client.expect_fatal("E_AUTH_FAILED AUTH failed");
}

fn c_98_auth_cannot_be_repeated(broker: &Broker) {
    let server = AuthServer::start();
    let node = node_asking(broker, &server);
    let mut client = authorized(&node);
    client.send(&command::auth("secret"));
    client.expect_fatal("E_INVALID AUTH already set");
}

fn c_98_auth_after_sub_is_refused(broker: &Broker) {
    let server = AuthServer::start();
    let node = node_asking(broker, &server);
    let mut client = authorized(&node);
    client.subscribe("t", "c");
    client.send(&command::auth("secret"));
    client.expect_fatal("E_INVALID cannot AUTH in current state");
}

fn c_99_a_subscription_outlives_its_answer(broker: &Broker) {
    let mut server = AuthServer::granting(1, ".*", &[".*"], &["subscribe"]);
    let node = node_asking(broker, &server);
    let mut client = authorized(&node);
    client.subscribe("t", "c");
    server.stop();
    thread::sleep(EXPIRED);
    client.ready(1);
    // Publishing over HTTP is not covered by auth.
    node.http().post("/pub?topic=t", "body").expect_ok();
    let message = client.message();
    client.finish(&message.id);
    node.await_channel("t", "c", |channel| channel["in_flight_count"] == 0);
}

fn node_asking(broker: &Broker, server: &AuthServer) -> Node {
    broker.node().flag("auth-http-address", server.address()).start()
}

/// A client that has sent AUTH and was accepted.
fn authorized(node: &Node) -> Client {
    let mut client = node.client();
    client.send(&command::auth("se&cret"));
    let answer = r#"{"identity":"alice","identity_url":"http://example.org/alice","permission_count":1}"#;
    client.expect_response(answer);
    client
}

/// Longer than an answer with `ttl` 1 is valid.
const EXPIRED: Duration = Duration::from_millis(1200);
