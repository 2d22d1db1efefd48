//! Duty: when files are synced: one round at a time, for all logs of the engine that have asked. Comes in:
//! requests with a deadline. Goes out: rounds. Must not know segments or records.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::durable::SyncJob;
use super::topic::SegmentedLog;
use crate::clock::{Clock, Moment};
use crate::log::disk::Disk;

/// Runs the syncs of one engine.
pub(super) struct Syncer {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    clock: Clock,
    timeout: Duration,
    state: Mutex<State>,
    wake: Condvar,
    /// Held during a round.
    turn: Mutex<Turn>,
}

#[derive(Default)]
struct State {
    asking: Vec<Arc<SegmentedLog>>,
    due: Option<Moment>,
    stopped: bool,
}

/// Logs that were synced and have no mark yet.
#[derive(Default)]
struct Turn {
    unmarked: Vec<Arc<SegmentedLog>>,
    since: Option<Moment>,
}

impl Syncer {
    /// Syncs files below `root`; who does not ask for `now` is served within `timeout`.
    pub(super) fn new(disk: Arc<dyn Disk>, root: PathBuf, clock: Clock, timeout: Duration) -> Self {
        Self {
            disk,
            root,
            clock,
            timeout,
            state: Mutex::default(),
            wake: Condvar::new(),
            turn: Mutex::default(),
        }
    }

    /// `log` has something to sync: at once, or within the timeout.
    pub(super) fn ask(&self, log: Arc<SegmentedLog>, now: bool) {
        let time = self.clock.now();
        let due = if now { time } else { time + self.timeout };
        let mut state = self.state.lock();
        if !state.asking.iter().any(|asking| Arc::ptr_eq(asking, &log)) {
            state.asking.push(log);
        }
        if state.due.is_none_or(|known| due < known) {
            state.due = Some(due);
            self.wake.notify_one();
        }
    }

    /// Runs rounds as they become due, until stopped; then a last one.
    pub(super) fn run(&self) {
        while self.wait() {
            self.round();
        }
        self.round();
    }

    /// Ends [`Syncer::run`].
    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.wake.notify_one();
    }

    /// One round: syncs everything that all asking logs have written so far.
    pub(super) fn round(&self) {
        let mut turn = self.turn.lock();
        let asking = {
            let mut state = self.state.lock();
            state.due = None;
            std::mem::take(&mut state.asking)
        };
        self.sync(&asking);
        turn.unmarked.extend(asking);
        self.mark(&mut turn);
    }

    /// Runs `operation` while no round runs.
    pub(super) fn between_rounds<T>(&self, operation: impl FnOnce() -> T) -> T {
        let _turn = self.turn.lock();
        operation()
    }

    /// Syncs and marks `log` whether it asked or not.
    pub(super) fn round_for(&self, log: &Arc<SegmentedLog>) {
        let _turn = self.turn.lock();
        self.sync(std::slice::from_ref(log));
        log.mark();
    }

    fn sync(&self, logs: &[Arc<SegmentedLog>]) {
        let jobs: Vec<SyncJob> = logs.iter().filter_map(SegmentedLog::sync_job).collect();
        let files: usize = jobs.iter().map(|job| job.targets.len()).sum();
        // When the whole file system fails to sync, each file tells whether it was hurt.
        let all_synced = files > FILES_ONE_BY_ONE && self.disk.sync_all(&self.root).is_ok();
        for job in jobs {
            let outcome = if all_synced { Ok(()) } else { job.sync_files() };
            job.log.synced(&job, outcome);
        }
    }

    /// Marks cost a sync of their own: while publishers wait for the next round they are put off, for a moment.
    fn mark(&self, turn: &mut Turn) {
        let now = self.clock.now();
        let since = *turn.since.get_or_insert(now);
        let waited_for = self.state.lock().due.is_some_and(|due| due <= now);
        if waited_for && now.since(since) < MARK_DELAY {
            return;
        }
        turn.since = None;
        let mut logs = std::mem::take(&mut turn.unmarked);
        logs.sort_by_key(Arc::as_ptr);
        logs.dedup_by(|one, other| Arc::ptr_eq(one, other));
        for log in logs {
            log.mark();
        }
    }

    /// Waits for the next round; false when stopped.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return false;
            }
            match state.due {
                None => self.wake.wait(&mut state),
                Some(due) if due <= self.clock.now() => return true,
                Some(due) => {
                    self.wake.wait_until(&mut state, self.clock.instant(due));
                }
            }
        }
    }
}

/// Up to this many files are synced one by one, more of them with their whole file system.
const FILES_ONE_BY_ONE: usize = 16;
/// How long marks may be put off while publishers wait for syncs.
const MARK_DELAY: Duration = Duration::from_millis(100);
