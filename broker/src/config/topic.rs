//! Duty: what a topic is when its own settings say nothing.

use std::time::Duration;

use clap::Args;
use nsqx_flags::{ByteSize, GoDuration};
use serde::Serialize;

use super::fault::Faults;

/// Raw flags of topics.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Topics")]
pub struct TopicOptions {
    /// Publishing or subscribing creates the topic; false refuses it with E_TOPIC_NOT_EXIST
    #[arg(long, default_value_t = true)]
    pub auto_create_topics: bool,
    /// Messages kept in memory by an ephemeral topic or channel, and the depth above which durable ones count
    /// as on disk
    #[arg(long, default_value = "10000")]
    pub mem_queue_size: i64,
    /// Longest delay of a deferred publish; 0 is --max-req-timeout
    #[arg(long, default_value = "0s")]
    pub max_deferred_time: GoDuration,
    /// Keep finished messages for replay this long; 0 is not at all
    #[arg(long, default_value = "0s")]
    pub retention_time: GoDuration,
    /// Keep finished messages for replay up to this size per topic; 0 is not at all
    #[arg(long, default_value = "0")]
    pub retention_bytes: ByteSize,
}

/// Checked settings of topics.
#[derive(Clone, Debug)]
pub struct TopicConfig {
    /// Unknown topics are created.
    pub auto_create: bool,
    /// Messages; the three effects are listed in the architecture's section 9.
    pub mem_queue_size: u64,
    /// Longest delay of a deferred publish.
    pub max_deferred_time: Duration,
    /// How long finished messages are kept.
    pub retention_time: Duration,
    /// How many bytes of finished messages are kept.
    pub retention_bytes: u64,
}

impl TopicOptions {
    pub(super) fn resolve(&self, max_req_timeout: Duration, faults: &mut Faults) -> TopicConfig {
        let max_deferred_time = faults.time("max-deferred-time", self.max_deferred_time);
        TopicConfig {
            auto_create: self.auto_create_topics,
            mem_queue_size: faults.amount("mem-queue-size", self.mem_queue_size),
            max_deferred_time: if max_deferred_time.is_zero() {
                max_req_timeout
            } else {
                max_deferred_time
            },
            retention_time: faults.time("retention-time", self.retention_time),
            retention_bytes: self.retention_bytes.as_bytes(),
        }
    }
}
