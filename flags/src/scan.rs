//! Duty: turns a command line with Go's rules into one that clap reads the same way: `-x v`, `--x v` and
//! `-x=v` all become `--x=v`. Knows which flags there are and which are switches, not what values mean.

use std::ffi::OsString;

use clap::{Arg, Command};

use crate::kind;

/// A command line as far as Go would have read it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// `--name=value` for every flag, in order.
    pub(crate) tokens: Vec<String>,
    /// What follows the flags.
    pub(crate) rest: Vec<String>,
    /// Why reading ended early. Faults in the values of `tokens` come first.
    pub(crate) stop: Option<Stop>,
}

/// Why reading ended before the end of the flags. The texts are Go's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stop {
    #[error("help requested")]
    Help,
    #[error("bad flag syntax: {0}")]
    Syntax(String),
    #[error("flag provided but not defined: -{0}")]
    Unknown(String),
    #[error("flag needs an argument: -{0}")]
    NoValue(String),
    #[error("argument is not UTF-8: {0}")]
    NotUtf8(String),
}

/// Reads flags up to the first positional argument or `--`. Source: nsq-http-and-tools 4.1.
pub(crate) fn scan(command: &Command, args: impl IntoIterator<Item = OsString>) -> Scan {
    let mut scan = Scan::default();
    let mut args = args.into_iter().map(OsString::into_string);
    loop {
        match next_flag(command, &mut args) {
            Ok(Next::Flag(token)) => scan.tokens.push(token),
            Ok(Next::Positional(first)) => {
                scan.rest.push(first);
                break;
            }
            Ok(Next::End) => break,
            Err(stop) => {
                scan.stop = Some(stop);
                return scan;
            }
        }
    }
    let rest = args.map(|arg| arg.unwrap_or_else(|raw| raw.to_string_lossy().into_owned()));
    scan.rest.extend(rest);
    scan
}

enum Next {
    Flag(String),
    Positional(String),
    End,
}

fn next_flag(
    command: &Command,
    args: &mut impl Iterator<Item = Result<String, OsString>>,
) -> Result<Next, Stop> {
    let Some(arg) = next_text(args)? else {
        return Ok(Next::End);
    };
    if arg == "--" {
        return Ok(Next::End);
    }
    let Some(flag) = arg.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
        return Ok(Next::Positional(arg));
    };
    let flag = flag.strip_prefix('-').unwrap_or(flag);
    if flag.is_empty() || flag.starts_with(['-', '=']) {
        return Err(Stop::Syntax(arg));
    }
    let (name, attached) = match flag.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (flag, None),
    };
    let Some(definition) = find(command, name) else {
        return Err(match name {
            "h" | "help" => Stop::Help,
            _ => Stop::Unknown(name.to_owned()),
        });
    };
    let token = match attached {
        Some(value) => format!("--{name}={value}"),
        None if kind::is_switch(definition) => format!("--{name}"),
        None => {
            let value = next_text(args)?.ok_or_else(|| Stop::NoValue(name.to_owned()))?;
            format!("--{name}={value}")
        }
    };
    Ok(Next::Flag(token))
}

fn find<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(name))
}

fn next_text(args: &mut impl Iterator<Item = Result<String, OsString>>) -> Result<Option<String>, Stop> {
    args.next()
        .transpose()
        .map_err(|raw| Stop::NotUtf8(raw.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(line: &[&str]) -> Scan {
        let command = kind::go_style(
            Command::new("nsqd")
                .arg(
                    Arg::new("deflate")
                        .long("deflate")
                        .value_parser(clap::value_parser!(bool)),
                )
                .arg(Arg::new("data_path").long("data-path")),
        );
        scan(&command, line.iter().map(OsString::from))
    }

    #[test]
    fn f_01_all_forms_of_a_flag_are_one() {
        for line in [
            &["-data-path", "x"][..],
            &["--data-path", "x"],
            &["-data-path=x"],
            &["--data-path=x"],
        ] {
            assert_eq!(scanned(line).tokens, ["--data-path=x"], "{line:?}");
        }
    }

    #[test]
    fn f_01_a_switch_takes_no_word_after_it() {
        let scan = scanned(&["-deflate", "false", "-data-path=x"]);
        assert_eq!(scan.tokens, ["--deflate"]);
        assert_eq!(scan.rest, ["false", "-data-path=x"]);
        assert_eq!(scanned(&["-deflate=false"]).tokens, ["--deflate=false"]);
    }

    #[test]
    fn a_value_may_look_like_a_flag() {
        assert_eq!(scanned(&["-data-path", "-x"]).tokens, ["--data-path=-x"]);
        assert_eq!(scanned(&["-data-path", "--"]).tokens, ["--data-path=--"]);
        assert_eq!(scanned(&["-data-path=a=b"]).tokens, ["--data-path=a=b"]);
        assert_eq!(scanned(&["-data-path="]).tokens, ["--data-path="]);
    }

    #[test]
    fn reading_stops_at_the_first_positional_and_after_two_dashes() {
        assert_eq!(scanned(&["-", "-deflate"]).rest, ["-", "-deflate"]);
        assert_eq!(scanned(&["", "-deflate"]).rest, ["", "-deflate"]);
        let scan = scanned(&["-deflate", "--", "-bogus"]);
        assert_eq!((scan.tokens.len(), scan.rest), (1, vec!["-bogus".to_owned()]));
    }

    #[test]
    fn what_go_refuses_is_told_in_its_words() {
        for (line, text) in [
            (&["-bogus"][..], "flag provided but not defined: -bogus"),
            (&["--Deflate=1"], "flag provided but not defined: -Deflate"),
            (&["-data-path"], "flag needs an argument: -data-path"),
            (&["---x"], "bad flag syntax: ---x"),
            (&["-=x"], "bad flag syntax: -=x"),
        ] {
            let stop = scanned(line).stop.unwrap();
            assert_eq!(stop.to_string(), text);
        }
        for help in ["-h", "-help", "--help", "-h=1"] {
            assert_eq!(scanned(&[help]).stop, Some(Stop::Help));
        }
    }
}
