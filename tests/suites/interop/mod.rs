//! Duty: real client libraries against a real broker. One module per language lists the scenarios that its
//! library can play; each is a test `interop::go::stock::publish_single` and `interop::go::ours::...`.
//!
//! The programs are prepared by `tests/interop/prepare.sh`, see the README there. Without them the tests print
//! `skipped:` and pass, unless `NSQX_REQUIRE_INTEROP` is `1`.

use std::env;

use e2e::Broker;

use program::Library;

/// One test for each broker and scenario: `scenarios! { Library::Go => a, b }`.
macro_rules! scenarios {
    ($library:expr => $($scenario:ident),* $(,)?) => {
        mod stock {
            use super::super::{play, program::Library, scenario};
            $(#[test] fn $scenario() {
                e2e::statements::check_stock(|broker| play($library, broker, scenario::$scenario));
            })*
        }
        mod ours {
            use super::super::{play, program::Library, scenario};
            $(#[test] fn $scenario() {
                e2e::statements::check_ours(|broker| play($library, broker, scenario::$scenario));
            })*
        }
    };
}

mod go;
mod java;
mod node;
mod program;
mod python;
mod rust;
mod scenario;
mod stage;

fn play(library: Library, broker: &Broker, scenario: fn(&Broker, Library)) {
    match library.missing() {
        None => scenario(broker, library),
        Some(reason) => skip(&reason),
    }
}

/// Says why a scenario cannot run here.
///
/// # Panics
/// Where every scenario has to run.
fn skip(reason: &str) {
    let required = env::var("NSQX_REQUIRE_INTEROP").is_ok_and(|value| value == "1");
    assert!(!required, "interop is required but {reason}");
    println!("skipped: {reason}");
}
