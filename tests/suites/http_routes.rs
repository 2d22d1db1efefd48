//! H-33 to H-37, H-54, H-55, H-57, H-58: methods, paths, redirects, TLS and debug (nsq-http-and-tools 1.1, 1.2).

use e2e::pki::Pki;
use e2e::{Broker, statements};

statements! {
    both {
        h_33_a_wrong_method_is_told_the_right_ones,
        h_34_head_is_not_implied_and_options_is,
        h_35_an_unknown_path_is_not_found,
        h_36_a_path_written_differently_is_redirected,
        h_37_ping_is_plain,
        h_54_required_tls_refuses_plain_requests,
        h_55_tcp_https_leaves_plain_http_open,
        h_57_a_bad_block_rate_is_refused_in_text,
    }
    stock {
        h_58_freeing_memory_answers_an_error,
    }
    ours {
        h_58_freeing_memory_answers_nothing,
    }
}

fn h_33_a_wrong_method_is_told_the_right_ones(broker: &Broker) {
    let node = broker.start();
    for (method, path, allow) in [
        ("GET", "/pub?topic=t", "OPTIONS, POST"),
        ("PUT", "/topic/create?topic=t", "OPTIONS, POST"),
        ("POST", "/stats", "GET, OPTIONS"),
        ("POST", "/config/log_level", "GET, OPTIONS, PUT"),
    ] {
        let response = node.http().request(method, path, b"");
        response.expect_error(405, "METHOD_NOT_ALLOWED");
        assert_eq!(response.header("Allow"), Some(allow), "{method} {path}");
    }
}

fn h_34_head_is_not_implied_and_options_is(broker: &Broker) {
    let node = broker.start();
    assert_eq!(node.http().request("HEAD", "/ping", b"").status, 405);
    let response = node.http().request("OPTIONS", "/ping", b"");
    response.expect_done();
    assert_eq!(response.header("Allow"), Some("GET, OPTIONS"));
    assert_eq!(response.header("X-NSQ-Content-Type"), None);
}

fn h_35_an_unknown_path_is_not_found(broker: &Broker) {
    let node = broker.start();
    for method in ["GET", "POST", "OPTIONS"] {
        node.http()
            .request(method, "/nope", b"")
            .expect_error(404, "NOT_FOUND");
    }
}

fn h_36_a_path_written_differently_is_redirected(broker: &Broker) {
    let node = broker.start();
    for (method, path, status, location) in [
        ("GET", "/ping/", 301, "/ping"),
        ("GET", "/PING", 301, "/ping"),
        ("GET", "//ping", 301, "/ping"),
        ("POST", "/topic/create/?topic=x", 307, "/topic/create?topic=x"),
        (
            "POST",
            "/Topic/../topic/create?topic=x",
            307,
            "/topic/create?topic=x",
        ),
    ] {
        let response = node.http().request(method, path, b"");
        assert_eq!(
            (response.status, response.header("Location")),
            (status, Some(location)),
            "{method} {path}"
        );
    }
    assert!(node.topic("x").is_null());
}

fn h_37_ping_is_plain(broker: &Broker) {
    let node = broker.start();
    let response = node.http().get("/ping");
    response.expect_ok();
    assert_eq!(response.header("X-NSQ-Content-Type"), None);
    assert_eq!(response.header("Content-Type"), Some("text/plain; charset=utf-8"));
}

fn h_54_required_tls_refuses_plain_requests(broker: &Broker) {
    let pki = Pki::new();
    let node = broker
        .node()
        .arguments(pki.server_flags())
        .flag("tls-required", true)
        .start();
    let body = format!(
        r#"{{"message": "TLS_REQUIRED", "https_port": {}}}"#,
        node.https_address().port()
    );
    for (method, path) in [
        ("GET", "/ping"),
        ("POST", "/pub?topic=t"),
        ("GET", "/nope"),
        ("DELETE", "/ping"),
    ] {
        let response = node.http().request(method, path, b"");
        response.expect(403, &body);
        assert_eq!(
            response.header("Content-Type"),
            Some("application/json; charset=utf-8")
        );
        assert_eq!(response.header("X-NSQ-Content-Type"), Some("nsq; version=1.0"));
    }
    let https = node.https(pki.client());
    https.get("/ping").expect_ok();
    https.post("/pub?topic=t", "body").expect_ok();
}

fn h_55_tcp_https_leaves_plain_http_open(broker: &Broker) {
    let pki = Pki::new();
    let node = broker
        .node()
        .arguments(pki.server_flags())
        .flag("tls-required", "tcp-https")
        .start();
    node.http().get("/ping").expect_ok();
    node.https(pki.client()).get("/ping").expect_ok();
    let mut client = node.client();
    client.send_line("NOP");
    client.expect_fatal("E_INVALID cannot NOP in current state (TLS required)");
}

fn h_57_a_bad_block_rate_is_refused_in_text(broker: &Broker) {
    let node = broker.start();
    let response = node.http().put("/debug/setblockrate?rate=x", "");
    assert_eq!(response.status, 400);
    assert!(
        response.text().starts_with("invalid block rate : "),
        "{response:?}"
    );
    assert_eq!(response.header("X-NSQ-Content-Type"), None);
}

fn h_58_freeing_memory_answers_an_error(broker: &Broker) {
    broker
        .start()
        .http()
        .post("/debug/freememory", "")
        .expect_error(500, "INTERNAL_ERROR");
}

fn h_58_freeing_memory_answers_nothing(broker: &Broker) {
    broker.start().http().post("/debug/freememory", "").expect_done();
}
