//! Duty: nsqd's command line: which task, with which configuration. Environment and file are looked at, nothing
//! is opened or bound.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use nsqx_flags::{Exit, Program, daemon_version};

use crate::config::{Changeable, Config, Options};

/// What nsqd is started for.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// What to do.
    pub task: Task,
    /// With which settings.
    pub config: Config,
    /// The settings that can change at run time, as they are at the start.
    pub changeable: Changeable,
}

/// What nsqd can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Run the broker.
    Serve,
    /// Bring the data folder of a stock nsqd into the data path, and end.
    Import {
        /// The stock folder.
        from: PathBuf,
    },
    /// Write the data path as a stock nsqd reads it, and end.
    Export {
        /// The new folder.
        to: PathBuf,
    },
}

/// Reads the command line. `args` begins with the program's name, `env` answers the value of an environment
/// variable, `host` is the name of this host.
///
/// # Errors
/// Whatever ends nsqd here: help, version, a wrong command line, a configuration no broker can run with.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    env: impl Fn(&str) -> Option<OsString>,
    host: &str,
) -> Result<Invocation, Exit> {
    let mut args = args.into_iter().skip(1).peekable();
    let (task, options) = if args.next_if(|word| word == "import").is_some() {
        let flags = program("nsqd import").read::<ImportArgs>(args, env)?.flags;
        let from = folder("--from", flags.from)?;
        (Task::Import { from }, flags.options)
    } else if args.next_if(|word| word == "export").is_some() {
        let flags = program("nsqd export").read::<ExportArgs>(args, env)?.flags;
        let to = folder("--to", flags.to)?;
        (Task::Export { to }, flags.options)
    } else {
        (Task::Serve, program(NAME).read::<Options>(args, env)?.flags)
    };
    let (config, changeable) = options.resolve(host).map_err(|faults| {
        Exit::Failure(
            faults
                .iter()
                .map(|fault| format!("failed to instantiate {NAME} - {fault}"))
                .collect(),
        )
    })?;
    Ok(Invocation {
        task,
        config,
        changeable,
    })
}

/// The name of this host, as the kernel has it.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// nsqd as its command line shows it.
fn program(name: &'static str) -> Program {
    Program {
        name,
        version: Some(daemon_version(NAME)),
        environment: Some("NSQD"),
        config_file: true,
    }
}

#[derive(Args)]
struct ImportArgs {
    /// Data folder of the stock nsqd
    #[arg(long, default_value = "")]
    from: String,
    #[command(flatten)]
    options: Options,
}

#[derive(Args)]
struct ExportArgs {
    /// New folder for the stock nsqd
    #[arg(long, default_value = "")]
    to: String,
    #[command(flatten)]
    options: Options,
}

fn folder(flag: &str, given: String) -> Result<PathBuf, Exit> {
    if given.is_empty() {
        return Err(Exit::Failure(vec![format!("{flag} DIR must be given")]));
    }
    Ok(PathBuf::from(given))
}

const NAME: &str = "nsqd";

#[cfg(test)]
mod tests;
