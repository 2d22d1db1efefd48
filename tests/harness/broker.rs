//! Duty: which program is under test and where the two kinds are allowed to differ.
//!
//! In: the environment (`NSQX_NSQD`, `NSQX_STOCK_NSQD`, `NSQX_STOCK_NSQLOOKUPD`). Out: a [`Broker`] to start
//! nodes of. It must not know what any test checks.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::node::NodeSetup;
use crate::own_program;
use crate::process::{Exit, Process};

/// Whose broker it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nsqd v1.3.0 as released.
    Stock,
    /// The broker of this repository.
    Ours,
}

/// The program under test.
#[derive(Clone, Debug)]
pub struct Broker {
    kind: Kind,
    program: PathBuf,
}

impl Broker {
    /// Stock nsqd, or `None` when `NSQX_STOCK_NSQD` does not name one.
    pub fn stock() -> Option<Self> {
        let program = env::var_os("NSQX_STOCK_NSQD")?;
        Some(Self {
            kind: Kind::Stock,
            program: program.into(),
        })
    }

    /// The `nsqd` that `NSQX_NSQD` names, else that of this repository, built like this test.
    ///
    /// # Panics
    /// When it cannot be built.
    pub fn ours() -> Self {
        let program = match env::var_os("NSQX_NSQD") {
            Some(given) => given.into(),
            None => own_program::ours().to_owned(),
        };
        Self {
            kind: Kind::Ours,
            program,
        }
    }

    /// Whose broker it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The program file.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A node to be configured and started.
    pub fn node(&self) -> NodeSetup {
        NodeSetup::new(&self.program)
    }

    /// A started node with default flags.
    pub fn start(&self) -> crate::Node {
        self.node().start()
    }

    /// Runs the program with exactly `arguments` until it ends by itself, at most 10 s.
    pub fn run(&self, arguments: &[&str]) -> Exit {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        Process::spawn(&mut command).expect_exit(Duration::from_secs(10))
    }

    /// Waits until timeouts and deferred messages of a channel that exists now are precise.
    ///
    /// Stock scans channels from a list that it renews every 5 s, and nothing shows from outside that a
    /// channel has got into the list, so time is all there is to wait for (nsq-tcp 4.4). Ours is precise from
    /// the first message on.
    pub fn settle(&self) {
        if self.kind == Kind::Stock {
            thread::sleep(Duration::from_millis(5_200));
        }
    }

    /// How late a timeout or a deferred message may be on a settled channel, the scheduling of a busy test
    /// machine included.
    pub fn lateness(&self) -> Duration {
        match self.kind {
            Kind::Stock => Duration::from_millis(500),
            Kind::Ours => Duration::from_millis(300),
        }
    }
}
