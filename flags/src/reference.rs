//! Duty: a program's flags as Markdown tables, one for each heading, so that the documentation can be checked
//! against the definitions.

use std::fmt::Write as _;

use clap::{Arg, Args};

use crate::kind::{self, Kind};
use crate::program::{self, Program};

/// The tables: flag, type, default, key in the file, environment variable, meaning.
pub fn reference<T: Args>(program: &Program) -> String {
    let command = program.command::<T>();
    let mut page = String::new();
    let mut heading = "";
    for arg in command.get_arguments() {
        let group = arg.get_help_heading().unwrap_or_default();
        if group != heading {
            heading = group;
            // Writing to a String can not fail.
            let _ = write!(page, "\n### {heading}\n\n{HEAD}");
        }
        page.push_str(&row(program, arg));
    }
    page
}

fn row(program: &Program, arg: &Arg) -> String {
    let flag = arg.get_long().unwrap_or_default();
    let key = program::has_key(arg).then(|| arg.get_id().to_string());
    let variable = (!program::only_on_command_line(arg))
        .then(|| program.variable(flag))
        .flatten();
    let default: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    format!(
        "| `--{flag}` | {} | {} | {} | {} | {} |\n",
        type_cell(arg),
        code(Some(default.join(",")).filter(|text| !text.is_empty())),
        code(key),
        code(variable),
        help.replace('|', "\\|"),
    )
}

fn type_cell(arg: &Arg) -> String {
    let words: Vec<String> = arg
        .get_possible_values()
        .iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let single = if words.is_empty() {
        Kind::of(arg).word().to_owned()
    } else {
        words.join(", ")
    };
    if kind::is_list(arg) {
        format!("list of {single}")
    } else {
        single
    }
}

fn code(text: Option<String>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| format!("`{text}`"))
}

const HEAD: &str = "| flag | type | default | key | environment | meaning |\n|---|---|---|---|---|---|\n";
