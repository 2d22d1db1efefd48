//! Log lines as an operator or a collector reads them.

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{debug, error, error_span, info, warn};

use super::*;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn options(level: LogLevel, format: LogFormat) -> LoggingOptions {
    LoggingOptions {
        log_level: level,
        log_prefix: "[nsqd] ".to_owned(),
        log_format: format,
        verbose: false,
    }
}

fn logged(level: LogLevel, format: LogFormat, log: impl FnOnce(&LogControl)) -> Vec<String> {
    let sink = Sink::default();
    let written = sink.clone();
    let (subscriber, control) = subscriber(
        &options(level, format),
        Clock::start(),
        TimeZone::UTC,
        move || sink.clone(),
    );
    tracing::subscriber::with_default(subscriber, || log(&control));
    let text = String::from_utf8(written.0.lock().clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The line without its time, which is checked for its form.
fn without_stamp(line: &str) -> String {
    let rest = line.strip_prefix("[nsqd] ").unwrap();
    let (stamp, rest) = rest.split_at("2006/01/02 15:04:05.000000".len());
    let form: String = stamp
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(form, "0000/00/00 00:00:00.000000", "{line}");
    rest.to_owned()
}

#[test]
fn a_line_has_stocks_form_with_fields_behind_the_text() {
    let lines = logged(LogLevel::Debug, LogFormat::Text, |_| {
        info!(address = %"127.0.0.1:4150", "TCP: listening");
        warn!(count = 3, reason = "disk is full", empty = "", "slow");
        error!(error = %"no such file", "failed");
        debug!("detail");
        error!(target: FATAL, "failed to lock data-path");
    });
    let lines: Vec<_> = lines.iter().map(|line| without_stamp(line)).collect();
    assert_eq!(
        lines,
        [
            " INFO: TCP: listening address=127.0.0.1:4150",
            " WARNING: slow count=3 reason=\"disk is full\" empty=\"\"",
            " ERROR: failed error=\"no such file\"",
            " DEBUG: detail",
            " FATAL: failed to lock data-path",
        ]
    );
}

#[test]
fn a_line_carries_the_fields_of_its_spans() {
    let lines = logged(LogLevel::Error, LogFormat::Text, |_| {
        let connection = error_span!("connection", id = 7);
        connection.in_scope(|| error!("bad"));
    });
    assert_eq!(without_stamp(&lines[0]), " ERROR: bad id=7");
}

#[test]
fn a_field_can_not_forge_a_line() {
    let lines = logged(LogLevel::Info, LogFormat::Text, |_| {
        info!(topic = "a\n[nsqd] x", "got");
    });
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with("got topic=\"a\\n[nsqd] x\""), "{}", lines[0]);
}

#[test]
fn lines_below_the_level_are_left_out_and_the_level_can_change() {
    let lines = logged(LogLevel::Warn, LogFormat::Text, |control| {
        info!("1");
        warn!("2");
        control.set_level(LogLevel::Info);
        info!("3");
        control.set_level(LogLevel::Fatal);
        error!("4");
        error!(target: FATAL, "5");
    });
    let texts: Vec<_> = lines
        .iter()
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(texts, ["2", "3", "5"]);
}

#[test]
fn libraries_are_heard_from_warning_on() {
    let lines = logged(LogLevel::Debug, LogFormat::Text, |_| {
        info!(target: "hyper::proto", "1");
        warn!(target: "hyper::proto", "2");
    });
    assert_eq!(lines.len(), 1);
}

#[test]
fn json_lines_hold_the_fields_as_values() {
    let lines = logged(LogLevel::Info, LogFormat::Json, |_| info!(count = 3, "text"));
    let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(
        (&line["message"], &line["count"], &line["level"]),
        (&"text".into(), &3.into(), &"INFO".into())
    );
    assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
}
