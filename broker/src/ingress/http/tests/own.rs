//! Statements about the routes stock lacks.

use bytes::Bytes;

use super::*;
use crate::desk::PeekState;

#[tokio::test]
async fn topic_settings_are_merged() {
    let desk = FakeDesk::with_channel("t", "c");
    let got = send(
        &desk,
        "PUT /topic/settings?topic=t",
        r#"{"retention_time":"24h"}"#,
    )
    .await;
    let expected = r#"{"durability":"interval","retention_time":"24h0m0s","retention_bytes":0}"#;
    assert_eq!(got, (200, expected));
    let got = send(&desk, "PUT /topic/settings?topic=t", r#"{"durability":"always"}"#).await;
    let expected = r#"{"durability":"always","retention_time":"24h0m0s","retention_bytes":0}"#;
    assert_eq!(got, (200, expected));
    assert_eq!(
        send(&desk, "GET /topic/settings?topic=t", "").await,
        (200, expected)
    );
}

#[tokio::test]
async fn channel_settings_are_merged() {
    let desk = FakeDesk::with_channel("t", "c");
    let line = "/channel/settings?topic=t&channel=c";
    assert_eq!(
        send(&desk, &format!("GET {line}"), "").await,
        (200, r#"{"paused":false}"#)
    );
    assert_eq!(
        send(&desk, &format!("PUT {line}"), r#"{"paused":true}"#).await,
        (200, r#"{"paused":true}"#)
    );
    assert_eq!(
        send(&desk, &format!("PUT {line}"), "{}").await,
        (200, r#"{"paused":true}"#)
    );
}

#[tokio::test]
async fn own_routes_explain_their_refusals() {
    let desk = FakeDesk::with_channel("t", "c");
    for (line, body, status, start) in [
        (
            "PUT /topic/settings?topic=t",
            r#"{"durabilty":"always"}"#,
            400,
            "INVALID_BODY unknown field `durabilty`",
        ),
        (
            "PUT /topic/settings?topic=t",
            "nonsense",
            400,
            "INVALID_BODY expected",
        ),
        (
            "PUT /topic/settings?topic=t",
            r#"{"retention_time":"1 day"}"#,
            400,
            "INVALID_BODY `1 day` is not",
        ),
        (
            "PUT /topic/settings?topic=t",
            "[]",
            400,
            "INVALID_BODY expected a JSON object",
        ),
        (
            "PUT /topic/settings?topic=x",
            "{}",
            404,
            "TOPIC_NOT_FOUND no such topic",
        ),
        ("GET /topic/settings", "", 400, "MISSING_ARG_TOPIC topic missing"),
        (
            "GET /channel/settings?topic=t&channel=x",
            "",
            404,
            "CHANNEL_NOT_FOUND no such channel",
        ),
        (
            "POST /channel/seek?topic=t&channel=c",
            r#"{"to":"middle"}"#,
            400,
            "INVALID_BODY unknown variant `middle`",
        ),
        (
            "GET /message/peek?topic=t&channel=c&state=lost",
            "",
            400,
            "INVALID_ARGUMENT state is ready",
        ),
        (
            "GET /message/peek?topic=t&channel=c&limit=0",
            "",
            400,
            "INVALID_ARGUMENT limit is a number",
        ),
    ] {
        let got = send(&desk, line, body).await;
        assert_eq!(got.status, status, "{line}");
        assert!(
            got.body.starts_with(&format!("{{\"message\":\"{start}")),
            "{}",
            got.body
        );
        assert_eq!(
            got.header("content-type"),
            Some("application/json; charset=utf-8")
        );
    }
    let got = send(&desk, "PUT /topic/settings?topic=t", " ".repeat(65 * 1024)).await;
    assert_eq!(got, (413, r#"{"message":"BODY_TOO_BIG body too big"}"#));
}

#[tokio::test]
async fn a_seek_answers_place_and_depth() {
    let desk = FakeDesk::with_channel("t", "c");
    let got = send(
        &desk,
        "POST /channel/seek?topic=t&channel=c",
        r#"{"to":{"sequence":7}}"#,
    )
    .await;
    assert_eq!(got, (200, r#"{"sequence":7,"depth":3}"#));
    assert_eq!(desk.0.lock().operations, ["Sequence(7) t/c"]);
}

#[tokio::test]
async fn a_peek_shows_text_as_text_and_bytes_as_base64() {
    let desk = FakeDesk::with_channel("t", "c");
    let message = PeekedMessage {
        id: *b"18ae71c2ebe69000",
        sequence: 9,
        timestamp: 5,
        attempts: 2,
        due: None,
        body: Bytes::from_static(b"<text>"),
    };
    let deferred = PeekedMessage {
        due: Some(6),
        body: Bytes::from_static(b"\xff\0"),
        ..message.clone()
    };
    desk.0.lock().peeked = vec![message, deferred];
    let got = send(
        &desk,
        "GET /message/peek?topic=t&channel=c&state=in_flight&limit=100",
        "",
    )
    .await;
    let expected = concat!(
        r#"{"messages":[{"id":"18ae71c2ebe69000","sequence":9,"timestamp":5,"attempts":2,"#,
        r#""body":"\u003ctext\u003e"},{"id":"18ae71c2ebe69000","sequence":9,"timestamp":5,"attempts":2,"#,
        r#""due":6,"body_base64":"/wA="}]}"#
    );
    assert_eq!(got, (200, expected));
    let asked = Peek {
        state: PeekState::InFlight,
        limit: 100,
        max_bytes: MAX_BODY,
    };
    assert_eq!(desk.0.lock().last_peek, Some(asked));
}

#[tokio::test]
async fn probes_tell_alive_from_ready() {
    let desk = FakeDesk::new();
    let ok = r#"{"status":"ok","reasons":[]}"#;
    assert_eq!(send(&desk, "GET /livez", "").await, (200, ok));
    assert_eq!(send(&desk, "GET /readyz", "").await, (200, ok));
    desk.0.lock().not_ready = vec!["store broken".to_owned()];
    assert_eq!(send(&desk, "GET /livez", "").await, (200, ok));
    let got = send(&desk, "GET /readyz", "").await;
    assert_eq!(
        got,
        (503, r#"{"status":"unavailable","reasons":["store broken"]}"#)
    );
}
