//! F-01 to F-11: command line and config file (nsq-http-and-tools 4).

use e2e::{Broker, Node, statements};

statements! {
    both {
        f_01_flags_have_four_forms,
        f_01_a_boolean_flag_needs_an_equals_sign,
        f_02_exit_codes_tell_help_usage_and_failure,
        f_03_durations_need_a_unit,
        f_04_a_flag_beats_the_file_even_with_its_default,
        f_05_a_list_flag_replaces_the_list_of_the_file,
        f_06_the_file_takes_durations_in_milliseconds,
        f_07_unknown_keys_in_the_file_are_ignored,
        f_08_values_out_of_range_stop_the_start,
        f_09_a_locked_data_path_stops_the_start,
        f_10_percentiles_are_collected_and_sorted,
        f_11_the_version_is_that_of_stock,
    }
}

fn f_01_flags_have_four_forms(broker: &Broker) {
    for form in [
        &["-max-rdy-count=77"][..],
        &["--max-rdy-count=77"],
        &["-max-rdy-count", "77"],
        &["--max-rdy-count", "77"],
        &["--max-rdy-count=1", "-max-rdy-count=0x4d"],
    ] {
        let node = with_arguments(broker, form);
        node.http().get("/config/max_rdy_count").expect(200, "77");
    }
}

fn f_01_a_boolean_flag_needs_an_equals_sign(broker: &Broker) {
    for (form, value) in [
        (&["-deflate", "false"][..], "true"),
        (&["-deflate=false"], "false"),
        (&["-deflate=F"], "false"),
        (&["-deflate=false", "-deflate"], "true"),
    ] {
        with_arguments(broker, form)
            .http()
            .get("/config/deflate")
            .expect(200, value);
    }
}

fn f_02_exit_codes_tell_help_usage_and_failure(broker: &Broker) {
    for help in ["-h", "-help", "--help"] {
        let exit = broker.run(&[help]);
        assert_eq!(exit.code, Some(0), "{help}");
        assert!(exit.stderr.starts_with("Usage of nsqd:\n"), "{}", exit.stderr);
        // The layout is free, the names and types are not.
        let words: Vec<&str> = exit.stderr.split_whitespace().collect();
        let named = words.windows(2).any(|pair| {
            pair[0].trim_start_matches('-') == "mem-queue-size" && pair[1].trim_matches(['<', '>']) == "int"
        });
        assert!(named, "{}", exit.stderr);
    }
    let exit = broker
        .node()
        .arguments(["-no-such-flag".to_owned()])
        .expect_exit();
    assert_eq!(exit.code, Some(2));
    assert!(
        exit.stderr
            .starts_with("flag provided but not defined: -no-such-flag\nUsage of nsqd:\n")
    );
    let setup = broker.node();
    let absent = setup.data_path().join("absent");
    let exit = setup.flag("data-path", absent.display()).expect_exit();
    assert_eq!(exit.code, Some(1));
    assert!(
        exit.stderr.contains("failed to lock data-path"),
        "{}",
        exit.stderr
    );
}

fn f_03_durations_need_a_unit(broker: &Broker) {
    let exit = broker.node().flag("msg-timeout", 60).expect_exit();
    assert_eq!(exit.code, Some(2));
    assert!(
        exit.stderr
            .starts_with("invalid value \"60\" for flag -msg-timeout: "),
        "{}",
        exit.stderr
    );
    let node = broker.node().flag("msg-timeout", "1m30s").start();
    node.http().get("/config/msg_timeout").expect(200, "90000000000");
}

fn f_04_a_flag_beats_the_file_even_with_its_default(broker: &Broker) {
    let node = broker
        .node()
        .config("max_rdy_count = 5\nmax_msg_size = 6\n")
        .flag("max-rdy-count", 2500)
        .start();
    node.http().get("/config/max_rdy_count").expect(200, "2500");
    node.http().get("/config/max_msg_size").expect(200, "6");
}

fn f_05_a_list_flag_replaces_the_list_of_the_file(broker: &Broker) {
    let file = "nsqlookupd_tcp_addresses = [\"127.0.0.1:1\"]\n";
    let node = broker.node().config(file).start();
    node.http()
        .get("/config/nsqlookupd_tcp_addresses")
        .expect(200, r#"["127.0.0.1:1"]"#);
    let setup = broker.node().config(file);
    let node = setup
        .flag("lookupd-tcp-address", "127.0.0.1:2")
        .flag("lookupd-tcp-address", "127.0.0.1:3")
        .start();
    node.http()
        .get("/config/nsqlookupd_tcp_addresses")
        .expect(200, r#"["127.0.0.1:2","127.0.0.1:3"]"#);
}

fn f_06_the_file_takes_durations_in_milliseconds(broker: &Broker) {
    for text in ["msg_timeout = 30000\n", "msg_timeout = \"30s\"\n"] {
        let node = broker.node().config(text).start();
        node.http().get("/config/msg_timeout").expect(200, "30000000000");
    }
    for text in ["msg_timeout = 1.5\n", "max_rdy_count = 1.5\n", "not toml"] {
        let exit = broker.node().config(text).expect_exit();
        assert_eq!(exit.code, Some(1), "{text}: {}", exit.stderr);
    }
}

fn f_07_unknown_keys_in_the_file_are_ignored(broker: &Broker) {
    let node = broker
        .node()
        .config("no_such_key = 1\nmax_rdy_count = 5\n[table]\nx = 1\n")
        .start();
    node.http().get("/config/max_rdy_count").expect(200, "5");
}

fn f_08_values_out_of_range_stop_the_start(broker: &Broker) {
    for (name, value, text) in [
        ("node-id", "1024", "--node-id must be [0,1024)"),
        ("node-id", "-1", "--node-id must be [0,1024)"),
        ("max-deflate-level", "0", "--max-deflate-level must be [1,9]"),
        ("max-deflate-level", "10", "--max-deflate-level must be [1,9]"),
        (
            "tls-required",
            "true",
            "cannot require TLS client connections without TLS key and cert",
        ),
        (
            "e2e-processing-latency-percentile",
            "2",
            "invalid E2E processing latency percentile: 2",
        ),
    ] {
        let exit = broker.node().flag(name, value).expect_exit();
        assert_eq!(exit.code, Some(1), "{name}: {}", exit.stderr);
        assert!(exit.stderr.contains(text), "{name}: {}", exit.stderr);
    }
}

fn f_09_a_locked_data_path_stops_the_start(broker: &Broker) {
    let node = broker.start();
    let exit = broker.node().on_data_of(&node).expect_exit();
    assert_eq!(exit.code, Some(1));
    assert!(
        exit.stderr.contains("failed to lock data-path"),
        "{}",
        exit.stderr
    );
}

fn f_10_percentiles_are_collected_and_sorted(broker: &Broker) {
    let arguments = [
        "-e2e-processing-latency-percentile=0.5,0.99",
        "--e2e-processing-latency-percentile",
        "1.0",
    ];
    let node = with_arguments(broker, &arguments);
    node.http()
        .get("/config/e2e_processing_latency_percentiles")
        .expect(200, "[1,0.99,0.5]");
}

fn f_11_the_version_is_that_of_stock(broker: &Broker) {
    let exit = broker.run(&["--version"]);
    assert_eq!(exit.code, Some(0));
    assert!(
        exit.stdout.starts_with("nsqd v1.3.0 (built w/"),
        "{}",
        exit.stdout
    );
}

fn with_arguments(broker: &Broker, arguments: &[&str]) -> Node {
    broker
        .node()
        .arguments(arguments.iter().map(ToString::to_string))
        .start()
}
