//! Duty: what a client may ask for in IDENTIFY.

use std::time::Duration;

use clap::Args;
use nsqx_flags::GoDuration;
use serde::Serialize;

use super::fault::{ConfigFault, Faults};

/// Raw flags of the negotiation.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Client connections")]
pub struct NegotiateOptions {
    /// Longest time between heartbeats that a client may ask for
    #[arg(long, default_value = "1m")]
    pub max_heartbeat_interval: GoDuration,
    /// Largest RDY count of a consumer
    #[arg(long, default_value = "2500")]
    pub max_rdy_count: i64,
    /// Largest output buffer that a client may ask for, bytes
    #[arg(long, default_value = "65536")]
    pub max_output_buffer_size: i64,
    /// Longest time between flushes that a client may ask for
    #[arg(long, default_value = "30s")]
    pub max_output_buffer_timeout: GoDuration,
    /// Shortest time between flushes that a client may ask for
    #[arg(long, default_value = "25ms")]
    pub min_output_buffer_timeout: GoDuration,
    /// Time between flushes when a client does not ask
    #[arg(long, default_value = "250ms")]
    pub output_buffer_timeout: GoDuration,
    /// Offer deflate compression
    #[arg(long, default_value_t = true)]
    pub deflate: bool,
    /// Highest deflate level that a client may ask for, 1 to 9
    #[arg(long, default_value = "6")]
    pub max_deflate_level: i64,
    /// Offer snappy compression
    #[arg(long, default_value_t = true)]
    pub snappy: bool,
}

/// Checked settings of the negotiation.
#[derive(Clone, Debug)]
pub struct NegotiateConfig {
    /// Longest heartbeat interval granted.
    pub max_heartbeat_interval: Duration,
    /// Largest RDY count taken.
    pub max_rdy_count: u64,
    /// Largest output buffer granted, in bytes.
    pub max_output_buffer_size: u64,
    /// Longest flush interval granted.
    pub max_output_buffer_timeout: Duration,
    /// Shortest flush interval granted.
    pub min_output_buffer_timeout: Duration,
    /// Flush interval of who does not ask.
    pub output_buffer_timeout: Duration,
    /// True when deflate is offered.
    pub deflate: bool,
    /// Highest deflate level granted, 1 to 9.
    pub max_deflate_level: u32,
    /// True when snappy is offered.
    pub snappy: bool,
}

impl NegotiateOptions {
    pub(super) fn resolve(&self, faults: &mut Faults) -> NegotiateConfig {
        if !(1..=9).contains(&self.max_deflate_level) {
            faults.add(ConfigFault::DeflateLevel);
        }
        NegotiateConfig {
            max_heartbeat_interval: faults
                .positive_time("max-heartbeat-interval", self.max_heartbeat_interval),
            max_rdy_count: faults.amount("max-rdy-count", self.max_rdy_count),
            max_output_buffer_size: faults.amount("max-output-buffer-size", self.max_output_buffer_size),
            max_output_buffer_timeout: faults
                .time("max-output-buffer-timeout", self.max_output_buffer_timeout),
            min_output_buffer_timeout: faults
                .time("min-output-buffer-timeout", self.min_output_buffer_timeout),
            output_buffer_timeout: faults.positive_time("output-buffer-timeout", self.output_buffer_timeout),
            deflate: self.deflate,
            max_deflate_level: self.max_deflate_level as u32,
            snappy: self.snappy,
        }
    }
}
