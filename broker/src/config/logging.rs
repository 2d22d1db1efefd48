//! Duty: what is logged and how a line looks.

use clap::Args;
use nsqx_flags::{LogFormat, LogLevel};
use serde::Serialize;

/// Raw flags of logging; nothing in them can be wrong, so they are the checked settings too.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Logging")]
pub struct LoggingOptions {
    /// Least important lines that are logged: debug, info, warn, error or fatal
    #[arg(long, default_value = "info")]
    pub log_level: LogLevel,
    /// What a line starts with, in text form
    #[arg(long, default_value = "[nsqd] ")]
    pub log_prefix: String,
    /// Form of the lines
    #[arg(long, default_value = "text")]
    pub log_format: LogFormat,
    /// Accepted without effect, stock has it; use --log-level
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub verbose: bool,
}
