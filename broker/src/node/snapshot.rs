//! Duty: the broker's state at this moment as plain data. Must not know HTTP or statsd.

use super::Node;
use crate::channel::shared::SharedChannel;
use crate::desk::settings::ChannelSettings;
use crate::metrics::latency::{LatencyWindow, summarize};
use crate::metrics::snapshot::{ChannelStats, Filter, Snapshot, TopicStats};
use crate::topic::Topic;

impl Node {
    /// Topics and producers that `filter` asks for.
    pub(super) fn take_snapshot(&self, filter: &Filter) -> Snapshot {
        let topics = self.directory.live_topics();
        let wanted = topics
            .iter()
            .filter(|topic| filter.wants_topic(topic.name().as_str()));
        Snapshot {
            topics: wanted.map(|topic| self.topic_stats(topic, filter)).collect(),
            producers: if filter.clients {
                self.doors.clients.producers()
            } else {
                Vec::new()
            },
        }
    }

    fn topic_stats(&self, topic: &Topic, filter: &Filter) -> TopicStats {
        let counts = topic.counts();
        let footprint = topic.log().footprint();
        let channels = topic.channels();
        let quantiles = &self.config.metrics.latency_percentiles;
        let mut windows: Vec<LatencyWindow> =
            channels.iter().filter_map(|channel| channel.latency()).collect();
        TopicStats {
            topic_name: topic.name().to_string(),
            depth: counts.depth,
            backend_depth: self.backend_depth(topic.number().is_some(), counts.depth),
            message_count: counts.messages,
            message_bytes: counts.bytes,
            paused: topic.is_paused(),
            e2e_processing_latency: summarize(&mut windows, quantiles, self.clock.now()),
            disk_bytes: footprint.disk,
            memory_bytes: footprint.memory,
            oldest_sequence: topic.log().oldest().get(),
            newest_sequence: topic.log().end().get().saturating_sub(1),
            settings: Some(topic.settings()),
            channels: channels
                .iter()
                .filter(|channel| filter.wants_channel(channel.name().as_str()))
                .map(|channel| self.channel_stats(topic, channel, filter))
                .collect(),
        }
    }

    fn channel_stats(&self, topic: &Topic, channel: &SharedChannel, filter: &Filter) -> ChannelStats {
        let counts = channel.counts();
        let consumers = channel.consumers();
        let durable = topic.number().is_some() && channel.number().is_some();
        let mut windows: Vec<LatencyWindow> = channel.latency().into_iter().collect();
        ChannelStats {
            channel_name: channel.name().to_string(),
            depth: counts.depth,
            backend_depth: self.backend_depth(durable, counts.depth),
            in_flight_count: counts.in_flight,
            deferred_count: counts.deferred,
            message_count: counts.message_count,
            requeue_count: counts.requeue_count,
            timeout_count: counts.timeout_count,
            client_count: consumers.len() as u64,
            clients: filter.clients.then(|| {
                let rows = consumers.iter().filter_map(|id| self.doors.clients.get(*id));
                rows.map(|client| client.row()).collect()
            }),
            paused: channel.is_paused(),
            e2e_processing_latency: summarize(
                &mut windows,
                &self.config.metrics.latency_percentiles,
                self.clock.now(),
            ),
            delivered_count: counts.delivered,
            finished_count: counts.finish_count,
            dropped_count: counts.dropped,
            depth_exact: true,
            settings: Some(ChannelSettings {
                paused: channel.is_paused(),
            }),
        }
    }

    /// What stock would have on disk (architecture 9).
    fn backend_depth(&self, durable: bool, depth: u64) -> u64 {
        if durable {
            depth.saturating_sub(self.config.topic.mem_queue_size)
        } else {
            0
        }
    }
}
