//! Duty: reads a program's flags from command line, environment and file. What is given explicitly on the
//! command line wins over the environment, that over the file, that over the default; a list is always taken
//! from one of them as a whole. Source: nsq-http-and-tools 4.2, nsqx-interface 1.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, value_parser};

use crate::exit::Exit;
use crate::kind;
use crate::layer::{Layers, load_file};
use crate::misuse;
use crate::scan::{self, Stop};

/// A program as its command line shows it.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name in the usage.
    pub name: &'static str,
    /// The line of `--version`; `None` = there is no such flag.
    pub version: Option<String>,
    /// What its environment variables start with, without the `_`; `None` = it reads none.
    pub environment: Option<&'static str>,
    /// True when it has `--config FILE`.
    pub config_file: bool,
}

/// The flags of a program, from all sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given<T> {
    /// The values.
    pub flags: T,
    /// What followed the flags on the command line.
    pub rest: Vec<String>,
}

impl Program {
    /// The flags as a clap command: the source of help, man pages and completions.
    pub fn command<T: Args>(&self) -> Command {
        let mut command = Command::new(self.name)
            .help_template("Usage of {name}:\n{all-args}\n")
            .next_help_heading("General");
        if self.version.is_some() {
            let version = Arg::new(VERSION).long(VERSION).value_parser(value_parser!(bool));
            command = command.arg(version.help("Print the version and exit"));
        }
        if self.config_file {
            let config = Arg::new(CONFIG).long(CONFIG);
            command = command.arg(config.help("Configuration file, TOML"));
        }
        kind::go_style(T::augment_args(command))
    }

    /// Reads the flags. `args` is the command line without the program's name; `env` answers the value of an
    /// environment variable.
    ///
    /// # Errors
    /// Whatever ends the program here: help, version, a wrong command line (the first fault), a configuration
    /// that can not be used (all faults of environment and file together).
    pub fn read<T: Args>(
        &self,
        args: impl IntoIterator<Item = OsString>,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Given<T>, Exit> {
        let mut command = self.command::<T>();
        let scan = scan::scan(&command, args);
        let typed = command
            .try_get_matches_from_mut(&scan.tokens)
            .map_err(|error| misuse::value(&mut command, &error))?;
        match scan.stop {
            None => {}
            Some(Stop::Help) => return Err(Exit::Help(misuse::usage(&mut command))),
            Some(stop) => return Err(misuse::exit(&mut command, stop.to_string())),
        }
        if let Some(line) = &self.version
            && typed.get_flag(VERSION)
        {
            return Err(Exit::Version(line.clone()));
        }

        let file = match self.file_path(&typed, &env) {
            Some(path) => load_file(&path)?,
            None => toml::Table::new(),
        };
        let layers = Layers {
            environment: &|flag| self.variable(flag).and_then(|name| Some((env(&name)?, name))),
            file: &file,
        };
        let open = |arg: &Arg| {
            typed.value_source(arg.get_id().as_str()) != Some(ValueSource::CommandLine)
                && !only_on_command_line(arg)
        };
        let flags = layers.complete(command, scan.tokens, open)?;
        Ok(Given {
            flags,
            rest: scan.rest,
        })
    }

    fn file_path(&self, typed: &ArgMatches, env: &impl Fn(&str) -> Option<OsString>) -> Option<OsString> {
        if !self.config_file {
            return None;
        }
        let path = match typed.get_one::<String>(CONFIG) {
            Some(path) => path.into(),
            None => self.variable(CONFIG).and_then(|name| env(&name))?,
        };
        (!path.is_empty()).then_some(path)
    }

    /// The environment variable of a flag: `NSQD_MSG_TIMEOUT` for `msg-timeout`.
    pub(crate) fn variable(&self, flag: &str) -> Option<String> {
        let prefix = self.environment?;
        Some(format!("{prefix}_{}", flag.to_uppercase().replace('-', "_")))
    }
}

/// True for what neither environment nor file may set: `--version`, and hidden flags, which are there only so
/// that old command lines go on working. Container images set variables such as `NSQD_VERSION` unasked.
pub(crate) fn only_on_command_line(arg: &Arg) -> bool {
    arg.is_hide_set() || arg.get_id() == VERSION
}

/// True for what the file may set.
pub(crate) fn has_key(arg: &Arg) -> bool {
    !only_on_command_line(arg) && arg.get_id() != CONFIG
}

const VERSION: &str = "version";
const CONFIG: &str = "config";
