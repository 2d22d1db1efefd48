//! Reading a made-up program's flags from all sources.

use std::ffi::OsString;
use std::path::Path;

use nsqx_flags::{ByteSize, Exit, Given, GoDuration, LogFormat, LogLevel, Program, reference};

/// Every kind of flag once.
#[derive(clap::Args, Clone, Debug, PartialEq)]
struct Sample {
    /// Allow negotiation
    #[arg(long, default_value_t = true)]
    deflate: bool,
    /// Trace everything
    #[arg(long)]
    trace: bool,
    /// Unique part of message ids
    #[arg(long = "node-id", default_value = "7")]
    id: i64,
    /// In-flight timeout
    #[arg(long, default_value = "1m")]
    msg_timeout: GoDuration,
    /// Newest records kept
    #[arg(long, default_value = "16MiB")]
    memory_tail: ByteSize,
    /// Where data lies
    #[arg(long, default_value = "")]
    data_path: String,
    /// Lookupd addresses
    #[arg(long = "lookupd-tcp-address")]
    nsqlookupd_tcp_addresses: Vec<String>,
    /// Header keys
    #[arg(long, default_value = "zan_test")]
    load_test_key: Vec<String>,
    /// Percentiles
    #[arg(long, value_delimiter = ',')]
    percentile: Vec<f64>,
    /// How much is logged
    #[arg(long, default_value = "info")]
    log_level: LogLevel,
    /// Form of log lines
    #[arg(long, default_value = "text")]
    log_format: LogFormat,
    /// No effect
    #[arg(long, hide = true)]
    verbose: bool,
}

#[test]
fn defaults_hold_when_nothing_is_given() {
    let flags = read("", &[], None).unwrap();
    assert!(flags.deflate && !flags.trace);
    assert_eq!(flags.id, 7);
    assert_eq!(flags.msg_timeout, GoDuration::from_nanos(60_000_000_000));
    assert_eq!(flags.memory_tail, ByteSize::from_bytes(16 << 20));
    assert!(flags.nsqlookupd_tcp_addresses.is_empty() && flags.data_path.is_empty());
    assert_eq!(flags.load_test_key, ["zan_test"]);
    assert_eq!(
        (flags.log_level, flags.log_format),
        (LogLevel::Info, LogFormat::Text)
    );
}

#[test]
fn f_01_forms_of_flags_are_equivalent() {
    for line in [
        "-node-id=9",
        "--node-id=9",
        "-node-id 9",
        "--node-id 0x9",
        "-node-id=3 -node-id=011",
    ] {
        assert_eq!(read(line, &[], None).unwrap().id, 9, "{line}");
    }
    let given = given("-deflate false -node-id=9", &[], None).unwrap();
    assert!(given.flags.deflate);
    assert_eq!(
        (given.flags.id, given.rest),
        (7, vec!["false".to_owned(), "-node-id=9".to_owned()])
    );
    assert!(!read("-deflate=F", &[], None).unwrap().deflate);
    assert!(read("-trace", &[], None).unwrap().trace);
}

#[test]
fn f_01_an_empty_value_is_a_value() {
    assert_eq!(read("-data-path=x -data-path=", &[], None).unwrap().data_path, "");
}

#[test]
fn f_02_help_goes_to_standard_error_with_code_0() {
    for line in ["-h", "-help", "--help", "-node-id=9 -h -bogus"] {
        let exit = read(line, &[], None).unwrap_err();
        assert_eq!(exit.code(), 0);
        let Exit::Help(usage) = exit else {
            panic!("{exit:?}")
        };
        assert!(usage.starts_with("Usage of sample:\n"), "{usage}");
        assert!(
            usage.contains("--msg-timeout <duration>") && usage.contains("[default: 1m]"),
            "{usage}"
        );
        assert!(usage.contains("--deflate[=<bool>]"), "{usage}");
        assert!(!usage.contains("--verbose"), "{usage}");
    }
}

#[test]
fn f_02_f_03_a_wrong_command_line_ends_with_code_2_in_gos_words() {
    for (line, text) in [
        ("-bogus", "flag provided but not defined: -bogus"),
        ("-node-id", "flag needs an argument: -node-id"),
        (
            "-msg-timeout=60",
            "invalid value \"60\" for flag -msg-timeout: parse error",
        ),
        (
            "-node-id=x -bogus",
            "invalid value \"x\" for flag -node-id: parse error",
        ),
        (
            "-node-id x -h",
            "invalid value \"x\" for flag -node-id: parse error",
        ),
        (
            "-node-id=99999999999999999999",
            "invalid value \"99999999999999999999\" for flag -node-id: value out of range",
        ),
        (
            "-deflate=maybe",
            "invalid boolean value \"maybe\" for -deflate: parse error",
        ),
        (
            "-deflate=",
            "invalid boolean value \"\" for -deflate: parse error",
        ),
        (
            "-memory-tail=1X",
            "invalid value \"1X\" for flag -memory-tail: parse error",
        ),
        (
            "-log-level=warning",
            "invalid value \"warning\" for flag -log-level: invalid log level 'warning' (debug, info, warn, error, fatal)",
        ),
        (
            "-log-format=xml",
            "invalid value \"xml\" for flag -log-format: must be text or json",
        ),
    ] {
        let exit = read(line, &[], None).unwrap_err();
        assert_eq!(exit.code(), 2, "{line}");
        let Exit::Misuse { message, usage } = exit else {
            panic!("{exit:?}")
        };
        assert_eq!(message, text);
        assert!(usage.starts_with("Usage of sample:\n"));
    }
}

#[test]
fn an_unreadable_percentile_ends_with_code_1() {
    let exit = read("-percentile=0.5,abc", &[], None).unwrap_err();
    assert_eq!(exit, Exit::Failure(vec!["Could not parse: abc".to_owned()]));
}

#[test]
fn f_04_an_explicit_flag_beats_environment_and_file_even_with_its_default() {
    let file = "id = 3\nmsg_timeout = \"3s\"\n";
    assert_eq!(read("", &[], Some(file)).unwrap().id, 3);
    assert_eq!(read("", &[("SAMPLE_NODE_ID", "4")], Some(file)).unwrap().id, 4);
    let flags = read("-node-id=7", &[("SAMPLE_NODE_ID", "4")], Some(file)).unwrap();
    assert_eq!(flags.id, 7);
    assert_eq!(flags.msg_timeout, GoDuration::from_nanos(3_000_000_000));
}

#[test]
fn f_05_lists_append_and_the_winner_replaces_the_whole_list() {
    let file = "nsqlookupd_tcp_addresses = [\"f:1\"]\nload_test_key = []\n";
    let env = [("SAMPLE_LOOKUPD_TCP_ADDRESS", "e:1,e:2")];
    let line = "--lookupd-tcp-address=a:1,b -lookupd-tcp-address c:1";
    assert_eq!(
        read(line, &env, Some(file)).unwrap().nsqlookupd_tcp_addresses,
        ["a:1,b", "c:1"]
    );
    assert_eq!(
        read("", &env, Some(file)).unwrap().nsqlookupd_tcp_addresses,
        ["e:1", "e:2"]
    );
    let flags = read("", &[], Some(file)).unwrap();
    assert_eq!(flags.nsqlookupd_tcp_addresses, ["f:1"]);
    assert!(flags.load_test_key.is_empty());
}

#[test]
fn f_06_file_values_are_coerced() {
    let nanos = |file: &str| read("", &[], Some(file)).unwrap().msg_timeout.as_nanos();
    assert_eq!(nanos("msg_timeout = 30000"), 30_000_000_000);
    assert_eq!(nanos("msg_timeout = \"1.5h\""), 5_400_000_000_000);

    let flags = read(
        "",
        &[],
        Some(
            "deflate = 0\ntrace = \"T\"\nid = \"12\"\nmemory_tail = 4096\nlog_level = \"WARN\"\n\
             nsqlookupd_tcp_addresses = \"a:1, b:1\"\npercentile = [1, 0.5]\n",
        ),
    )
    .unwrap();
    assert!(!flags.deflate && flags.trace);
    assert_eq!((flags.id, flags.memory_tail), (12, ByteSize::from_bytes(4096)));
    assert_eq!(flags.log_level, LogLevel::Warn);
    assert_eq!(flags.nsqlookupd_tcp_addresses, ["a:1", " b:1"]);
    assert_eq!(flags.percentile, [1.0, 0.5]);
    assert_eq!(
        read("", &[], Some("percentile = \"0.5, 0.9\""))
            .unwrap()
            .percentile,
        [0.5, 0.9]
    );
}

#[test]
fn f_06_all_wrong_file_values_are_told_together_with_code_1() {
    let file = "msg_timeout = 1.5\nid = \"x\"\ndata_path = 12\ndeflate = 2\nnsqlookupd_tcp_addresses = [1]\n";
    let exit = read("", &[("SAMPLE_LOG_LEVEL", "loud")], Some(file)).unwrap_err();
    assert_eq!(exit.code(), 1);
    assert_eq!(
        exit,
        Exit::Failure(
            [
                "failed to coerce value 2 for key deflate - parse error",
                "failed to coerce value x for key id - parse error",
                "failed to coerce value 1.5 for key msg_timeout - invalid duration value type float",
                "failed to coerce value 12 for key data_path - invalid string value type integer",
                "failed to coerce value [1] for key nsqlookupd_tcp_addresses - invalid string value type integer",
                "failed to coerce value loud for environment variable SAMPLE_LOG_LEVEL - invalid log level 'loud' \
                 (debug, info, warn, error, fatal)",
            ]
            .map(str::to_owned)
            .to_vec()
        )
    );
    assert_eq!(
        read("-msg-timeout=1s", &[], Some("msg_timeout = 1.5"))
            .unwrap()
            .msg_timeout
            .as_nanos(),
        1_000_000_000
    );
}

#[test]
fn f_07_unknown_keys_and_those_the_file_may_not_set_are_ignored() {
    let file = "unknown = 1\nverbose = true\nversion = true\nconfig = \"x\"\n[id]\nx = 1\n[table]\ny = 2\n";
    let exit = read("", &[], Some(file)).unwrap_err();
    assert!(
        matches!(&exit, Exit::Failure(faults) if faults[0].contains("for key id")),
        "{exit:?}"
    );
    let flags = read(
        "",
        &[("SAMPLE_VERSION", "9"), ("SAMPLE_VERBOSE", "1")],
        Some("unknown = 1\nverbose = true\n"),
    );
    assert!(!flags.unwrap().verbose);
    assert!(read("-verbose", &[], None).unwrap().verbose);
}

#[test]
fn an_unreadable_file_ends_with_code_1() {
    let exit = given_from("", &[], Some(Path::new("/nonexistent.toml"))).unwrap_err();
    assert_eq!(
        exit,
        Exit::Failure(vec![
            "failed to load config file /nonexistent.toml - No such file or directory (os error 2)"
                .to_owned()
        ])
    );
    let exit = read("", &[], Some("id = 1\nx = ")).unwrap_err();
    let Exit::Failure(reasons) = exit else {
        panic!("{exit:?}")
    };
    assert!(
        reasons[0].starts_with("failed to load config file "),
        "{reasons:?}"
    );
    assert!(
        reasons[0].contains(" - line 2: ") && !reasons[0].contains('\n'),
        "{reasons:?}"
    );
}

#[test]
fn the_file_may_be_named_by_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.toml");
    std::fs::write(&path, "id = 5").unwrap();
    let flags = read("", &[("SAMPLE_CONFIG", path.to_str().unwrap())], None).unwrap();
    assert_eq!(flags.id, 5);
}

#[test]
fn f_11_version_ends_before_the_file_is_read() {
    let exit = given_from("-version", &[], Some(Path::new("/nonexistent.toml"))).unwrap_err();
    assert_eq!((exit.code(), exit), (0, Exit::Version("sample v1".to_owned())));
}

#[test]
fn the_reference_lists_every_flag_with_key_variable_and_default() {
    let page = reference::<Sample>(&program());
    for row in [
        "| `--node-id` | int | `7` | `id` | `SAMPLE_NODE_ID` | Unique part of message ids |",
        "| `--lookupd-tcp-address` | list of string | - | `nsqlookupd_tcp_addresses` | `SAMPLE_LOOKUPD_TCP_ADDRESS` | Lookupd addresses |",
        "| `--log-format` | `text`, `json` | `text` | `log_format` | `SAMPLE_LOG_FORMAT` | Form of log lines |",
        "| `--config` | string | - | - | `SAMPLE_CONFIG` | Configuration file, TOML |",
        "| `--version` | bool | `false` | - | - | Print the version and exit |",
        "| `--verbose` | bool | `false` | - | - | No effect |",
    ] {
        assert!(page.contains(row), "{row} is not in\n{page}");
    }
}

#[test]
fn a_command_line_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStringExt as _;
    let raw = OsString::from_vec(b"-data-path=\xff".to_vec());
    let exit = program().read::<Sample>([raw], |_| None).unwrap_err();
    assert_eq!(exit.code(), 2);
}

fn program() -> Program {
    Program {
        name: "sample",
        version: Some("sample v1".to_owned()),
        environment: Some("SAMPLE"),
        config_file: true,
    }
}

fn read(line: &str, env: &[(&str, &str)], file: Option<&str>) -> Result<Sample, Exit> {
    given(line, env, file).map(|given| given.flags)
}

fn given(line: &str, env: &[(&str, &str)], file: Option<&str>) -> Result<Given<Sample>, Exit> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("sample.toml");
    if let Some(text) = file {
        std::fs::write(&path, text).expect("a written file");
    }
    given_from(line, env, file.map(|_| path.as_path()))
}

fn given_from(line: &str, env: &[(&str, &str)], file: Option<&Path>) -> Result<Given<Sample>, Exit> {
    let config = file.map(|path| format!("--config={}", path.display()));
    let args = config.iter().map(String::as_str).chain(line.split_whitespace());
    let variable = |name: &str| {
        env.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| OsString::from(value))
    };
    program().read(args.map(OsString::from), variable)
}
