//! Duty: one child process: its output, its signals, its end.
//!
//! In: a command. Out: what it wrote and how it ended. A process never outlives its value.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::eventually;

/// A running (or ended) child process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdout: Output,
    stderr: Output,
}

/// How a process ended and what it had written.
#[derive(Debug)]
pub struct Exit {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Everything written to standard output.
    pub stdout: String,
    /// Everything written to standard error.
    pub stderr: String,
}

impl Process {
    /// Starts `command` with both outputs collected.
    pub fn spawn(command: &mut Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", command.get_program().display()));
        let stdout = Output::collect(child.stdout.take().expect("piped"));
        let stderr = Output::collect(child.stderr.take().expect("piped"));
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What was written to standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    /// What was written to standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.so_far()
    }

    /// The status if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("wait for child")
    }

    /// Asks the process to stop (SIGTERM).
    pub fn ask_to_stop(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("signal to child");
    }

    /// Ends the process at once (SIGKILL) and waits for its end.
    pub fn kill(&mut self) {
        // Both calls fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the end and takes all output.
    ///
    /// # Panics
    /// When the process still runs after `within`.
    pub fn expect_exit(mut self, within: Duration) -> Exit {
        let status = eventually("the process ends", within, || self.ended());
        Exit {
            code: status.code(),
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = self.stderr();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
            eprintln!("--- last lines of process {} ---\n{}", self.id(), last.join("\n"));
        }
    }
}

#[derive(Debug)]
struct Output {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    fn collect(mut from: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = from.read(&mut piece) {
                into.lock().expect("output").extend_from_slice(&piece[..length]);
            }
        });
        Self {
            text,
            reader: Some(reader),
        }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().expect("output")).into_owned()
    }

    fn finish(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("output reader");
        }
        self.so_far()
    }
}

/// How much of a log is shown when a test has failed.
const LINES_SHOWN: usize = 60;
