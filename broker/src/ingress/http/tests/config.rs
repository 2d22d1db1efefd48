//! Statements about `/config` and `/debug`.

use super::*;

#[tokio::test]
async fn h_49_h_50_options_are_raw_text_or_json() {
    for (key, body, content_type) in [
        ("data_path", "/var/lib/nsq", Some("text/plain; charset=utf-8")),
        ("tls_cert", "", None),
        (
            "nsqlookupd_tcp_addresses",
            "[]",
            Some("application/json; charset=utf-8"),
        ),
        (
            "msg_timeout",
            "60000000000",
            Some("application/json; charset=utf-8"),
        ),
    ] {
        let got = send(&FakeDesk::new(), &format!("GET /config/{key}"), "").await;
        assert_eq!(got, (200, body));
        assert_eq!(got.header("content-type"), content_type);
    }
    assert_eq!(
        ask("GET /config/node_id", "").await,
        refused(400, "INVALID_OPTION")
    );
}

#[tokio::test]
async fn h_51_h_52_a_put_is_checked_by_length_then_by_option() {
    let put = "PUT /config/log_level";
    assert_eq!(ask(put, "DEBUG").await, (200, "1".to_owned()));
    assert_eq!(ask(put, "\"info\"").await, refused(400, "INVALID_VALUE"));
    assert_eq!(ask(put, "").await, refused(413, "INVALID_VALUE"));
    assert_eq!(
        ask(put, vec![b'x'; MAX_MSG + 1]).await,
        refused(413, "INVALID_VALUE")
    );
    assert_eq!(
        ask("PUT /config/msg_timeout", "1").await,
        refused(400, "INVALID_OPTION")
    );
    assert_eq!(
        ask("PUT /config/msg_timeout", "").await,
        refused(413, "INVALID_VALUE")
    );
}

#[tokio::test]
async fn h_57_a_block_rate_is_a_number() {
    for (line, text) in [
        ("PUT /debug/setblockrate?rate=x", "\"x\""),
        ("PUT /debug/setblockrate", "\"\""),
        ("PUT /debug/setblockrate?rate=1;", "\"\""),
    ] {
        let got = send(&FakeDesk::new(), line, "rate=3").await;
        let expected = format!("invalid block rate : strconv.Atoi: parsing {text}: invalid syntax");
        assert_eq!(got, (400, expected.as_str()));
        assert_eq!(got.header("x-nsq-content-type"), None);
    }
    assert_eq!(
        ask("PUT /debug/setblockrate?rate=1", "").await,
        (200, String::new())
    );
}

#[tokio::test]
async fn a_block_rate_may_come_in_a_form() {
    let request = Request::put("/debug/setblockrate?rate=x")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from("rate=3"))
        .unwrap();
    let routes = service(FakeDesk::new(), Clock::start(), Door::Plain);
    assert_eq!(routes.oneshot(request).await.unwrap().status(), 200);
}

#[tokio::test]
async fn h_58_free_memory_answers_ok_where_stock_fails() {
    let got = send(&FakeDesk::new(), "POST /debug/freememory", "").await;
    assert_eq!(got, (200, ""));
    assert_eq!(got.header("x-nsq-content-type"), None);
}

#[tokio::test]
async fn profiles_are_honestly_absent() {
    let got = send(&FakeDesk::new(), "GET /debug/pprof/heap", "").await;
    assert_eq!(got.status, 404);
    assert!(got.body.starts_with("no Go runtime profiles here"));
    let got = send(&FakeDesk::new(), "GET /debug/pprof", "").await;
    assert_eq!(got.header("location"), Some("/debug/pprof/"));
    assert_eq!(
        ask("GET /debug/pprof/allocs", "").await,
        refused(404, "NOT_FOUND")
    );
}
