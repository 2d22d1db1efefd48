//! H-49 to H-53, H-56: /config (nsq-http-and-tools 1.11).

use std::time::Duration;

use e2e::lookupd::Lookupd;
use e2e::pki::Pki;
use e2e::{Broker, eventually, statements};
use serde_json::json;

statements! {
    both {
        h_49_options_go_by_their_config_key,
        h_50_values_are_rendered_by_type,
        h_51_the_log_level_can_be_changed,
        h_52_other_options_cannot_be_changed,
        h_53_lookupd_addresses_can_be_changed,
        h_56_a_client_policy_alone_requires_tls,
    }
}

fn h_49_options_go_by_their_config_key(broker: &Broker) {
    let node = broker.start();
    node.http()
        .get("/config/nsqlookupd_tcp_addresses")
        .expect(200, "[]");
    for unknown in ["lookupd_tcp_address", "node_id", "config", "no_such_option"] {
        node.http()
            .get(&format!("/config/{unknown}"))
            .expect_error(400, "INVALID_OPTION");
    }
}

fn h_50_values_are_rendered_by_type(broker: &Broker) {
    let node = broker
        .node()
        .flag("node-id", 7)
        .flag("tls-min-version", "tls1.2")
        .start();
    let data_path = node.data_path().display().to_string();
    for (option, value) in [
        ("data_path", data_path.as_str()),
        ("msg_timeout", "60000000000"),
        ("log_level", "2"),
        ("id", "7"),
        ("max_rdy_count", "2500"),
        ("snappy", "true"),
        ("tls_required", "0"),
        ("tls_min_version", "771"),
        ("auth_http_addresses", "[]"),
        ("statsd_address", ""),
    ] {
        let response = node.http().get(&format!("/config/{option}"));
        response.expect(200, value);
        assert_eq!(
            response.header("X-NSQ-Content-Type"),
            Some("nsq; version=1.0"),
            "{option}"
        );
    }
}

fn h_51_the_log_level_can_be_changed(broker: &Broker) {
    let node = broker.start();
    node.http().put("/config/log_level", "DEBUG").expect(200, "1");
    node.http().get("/config/log_level").expect(200, "1");
    for refused in ["\"info\"", "warning", " info", "2"] {
        node.http()
            .put("/config/log_level", refused)
            .expect_error(400, "INVALID_VALUE");
    }
    node.http()
        .put("/config/log_level", "")
        .expect_error(413, "INVALID_VALUE");
    node.http().get("/config/log_level").expect(200, "1");
}

fn h_52_other_options_cannot_be_changed(broker: &Broker) {
    let node = broker.start();
    for option in ["msg_timeout", "data_path", "no_such_option"] {
        node.http()
            .put(&format!("/config/{option}"), "1")
            .expect_error(400, "INVALID_OPTION");
    }
    node.http()
        .put("/config/nsqlookupd_tcp_addresses", "{")
        .expect_error(400, "INVALID_VALUE");
}

fn h_53_lookupd_addresses_can_be_changed(broker: &Broker) {
    let Some(lookupd) = Lookupd::start() else { return };
    let node = broker
        .node()
        .flag("lookupd-tcp-address", lookupd.tcp_address())
        .start();
    node.client().subscribe("t", "c");
    lookupd.await_producer("t", SOON);
    node.http()
        .put("/config/nsqlookupd_tcp_addresses", "[]")
        .expect(200, "[]");
    eventually("the node is gone", SOON, || {
        (lookupd.node_count() == 0).then_some(())
    });
    let list = format!("[\"{}\"]", lookupd.tcp_address());
    node.http()
        .put("/config/nsqlookupd_tcp_addresses", &list)
        .expect(200, &list);
    eventually("the node is back with its topics", SOON, || {
        let nodes = lookupd.http().get("/nodes").json();
        (nodes["producers"][0]["topics"] == json!(["t"])).then_some(())
    });
}

fn h_56_a_client_policy_alone_requires_tls(broker: &Broker) {
    let pki = Pki::new();
    let node = broker
        .node()
        .arguments(pki.server_flags())
        .flag("tls-client-auth-policy", "require")
        .start();
    let client = pki.client_as(pki.self_signed_client("anyone"));
    node.https(client).get("/config/tls_required").expect(200, "2");
}

const SOON: Duration = Duration::from_secs(5);
