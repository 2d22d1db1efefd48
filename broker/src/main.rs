//! Duty: nsqd's entry: command line to task to exit code.

use std::env::{args_os, var_os};
use std::process::ExitCode;

use nsqx_broker::args::{self, Task};
use nsqx_broker::clock::Clock;
use nsqx_broker::logging;
use nsqx_broker::node::{self, migrate};

fn main() -> ExitCode {
    if let Err(code) = compiler_check::require_sound_build() {
        return code;
    }
    let clock = Clock::start();
    let host = args::host_name();
    let invocation = match args::parse(args_os(), |name| var_os(name), &host) {
        Ok(invocation) => invocation,
        Err(exit) => return exit.report(|text| logging::print_fatal(clock, text)),
    };
    let log_control = match logging::init(&invocation.config.logging, clock) {
        Ok(control) => control,
        Err(error) => {
            logging::print_fatal(clock, &format!("failed to instantiate nsqd - {error}"));
            return ExitCode::FAILURE;
        }
    };
    let done = match &invocation.task {
        Task::Serve => node::run(invocation, host, clock, log_control),
        Task::Import { from } => {
            migrate::import(&invocation.config, from, clock).map(|done| println!("{done}"))
        }
        Task::Export { to } => migrate::export(&invocation.config, to, clock).map(|done| println!("{done}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::print_fatal(clock, &format!("failed to instantiate nsqd - {error}"));
            ExitCode::FAILURE
        }
    }
}
