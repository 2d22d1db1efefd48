//! Duty: the memory of this process in the words of stock's `memory` object (nsq-http 1.10). Reads `/proc`, knows
//! nothing of topics.

use serde::Serialize;

/// The `memory` object of `/stats`. Numbers of a garbage collector are 0: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Always 0: the allocator does not count objects.
    pub heap_objects: u64,
    /// Always 0.
    pub heap_idle_bytes: u64,
    /// Resident bytes that are not backed by a file.
    pub heap_in_use_bytes: u64,
    /// Always 0.
    pub heap_released_bytes: u64,
    /// Always 0.
    pub gc_pause_usec_100: u64,
    /// Always 0.
    pub gc_pause_usec_99: u64,
    /// Always 0.
    pub gc_pause_usec_95: u64,
    /// Always 0.
    pub next_gc_bytes: u64,
    /// Always 0.
    pub gc_total_runs: u64,
}

/// The memory of this process now; all 0 where `/proc/self/statm` is missing.
pub fn of_this_process() -> Memory {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    from_statm(&statm, rustix::param::page_size() as u64)
}

fn from_statm(statm: &str, page_size: u64) -> Memory {
    // size resident shared text lib data dt, in pages.
    let mut pages = statm.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
    let (Some(Ok(resident)), Some(Ok(shared))) = (pages.next(), pages.next()) else {
        return Memory::default();
    };
    Memory {
        heap_in_use_bytes: resident.saturating_sub(shared) * page_size,
        ..Memory::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_without_files_is_the_heap() {
        assert_eq!(
            from_statm("900 300 100 1 0 50 0\n", 4096).heap_in_use_bytes,
            200 * 4096
        );
        assert_eq!(from_statm("", 4096), Memory::default());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory() {
        let block = vec![1_u8; 32 << 20];
        assert!(of_this_process().heap_in_use_bytes > block.iter().map(|byte| u64::from(*byte)).sum());
    }
}
