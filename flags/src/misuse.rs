//! Duty: a wrong command line in Go's words.

use std::error::Error as _;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::Exit;
use crate::kind::{self, Kind};

/// A value that the flag's own parser did not take.
pub(crate) fn value(command: &mut Command, error: &clap::Error) -> Exit {
    let value = context(error, ContextKind::InvalidValue);
    // clap names the flag as in its usage: `--msg-timeout <duration>`.
    let shown = context(error, ContextKind::InvalidArg).trim_start_matches('-');
    let name = shown.split([' ', '=', '[']).next().unwrap_or(shown);
    let reason = reason(error);
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name));
    let message = match arg {
        // The one kind of value that stock refuses with code 1 and without usage.
        Some(arg) if kind::is_list(arg) && Kind::of(arg) == Kind::Float => {
            return Exit::Failure(vec![format!("Could not parse: {value}")]);
        }
        Some(arg) if kind::is_switch(arg) => {
            format!("invalid boolean value \"{value}\" for -{name}: {reason}")
        }
        Some(_) => format!("invalid value \"{value}\" for flag -{name}: {reason}"),
        None => error.to_string(),
    };
    exit(command, message)
}

/// What the value's parser had to say.
pub(crate) fn reason(error: &clap::Error) -> String {
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(words))) => {
            format!("must be {}", words.join(" or "))
        }
        _ => error
            .source()
            .map_or_else(|| error.to_string(), ToString::to_string),
    }
}

/// The message, the usage and code 2.
pub(crate) fn exit(command: &mut Command, message: String) -> Exit {
    Exit::Misuse {
        message,
        usage: usage(command),
    }
}

/// All flags with their help texts.
pub(crate) fn usage(command: &mut Command) -> String {
    command.render_help().to_string()
}

fn context(error: &clap::Error, kind: ContextKind) -> &str {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text,
        _ => "",
    }
}
