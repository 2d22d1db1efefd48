//! Duty: one memory budget for the newest records of all topics of a broker, newest first. Comes in: new
//! arenas. Goes out: leases, and evictions of the globally oldest arenas. Must not know records.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::log::pending::Lease;
use crate::log::tail::Tail;

/// The budget. Touched once per arena, never per message.
pub(super) struct MemoryBudget {
    /// Bytes of arenas that may be kept.
    limit: usize,
    granted: Mutex<Granted>,
}

#[derive(Default)]
struct Granted {
    arenas: VecDeque<Arena>,
    bytes: usize,
}

struct Arena {
    tail: Weak<Mutex<Tail>>,
    lease: Arc<Lease>,
    bytes: usize,
}

impl MemoryBudget {
    /// A budget of `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            granted: Mutex::default(),
        }
    }

    /// The lease of a new arena of `bytes` bytes whose records go to `tail`. The caller holds neither the lock of
    /// this tail nor of any other: arenas evicted in exchange may be anyone's.
    pub(super) fn grant(&self, tail: &Arc<Mutex<Tail>>, bytes: usize) -> Arc<Lease> {
        let lease = Arc::new(Lease::default());
        let mut evicted = Vec::new();
        {
            let mut granted = self.granted.lock();
            granted.bytes += bytes;
            granted.arenas.push_back(Arena {
                tail: Arc::downgrade(tail),
                lease: Arc::clone(&lease),
                bytes,
            });
            // The newest arena stays even when it is larger than the budget.
            while granted.bytes > self.limit && granted.arenas.len() > 1 {
                let Some(oldest) = granted.arenas.pop_front() else {
                    break;
                };
                granted.bytes -= oldest.bytes;
                evicted.push(oldest);
            }
        }
        for arena in evicted {
            arena.lease.revoke();
            if let Some(tail) = arena.tail.upgrade() {
                tail.lock().evict(&arena.lease);
            }
        }
        lease
    }

    /// Gives back every arena of `tail`.
    pub(super) fn release(&self, tail: &Arc<Mutex<Tail>>) {
        let mut granted = self.granted.lock();
        let Granted { arenas, bytes } = &mut *granted;
        arenas.retain(|arena| {
            let stays = !std::ptr::eq(arena.tail.as_ptr(), Arc::as_ptr(tail));
            if !stays {
                *bytes -= arena.bytes;
                arena.lease.revoke();
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sequence::Sequence;

    #[test]
    fn the_globally_oldest_arenas_go_first() {
        let tail = || Arc::new(Mutex::new(Tail::new(Sequence::default())));
        let (one, two) = (tail(), tail());
        let budget = MemoryBudget::new(100);
        let first = budget.grant(&one, 40);
        let second = budget.grant(&two, 40);
        let third = budget.grant(&two, 40);
        assert!(first.is_revoked() && !second.is_revoked());
        budget.release(&two);
        assert!(second.is_revoked() && third.is_revoked());
        let large = budget.grant(&one, 1000);
        assert!(!large.is_revoked());
    }
}
