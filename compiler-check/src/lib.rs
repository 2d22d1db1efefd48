//! Duty: tells at start whether this very build loses values (rust-lang/rust#158206).
//!
//! rustc 1.95.0 and 1.96.0 drop a stored comparison that is also branched on, at opt-level 2 and 3.
//! `.cargo/config.toml` switches the faulty pass off, but `RUSTFLAGS` in the environment or a build from
//! another folder silently undoes that. So every binary calls [`require_sound_build`] first.

use std::hint::black_box;
use std::process::ExitCode;

/// What a binary prints before it ends when its build is broken.
pub const BROKEN_BUILD: &str = "built by a compiler that loses values, rust-lang/rust#158206";

/// Runs the known pattern once; `Err` holds the exit code to end the process with.
///
/// # Errors
/// When the build loses values. The reason has then been printed to standard error.
pub fn require_sound_build() -> Result<(), ExitCode> {
    if build_is_sound() {
        return Ok(());
    }
    eprintln!("{BROKEN_BUILD}");
    Err(ExitCode::FAILURE)
}

/// True when the pattern that the faulty pass breaks gives the right answer in this build.
pub fn build_is_sound() -> bool {
    let mut words = [0_u64; 16];
    let mut seen = 0;
    let mut fresh = 0;
    count_fresh_bits(black_box(&mut words), black_box(1000), &mut seen, &mut fresh);
    black_box(seen) == 1000 && black_box(fresh) == 1000
}

#[inline(never)]
fn count_fresh_bits(words: &mut [u64; 16], bits: u64, seen: &mut u64, fresh: &mut u64) {
    for bit in 0..bits {
        if mark(&mut words[(bit / 64) as usize], 1 << (bit % 64), seen) {
            *fresh += 1;
        }
    }
}

fn mark(word: &mut u64, bit: u64, seen: &mut u64) -> bool {
    let fresh = *word & bit == 0;
    *word |= bit;
    // The lost statement: where the caller branches on the result nothing is added.
    *seen += u64::from(fresh);
    fresh
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_build_keeps_its_values() {
        assert!(super::build_is_sound());
    }
}
