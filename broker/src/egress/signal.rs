//! Duty: wakes a connection's task from any thread. Comes in: reasons. Goes out: the reasons since the last look.
//! Must not know what the task does about them.

use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use atomic_waker::AtomicWaker;

/// The wake-up of one connection; shared by everyone who may have news for it.
#[derive(Debug, Default)]
pub struct Signal {
    reasons: AtomicU8,
    waker: AtomicWaker,
}

/// Why a connection was woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    /// Its channel may have messages for it.
    pub deliver: bool,
    /// Its channel is gone or the broker stops: end without a frame (nsq-tcp 4.13).
    pub close: bool,
}

impl Signal {
    /// There may be messages to take.
    pub fn deliver(&self) {
        self.raise(DELIVER);
    }

    /// The connection has to end.
    pub fn close(&self) {
        self.raise(CLOSE);
    }

    /// Answers and clears the reasons; the waker of the last [`Signal::listen`] is told of later ones.
    pub fn take(&self) -> Reasons {
        let raised = if self.reasons.load(Ordering::Acquire) == 0 {
            0
        } else {
            self.reasons.swap(0, Ordering::AcqRel)
        };
        Reasons {
            deliver: raised & DELIVER != 0,
            close: raised & CLOSE != 0,
        }
    }

    /// Whom to wake. Call before [`Signal::take`], so that no reason is missed.
    pub fn listen(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    fn raise(&self, reason: u8) {
        if self.reasons.fetch_or(reason, Ordering::AcqRel) & reason == 0 {
            self.waker.wake();
        }
    }
}

const DELIVER: u8 = 1;
const CLOSE: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_answered_once() {
        let signal = Signal::default();
        signal.deliver();
        signal.deliver();
        assert_eq!(
            signal.take(),
            Reasons {
                deliver: true,
                close: false
            }
        );
        assert_eq!(signal.take(), Reasons::default());
        signal.close();
        assert_eq!(
            signal.take(),
            Reasons {
                deliver: false,
                close: true
            }
        );
    }
}
