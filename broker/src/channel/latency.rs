//! Duty: how long messages take from their publish to their FIN, while somebody wants to know (nsq-http 1.10). Comes in:
//! deliveries and finishes. Goes out: a window of samples. Must not know consumers.

use std::collections::HashMap;
use std::time::Duration;

use super::Deliveries;
use crate::clock::Moment;
use crate::log::record::Record;
use crate::log::sequence::Sequence;
use crate::metrics::latency::LatencyWindow;

/// Samples of one channel, and the stamps of what is in flight.
#[derive(Debug)]
pub(super) struct Latency {
    window: LatencyWindow,
    stamps: HashMap<Sequence, i64>,
}

impl Latency {
    pub(super) fn new(window: Duration, now: Moment) -> Self {
        Self {
            window: LatencyWindow::new(window, now),
            stamps: HashMap::new(),
        }
    }

    /// These messages are in flight now.
    pub(super) fn delivered(&mut self, deliveries: &Deliveries) {
        for item in &deliveries.items {
            let chunk = &deliveries.chunks[item.chunk as usize];
            if let Ok((record, _)) = Record::decode(&chunk[item.offset as usize..]) {
                self.stamps.insert(record.sequence, record.timestamp);
            }
        }
    }

    /// A message was finished at `now`, which is `wall` in nanoseconds since the Unix epoch.
    pub(super) fn finished(&mut self, sequence: Sequence, now: Moment, wall: i64) {
        if let Some(stamp) = self.stamps.remove(&sequence) {
            self.window.record(now, u64::try_from(wall - stamp).unwrap_or(0));
        }
    }

    /// Everything in flight was dropped.
    pub(super) fn forget(&mut self) {
        self.stamps.clear();
    }

    /// The samples so far.
    pub(super) fn window(&self) -> LatencyWindow {
        self.window.clone()
    }
}
