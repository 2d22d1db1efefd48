//! Statements about `/pub` and `/mpub`.

use axum::body::Body;

use super::*;

fn counted(count: i32, messages: &[&str]) -> Vec<u8> {
    let mut body = count.to_be_bytes().to_vec();
    for message in messages {
        body.extend((message.len() as i32).to_be_bytes());
        body.extend(message.as_bytes());
    }
    body
}

#[tokio::test]
async fn h_01_an_empty_message_is_refused() {
    assert_eq!(ask("POST /pub?topic=t", "").await, refused(400, "MSG_EMPTY"));
}

#[tokio::test]
async fn h_02_size_checks_precede_topic_checks() {
    assert_eq!(ask("POST /pub", "").await, refused(400, "MSG_EMPTY"));
    assert_eq!(ask("POST /pub?topic=%zz", "").await, refused(400, "MSG_EMPTY"));
    assert_eq!(
        ask("POST /pub", vec![1; MAX_MSG + 1]).await,
        refused(413, "MSG_TOO_BIG")
    );
    assert_eq!(
        ask("POST /mpub", vec![1; MAX_BODY + 1]).await,
        refused(413, "BODY_TOO_BIG")
    );
}

#[tokio::test]
async fn h_03_a_topic_in_the_body_does_not_count() {
    for route in ["pub", "mpub"] {
        let got = ask(&format!("POST /{route}"), "topic=t1").await;
        assert_eq!(got, refused(400, "MISSING_ARG_TOPIC"));
    }
}

#[tokio::test]
async fn h_04_an_empty_or_bad_topic_is_invalid() {
    for query in ["topic=", "topic=a%24", "topic", "topic=%ff"] {
        for route in ["pub", "mpub"] {
            let got = ask(&format!("POST /{route}?{query}"), "x").await;
            assert_eq!(got, refused(400, "INVALID_TOPIC"), "{query}");
        }
    }
}

#[tokio::test]
async fn h_05_semicolons_and_bad_escapes_are_an_invalid_request() {
    for query in ["topic=t;x=1", "topic=%zz"] {
        let got = ask(&format!("POST /pub?{query}"), "x").await;
        assert_eq!(got, refused(400, "INVALID_REQUEST"), "{query}");
    }
}

#[tokio::test]
async fn h_06_the_largest_message_is_accepted_and_one_byte_more_is_not() {
    let desk = FakeDesk::new();
    for body in [Body::from(vec![1; MAX_MSG]), chunked(vec![1; MAX_MSG])] {
        assert_eq!(send(&desk, "POST /pub?topic=t", body).await, OK);
    }
    for body in [Body::from(vec![1; MAX_MSG + 1]), chunked(vec![1; MAX_MSG + 1])] {
        assert_eq!(ask("POST /pub?topic=t", body).await, refused(413, "MSG_TOO_BIG"));
    }
    let lengths: Vec<_> = desk
        .0
        .lock()
        .published
        .iter()
        .map(|message| message.1.len())
        .collect();
    assert_eq!(lengths, [MAX_MSG, MAX_MSG]);
}

#[tokio::test]
async fn h_07_ok_carries_both_headers() {
    let got = send(&FakeDesk::new(), "POST /pub?topic=t", "x").await;
    assert_eq!(got, OK);
    assert_eq!(got.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(got.header("x-nsq-content-type"), Some("nsq; version=1.0"));
}

#[tokio::test]
async fn h_08_h_09_a_bad_delay_is_refused_and_the_topic_stays() {
    for delay in ["abc", "", "1.5", "-1", "3600001", "+5", "0_5", "18446744073710"] {
        let desk = FakeDesk::new();
        let got = send(&desk, &format!("POST /pub?topic=t&defer={delay}"), "x").await;
        assert_eq!(got, (400, r#"{"message":"INVALID_DEFER"}"#), "{delay}");
        assert_eq!(desk.topics(), ["t"]);
        assert!(desk.bodies().is_empty());
    }
    let desk = FakeDesk::new();
    for delay in ["3600000", "%2B5", "-0"] {
        assert_eq!(
            send(&desk, &format!("POST /pub?topic=t&defer={delay}"), "x").await,
            OK
        );
    }
    let delays: Vec<_> = desk.0.lock().published.iter().map(|message| message.2).collect();
    assert_eq!(delays, [3_600_000, 5, 0]);
}

#[tokio::test]
async fn h_11_h_13_lines_are_messages() {
    let desk = FakeDesk::new();
    assert_eq!(send(&desk, "POST /mpub?topic=t", "a\nb\r\n\nc\n").await, OK);
    assert_eq!(desk.bodies(), ["a", "b\r", "c"]);
}

#[tokio::test]
async fn h_12_an_empty_text_body_creates_the_topic() {
    for body in ["", "\n\n"] {
        let desk = FakeDesk::new();
        assert_eq!(send(&desk, "POST /mpub?topic=t", body).await, OK);
        assert_eq!(desk.topics(), ["t"]);
        assert!(desk.bodies().is_empty());
    }
}

#[tokio::test]
async fn h_14_one_long_line_spoils_the_whole_body() {
    for piece in [Body::from, chunked] {
        let desk = FakeDesk::new();
        let body = [vec![b'a'], vec![b'\n'], vec![b'b'; MAX_MSG + 1], vec![b'\n']].concat();
        let got = send(&desk, "POST /mpub?topic=t", piece(body)).await;
        assert_eq!(got, (413, r#"{"message":"MSG_TOO_BIG"}"#));
        assert!(desk.bodies().is_empty());
    }
}

#[tokio::test]
async fn h_15_a_body_above_the_limit_is_refused() {
    let body = || b"a\n".repeat(MAX_BODY / 2 + 1);
    for body in [Body::from(body()), chunked(body())] {
        assert_eq!(
            ask("POST /mpub?topic=t", body).await,
            refused(413, "BODY_TOO_BIG")
        );
    }
    let desk = FakeDesk::new();
    let got = send(&desk, "POST /mpub?topic=t", chunked(b"a\n".repeat(MAX_BODY / 2))).await;
    assert_eq!(got, OK);
    assert_eq!(desk.bodies().len(), MAX_BODY / 2);
}

#[tokio::test]
async fn h_16_h_17_the_binary_parameter_chooses_the_form() {
    for word in ["true", "1", "", "TRUE", "no"] {
        let desk = FakeDesk::new();
        let line = format!("POST /mpub?topic=t&binary={word}");
        assert_eq!(
            send(&desk, &line, counted(2, &["one", "t\no"])).await,
            OK,
            "{word}"
        );
        assert_eq!(desk.bodies(), ["one", "t\no"]);
    }
    for word in ["0", "false"] {
        let desk = FakeDesk::new();
        let line = format!("POST /mpub?topic=t&binary={word}");
        assert_eq!(send(&desk, &line, "one\ntwo").await, OK);
        assert_eq!(desk.bodies(), ["one", "two"]);
    }
}

#[tokio::test]
async fn h_18_h_19_h_20_binary_bodies_are_all_or_nothing() {
    let line = "POST /mpub?topic=t&binary=true";
    for body in [Vec::new(), counted(0, &[]), counted(i32::MAX, &["x"])] {
        assert_eq!(ask(line, body).await, refused(413, "BAD_BODY"));
    }
    let desk = FakeDesk::new();
    for body in [counted(2, &["a", ""]), counted(2, &["a"])] {
        let got = send(&desk, line, body).await;
        assert_eq!(got, (413, r#"{"message":"BAD_MESSAGE"}"#));
    }
    assert!(desk.bodies().is_empty());
    let body = [counted(1, &["a"]), b"rest".to_vec()].concat();
    assert_eq!(send(&desk, line, body).await, OK);
    assert_eq!(desk.bodies(), ["a"]);
}

#[tokio::test]
async fn h_21_mpub_knows_no_delay() {
    let desk = FakeDesk::new();
    assert_eq!(send(&desk, "POST /mpub?topic=t&defer=abc", "a").await, OK);
    assert_eq!(desk.0.lock().published[0].2, 0);
}

#[tokio::test]
async fn h_60_what_cannot_be_written_is_exiting() {
    for error in [DeskError::Exiting, DeskError::Failed("disk full".to_owned())] {
        for route in ["pub", "mpub"] {
            let desk = FakeDesk::new();
            desk.0.lock().refuse = Some(error.clone());
            let got = send(&desk, &format!("POST /{route}?topic=t"), "x").await;
            assert_eq!(got, (503, r#"{"message":"EXITING"}"#));
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_publishes_nothing() {
    let broken = || {
        let pieces = [
            Ok("x"),
            Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
        ];
        Body::from_stream(futures_util::stream::iter(pieces))
    };
    for (line, status, code) in [
        ("POST /pub?topic=t", 500, "INTERNAL_ERROR"),
        ("POST /mpub?topic=t", 500, "INTERNAL_ERROR"),
        ("POST /mpub?topic=t&binary=1", 413, "BAD_MESSAGE"),
    ] {
        assert_eq!(ask(line, broken()).await, refused(status, code));
    }
}
