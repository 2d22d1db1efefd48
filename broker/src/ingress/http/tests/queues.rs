//! Statements about the topic and channel routes.

use super::*;

const OPERATIONS: [&str; 5] = ["create", "delete", "empty", "pause", "unpause"];

#[tokio::test]
async fn h_22_creating_twice_gives_two_empty_answers() {
    let desk = FakeDesk::new();
    for _ in 0..2 {
        let got = send(&desk, "POST /topic/create?topic=t", "any body").await;
        assert_eq!(got, (200, ""));
        assert_eq!(got.header("content-type"), None);
        assert_eq!(got.header("x-nsq-content-type"), Some("nsq; version=1.0"));
    }
    assert_eq!(desk.topics(), ["t"]);
}

#[tokio::test]
async fn h_23_h_24_each_route_has_its_word_for_a_bad_topic_name() {
    for (operation, status, code) in [
        ("create", 400, "INVALID_TOPIC"),
        ("empty", 400, "INVALID_TOPIC"),
        ("delete", 404, "TOPIC_NOT_FOUND"),
        ("pause", 404, "TOPIC_NOT_FOUND"),
        ("unpause", 404, "TOPIC_NOT_FOUND"),
    ] {
        for query in ["topic=a%24", "topic="] {
            let got = ask(&format!("POST /topic/{operation}?{query}"), "").await;
            assert_eq!(got, refused(status, code), "{operation}");
        }
        let got = ask(&format!("POST /channel/{operation}?topic=a%24"), "").await;
        assert_eq!(got, refused(400, "INVALID_ARG_TOPIC"));
        let got = ask(&format!("POST /channel/{operation}?topic=t&channel=a%24"), "").await;
        assert_eq!(got, refused(400, "INVALID_ARG_CHANNEL"));
    }
}

#[tokio::test]
async fn h_25_missing_parameters_are_named() {
    for operation in OPERATIONS {
        for route in ["topic", "channel"] {
            let got = ask(&format!("POST /{route}/{operation}"), "topic=t").await;
            assert_eq!(got, refused(400, "MISSING_ARG_TOPIC"));
            let got = ask(&format!("POST /{route}/{operation}?topic=t;"), "").await;
            assert_eq!(got, refused(400, "INVALID_REQUEST"));
        }
        let got = ask(&format!("POST /channel/{operation}?topic=absent"), "").await;
        assert_eq!(got, refused(400, "MISSING_ARG_CHANNEL"));
    }
}

#[tokio::test]
async fn h_24_h_26_an_absent_topic_is_not_made() {
    for operation in OPERATIONS {
        let desk = FakeDesk::new();
        let got = send(&desk, &format!("POST /channel/{operation}?topic=t&channel=c"), "").await;
        assert_eq!(got, (404, r#"{"message":"TOPIC_NOT_FOUND"}"#));
        if operation != "create" {
            let got = send(&desk, &format!("POST /topic/{operation}?topic=t"), "").await;
            assert_eq!(got, (404, r#"{"message":"TOPIC_NOT_FOUND"}"#));
        }
        assert!(desk.topics().is_empty());
    }
}

#[tokio::test]
async fn h_27_an_absent_channel_is_named() {
    for operation in &OPERATIONS[1..] {
        let desk = FakeDesk::with_channel("t", "other");
        let got = send(&desk, &format!("POST /channel/{operation}?topic=t&channel=c"), "").await;
        assert_eq!(got, (404, r#"{"message":"CHANNEL_NOT_FOUND"}"#));
    }
}

#[tokio::test]
async fn h_28_names_have_up_to_64_bytes_with_their_suffix() {
    for (length, suffix, status) in [
        (64, "", 200),
        (65, "", 400),
        (54, "%23ephemeral", 200),
        (55, "%23ephemeral", 400),
    ] {
        let line = format!("POST /topic/create?topic={}{suffix}", "a".repeat(length));
        assert_eq!(ask(&line, "").await.0, status, "{length}{suffix}");
    }
}

#[tokio::test]
async fn every_operation_reaches_the_desk() {
    let desk = FakeDesk::with_channel("t", "c#ephemeral");
    for operation in &OPERATIONS[1..] {
        let got = send(&desk, &format!("POST /topic/{operation}?topic=t"), "").await;
        assert_eq!(got, (200, ""));
    }
    for operation in OPERATIONS {
        let line = format!("POST /channel/{operation}?topic=t&channel=c%23ephemeral");
        assert_eq!(send(&desk, &line, "").await, (200, ""));
    }
    assert_eq!(
        desk.0.lock().operations,
        [
            "Delete t",
            "Empty t",
            "Pause t",
            "Unpause t",
            "Create t/c#ephemeral",
            "Delete t/c#ephemeral",
            "Empty t/c#ephemeral",
            "Pause t/c#ephemeral",
            "Unpause t/c#ephemeral",
        ]
    );
}

#[tokio::test]
async fn an_operation_that_fails_inside_is_an_internal_error() {
    let desk = FakeDesk::with_channel("t", "c");
    desk.0.lock().refuse = Some(DeskError::Failed("disk".to_owned()));
    let got = send(&desk, "POST /topic/empty?topic=t", "").await;
    assert_eq!(got, (500, r#"{"message":"INTERNAL_ERROR"}"#));
}
