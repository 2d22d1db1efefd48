//! IDENTIFY against the statements of nsq-tcp 9 and youzan-extension 13 that concern it.

use super::*;

fn settle(json: &str) -> Result<(Features, String), String> {
    settle_with(json, &ServerLimits::default())
}

fn settle_with(json: &str, limits: &ServerLimits) -> Result<(Features, String), String> {
    let told = |error: WireError| String::from_utf8(error.text()).unwrap();
    let request = IdentifyRequest::decode(json.as_bytes()).map_err(told)?;
    let (features, answer) = negotiate(&request, limits, &Features::initial(limits)).map_err(told)?;
    Ok((features, String::from_utf8(answer).unwrap()))
}

fn with(field: &str) -> Result<(Features, String), String> {
    settle(&format!(r#"{{"feature_negotiation":true,{field}}}"#))
}

#[track_caller]
fn accepted(field: &str, shown: &str) {
    let (_, answer) = with(field).unwrap();
    assert!(answer.contains(shown), "{answer}");
}

#[track_caller]
fn refused(field: &str, text: &str) {
    assert_eq!(
        with(field).unwrap_err(),
        format!("E_BAD_BODY IDENTIFY {text} is invalid")
    );
}

#[test]
fn c_12_without_negotiation_the_answer_is_ok() {
    let (features, answer) = settle("{}").unwrap();
    assert_eq!(
        (answer.as_str(), features),
        ("OK", Features::initial(&ServerLimits::default()))
    );
}

#[test]
fn c_13_the_answer_has_thirteen_keys_in_order() {
    let (_, answer) = settle(r#"{"feature_negotiation":true}"#).unwrap();
    assert_eq!(
        answer,
        concat!(
            r#"{"max_rdy_count":2500,"version":"1.3.0","max_msg_timeout":900000,"msg_timeout":60000,"#,
            r#""tls_v1":false,"deflate":false,"deflate_level":6,"max_deflate_level":6,"snappy":false,"#,
            r#""sample_rate":0,"auth_required":false,"output_buffer_size":16384,"output_buffer_timeout":250}"#
        )
    );
}

#[test]
fn c_14_what_is_no_object_is_refused() {
    for body in ["[]", "{", "{} x", "1"] {
        assert_eq!(
            settle(body).unwrap_err(),
            "E_BAD_BODY IDENTIFY failed to decode JSON body"
        );
    }
    assert_eq!(settle("null").unwrap().1, "OK");
}

#[test]
fn c_16_heartbeat_interval() {
    for bad in [999, 60_001, -2] {
        refused(
            &format!("\"heartbeat_interval\":{bad}"),
            &format!("heartbeat interval ({bad})"),
        );
    }
    let interval = |asked| {
        with(&format!("\"heartbeat_interval\":{asked}"))
            .unwrap()
            .0
            .heartbeat
    };
    assert_eq!(interval(0), Some(Duration::from_secs(30)));
    assert_eq!(interval(1_000), Some(Duration::from_secs(1)));
    assert_eq!(interval(60_000), Some(Duration::from_mins(1)));
    assert_eq!(interval(-1), None);
}

#[test]
fn c_17_output_buffer_size() {
    for bad in [63, 65_537, -2] {
        refused(
            &format!("\"output_buffer_size\":{bad}"),
            &format!("output buffer size ({bad})"),
        );
    }
    accepted(
        "\"output_buffer_size\":64",
        "\"output_buffer_size\":64,\"output_buffer_timeout\":250}",
    );
    accepted("\"output_buffer_size\":65536", "\"output_buffer_size\":65536,");
    accepted("\"output_buffer_size\":0", "\"output_buffer_size\":16384,");
    let off = "\"output_buffer_size\":-1,\"output_buffer_timeout\":1000";
    accepted(off, "\"output_buffer_size\":1,\"output_buffer_timeout\":0}");
}

#[test]
fn c_18_output_buffer_timeout() {
    for bad in [24, 30_001, -2] {
        refused(
            &format!("\"output_buffer_timeout\":{bad}"),
            &format!("output buffer timeout ({bad})"),
        );
    }
    accepted("\"output_buffer_timeout\":25", "\"output_buffer_timeout\":25}");
    accepted(
        "\"output_buffer_timeout\":30000",
        "\"output_buffer_timeout\":30000}",
    );
    accepted("\"output_buffer_timeout\":-1", "\"output_buffer_timeout\":0}");
}

#[test]
fn c_19_sample_rate() {
    for bad in [100, -1] {
        refused(&format!("\"sample_rate\":{bad}"), &format!("sample rate ({bad})"));
    }
    accepted("\"sample_rate\":0", "\"sample_rate\":0,");
    accepted("\"sample_rate\":99", "\"sample_rate\":99,");
}

#[test]
fn c_20_msg_timeout() {
    for bad in [999, 900_001, -1] {
        refused(&format!("\"msg_timeout\":{bad}"), &format!("msg timeout ({bad})"));
    }
    accepted("\"msg_timeout\":1000", "\"msg_timeout\":1000,");
    accepted("\"msg_timeout\":900000", "\"msg_timeout\":900000,");
    accepted("\"msg_timeout\":0", "\"msg_timeout\":60000,");
}

#[test]
fn c_21_the_first_invalid_setting_in_order_is_reported() {
    let mut settings = vec![
        ("\"heartbeat_interval\":1", "heartbeat interval (1)"),
        ("\"output_buffer_timeout\":1", "output buffer timeout (1)"),
        ("\"output_buffer_size\":1", "output buffer size (1)"),
        ("\"sample_rate\":100", "sample rate (100)"),
        ("\"msg_timeout\":1", "msg timeout (1)"),
    ];
    while let Some((_, text)) = settings.first().copied() {
        let fields: Vec<_> = settings.iter().rev().map(|(field, _)| *field).collect();
        refused(&fields.join(","), text);
        settings.remove(0);
    }
}

#[test]
fn c_25_a_second_identify_keeps_what_it_does_not_name() {
    let limits = ServerLimits::default();
    let (first, _) = with("\"msg_timeout\":1000,\"sample_rate\":5,\"output_buffer_size\":100").unwrap();
    let (second, _) = negotiate(&IdentifyRequest::default(), &limits, &first).unwrap();
    assert_eq!(
        (second.msg_timeout, second.output_buffer_size),
        (Duration::from_secs(1), 100)
    );
    assert_eq!(second.sample_rate, 0, "always replaced");
}

#[test]
fn c_26_the_deflate_level_is_capped() {
    for (asked, level) in [(9, 6), (0, 6), (-5, 6), (1, 1)] {
        let (features, answer) = with(&format!("\"deflate\":true,\"deflate_level\":{asked}")).unwrap();
        assert!(
            answer.contains(&format!("\"deflate\":true,\"deflate_level\":{level},")),
            "{answer}"
        );
        assert_eq!(features.deflate, Some(level));
    }
    accepted("\"deflate_level\":1", "\"deflate\":false,\"deflate_level\":6,");
}

#[test]
fn c_27_one_compression_at_most() {
    let text = with("\"deflate\":true,\"snappy\":true").unwrap_err();
    assert_eq!(
        text,
        "E_IDENTIFY_FAILED cannot enable both deflate and snappy compression"
    );
    let limits = ServerLimits {
        snappy: false,
        ..ServerLimits::default()
    };
    let both = r#"{"feature_negotiation":true,"deflate":true,"snappy":true}"#;
    let (features, _) = settle_with(both, &limits).unwrap();
    assert_eq!((features.deflate, features.snappy), (Some(6), false));
}

#[test]
fn c_32_and_c_102_upgrades_need_negotiation_and_a_certificate() {
    let wishes = r#"{"deflate":true,"snappy":true,"tls_v1":true}"#;
    let limits = ServerLimits {
        tls: true,
        ..ServerLimits::default()
    };
    let (features, answer) = settle_with(wishes, &limits).unwrap();
    assert_eq!(
        (answer.as_str(), features.tls, features.snappy, features.deflate),
        ("OK", false, false, None)
    );
    let wish = r#"{"feature_negotiation":true,"tls_v1":true}"#;
    assert!(settle_with(wish, &limits).unwrap().0.tls);
    assert!(!settle(wish).unwrap().0.tls);
}

#[test]
fn a_youzan_key_of_any_value_makes_a_youzan_connection() {
    for key in ["extend_support", "desired_tag", "ext_filter", "multiplexing"] {
        let (features, answer) = with(&format!("\"{key}\":null")).unwrap();
        assert_eq!(features.dialect, Dialect::Youzan, "{key}");
        assert!(
            answer.contains("\"version\":\"1.3.0-HA."),
            "Java looks for -HA. in {answer}"
        );
    }
    assert_eq!(with("\"filter_key\":\"k\"").unwrap().0.dialect, Dialect::Stock);
    let (features, _) = with("\"extend_support\":true").unwrap();
    assert!(features.extend_support);
}

#[test]
fn y_32_y_33_a_tag_is_bounded_and_echoed() {
    let tag = |len| with(&format!("\"desired_tag\":\"{}\"", "a".repeat(len)));
    assert!(
        tag(100)
            .unwrap()
            .1
            .ends_with(&format!(",\"desired_tag\":\"{}\"}}", "a".repeat(100)))
    );
    assert_eq!(tag(101).unwrap_err(), "E_BAD_BODY IDENTIFY invalid tag len 101");
    assert!(!tag(0).unwrap().1.contains("desired_tag"));
    assert_eq!(
        with("\"desired_tag\":\"a b\"").unwrap_err(),
        "E_BAD_TAG IDENTIFY tag \"a b\" is not valid"
    );
}

#[test]
fn youzan_clients_get_large_buffers_lowered_and_short_timeouts_raised() {
    let wishes = "\"multiplexing\":true,\"output_buffer_size\":1000000,\"output_buffer_timeout\":5";
    accepted(
        wishes,
        "\"output_buffer_size\":65536,\"output_buffer_timeout\":25}",
    );
    refused(
        "\"multiplexing\":true,\"output_buffer_size\":63",
        "output buffer size (63)",
    );
}
