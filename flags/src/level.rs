//! Duty: the log settings that all daemons share: how much and in which form.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Serialize, Serializer};

/// The least important kind of line that is logged.
///
/// Serialises as stock's number, 1 (debug) to 5 (fatal). Source: nsq-http-and-tools 1.11, 4.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// What helps to understand the program from inside.
    Debug = 1,
    /// What an operator wants to see of normal work.
    #[default]
    Info = 2,
    /// Odd, but handled.
    Warn = 3,
    /// Something was not done.
    Error = 4,
    /// The program ends.
    Fatal = 5,
}

/// The text is no log level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid log level '{0}' (debug, info, warn, error, fatal)")]
pub struct LogLevelError(String);

/// One of `debug`, `info`, `warn`, `error`, `fatal`, in any case.
impl FromStr for LogLevel {
    type Err = LogLevelError;

    fn from_str(text: &str) -> Result<Self, LogLevelError> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "debug" => Self::Debug,
            "info" => Self::Info,
            "warn" => Self::Warn,
            "error" => Self::Error,
            "fatal" => Self::Fatal,
            _ => return Err(LogLevelError(text.to_owned())),
        })
    }
}

/// The word in a log line: `DEBUG INFO WARNING ERROR FATAL`.
impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARNING",
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
        })
    }
}

impl Serialize for LogLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Stock's line.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_in_any_case_and_warning_is_not_one() {
        assert_eq!("DeBuG".parse(), Ok(LogLevel::Debug));
        assert_eq!("warn".parse(), Ok(LogLevel::Warn));
        let error = "warning".parse::<LogLevel>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid log level 'warning' (debug, info, warn, error, fatal)"
        );
        assert!(" info".parse::<LogLevel>().is_err());
    }
}
