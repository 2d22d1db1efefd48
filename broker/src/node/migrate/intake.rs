//! Duty: imports a stock folder: decides what of it is new, topic after topic, and tells how it goes. Must not know
//! logs or cursors.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use tokio::runtime::Handle;

use super::super::NodeError;
use super::super::data::Data;
use super::notes;
use super::topic_intake::TopicIntake;
use crate::clock::{Clock, Moment};
use crate::config::Config;
use crate::import::Warning;
use crate::import::plan::{Plan, TopicPlan};

/// Imports into one data folder.
pub(in crate::node) struct Intake<'a> {
    pub(super) data: &'a Data,
    pub(super) clock: Clock,
    /// Where tickets are waited for.
    pub(super) runtime: &'a Handle,
    /// `--default-extend`, for new topics.
    pub(super) extend: bool,
    /// `--max-msg-size`.
    pub(super) max_body: u32,
    wanted: bool,
}

/// What was imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Topics that got something.
    pub topics: usize,
    /// Queues that were read.
    pub queues: usize,
    /// Messages in them.
    pub messages: u64,
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            topics,
            queues,
            messages,
        } = self;
        write!(
            f,
            "imported messages: {messages}, queues: {queues}, topics: {topics}"
        )
    }
}

impl<'a> Intake<'a> {
    /// An import into `data`; `runtime` is one whose threads do not wait for it.
    pub(in crate::node) fn new(data: &'a Data, config: &Config, clock: Clock, runtime: &'a Handle) -> Self {
        Self {
            data,
            clock,
            runtime,
            extend: config.extension.default_extend,
            max_body: u32::try_from(config.ingress.max_msg_size).unwrap_or(u32::MAX),
            wanted: config.log.import_stock_data,
        }
    }

    /// Imports the queues that lie in the data folder itself, as far as they were not imported yet, and ends what an
    /// interrupted import began. Topics and channels without messages are left to whoever reads `nsqd.dat`.
    ///
    /// # Errors
    /// [`NodeError::StockData`] when there is something but it is not wanted; what files, logs and store say.
    pub(in crate::node) fn own(&self) -> Result<Imported, NodeError> {
        let plan = self.plan(&self.data.folder, OWN)?;
        // Whoever reads `nsqd.dat` tells of the bad names in it.
        let about_names =
            |warning: &&Warning| matches!(warning, Warning::TopicName(_) | Warning::ChannelName { .. });
        plan.warnings
            .iter()
            .filter(|warning| !about_names(warning))
            .for_each(warn);
        if plan.messages() > 0 && !self.wanted {
            return Err(NodeError::StockData {
                path: self.data.folder.clone(),
                queues: plan.topics.values().flat_map(TopicPlan::queues).count(),
                messages: plan.messages(),
            });
        }
        let names = plan
            .topics
            .iter()
            .filter(|(_, topic)| topic.messages() > 0)
            .map(|(name, _)| name.clone());
        self.take_over(OWN, &plan, names.collect())
    }

    /// Imports everything from another folder, as far as it was not imported yet.
    ///
    /// # Errors
    /// What files, logs and store say.
    pub(super) fn other(&self, folder: &Path) -> Result<Imported, NodeError> {
        let origin = folder.to_string_lossy();
        let plan = self.plan(folder, &origin)?;
        plan.warnings.iter().for_each(warn);
        self.take_over(&origin, &plan, plan.topics.keys().cloned().collect())
    }

    fn plan(&self, folder: &Path, origin: &str) -> Result<Plan, NodeError> {
        Plan::resume(folder, self.max_body, |queue| {
            let mark = self
                .data
                .store
                .look(|catalogue| notes::mark(catalogue, origin, queue))?;
            Ok(mark.map_or(Ok(queue.start), |mark| mark.resume(queue))?)
        })
    }

    fn take_over(
        &self,
        origin: &str,
        plan: &Plan,
        mut names: BTreeSet<String>,
    ) -> Result<Imported, NodeError> {
        let catalogue = self.data.store.catalogue();
        for (_, topic) in catalogue.topics() {
            if notes::under_way(&catalogue, &topic.name)?.is_some() {
                names.insert(topic.name.clone());
            }
        }
        let mut progress = Progress::new(plan.messages(), self.clock.now());
        if progress.of > 0 {
            tracing::info!(messages = progress.of, "importing the queues of stock nsqd");
        }
        let nothing = TopicPlan::default();
        let mut imported = Imported::default();
        for name in &names {
            let topic = plan.topics.get(name).unwrap_or(&nothing);
            let mut intake = TopicIntake::begin(self, name, topic)?;
            for queue in topic.queues() {
                intake.take(origin, &queue.queue, |messages| {
                    progress.add(messages, self.clock.now(), name);
                })?;
                imported.queues += 1;
            }
            intake.settle()?;
            imported.topics += 1;
        }
        imported.messages = progress.done;
        if imported.messages > 0 {
            let Imported {
                topics,
                queues,
                messages,
            } = imported;
            tracing::info!(messages, queues, topics, "imported the queues of stock nsqd");
        }
        Ok(imported)
    }
}

/// Tells at most once a second how far an import has come.
struct Progress {
    done: u64,
    of: u64,
    told: Moment,
}

impl Progress {
    fn new(of: u64, now: Moment) -> Self {
        Self {
            done: 0,
            of,
            told: now,
        }
    }

    fn add(&mut self, messages: u64, now: Moment, topic: &str) {
        self.done += messages;
        if now.since(self.told) >= TELL_INTERVAL {
            self.told = now;
            tracing::info!(messages = self.done, of = self.of, topic, "importing");
        }
    }
}

fn warn(warning: &Warning) {
    tracing::warn!("{warning}");
}

/// Origin of the queues in the data folder itself, which may be moved.
const OWN: &str = "";
const TELL_INTERVAL: Duration = Duration::from_secs(1);
