//! Duty: memory that the connections of one thread use in turn, so that an idle connection holds none. Must not know
//! what is kept in it.

use std::cell::RefCell;

use crate::channel::Deliveries;

/// Working memory of one thread.
pub(super) struct Workspace {
    /// Where a socket is read to.
    pub(super) read: Vec<u8>,
    /// Messages between their channel and the output.
    pub(super) deliveries: Deliveries,
    spare: Vec<Vec<u8>>,
}

impl Workspace {
    /// A buffer that some connection does not need any more.
    pub(super) fn spare(&mut self) -> Option<Vec<u8>> {
        self.spare.pop()
    }

    /// Takes a buffer back; large ones and surplus are freed.
    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() <= SPARE_BYTES && self.spare.len() < SPARE_COUNT {
            self.spare.push(buffer);
        }
    }
}

/// Lends this thread's workspace.
pub(super) fn with<R>(work: impl FnOnce(&mut Workspace) -> R) -> R {
    WORKSPACE.with_borrow_mut(work)
}

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::new(Workspace {
        read: vec![0; READ_BYTES],
        deliveries: Deliveries::default(),
        spare: Vec::new(),
    });
}

/// Most bytes that one turn of a connection reads.
pub(super) const READ_BYTES: usize = 256 * 1024;
const SPARE_BYTES: usize = 1024 * 1024;
const SPARE_COUNT: usize = 64;
