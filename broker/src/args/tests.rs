//! nsqd's command line as an operator types it, and its documentation.

use std::path::Path;
use std::time::Duration;

use nsqx_flags::{LogFormat, reference};

use super::*;
use crate::config::{Shown, render};

const NOTHING: [(&str, &str); 0] = [];

fn nsqd(line: &str, env: &[(&str, &str)]) -> Result<Invocation, Exit> {
    let args = ["nsqd"]
        .into_iter()
        .chain(line.split_whitespace())
        .map(OsString::from);
    let variable = |name: &str| {
        env.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.into())
    };
    parse(args, variable, "vm")
}

fn with_file(text: &str, line: &str) -> Result<Invocation, Exit> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nsqd.toml");
    std::fs::write(&path, text).unwrap();
    nsqd(&format!("--config={} {line}", path.display()), &NOTHING)
}

fn shown(invocation: &Invocation, key: &str) -> String {
    match render(&invocation.config, &invocation.changeable, key) {
        Some(Shown::Text(text)) => text,
        Some(Shown::Json(value)) => value.to_string(),
        None => panic!("{key} is not shown"),
    }
}

#[test]
fn f_01_forms_of_flags_and_switches() {
    for line in [
        "-data-path=/d",
        "--data-path=/d",
        "-data-path /d",
        "--data-path /d",
    ] {
        assert_eq!(
            nsqd(line, &NOTHING).unwrap().config.node.data_path,
            Path::new("/d")
        );
    }
    assert!(nsqd("-deflate false", &NOTHING).unwrap().config.negotiate.deflate);
    assert!(!nsqd("-deflate=false", &NOTHING).unwrap().config.negotiate.deflate);
}

#[test]
fn f_02_exit_codes() {
    assert_eq!(nsqd("-h", &NOTHING).unwrap_err().code(), 0);
    assert_eq!(nsqd("-bogus", &NOTHING).unwrap_err().code(), 2);
    assert_eq!(nsqd("-worker-id=5", &NOTHING).unwrap_err().code(), 2);
    assert_eq!(nsqd("-tls-required=maybe", &NOTHING).unwrap_err().code(), 2);
    assert_eq!(nsqd("-node-id=2000", &NOTHING).unwrap_err().code(), 1);
    assert!(nsqd("-worker-id -verbose", &NOTHING).is_ok());
}

#[test]
fn f_03_a_duration_needs_its_unit() {
    assert_eq!(nsqd("-msg-timeout=60", &NOTHING).unwrap_err().code(), 2);
    let given = nsqd("-msg-timeout=1m30s", &NOTHING).unwrap();
    assert_eq!(shown(&given, "msg_timeout"), "90000000000");
}

#[test]
fn f_04_the_command_line_beats_environment_and_file() {
    let given = with_file("max_rdy_count = 5\nmsg_timeout = \"5s\"", "-max-rdy-count=2500").unwrap();
    assert_eq!(given.config.negotiate.max_rdy_count, 2500);
    assert_eq!(given.config.channel.msg_timeout, Duration::from_secs(5));
    let given = nsqd(
        "-max-rdy-count=2500",
        &[("NSQD_MAX_RDY_COUNT", "5"), ("NSQD_LOG_FORMAT", "json")],
    )
    .unwrap();
    assert_eq!(given.config.negotiate.max_rdy_count, 2500);
    assert_eq!(given.config.logging.log_format, LogFormat::Json);
}

#[test]
fn f_05_a_list_on_the_command_line_replaces_the_files() {
    let file = "nsqlookupd_tcp_addresses = [\"f:1\", \"f:2\", \"f:3\"]";
    let given = with_file(file, "--lookupd-tcp-address=a:1 --lookupd-tcp-address=b:1").unwrap();
    assert_eq!(shown(&given, "nsqlookupd_tcp_addresses"), "[\"a:1\",\"b:1\"]");
    assert_eq!(given.changeable.lookupd_tcp_addresses, ["a:1", "b:1"]);
}

#[test]
fn f_06_numbers_in_the_file_are_milliseconds() {
    let given = with_file("msg_timeout = 30000", "").unwrap();
    assert_eq!(given.config.channel.msg_timeout, Duration::from_secs(30));
    assert_eq!(with_file("msg_timeout = 1.5", "").unwrap_err().code(), 1);
}

#[test]
fn f_07_unknown_keys_are_ignored() {
    assert!(with_file("no_such_key = 1\nnode_id = 5000\n[section]\nid = 5000\n", "").is_ok());
}

#[test]
fn f_08_start_up_faults_have_stocks_lines() {
    let exit = nsqd("--node-id=1024 --max-deflate-level=0", &NOTHING).unwrap_err();
    assert_eq!(
        exit,
        Exit::Failure(vec![
            "failed to instantiate nsqd - --max-deflate-level must be [1,9]".to_owned(),
            "failed to instantiate nsqd - --node-id must be [0,1024)".to_owned(),
        ])
    );
}

#[test]
fn f_10_percentiles_from_several_flags_and_commas() {
    let line = "-e2e-processing-latency-percentile=0.5,0.99 --e2e-processing-latency-percentile 1.0";
    let given = nsqd(line, &NOTHING).unwrap();
    assert_eq!(
        shown(&given, "e2e_processing_latency_percentiles"),
        "[1,0.99,0.5]"
    );
    let exit = nsqd("-e2e-processing-latency-percentile=abc", &NOTHING).unwrap_err();
    assert_eq!(exit, Exit::Failure(vec!["Could not parse: abc".to_owned()]));
}

#[test]
fn f_11_the_version_line_begins_as_stocks() {
    let exit = nsqd("--version -node-id=2000", &NOTHING).unwrap_err();
    let Exit::Version(line) = exit else {
        panic!("{exit:?}")
    };
    assert!(line.starts_with("nsqd v1.3.0 (built w/rustc1."), "{line}");
    assert!(
        line.ends_with(concat!("nsqx ", env!("CARGO_PKG_VERSION"))),
        "{line}"
    );
}

#[test]
fn tls_settings_of_the_file_are_read_as_stock_reads_them() {
    let files = "tls_cert = \"c\"\ntls_key = \"k\"\n";
    for (value, required) in [("true", "2"), ("\"false\"", "0"), ("\"tcp-https\"", "1")] {
        let given = with_file(
            &format!("{files}tls_required = {value}\ntls_min_version = \"TLS1.3\""),
            "",
        )
        .unwrap();
        assert_eq!(shown(&given, "tls_required"), required);
        assert_eq!(shown(&given, "tls_min_version"), "772");
    }
    assert_eq!(
        shown(
            &with_file("tls_min_version = \"\"", "").unwrap(),
            "tls_min_version"
        ),
        "769"
    );
    assert_eq!(
        with_file("tls_min_version = \"ssl3.0\"", "").unwrap_err().code(),
        1
    );
    assert_eq!(with_file("tls_required = 2", "").unwrap_err().code(), 1);
}

#[test]
fn import_and_export_come_first_and_take_nsqds_flags_too() {
    let given = nsqd("import --from /old -data-path=/new", &NOTHING).unwrap();
    assert_eq!(given.task, Task::Import { from: "/old".into() });
    assert_eq!(given.config.node.data_path, Path::new("/new"));
    let given = nsqd("export -to=/old", &NOTHING).unwrap();
    assert_eq!(given.task, Task::Export { to: "/old".into() });
    assert_eq!(nsqd("", &NOTHING).unwrap().task, Task::Serve);
    assert_eq!(nsqd("-data-path=/d import", &NOTHING).unwrap().task, Task::Serve);

    assert_eq!(
        nsqd("import", &NOTHING).unwrap_err(),
        Exit::Failure(vec!["--from DIR must be given".to_owned()])
    );
    assert_eq!(nsqd("-from=/old", &NOTHING).unwrap_err().code(), 2);
}

#[test]
fn every_stock_flag_is_there() {
    let command = program(NAME).command::<Options>();
    let known: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    for flag in STOCK_FLAGS.split_whitespace() {
        assert!(known.contains(&flag), "{flag}");
    }
}

/// `UPDATE_DOCS=1 cargo test -p nsqx-broker documentation` writes the tables anew.
#[test]
fn the_documentation_lists_the_flags_as_they_are_defined() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("begin of the tables");
    let (tables, tail) = rest.split_once(END).expect("end of the tables");
    let defined = format!("\n{}\n", reference::<Options>(&program(NAME)));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{defined}{END}{tail}")).unwrap();
    } else {
        assert_eq!(
            tables, defined,
            "docs/configuration.md is behind: run with UPDATE_DOCS=1"
        );
    }
}

const BEGIN: &str = "<!-- nsqd flags: written by a test of args.rs -->";
const END: &str = "<!-- end of nsqd flags -->";

const STOCK_FLAGS: &str = "
    auth-http-address broadcast-address broadcast-http-port broadcast-tcp-port config data-path deflate
    e2e-processing-latency-percentile e2e-processing-latency-window-time http-address
    http-client-connect-timeout http-client-request-timeout https-address log-level log-prefix
    lookupd-tcp-address max-body-size max-bytes-per-file max-channel-consumers max-deflate-level
    max-heartbeat-interval max-msg-size max-msg-timeout max-output-buffer-size max-output-buffer-timeout
    max-rdy-count max-req-timeout mem-queue-size min-output-buffer-timeout msg-timeout node-id
    output-buffer-timeout queue-scan-selection-count queue-scan-worker-pool-max snappy statsd-address
    statsd-exclude-ephemeral statsd-interval statsd-mem-stats statsd-prefix statsd-udp-packet-size
    sync-every sync-timeout tcp-address tls-cert tls-client-auth-policy tls-key tls-min-version tls-required
    tls-root-ca-file verbose version worker-id";
