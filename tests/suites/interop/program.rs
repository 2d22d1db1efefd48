//! Duty: the client programs of `tests/interop`: which there are, how to start them, what they have printed.
//!
//! In: arguments as `tests/interop/README.md` defines them. Out: what the library got acknowledged and
//! delivered. It must not know any scenario.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::process::Process;

/// A client library, by the language of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    /// go-nsq.
    Go,
    /// pynsq.
    Python,
    /// nsqjs.
    Node,
    /// nsq-j.
    Java,
    /// tokio-nsq.
    Rust,
}

impl Library {
    /// Why the program cannot be started; `None` when it can.
    pub(super) fn missing(self) -> Option<String> {
        let Some(folder) = prepared() else {
            return Some(format!("{PREPARED} not given"));
        };
        if let Some(runtime) = self.runtime().filter(|runtime| !on_path(runtime)) {
            return Some(format!("no {runtime}"));
        }
        let built = self.built(&folder);
        (!built.exists()).then(|| format!("no {self:?} client in {}", folder.display()))
    }

    /// Starts the program with `verb` and `arguments`.
    pub(super) fn start<'a>(self, verb: &str, arguments: impl IntoIterator<Item = &'a str>) -> Program {
        let mut command = self.command();
        command.arg(verb).args(arguments);
        Program {
            process: Process::spawn(&mut command),
        }
    }

    /// The installed program that runs the client, where it is not a program by itself.
    fn runtime(self) -> Option<&'static str> {
        match self {
            Self::Go | Self::Rust | Self::Python => None,
            Self::Node => Some("node"),
            Self::Java => Some("java"),
        }
    }

    /// What exists once `prepare.sh` has made the client.
    fn built(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Self::Go => "go/client",
            Self::Python => "python/bin/python",
            Self::Node => "node/node_modules/nsqjs",
            Self::Java => "java/classes/InteropClient.class",
            Self::Rust => "rust/client",
        })
    }

    fn command(self) -> Command {
        let folder = prepared().expect("asked for only when prepared");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop");
        match self {
            Self::Go | Self::Rust => Command::new(self.built(&folder)),
            Self::Python => {
                let mut python = Command::new(folder.join("python/bin/python"));
                python.arg(sources.join("python/client.py"));
                python
            }
            Self::Node => {
                let mut node = Command::new("node");
                node.env("NODE_PATH", folder.join("node/node_modules"));
                node.arg(sources.join("node/client.js"));
                node
            }
            Self::Java => {
                let java = folder.join("java");
                let classes = format!(
                    "{}:{}/*",
                    java.join("classes").display(),
                    java.join("lib").display()
                );
                let mut command = Command::new("java");
                // A small heap and one compiler tier: the program is short-lived and many run at a time.
                command.args(["-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
                command.args(["-cp", &classes, "InteropClient"]);
                command
            }
        }
    }
}

/// A running client program.
#[derive(Debug)]
pub(super) struct Program {
    process: Process,
}

/// One delivery to the handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    /// First word of the body.
    pub(super) name: String,
    /// Attempts as the broker counts them.
    pub(super) attempts: u32,
    /// Length of the whole body in bytes.
    pub(super) length: usize,
    /// When it came, by the program's own clock.
    pub(super) at: Duration,
}

impl Program {
    /// Names of the messages that the broker has acknowledged, in order.
    pub(super) fn acknowledged(&self) -> Vec<String> {
        lines_of(&self.process.stdout(), "acknowledged ")
    }

    /// The deliveries to the handler so far, in order. What it has printed last may not have come yet.
    pub(super) fn deliveries(&self) -> Vec<Delivery> {
        Delivery::parse_all(&self.process.stdout())
    }

    /// Waits for the end of a publishing program and gives the names that were acknowledged.
    ///
    /// # Panics
    /// When it fails or takes longer than [`PATIENCE`].
    pub(super) fn finish(self) -> Vec<String> {
        let exit = self.process.expect_exit(PATIENCE);
        assert_eq!(exit.code, Some(0), "exit code of a client:\n{}", exit.stderr);
        lines_of(&exit.stdout, "acknowledged ")
    }

    /// Asks a consuming program to stop as its library defines it, and gives all deliveries.
    ///
    /// # Panics
    /// When it fails or takes longer than [`PATIENCE`].
    pub(super) fn stop(self) -> Vec<Delivery> {
        self.process.ask_to_stop();
        let exit = self.process.expect_exit(PATIENCE);
        assert_eq!(exit.code, Some(0), "exit code of a client:\n{}", exit.stderr);
        Delivery::parse_all(&exit.stdout)
    }
}

impl Delivery {
    fn parse_all(output: &str) -> Vec<Self> {
        lines_of(output, "message ")
            .iter()
            .map(|line| Self::parse(line))
            .collect()
    }

    fn parse(line: &str) -> Self {
        let fields: Vec<_> = line.split(' ').collect();
        let [name, attempts, length, at] = fields[..] else {
            panic!("delivery line: {line:?}");
        };
        Self {
            name: name.to_owned(),
            attempts: attempts.parse().expect("attempts"),
            length: length.parse().expect("length"),
            at: Duration::from_millis(at.parse().expect("milliseconds")),
        }
    }
}

/// The rest of every complete line that begins with `kind`.
fn lines_of(output: &str, kind: &str) -> Vec<String> {
    let complete = output.rfind('\n').map_or("", |end| &output[..end]);
    complete
        .lines()
        .filter_map(|line| line.strip_prefix(kind))
        .map(str::to_owned)
        .collect()
}

fn on_path(program: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(program).exists())
}

fn prepared() -> Option<PathBuf> {
    env::var_os(PREPARED).map(PathBuf::from)
}

/// Names the folder that `tests/interop/prepare.sh` has filled.
const PREPARED: &str = "NSQX_INTEROP_DIR";
/// How long a program may take for anything: a runtime's start on a busy machine, a library's fixed pause of
/// 15 s before it connects again.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
