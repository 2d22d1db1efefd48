//! C-12 to C-27: IDENTIFY, its fields, limits and answers (nsq-tcp 2.1).

use e2e::wire::{Client, command};
use e2e::{Broker, Node, statements};
use serde_json::{Value, json};

statements! {
    both {
        c_12_an_empty_object_gets_ok,
        c_13_the_negotiation_answer_has_the_thirteen_keys,
        c_14_what_is_not_one_json_object_is_refused,
        c_14_null_counts_as_an_empty_object,
        c_15_body_sizes_out_of_range_are_refused,
        c_16_heartbeat_interval_has_a_range,
        c_17_output_buffer_size_has_a_range,
        c_17_no_output_buffer_is_reported_as_size_one_and_no_timeout,
        c_18_output_buffer_timeout_has_a_range,
        c_18_no_output_buffer_timeout_is_reported_as_zero,
        c_19_sample_rate_has_a_range,
        c_20_msg_timeout_has_a_range,
        c_21_the_heartbeat_error_comes_first,
        c_22_a_fraction_is_not_an_integer,
        c_23_the_old_names_are_ignored,
        c_24_identify_after_sub_is_refused,
        c_25_identify_may_be_repeated_before_sub,
        c_26_deflate_level_is_capped,
        c_27_both_compressions_are_refused,
        c_27_a_disabled_compression_does_not_clash,
    }
}

fn c_12_an_empty_object_gets_ok(broker: &Broker) {
    let node = broker.start();
    assert_eq!(node.client().identify("{}"), "OK");
}

fn c_13_the_negotiation_answer_has_the_thirteen_keys(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send(&command::identify(r#"{"feature_negotiation":true}"#));
    client.expect_response(concat!(
        r#"{"max_rdy_count":2500,"version":"1.3.0","max_msg_timeout":900000,"msg_timeout":60000,"#,
        r#""tls_v1":false,"deflate":false,"deflate_level":6,"max_deflate_level":6,"snappy":false,"#,
        r#""sample_rate":0,"auth_required":false,"output_buffer_size":16384,"output_buffer_timeout":250}"#,
    ));
}

fn c_14_what_is_not_one_json_object_is_refused(broker: &Broker) {
    let node = broker.start();
    for body in ["[]", "{", "{} x"] {
        expect_refused(&node, body, "E_BAD_BODY IDENTIFY failed to decode JSON body");
    }
}

fn c_14_null_counts_as_an_empty_object(broker: &Broker) {
    let node = broker.start();
    assert_eq!(node.client().identify("null"), "OK");
}

fn c_15_body_sizes_out_of_range_are_refused(broker: &Broker) {
    let node = broker.start();
    for (size, error) in [
        (0, "E_BAD_BODY IDENTIFY invalid body size 0"),
        (-1, "E_BAD_BODY IDENTIFY invalid body size -1"),
        (5_242_881, "E_BAD_BODY IDENTIFY body too big 5242881 > 5242880"),
    ] {
        let mut client = node.client();
        client.send(&command::only_size("IDENTIFY", size));
        client.expect_fatal(error);
    }
}

fn c_16_heartbeat_interval_has_a_range(broker: &Broker) {
    let node = broker.start();
    for refused in [999, 60_001, -2] {
        let error = format!("E_BAD_BODY IDENTIFY heartbeat interval ({refused}) is invalid");
        expect_refused(&node, &setting("heartbeat_interval", refused), &error);
    }
    for accepted in [1000, 60_000, 0, -1] {
        negotiate(&node, "heartbeat_interval", accepted);
    }
}

fn c_17_output_buffer_size_has_a_range(broker: &Broker) {
    let node = broker.start();
    for refused in [63, 65_537, -2] {
        let error = format!("E_BAD_BODY IDENTIFY output buffer size ({refused}) is invalid");
        expect_refused(&node, &setting("output_buffer_size", refused), &error);
    }
    for (accepted, reported) in [(64, 64), (65_536, 65_536), (0, 16_384)] {
        assert_eq!(
            negotiate(&node, "output_buffer_size", accepted)["output_buffer_size"],
            reported
        );
    }
}

fn c_17_no_output_buffer_is_reported_as_size_one_and_no_timeout(broker: &Broker) {
    let node = broker.start();
    let answer = negotiate(&node, "output_buffer_size", -1);
    assert_eq!(
        (&answer["output_buffer_size"], &answer["output_buffer_timeout"]),
        (&json!(1), &json!(0))
    );
}

fn c_18_output_buffer_timeout_has_a_range(broker: &Broker) {
    let node = broker.start();
    for refused in [24, 30_001, -2] {
        let error = format!("E_BAD_BODY IDENTIFY output buffer timeout ({refused}) is invalid");
        expect_refused(&node, &setting("output_buffer_timeout", refused), &error);
    }
    for accepted in [25, 30_000] {
        assert_eq!(
            negotiate(&node, "output_buffer_timeout", accepted)["output_buffer_timeout"],
            accepted
        );
    }
}

fn c_18_no_output_buffer_timeout_is_reported_as_zero(broker: &Broker) {
    let node = broker.start();
    assert_eq!(
        negotiate(&node, "output_buffer_timeout", -1)["output_buffer_timeout"],
        0
    );
}

fn c_19_sample_rate_has_a_range(broker: &Broker) {
    let node = broker.start();
    for refused in [100, -1] {
        let error = format!("E_BAD_BODY IDENTIFY sample rate ({refused}) is invalid");
        expect_refused(&node, &setting("sample_rate", refused), &error);
    }
    for accepted in [0, 99] {
        assert_eq!(negotiate(&node, "sample_rate", accepted)["sample_rate"], accepted);
    }
}

fn c_20_msg_timeout_has_a_range(broker: &Broker) {
    let node = broker.start();
    for refused in [999, 900_001, -1] {
        let error = format!("E_BAD_BODY IDENTIFY msg timeout ({refused}) is invalid");
        expect_refused(&node, &setting("msg_timeout", refused), &error);
    }
    for (accepted, reported) in [(1000, 1000), (900_000, 900_000), (0, 60_000)] {
        assert_eq!(negotiate(&node, "msg_timeout", accepted)["msg_timeout"], reported);
    }
}

fn c_21_the_heartbeat_error_comes_first(broker: &Broker) {
    let node = broker.start();
    let all = json!({
        "msg_timeout": 1,
        "sample_rate": 100,
        "output_buffer_size": 1,
        "output_buffer_timeout": 1,
        "heartbeat_interval": 1,
    });
    expect_refused(
        &node,
        &all.to_string(),
        "E_BAD_BODY IDENTIFY heartbeat interval (1) is invalid",
    );
}

fn c_22_a_fraction_is_not_an_integer(broker: &Broker) {
    let node = broker.start();
    expect_refused(
        &node,
        r#"{"heartbeat_interval":1000.0}"#,
        "E_BAD_BODY IDENTIFY failed to decode JSON body",
    );
}

fn c_23_the_old_names_are_ignored(broker: &Broker) {
    let node = broker.start();
    for value in ["1", "\"old\"", "null", "[]", "{}"] {
        let mut client = node.client();
        client.identify(&format!(r#"{{"short_id":{value},"long_id":{value}}}"#));
        client.subscribe("t", "c");
        let channel = node.await_channel("t", "c", |channel| channel["client_count"] == 1);
        let seen = &channel["clients"][0];
        assert_eq!(
            (&seen["client_id"], &seen["hostname"]),
            (&json!(""), &json!("")),
            "{value}"
        );
        drop(client);
        node.await_channel("t", "c", |channel| channel["client_count"] == 0);
    }
}

fn c_24_identify_after_sub_is_refused(broker: &Broker) {
    let node = broker.start();
    let mut client = node.consumer("t", "c");
    client.send(&command::identify("{}"));
    client.expect_fatal("E_INVALID cannot IDENTIFY in current state");
}

fn c_25_identify_may_be_repeated_before_sub(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    let first = client.identify(r#"{"feature_negotiation":true,"msg_timeout":2000}"#);
    let second = client.identify(r#"{"feature_negotiation":true,"msg_timeout":3000}"#);
    assert_eq!(
        (&first["msg_timeout"], &second["msg_timeout"]),
        (&json!(2000), &json!(3000))
    );
    client.subscribe("t", "c");
}

fn c_26_deflate_level_is_capped(broker: &Broker) {
    let node = broker.start();
    for (asked, reported) in [(9, 6), (0, 6), (1, 1)] {
        let request = json!({"feature_negotiation": true, "deflate": true, "deflate_level": asked});
        let answer = node.client().identify(&request.to_string());
        assert_eq!(
            (&answer["deflate"], &answer["deflate_level"]),
            (&json!(true), &json!(reported))
        );
    }
}

fn c_27_both_compressions_are_refused(broker: &Broker) {
    let node = broker.start();
    let error = "E_IDENTIFY_FAILED cannot enable both deflate and snappy compression";
    expect_refused(&node, BOTH_COMPRESSIONS, error);
}

fn c_27_a_disabled_compression_does_not_clash(broker: &Broker) {
    let node = broker.node().flag("snappy", false).start();
    let mut client = node.client();
    let answer = client.identify(BOTH_COMPRESSIONS);
    assert_eq!(
        (&answer["deflate"], &answer["snappy"]),
        (&json!(true), &json!(false))
    );
    client.start_deflate();
    client.expect_ok();
    client.expect_alive();
}

fn expect_refused(node: &Node, body: &str, error: &str) {
    let mut client = node.client();
    client.send(&command::identify(body));
    client.expect_fatal(error);
}

/// The answer to a negotiation with one setting, from a connection that goes on working.
fn negotiate(node: &Node, key: &str, value: i32) -> Value {
    let mut client: Client = node.client();
    let answer = client.identify(&setting(key, value));
    client.expect_alive();
    answer
}

fn setting(key: &str, value: i32) -> String {
    json!({"feature_negotiation": true, key: value}).to_string()
}

const BOTH_COMPRESSIONS: &str = r#"{"feature_negotiation":true,"deflate":true,"snappy":true}"#;
