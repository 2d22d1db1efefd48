//! Duty: waits for a state that a broker reaches a little later, without blind sleeps.

use std::thread;
use std::time::{Duration, Instant};

/// Polls `probe` until it gives a value.
///
/// # Panics
/// When `within` has passed without one; `what` says what was waited for.
pub fn eventually<T>(what: &str, within: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        thread::sleep(POLL);
    }
}

/// Checks again and again that `probe` stays true for the whole of `period`.
///
/// # Panics
/// As soon as it is false; `what` says what should have stayed.
pub fn stays(what: &str, period: Duration, mut probe: impl FnMut() -> bool) {
    let end = Instant::now() + period;
    while Instant::now() < end {
        assert!(probe(), "did not stay: {what}");
        thread::sleep(POLL);
    }
}

const POLL: Duration = Duration::from_millis(10);
