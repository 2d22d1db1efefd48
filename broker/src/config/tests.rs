//! Checks and completion of options, and what is shown of them.

use std::path::Path;
use std::time::Duration;

use clap::{Command, FromArgMatches as _};
use nsqx_flags::LogLevel;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const HOST: &str = "vm";

fn options(flags: &[&str]) -> Options {
    let line = flags.iter().map(|flag| format!("--{flag}"));
    let command = Options::augment_args(Command::new("nsqd").no_binary_name(true));
    let matches = command.try_get_matches_from(line).unwrap();
    Options::from_arg_matches(&matches).unwrap()
}

fn config(flags: &[&str]) -> Config {
    options(flags).resolve(HOST).unwrap().0
}

fn faults(flags: &[&str]) -> Vec<String> {
    let faults = options(flags).resolve(HOST).unwrap_err();
    faults.iter().map(ToString::to_string).collect()
}

fn shown(flags: &[&str], key: &str) -> Option<Shown> {
    let (mut config, changeable) = options(flags).resolve(HOST).unwrap();
    config.announce(Some(4150), Some(4151));
    render(&config, &changeable, key)
}

fn text(text: &str) -> Shown {
    Shown::Text(text.to_owned())
}

#[test]
fn nothing_given_is_stocks_configuration() {
    let config = config(&[]);
    assert_eq!(config.node.id, 617);
    assert_eq!(config.node.broadcast_address, HOST);
    assert_eq!(config.node.data_path, Path::new("."));
    assert_eq!(config.ingress.tcp, Address::Tcp("0.0.0.0:4150".to_owned()));
    assert_eq!(config.ingress.http, Some(Address::Tcp("0.0.0.0:4151".to_owned())));
    assert_eq!(config.ingress.https, None);
    assert_eq!(config.channel.msg_timeout, Duration::from_mins(1));
    assert_eq!(config.channel.max_consumers, None);
    assert_eq!(config.topic.max_deferred_time, Duration::from_hours(1));
    assert_eq!(config.log.memory_tail, 16 << 20);
    assert_eq!(config.log.sync_every, Some(2500));
    assert_eq!(config.metrics.statsd, None);
    assert_eq!(config.tls.required, TlsRequired::No);
    assert_eq!(
        (config.admit.http_auth, config.admit.expiry),
        (HttpAuth::Off, None)
    );
    assert_eq!(config.admit.audit_log, Path::new("./audit.log"));
    assert_eq!(config.extension.load_test_keys, ["zan_test"]);
}

#[test]
fn f_08_impossible_values_have_stocks_texts() {
    for (flag, text) in [
        ("node-id=1024", "--node-id must be [0,1024)"),
        ("node-id=-1", "--node-id must be [0,1024)"),
        ("max-deflate-level=0", "--max-deflate-level must be [1,9]"),
        ("max-deflate-level=10", "--max-deflate-level must be [1,9]"),
        (
            "e2e-processing-latency-percentile=2",
            "invalid E2E processing latency percentile: 2",
        ),
        (
            "e2e-processing-latency-percentile=0",
            "invalid E2E processing latency percentile: 0",
        ),
        (
            "tls-required=true",
            "cannot require TLS client connections without TLS key and cert",
        ),
        (
            "tls-required=tcp-https",
            "cannot require TLS client connections without TLS key and cert",
        ),
        (
            "tls-client-auth-policy=x",
            "cannot require TLS client connections without TLS key and cert",
        ),
    ] {
        assert_eq!(faults(&[flag]), [text], "{flag}");
    }
}

#[test]
fn all_faults_are_told_together() {
    assert_eq!(
        faults(&[
            "max-deflate-level=0",
            "node-id=1024",
            "tls-cert=c.pem",
            "msg-timeout=-1s",
            "tcp-address=",
            "broadcast-tcp-port=65536",
            "http-auth=all",
        ]),
        [
            "--max-deflate-level must be [1,9]",
            "--node-id must be [0,1024)",
            "--broadcast-tcp-port must be [0,65535]",
            "--tls-key must be given together with --tls-cert",
            "--msg-timeout must be above 0",
            "--http-auth=all needs --auth-http-address or --auth-jwks-url",
            "--tcp-address must not be empty",
        ]
    );
}

#[test]
fn an_empty_address_is_off_and_a_path_is_a_socket() {
    let config = config(&["tcp-address=/run/nsqd.sock", "http-address="]);
    assert_eq!(config.ingress.tcp, Address::Unix("/run/nsqd.sock".into()));
    assert_eq!(config.ingress.http, None);
}

#[test]
fn https_opens_only_with_a_certificate() {
    let tls = ["tls-cert=c.pem", "tls-key=k.pem"];
    assert_eq!(config(&tls).ingress.https.as_deref(), Some("0.0.0.0:4152"));
    assert_eq!(
        config(&[&tls[..], &["https-address="]].concat()).ingress.https,
        None
    );
    assert_eq!(
        faults(&[&tls[..], &["https-address=/run/x"]].concat()),
        ["--https-address must be host:port"]
    );
}

#[test]
fn h_56_a_client_certificate_policy_makes_tls_required() {
    let flags = [
        "tls-cert=c.pem",
        "tls-key=k.pem",
        "tls-client-auth-policy=require-verify",
    ];
    let config = config(&flags);
    assert_eq!(config.tls.required, TlsRequired::Yes);
    assert_eq!(config.tls.client_certificate, ClientCertificate::Verified);
    assert_eq!(shown(&flags, "tls_required"), Some(Shown::Json(json!(2))));
    let softer = [&flags[..], &["tls-required=tcp-https"]].concat();
    assert_eq!(shown(&softer, "tls_required"), Some(Shown::Json(json!(1))));
}

#[test]
fn tls_required_is_read_in_any_case() {
    for (word, required) in [
        ("TRUE", TlsRequired::Yes),
        ("tRue", TlsRequired::Yes),
        ("F", TlsRequired::No),
        ("TCP-https", TlsRequired::TcpHttps),
    ] {
        assert_eq!(word.parse(), Ok(required), "{word}");
    }
    assert_eq!("tcp".parse::<TlsRequired>(), Err(TlsRequiredError));
}

#[test]
fn jwts_protect_http_writes_unless_told_otherwise() {
    let url = "auth-jwks-url=https://auth.example/jwks";
    let config_of = |flags: &[&str]| config(flags).admit;
    assert_eq!(config_of(&[url]).http_auth, HttpAuth::Writes);
    assert_eq!(config_of(&[url, "http-auth=off"]).http_auth, HttpAuth::Off);
    assert_eq!(config_of(&["auth-http-address=a:1"]).http_auth, HttpAuth::Off);
    assert_eq!(
        config_of(&["auth-http-address=a:1"]).auth_urls,
        ["http://a:1/auth"]
    );
    assert_eq!(
        faults(&["auth-jwks-url=http://auth.example/jwks"]),
        ["--auth-jwks-url must be https, or http on a loopback address"]
    );
}

#[test]
fn f_10_percentiles_are_shown_highest_first_and_as_go_writes_them() {
    let flags = [
        "e2e-processing-latency-percentile=0.5,0.99",
        "e2e-processing-latency-percentile=1.0",
    ];
    let shown = shown(&flags, "e2e_processing_latency_percentiles");
    let Some(Shown::Json(list)) = shown else {
        panic!("{shown:?}")
    };
    assert_eq!(list.to_string(), "[1,0.99,0.5]");
    assert_eq!(config(&flags).metrics.latency_percentiles, [1.0, 0.99, 0.5]);
}

#[test]
fn h_49_settings_are_found_by_key_not_by_flag() {
    assert_eq!(
        shown(&[], "nsqlookupd_tcp_addresses"),
        Some(Shown::Json(json!([])))
    );
    assert_eq!(shown(&[], "id"), Some(Shown::Json(json!(617))));
    for key in [
        "lookupd_tcp_address",
        "node_id",
        "config",
        "version",
        "verbose",
        "worker_id",
        "",
        "data-path",
    ] {
        assert_eq!(shown(&[], key), None, "{key}");
    }
}

#[test]
fn h_50_settings_are_shown_as_stock_shows_them() {
    for (key, value) in [
        ("data_path", text("/var/lib/nsq")),
        ("msg_timeout", Shown::Json(json!(60_000_000_000_i64))),
        ("log_level", Shown::Json(json!(2))),
        ("log_prefix", text("[nsqd] ")),
        ("deflate", Shown::Json(json!(true))),
        ("tls_required", Shown::Json(json!(0))),
        ("tls_min_version", Shown::Json(json!(769))),
        ("tls_client_auth_policy", text("")),
        ("auth_http_addresses", Shown::Json(json!([]))),
        ("broadcast_address", text("my.host")),
        ("broadcast_tcp_port", Shown::Json(json!(4150))),
        ("broadcast_http_port", Shown::Json(json!(9))),
        ("statsd_prefix", text("nsq.my_host_9.")),
        ("durability", text("interval")),
        ("memory_tail", Shown::Json(json!(16 << 20))),
        ("http_auth", text("off")),
        ("auth_expiry", text("")),
        ("max_deferred_time", Shown::Json(json!(3_600_000_000_000_i64))),
    ] {
        let flags = [
            "data-path=/var/lib/nsq",
            "broadcast-address=my.host",
            "broadcast-http-port=9",
        ];
        assert_eq!(shown(&flags, key), Some(value), "{key}");
    }
}

#[test]
fn the_bound_ports_complete_what_others_are_told() {
    let mut config = config(&["statsd-address=s:8125", "broadcast-tcp-port=7"]);
    config.announce(Some(1), Some(2));
    assert_eq!(
        (config.node.broadcast_tcp_port, config.node.broadcast_http_port),
        (7, 2)
    );
    assert_eq!(config.metrics.statsd.unwrap().prefix, "nsq.vm_2.");
}

#[test]
fn h_51_the_log_level_changes_by_its_bare_word() {
    let (config, mut changeable) = options(&[]).resolve(HOST).unwrap();
    let change = Change::parse("log_level", b"DEBUG").unwrap();
    assert_eq!(change, Change::LogLevel(LogLevel::Debug));
    changeable.apply(change);
    assert_eq!(
        render(&config, &changeable, "log_level"),
        Some(Shown::Json(json!(1)))
    );
    for body in ["\"info\"", "warning", "info\n", ""] {
        assert_eq!(
            Change::parse("log_level", body.as_bytes()),
            Err(ChangeError::Value),
            "{body}"
        );
    }
}

#[test]
fn h_52_what_can_not_change_is_no_option() {
    for key in ["msg_timeout", "id", "unknown"] {
        let error = Change::parse(key, b"1").unwrap_err();
        assert_eq!(error.to_string(), "INVALID_OPTION");
    }
}

#[test]
fn h_53_the_lookupds_change_by_a_json_list() {
    let (config, mut changeable) = options(&["lookupd-tcp-address=a:1"]).resolve(HOST).unwrap();
    let key = "nsqlookupd_tcp_addresses";
    assert_eq!(
        render(&config, &changeable, key),
        Some(Shown::Json(json!(["a:1"])))
    );
    changeable.apply(Change::parse(key, b"[\"b:1\",\"c:1\"]").unwrap());
    assert_eq!(
        render(&config, &changeable, key),
        Some(Shown::Json(json!(["b:1", "c:1"])))
    );
    assert_eq!(
        Change::parse(key, b"null"),
        Ok(Change::LookupdTcpAddresses(Vec::new()))
    );
    for body in ["a:1", "[1]", "{}", "[\"a\"] x"] {
        assert_eq!(
            Change::parse(key, body.as_bytes()),
            Err(ChangeError::Value),
            "{body}"
        );
    }
}

#[test]
fn the_compatibility_switches_change_at_run_time() {
    let (config, mut changeable) = options(&[]).resolve(HOST).unwrap();
    changeable.apply(Change::parse("allow_sub_ext_compatible", b"false").unwrap());
    assert_eq!(
        render(&config, &changeable, "allow_sub_ext_compatible"),
        Some(Shown::Json(json!(false)))
    );
    assert_eq!(
        render(&config, &changeable, "allow_ext_compatible"),
        Some(Shown::Json(json!(false)))
    );
    assert_eq!(
        Change::parse("allow_ext_compatible", b"maybe"),
        Err(ChangeError::Value)
    );
}

proptest! {
    #[test]
    fn no_body_of_a_change_is_a_panic(key in "[a-z_]{0,30}", body: Vec<u8>) {
        let _ = Change::parse(&key, &body);
        let _ = Change::parse("nsqlookupd_tcp_addresses", &body);
    }
}
