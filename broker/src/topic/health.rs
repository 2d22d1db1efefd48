//! Duty: whether the broker can write, as `/ping` tells it (nsq-http 1.4). Comes in: faults, each under the name of who
//! met it. Goes out: OK or the first fault. Must not know what a fault means or how it is cured.
//!
//! Each source takes back its own fault only: a log that works says nothing about another one (decision 0004).

use std::collections::BTreeMap;
use std::fmt::Display;

use parking_lot::Mutex;

use crate::store::cursor::TopicNumber;
use crate::store::handle::FaultWatch;

/// Everything that fails now.
#[derive(Debug)]
pub struct Health {
    /// Asked, not told: it must be red before the first one it refuses has heard of it.
    store: FaultWatch,
    faults: Mutex<BTreeMap<Source, String>>,
}

/// Who tells whether it can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The look at the disk itself.
    Disk,
    /// The log of a topic.
    Log(TopicNumber),
}

impl Health {
    /// Healthy as long as `store` works and nobody tells otherwise.
    pub fn new(store: FaultWatch) -> Self {
        Self {
            store,
            faults: Mutex::default(),
        }
    }

    /// `source` can not write, or can again.
    pub fn report(&self, source: Source, state: Result<(), impl Display>) {
        let mut faults = self.faults.lock();
        match state {
            Err(error) => {
                let text = error.to_string();
                if faults.insert(source, text.clone()).is_none() {
                    tracing::error!(?source, error = text, "can not write");
                }
            }
            Ok(()) if faults.remove(&source).is_some() => tracing::info!(?source, "writes work again"),
            Ok(()) => {}
        }
    }

    /// `Err` with a reason while anything fails.
    pub fn state(&self) -> Result<(), String> {
        let fault = self.faults.lock().values().next().cloned();
        fault
            .or_else(|| self.store.fault().map(|fault| fault.to_string()))
            .map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::handle::StoreHandle;
    use crate::store::handle::StoreThread;
    use crate::store::{Store, StoreError};

    fn with_store(check: impl FnOnce(&StoreHandle, &std::path::Path)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let (store, thread) = StoreThread::start(Store::open(&path).unwrap()).unwrap();
        check(&store, &path);
        drop(store);
        thread.join();
    }

    #[test]
    fn each_source_takes_back_its_own_fault_only() {
        with_store(|store, _| {
            let health = Health::new(store.watch_fault());
            let (one, other) = (Source::Log(TopicNumber(1)), Source::Log(TopicNumber(2)));
            assert_eq!(health.state(), Ok(()));
            health.report(one, Err("full"));
            health.report(other, Err("gone"));
            health.report(one, Ok::<_, &str>(()));
            health.report(Source::Disk, Ok::<_, &str>(()));
            assert_eq!(health.state(), Err("gone".to_owned()));
            health.report(other, Ok::<_, &str>(()));
            assert_eq!(health.state(), Ok(()));
        });
    }

    #[test]
    fn a_broken_store_is_seen_as_soon_as_it_has_refused_and_no_longer_than_it_is_broken() {
        with_store(|store, path| {
            let health = Health::new(store.watch_fault());
            let away = path.with_extension("away");
            std::fs::rename(path, &away).unwrap();
            let refused = store
                .transact(|transaction| transaction.set_fact("name", Some(vec![1])))
                .wait();
            assert!(matches!(refused, Err(StoreError::Broken(_))), "{refused:?}");
            assert_eq!(health.state(), Err(refused.unwrap_err().to_string()));
            assert!(store.reopen(|_| Vec::new()).wait().is_err());
            assert!(!path.exists(), "a folder that was moved away is not made anew");
            std::fs::rename(&away, path).unwrap();
            store.reopen(|_| Vec::new()).wait().unwrap();
            assert_eq!(health.state(), Ok(()));
        });
    }
}
