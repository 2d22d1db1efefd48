//! Duty: what ends a program before it starts. Decides the exit code; the caller brings its log line.

use std::process::ExitCode;

/// Why a program does not start. Source of codes and texts: nsq-http-and-tools 4.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// `--version` was asked for: the line for standard output.
    Version(String),
    /// Help was asked for: the usage for standard error.
    Help(String),
    /// The command line is wrong.
    Misuse {
        /// What is wrong, in Go's words.
        message: String,
        /// The usage that follows it on standard error.
        usage: String,
    },
    /// The program can not start as it is configured: one log line for each reason.
    Failure(Vec<String>),
}

impl Exit {
    /// 0 when the user got what was asked for, 2 for a wrong command line, 1 for a failure.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Version(_) | Self::Help(_) => 0,
            Self::Failure(_) => 1,
            Self::Misuse { .. } => 2,
        }
    }

    /// Prints what there is to say, failures through `log_fatal`, and answers the code to end with.
    pub fn report(&self, log_fatal: impl Fn(&str)) -> ExitCode {
        match self {
            Self::Version(line) => println!("{line}"),
            Self::Help(usage) => eprint!("{usage}"),
            Self::Misuse { message, usage } => eprint!("{message}\n{usage}"),
            Self::Failure(reasons) => reasons.iter().for_each(|reason| log_fatal(reason)),
        }
        ExitCode::from(self.code())
    }
}
