//! Duty: what a flag takes, read off its clap argument, and the step that gives a clap command Go's meaning
//! of values.

use std::any::TypeId;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Command};

use crate::duration::GoDuration;
use crate::literal;
use crate::size::ByteSize;

/// What a flag takes, as far as reading needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `bool`
    Boolean,
    /// `i64`
    Integer,
    /// `f64`
    Float,
    /// [`GoDuration`]
    Duration,
    /// [`ByteSize`]
    Size,
    /// Any other type that is read from a text.
    Text,
}

impl Kind {
    /// The kind by the type that the argument's value is parsed into.
    pub(crate) fn of(arg: &Arg) -> Self {
        let parsed = arg.get_value_parser().type_id();
        [
            (TypeId::of::<bool>(), Self::Boolean),
            (TypeId::of::<i64>(), Self::Integer),
            (TypeId::of::<f64>(), Self::Float),
            (TypeId::of::<GoDuration>(), Self::Duration),
            (TypeId::of::<ByteSize>(), Self::Size),
        ]
        .into_iter()
        .find(|(known, _)| parsed == *known)
        .map_or(Self::Text, |(_, kind)| kind)
    }

    /// The word that stands for the value in help texts and faults.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Boolean => "bool",
            Self::Integer => "int",
            Self::Float => "float",
            Self::Duration => "duration",
            Self::Size => "size",
            Self::Text => "string",
        }
    }
}

/// True when each occurrence adds to a list.
pub(crate) fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// True when the bare flag means something and a value needs `=`.
pub(crate) fn is_switch(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|count| count.min_values() == 0)
}

/// Reads values as Go does, lets the last occurrence win and leaves `-h` to [`crate::scan`].
pub(crate) fn go_style(command: Command) -> Command {
    command
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args_override_self(true)
        .mut_args(go_argument)
}

fn go_argument(arg: Arg) -> Arg {
    let kind = Kind::of(&arg);
    let arg = match kind {
        Kind::Boolean => switch(arg),
        Kind::Integer => arg.value_parser(ValueParser::new(literal::integer)),
        Kind::Float => arg.value_parser(ValueParser::new(literal::float)),
        Kind::Duration | Kind::Size | Kind::Text => arg,
    };
    let no_default = arg.get_default_values().iter().all(|value| value.is_empty());
    arg.value_name(kind.word()).hide_default_value(no_default)
}

fn switch(arg: Arg) -> Arg {
    let arg = arg
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .value_parser(ValueParser::new(literal::boolean));
    if arg.get_default_values().is_empty() {
        arg.default_value("false")
    } else {
        arg
    }
}
