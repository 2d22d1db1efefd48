//! Duty: tells the outcome of commits and the log's health, in order and outside of all locks of the log.
//! Comes in: news, queued under the engine's own lock. Goes out: completed tickets and calls of the
//! [`TailWatch`]. Must not know files or records.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::engine::{Commit, DelayedRecord, LogError, TailWatch};
use super::sequence::Sequence;

/// Something to tell.
#[derive(Debug)]
pub(super) enum News {
    /// The records of a commit can be read; the log now ends at `end`.
    Committed {
        commit: Arc<Commit>,
        end: Sequence,
        delayed: Vec<DelayedRecord>,
    },
    /// A commit failed.
    Failed { commit: Arc<Commit>, error: LogError },
    /// The disk failed, or works again.
    Health(Result<(), LogError>),
}

/// Tells news one after another; whoever comes while another thread tells leaves its news to that thread.
pub(super) struct Announcer {
    queue: Mutex<VecDeque<News>>,
    baton: Mutex<()>,
    watch: Arc<dyn TailWatch>,
}

impl Announcer {
    /// Tells `watch`.
    pub(super) fn new(watch: Arc<dyn TailWatch>) -> Self {
        Self {
            queue: Mutex::default(),
            baton: Mutex::new(()),
            watch,
        }
    }

    /// Queues `news`; the caller's lock gives the order.
    pub(super) fn push(&self, news: News) {
        self.queue.lock().push_back(news);
    }

    /// Tells what is queued. The caller holds no lock.
    pub(super) fn tell(&self) {
        // News queued after the last look and before the baton is free would otherwise wait for the next flush.
        while !self.queue.lock().is_empty() {
            let Some(_baton) = self.baton.try_lock() else {
                return;
            };
            while let Some(news) = self.next() {
                match news {
                    News::Committed { commit, end, delayed } => {
                        commit.complete(Ok(()));
                        self.watch.advanced(end, &delayed);
                    }
                    News::Failed { commit, error } => commit.complete(Err(error)),
                    News::Health(state) => self.watch.health(state.as_ref().copied()),
                }
            }
        }
    }

    fn next(&self) -> Option<News> {
        self.queue.lock().pop_front()
    }
}
