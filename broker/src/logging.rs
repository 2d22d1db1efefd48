//! Duty: log lines on standard error, in stock's form or as JSON, with a level that can change while the broker
//! runs. Events come in through `tracing`. Must not know what the events mean.
//!
//! A connection's span should be made at ERROR level: spans below the current level are not kept, and with
//! them would go the fields that tie a line to its connection.

use std::fmt::{self, Write as _};
use std::io;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use nsqx_flags::{LogFormat, LogLevel};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::SetGlobalDefaultError;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::{LookupSpan, Registry, Scope};
use tracing_subscriber::{Layer as _, reload};

use crate::clock::Clock;
use crate::config::LoggingOptions;

/// The target of an event that ends the program: `error!(target: FATAL, ...)` is a FATAL line, and the only one
/// left at level `fatal`.
pub const FATAL: &str = "nsqx::fatal";

/// Changes the level of a running log.
#[derive(Clone, Debug)]
pub struct LogControl(reload::Handle<Targets, Registry>);

impl LogControl {
    /// From now on only lines of at least `level` are written.
    pub fn set_level(&self, level: LogLevel) {
        // Fails only when the subscriber is gone, and with it the log.
        let _ = self.0.reload(targets(level));
    }
}

/// Starts logging to standard error, for the whole process.
///
/// # Errors
/// When the process logs already.
pub fn init(options: &LoggingOptions, clock: Clock) -> Result<LogControl, SetGlobalDefaultError> {
    let (subscriber, control) = subscriber(options, clock, TimeZone::system(), io::stderr);
    tracing::subscriber::set_global_default(subscriber)?;
    Ok(control)
}

/// Writes a FATAL line to standard error before, or without, [`init`]. Its prefix is always stock's.
pub fn print_fatal(clock: Clock, text: &str) {
    eprintln!("[nsqd] {} FATAL: {text}", stamp(clock, &TimeZone::system()));
}

fn subscriber<W>(
    options: &LoggingOptions,
    clock: Clock,
    zone: TimeZone,
    writer: W,
) -> (impl Subscriber + Send + Sync + use<W>, LogControl)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(targets(options.log_level));
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(writer);
    let layer = match options.log_format {
        LogFormat::Text => layer
            .event_format(StockLine {
                prefix: options.log_prefix.clone(),
                clock,
                zone,
            })
            .boxed(),
        LogFormat::Json => layer
            .json()
            .flatten_event(true)
            .with_timer(Rfc3339(clock))
            .boxed(),
    };
    (Registry::default().with(filter).with(layer), LogControl(handle))
}

/// Libraries are heard only when something is wrong.
fn targets(level: LogLevel) -> Targets {
    let ours = match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Fatal => LevelFilter::OFF,
    };
    Targets::new()
        .with_default(ours.min(LevelFilter::WARN))
        .with_target(OURS, ours)
        .with_target(FATAL, LevelFilter::ERROR)
}

/// `[nsqd] 2006/01/02 15:04:05.000000 INFO: text key=value`, then the fields of the spans around it.
struct StockLine {
    prefix: String,
    clock: Clock,
    zone: TimeZone,
}

impl<S, N> FormatEvent<S, N> for StockLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Line::default();
        event.record(&mut line);
        let stamp = stamp(self.clock, &self.zone);
        let Line { text, fields } = line;
        write!(
            out,
            "{}{stamp} {}: {text}{fields}",
            self.prefix,
            level_of(event.metadata())
        )?;
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            if let Some(fields) = extensions.get::<FormattedFields<N>>()
                && !fields.is_empty()
            {
                write!(out, " {fields}")?;
            }
        }
        writeln!(out)
    }
}

fn level_of(metadata: &Metadata<'_>) -> LogLevel {
    match *metadata.level() {
        Level::ERROR if metadata.target() == FATAL => LogLevel::Fatal,
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG | Level::TRACE => LogLevel::Debug,
    }
}

/// Local time, as stock's lines have it.
fn stamp(clock: Clock, zone: &TimeZone) -> impl fmt::Display {
    zone.to_datetime(now(clock))
        .strftime("%Y/%m/%d %H:%M:%S%.6f")
        .to_string()
}

fn now(clock: Clock) -> Timestamp {
    // An i64 of nanoseconds is always within jiff's range of years.
    Timestamp::from_nanosecond(clock.wall().into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// An event's text, and ` key=value` for each other field.
#[derive(Default)]
struct Line {
    text: String,
    fields: String,
}

impl Line {
    fn add(&mut self, field: &Field, value: &str) {
        // Writing to a String can not fail.
        let _ = if field.name() == MESSAGE {
            self.text.write_str(value)
        } else if is_word(value) {
            write!(self.fields, " {field}={value}")
        } else {
            write!(self.fields, " {field}={value:?}")
        };
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add(field, &value.to_string());
    }
}

/// True for what can stand after `=` without quotes.
fn is_word(value: &str) -> bool {
    !value.is_empty()
        && !value.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '='))
}

struct Rfc3339(Clock);

impl FormatTime for Rfc3339 {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        write!(out, "{:.6}", now(self.0))
    }
}

const MESSAGE: &str = "message";
/// What the targets of our crates and binaries start with.
const OURS: &str = "nsq";

#[cfg(test)]
mod tests;
