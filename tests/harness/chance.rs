//! Duty: random runs that can be repeated, and how long they are.
//!
//! In: the environment: `NSQX_SEED` repeats a run, `NSQX_DEEP=1` makes it long. Out: a source of chance whose seed is printed.

use std::env;

use fastrand::Rng;

/// Chance by the given seed or a new one, which is printed.
pub fn seeded() -> Rng {
    let seed = env::var("NSQX_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().expect("a seed"));
    println!("NSQX_SEED={seed}");
    Rng::with_seed(seed)
}

/// True when a run may take hours.
pub fn is_deep() -> bool {
    env::var_os("NSQX_DEEP").is_some()
}
