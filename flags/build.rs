//! Duty: tells the crate which compiler builds it, for the `--version` line.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = env::var_os("RUSTC").and_then(compiler_version);
    println!("cargo:rustc-env=NSQX_RUSTC={}", version.as_deref().unwrap_or(""));
}

/// The number in `rustc 1.95.0 (hash date)`.
fn compiler_version(rustc: std::ffi::OsString) -> Option<String> {
    let output = Command::new(rustc).arg("--version").output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?;
    line.split(' ').nth(1).map(str::to_owned)
}
