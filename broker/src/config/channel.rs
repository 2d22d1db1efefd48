//! Duty: how long a consumer may hold a message, and how often a channel's state is stored.

use std::time::Duration;

use clap::Args;
use nsqx_flags::GoDuration;
use serde::Serialize;

use super::fault::Faults;

/// Raw flags of channels.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Channels")]
pub struct ChannelOptions {
    /// Time after which an unanswered message is delivered again, when the client does not ask for another
    #[arg(long, default_value = "1m")]
    pub msg_timeout: GoDuration,
    /// Longest time that a consumer can hold a message, TOUCH included
    #[arg(long, default_value = "15m")]
    pub max_msg_timeout: GoDuration,
    /// Longest delay of a requeued message
    #[arg(long, default_value = "1h")]
    pub max_req_timeout: GoDuration,
    /// Consumers of one channel at this broker; 0 is any number
    #[arg(long, default_value = "0")]
    pub max_channel_consumers: i64,
    /// How often a channel's state is stored; bounds what is delivered again after a crash
    #[arg(long, default_value = "100ms")]
    pub checkpoint_interval: GoDuration,
    /// Accepted without effect: timeouts need no scan here
    #[arg(long, default_value = "4")]
    pub queue_scan_worker_pool_max: i64,
    /// Accepted without effect: timeouts need no scan here
    #[arg(long, default_value = "20")]
    pub queue_scan_selection_count: i64,
}

/// Checked settings of channels.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    /// Default time in flight.
    pub msg_timeout: Duration,
    /// Longest time in flight.
    pub max_msg_timeout: Duration,
    /// Longest delay of REQ.
    pub max_req_timeout: Duration,
    /// Consumers of one channel; `None` = any number.
    pub max_consumers: Option<u64>,
    /// Time between checkpoints of a busy channel.
    pub checkpoint_interval: Duration,
}

impl ChannelOptions {
    pub(super) fn resolve(&self, faults: &mut Faults) -> ChannelConfig {
        let max_consumers = faults.amount("max-channel-consumers", self.max_channel_consumers);
        ChannelConfig {
            msg_timeout: faults.positive_time("msg-timeout", self.msg_timeout),
            max_msg_timeout: faults.positive_time("max-msg-timeout", self.max_msg_timeout),
            max_req_timeout: faults.time("max-req-timeout", self.max_req_timeout),
            max_consumers: (max_consumers > 0).then_some(max_consumers),
            checkpoint_interval: faults.positive_time("checkpoint-interval", self.checkpoint_interval),
        }
    }
}
