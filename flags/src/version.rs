//! Duty: what `--version` prints.

/// The stock release that these programs stand in for.
pub const STOCK_VERSION: &str = "1.3.0";

/// A daemon's line: stock's name, version and compiler, then our own version.
pub fn daemon_version(program: &str) -> String {
    format!(
        "{program} v{STOCK_VERSION} (built w/rustc{}) nsqx {OWN_VERSION}",
        env!("NSQX_RUSTC")
    )
}

/// A utility's line: stock's name and version, then our own version.
pub fn tool_version(program: &str) -> String {
    format!("{program} v{STOCK_VERSION} nsqx {OWN_VERSION}")
}

const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
