//! Duty: what environment and file say about the flags that the command line left open, and the flags of all
//! three together. Every value is judged alone, so that all faults are found and named by where they come from.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt;

use clap::{Arg, Command, FromArgMatches};

use crate::exit::Exit;
use crate::file;
use crate::kind::{self, Kind};
use crate::misuse;

/// The sources below the command line, the environment before the file.
pub(crate) struct Layers<'a> {
    /// Value and name of the environment variable of a flag.
    pub(crate) environment: &'a dyn Fn(&str) -> Option<(OsString, String)>,
    /// The file's top-level keys.
    pub(crate) file: &'a toml::Table,
}

impl Layers<'_> {
    /// The flags of the command line `tokens`, with the `open` ones taken from the layers.
    pub(crate) fn complete<T: FromArgMatches>(
        &self,
        mut command: Command,
        mut tokens: Vec<String>,
        open: impl Fn(&Arg) -> bool,
    ) -> Result<T, Exit> {
        let found: Vec<_> = command
            .get_arguments()
            .filter(|arg| open(arg))
            .filter_map(|arg| self.setting(arg))
            .collect();
        let mut faults = Vec::new();
        let mut emptied = HashSet::new();
        for setting in found {
            match setting.and_then(|setting| setting.check(&mut command)) {
                Ok(setting) if setting.texts.is_empty() => {
                    emptied.insert(setting.id);
                }
                Ok(setting) => tokens.extend(setting.tokens()),
                Err(fault) => faults.push(fault.to_string()),
            }
        }
        if !faults.is_empty() {
            return Err(Exit::Failure(faults));
        }
        without_defaults(command, &emptied)
            .try_get_matches_from(tokens)
            .and_then(|matches| T::from_arg_matches(&matches))
            .map_err(|error| Exit::Failure(vec![error.to_string()]))
    }

    fn setting(&self, arg: &Arg) -> Option<Result<Setting, Fault>> {
        let id = arg.get_id().as_str();
        let flag = arg.get_long()?;
        let (origin, texts) = if let Some((value, variable)) = (self.environment)(flag) {
            (Origin::Variable(variable), environment_texts(arg, value))
        } else {
            let value = self.file.get(id)?;
            let texts = file::texts(arg, value).map_err(|fault| (value.to_string(), fault.to_string()));
            (Origin::Key(id.to_owned()), texts)
        };
        Some(match texts {
            Ok(texts) => Ok(Setting {
                id: id.to_owned(),
                flag: flag.to_owned(),
                origin,
                texts,
            }),
            Err((value, reason)) => Err(Fault {
                value,
                origin,
                reason,
            }),
        })
    }
}

/// Reads the file's top-level keys.
pub(crate) fn load_file(path: &OsStr) -> Result<toml::Table, Exit> {
    let failure = |reason: &dyn fmt::Display| {
        let path = path.to_string_lossy();
        Exit::Failure(vec![format!("failed to load config file {path} - {reason}")])
    };
    let text = std::fs::read_to_string(path).map_err(|error| failure(&error))?;
    text.parse().map_err(|error| failure(&syntax(&text, &error)))
}

/// A TOML error on one line, as a log needs it.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let before = error
        .span()
        .and_then(|span| text.get(..span.start))
        .unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', ", "))
}

/// A flag's texts from the environment or the file.
struct Setting {
    id: String,
    flag: String,
    origin: Origin,
    texts: Vec<String>,
}

impl Setting {
    fn tokens(&self) -> impl Iterator<Item = String> {
        self.texts.iter().map(|text| format!("--{}={text}", self.flag))
    }

    fn check(self, command: &mut Command) -> Result<Self, Fault> {
        match command.try_get_matches_from_mut(self.tokens()) {
            Ok(_) => Ok(self),
            Err(error) => Err(Fault {
                value: self.texts.join(","),
                origin: self.origin,
                reason: misuse::reason(&error),
            }),
        }
    }
}

enum Origin {
    Variable(String),
    Key(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Key(name) => write!(f, "key {name}"),
        }
    }
}

/// A value that can not be used.
struct Fault {
    value: String,
    origin: Origin,
    reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            value,
            origin,
            reason,
        } = self;
        write!(f, "failed to coerce value {value} for {origin} - {reason}")
    }
}

fn environment_texts(arg: &Arg, value: OsString) -> Result<Vec<String>, (String, String)> {
    let text = value
        .into_string()
        .map_err(|raw| (raw.to_string_lossy().into_owned(), "not UTF-8".to_owned()))?;
    if kind::is_list(arg) {
        Ok(file::split(Kind::of(arg), &text))
    } else {
        Ok(vec![text])
    }
}

/// A list that was set to nothing is empty, even if its default is not.
fn without_defaults(command: Command, emptied: &HashSet<String>) -> Command {
    command.mut_args(|arg| {
        if emptied.contains(arg.get_id().as_str()) {
            arg.default_value(None)
        } else {
            arg
        }
    })
}
