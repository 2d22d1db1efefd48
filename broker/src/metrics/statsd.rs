//! Duty: snapshots to statsd datagrams (nsq-http 5). This push's snapshot and the last one's come in, datagrams go
//! out. Must not know sockets or clocks.

use std::fmt::Write;
use std::time::Duration;

use super::latency::LatencySummary;
use super::memory::Memory;
use super::snapshot::{ChannelStats, Snapshot, TopicStats, sort};
use crate::config::StatsdConfig;

/// What was seen at one push.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    topics: Vec<TopicStats>,
    memory: Memory,
}

impl Reading {
    /// A reading of the broker.
    pub fn new(snapshot: Snapshot, memory: Memory) -> Self {
        let mut topics = snapshot.topics;
        sort(&mut topics);
        Self { topics, memory }
    }

    fn topic(&self, name: &str) -> Option<&TopicStats> {
        let place = self
            .topics
            .binary_search_by(|topic| topic.topic_name.as_str().cmp(name));
        place.ok().map(|index| &self.topics[index])
    }
}

/// The datagrams that tell `now` to someone who was told `before` (a default reading at the first push).
///
/// Counters carry the increase since `before`. One that went down belongs to a queue that was made anew: it is
/// told whole, where stock sends a negative number.
pub fn pack(config: &StatsdConfig, now: &Reading, before: &Reading) -> Vec<Vec<u8>> {
    let mut packer = Packer {
        config,
        datagrams: Vec::new(),
        line: String::new(),
    };
    for topic in &now.topics {
        if packer.leaves_out(&topic.topic_name) {
            continue;
        }
        let old = before.topic(&topic.topic_name);
        packer.topic(topic, old);
        for channel in &topic.channels {
            if !packer.leaves_out(&channel.channel_name) {
                let old = old.and_then(|old| find_channel(old, &channel.channel_name));
                packer.channel(&topic.topic_name, channel, old);
            }
        }
    }
    if config.mem_stats {
        packer.memory(&now.memory, &before.memory);
    }
    packer.datagrams
}

/// Pause after each of `count` datagrams, so that they are spread over `interval` less a second. An interval of up
/// to a second leaves no time to spread over: they go out at once (stock crashes).
pub fn pause_between(interval: Duration, count: usize) -> Duration {
    interval.saturating_sub(Duration::from_secs(1)) / u32::try_from(count.max(1)).unwrap_or(u32::MAX)
}

struct Packer<'a> {
    config: &'a StatsdConfig,
    datagrams: Vec<Vec<u8>>,
    line: String,
}

impl Packer<'_> {
    fn leaves_out(&self, name: &str) -> bool {
        self.config.exclude_ephemeral && name.ends_with("#ephemeral")
    }

    fn topic(&mut self, topic: &TopicStats, old: Option<&TopicStats>) {
        let name = &topic.topic_name;
        let counters = [
            (
                "message_count",
                topic.message_count,
                old.map(|old| old.message_count),
            ),
            (
                "message_bytes",
                topic.message_bytes,
                old.map(|old| old.message_bytes),
            ),
        ];
        for (metric, now, old) in counters {
            self.counter(format_args!("topic.{name}.{metric}"), now, old);
        }
        for (metric, now) in [("depth", topic.depth), ("backend_depth", topic.backend_depth)] {
            self.gauge(format_args!("topic.{name}.{metric}"), now);
        }
        self.latency(format_args!("topic.{name}"), &topic.e2e_processing_latency);
    }

    fn channel(&mut self, topic: &str, channel: &ChannelStats, old: Option<&ChannelStats>) {
        let name = &channel.channel_name;
        let counter = |packer: &mut Self, metric: &str, value: fn(&ChannelStats) -> u64| {
            let path = format_args!("topic.{topic}.channel.{name}.{metric}");
            packer.counter(path, value(channel), old.map(value));
        };
        let gauge = |packer: &mut Self, metric: &str, value: u64| {
            packer.gauge(format_args!("topic.{topic}.channel.{name}.{metric}"), value);
        };
        counter(self, "message_count", |channel| channel.message_count);
        gauge(self, "depth", channel.depth);
        gauge(self, "backend_depth", channel.backend_depth);
        gauge(self, "in_flight_count", channel.in_flight_count);
        gauge(self, "deferred_count", channel.deferred_count);
        counter(self, "requeue_count", |channel| channel.requeue_count);
        counter(self, "timeout_count", |channel| channel.timeout_count);
        gauge(self, "clients", channel.client_count);
        let path = format_args!("topic.{topic}.channel.{name}");
        self.latency(path, &channel.e2e_processing_latency);
    }

    fn memory(&mut self, memory: &Memory, old: &Memory) {
        for (metric, value) in [
            ("heap_objects", memory.heap_objects),
            ("heap_idle_bytes", memory.heap_idle_bytes),
            ("heap_in_use_bytes", memory.heap_in_use_bytes),
            ("heap_released_bytes", memory.heap_released_bytes),
            ("gc_pause_usec_100", memory.gc_pause_usec_100),
            ("gc_pause_usec_99", memory.gc_pause_usec_99),
            ("gc_pause_usec_95", memory.gc_pause_usec_95),
            ("next_gc_bytes", memory.next_gc_bytes),
        ] {
            self.gauge(format_args!("mem.{metric}"), value);
        }
        self.counter(
            format_args!("mem.gc_runs"),
            memory.gc_total_runs,
            Some(old.gc_total_runs),
        );
    }

    fn latency(&mut self, path: std::fmt::Arguments<'_>, latency: &LatencySummary) {
        for percentile in latency.percentiles.iter().flatten() {
            let percent = (percentile.quantile * 100.0).round() as u64;
            let path = format_args!("{path}.e2e_processing_latency_{percent}");
            self.gauge(path, percentile.value as u64);
        }
    }

    fn counter(&mut self, path: std::fmt::Arguments<'_>, now: u64, old: Option<u64>) {
        let increase = now.checked_sub(old.unwrap_or(0)).unwrap_or(now);
        self.add(path, increase, 'c');
    }

    fn gauge(&mut self, path: std::fmt::Arguments<'_>, value: u64) {
        self.add(path, value, 'g');
    }

    fn add(&mut self, path: std::fmt::Arguments<'_>, value: u64, kind: char) {
        self.line.clear();
        // Writing to a string cannot fail.
        let _ = writeln!(self.line, "{}{path}:{value}|{kind}", self.config.prefix);
        let packet_size = usize::try_from(self.config.packet_size).unwrap_or(usize::MAX);
        match self.datagrams.last_mut() {
            Some(last) if last.len() + self.line.len() <= packet_size => {
                last.extend_from_slice(self.line.as_bytes());
            }
            _ => self.datagrams.push(self.line.clone().into_bytes()),
        }
    }
}

fn find_channel<'a>(topic: &'a TopicStats, name: &str) -> Option<&'a ChannelStats> {
    let place = topic
        .channels
        .binary_search_by(|channel| channel.channel_name.as_str().cmp(name));
    place.ok().map(|index| &topic.channels[index])
}

#[cfg(test)]
mod tests;
