//! Statements about routing, doors, `/ping` and `/info`.

use super::*;

#[tokio::test]
async fn h_33_a_wrong_method_is_told_the_right_ones() {
    let got = send(&FakeDesk::new(), "GET /pub?topic=t", "").await;
    assert_eq!(got, (405, r#"{"message":"METHOD_NOT_ALLOWED"}"#));
    assert_eq!(got.header("allow"), Some("OPTIONS, POST"));
    assert_eq!(
        got.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    assert_eq!(got.header("x-nsq-content-type"), Some("nsq; version=1.0"));
    let got = send(&FakeDesk::new(), "DELETE /config/log_level", "").await;
    assert_eq!(got.header("allow"), Some("GET, OPTIONS, PUT"));
}

#[tokio::test]
async fn h_34_head_is_not_get_and_options_is_answered() {
    let got = send(&FakeDesk::new(), "HEAD /ping", "").await;
    assert_eq!(got.status, 405);
    let got = send(&FakeDesk::new(), "OPTIONS /ping", "").await;
    assert_eq!(got, (200, ""));
    assert_eq!(got.header("allow"), Some("GET, OPTIONS"));
    assert_eq!(got.header("x-nsq-content-type"), None);
    let got = send(&FakeDesk::new(), "OPTIONS *", "").await;
    assert_eq!(got, (200, ""));
}

#[tokio::test]
async fn h_35_an_unknown_path_is_not_found() {
    for line in [
        "GET /nope",
        "OPTIONS /nope",
        "GET /",
        "GET /config/",
        "OPTIONS /ping/",
        "GET /pub/",
    ] {
        assert_eq!(ask(line, "").await, refused(404, "NOT_FOUND"), "{line}");
    }
}

#[tokio::test]
async fn h_36_other_spellings_are_redirected_with_their_query() {
    let got = send(&FakeDesk::new(), "GET /PING/?a=1&b=2", "").await;
    assert_eq!(
        got,
        (301, "<a href=\"/ping?a=1&amp;b=2\">Moved Permanently</a>.\n\n")
    );
    assert_eq!(got.header("location"), Some("/ping?a=1&b=2"));
    assert_eq!(got.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(got.header("x-nsq-content-type"), None);
    let got = send(&FakeDesk::new(), "POST //topic/create/?topic=x", "").await;
    assert_eq!(got, (307, ""));
    assert_eq!(got.header("location"), Some("/topic/create?topic=x"));
}

#[tokio::test]
async fn an_escaped_path_is_the_path() {
    assert_eq!(ask("GET /pi%6eg", "").await, (200, "OK".to_owned()));
    assert_eq!(ask("GET /pi%6", "").await, (400, "400 Bad Request".to_owned()));
}

#[tokio::test]
async fn h_37_ping_is_plain() {
    let got = send(&FakeDesk::new(), "GET /ping?a=%zz;", "").await;
    assert_eq!(got, OK);
    assert_eq!(got.header("x-nsq-content-type"), None);
    assert_eq!(got.header("content-type"), Some("text/plain; charset=utf-8"));
}

#[tokio::test]
async fn h_60_a_sick_broker_says_why() {
    let desk = FakeDesk::new();
    desk.0.lock().sick = Some("no space left on device".to_owned());
    let got = send(&desk, "GET /ping", "").await;
    assert_eq!(got, (500, "NOK - no space left on device"));
    assert_eq!(got.header("x-nsq-content-type"), None);
    assert_eq!(got.header("content-type"), Some("text/plain; charset=utf-8"));
}

#[tokio::test]
async fn h_38_h_39_info_has_ten_keys_in_order() {
    let expected = concat!(
        r#"{"version":"1.3.0","broadcast_address":"127.0.0.1","hostname":"vm","http_port":-1,"tcp_port":4150,"#,
        r#""start_time":1796053195,"max_heartbeat_interval":60000000000,"max_output_buffer_size":65536,"#,
        r#""max_output_buffer_timeout":30000000000,"max_deflate_level":6}"#
    );
    assert_eq!(ask("GET /info?a;b", "").await, (200, expected.to_owned()));
}

#[tokio::test]
async fn h_54_a_broker_that_requires_tls_refuses_everything_on_the_plain_port() {
    let door = Door::PlainRefusing { https_port: 4152 };
    for line in [
        "GET /ping",
        "GET /nope",
        "POST /pub?topic=t",
        "HEAD /ping",
        "OPTIONS /ping",
    ] {
        let got = send_to(&FakeDesk::new(), door, line, "x".into()).await;
        assert_eq!(got.status, 403);
        if !line.starts_with("HEAD") {
            assert_eq!(got.body, r#"{"message": "TLS_REQUIRED", "https_port": 4152}"#);
        }
        assert_eq!(
            got.header("content-type"),
            Some("application/json; charset=utf-8")
        );
        assert_eq!(got.header("x-nsq-content-type"), Some("nsq; version=1.0"));
    }
}

#[tokio::test]
async fn h_54_h_55_the_other_doors_serve() {
    for door in [Door::Plain, Door::Tls] {
        assert_eq!(send_to(&FakeDesk::new(), door, "GET /ping", "".into()).await, OK);
    }
}

#[tokio::test]
async fn a_panic_is_an_internal_error() {
    let got = ask("POST /pub?topic=panic", "x").await;
    assert_eq!(got, refused(500, "INTERNAL_ERROR"));
}
