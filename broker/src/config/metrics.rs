//! Duty: what is measured and pushed, where to and how often.

use std::time::Duration;

use clap::Args;
use nsqx_flags::GoDuration;
use serde::{Serialize, Serializer};

use super::fault::{ConfigFault, Faults};

/// Raw flags of metrics.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Metrics")]
pub struct MetricsOptions {
    /// UDP address host:port that statsd metrics are pushed to; empty is off
    #[arg(long, default_value = "")]
    pub statsd_address: String,
    /// What statsd names start with; %s is this broker's address and HTTP port
    #[arg(long, default_value = "nsq.%s")]
    pub statsd_prefix: String,
    /// Time between pushes to statsd
    #[arg(long, default_value = "1m")]
    pub statsd_interval: GoDuration,
    /// Push memory metrics to statsd too
    #[arg(long, default_value_t = true)]
    pub statsd_mem_stats: bool,
    /// Largest UDP datagram to statsd, bytes
    #[arg(long, default_value = "508")]
    pub statsd_udp_packet_size: i64,
    /// Leave ephemeral topics and channels out of statsd
    #[arg(long)]
    pub statsd_exclude_ephemeral: bool,
    /// Percentile of the time from publish to finish, above 0 and up to 1; may be given several times or
    /// separated by commas
    #[arg(long = "e2e-processing-latency-percentile", value_delimiter = ',')]
    #[serde(serialize_with = "go_floats")]
    pub e2e_processing_latency_percentiles: Vec<f64>,
    /// Time that percentiles look back
    #[arg(long, default_value = "10m")]
    pub e2e_processing_latency_window_time: GoDuration,
}

/// Checked settings of metrics.
#[derive(Clone, Debug)]
pub struct MetricsConfig {
    /// Where and how statsd metrics are pushed, if at all.
    pub statsd: Option<StatsdConfig>,
    /// Percentiles of end-to-end latency, each in (0, 1], highest first.
    pub latency_percentiles: Vec<f64>,
    /// Time that percentiles look back.
    pub latency_window: Duration,
}

/// How metrics are pushed to statsd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsdConfig {
    /// `host:port`.
    pub address: String,
    /// What every name starts with; complete after [`super::Config::announce`].
    pub prefix: String,
    /// Time between pushes.
    pub interval: Duration,
    /// Memory metrics are pushed too.
    pub mem_stats: bool,
    /// Largest datagram in bytes.
    pub packet_size: u64,
    /// Ephemeral topics and channels are left out.
    pub exclude_ephemeral: bool,
}

impl MetricsOptions {
    /// Stock shows and uses percentiles highest first.
    pub(super) fn sort_percentiles(&mut self) {
        self.e2e_processing_latency_percentiles
            .sort_by(|a, b| b.total_cmp(a));
    }

    pub(super) fn resolve(&self, faults: &mut Faults) -> MetricsConfig {
        for percentile in &self.e2e_processing_latency_percentiles {
            if !(*percentile > 0.0 && *percentile <= 1.0) {
                faults.add(ConfigFault::Percentile(*percentile));
            }
        }
        MetricsConfig {
            statsd: (!self.statsd_address.is_empty()).then(|| self.statsd(faults)),
            latency_percentiles: self.e2e_processing_latency_percentiles.clone(),
            latency_window: faults.time(
                "e2e-processing-latency-window-time",
                self.e2e_processing_latency_window_time,
            ),
        }
    }

    fn statsd(&self, faults: &mut Faults) -> StatsdConfig {
        StatsdConfig {
            address: self.statsd_address.clone(),
            prefix: self.statsd_prefix.clone(),
            interval: faults.positive_time("statsd-interval", self.statsd_interval),
            mem_stats: self.statsd_mem_stats,
            packet_size: faults.positive("statsd-udp-packet-size", self.statsd_udp_packet_size),
            exclude_ephemeral: self.statsd_exclude_ephemeral,
        }
    }
}

/// The prefix of this broker's names: `nsq.%s` becomes `nsq.my_host_4151.`. Source: nsq-http-and-tools 5.
pub(super) fn statsd_prefix(pattern: &str, broadcast_address: &str, broadcast_http_port: u16) -> String {
    if pattern.is_empty() {
        return String::new();
    }
    let host_port = if broadcast_address.contains(':') {
        format!("[{broadcast_address}]:{broadcast_http_port}")
    } else {
        format!("{broadcast_address}:{broadcast_http_port}")
    };
    let mut prefix = pattern.replace("%s", &host_port.replace(['.', ':'], "_"));
    if !prefix.ends_with('.') {
        prefix.push('.');
    }
    prefix
}

/// Go writes whole numbers without a point.
fn go_floats<S: Serializer>(floats: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(floats.iter().map(|float| {
        if float.fract() == 0.0 {
            serde_json::Value::from(*float as i64)
        } else {
            serde_json::Value::from(*float)
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_names_the_broker() {
        assert_eq!(statsd_prefix("nsq.%s", "my.host", 4151), "nsq.my_host_4151.");
        assert_eq!(statsd_prefix("%s.%s.", "h", 1), "h_1.h_1.");
        assert_eq!(statsd_prefix("%s", "::1", 4151), "[__1]_4151.");
        assert_eq!(statsd_prefix("", "h", 1), "");
    }
}
