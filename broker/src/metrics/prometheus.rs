//! Duty: the text form of `/metrics` (nsqx-interface 3, Prometheus names). A snapshot comes in, the page goes out.
//! Must not know HTTP.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::memory::Memory;
use super::snapshot::{ChannelStats, Snapshot, TopicStats, sort};

/// The `Content-Type` of [`page`].
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// The page. `healthy` is what `/ping` would say.
pub fn page(snapshot: Snapshot, memory: Memory, healthy: bool) -> String {
    let mut topics = snapshot.topics;
    sort(&mut topics);
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Broker {
        topics,
        memory,
        healthy,
    }));
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = prometheus_text::encode(&mut out, &registry);
    out
}

#[derive(Debug)]
struct Broker {
    topics: Vec<TopicStats>,
    memory: Memory,
    healthy: bool,
}

impl Collector for Broker {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let healthy = u64::from(self.healthy);
        for (name, help, value) in [
            ("nsq_healthy", "1 while /ping answers OK", healthy),
            (
                "nsq_memory_bytes",
                "Resident memory that is not backed by files",
                self.memory.heap_in_use_bytes,
            ),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        for family in TOPIC_FAMILIES {
            let mut metrics =
                encoder.encode_descriptor(family.name, family.help, None, family.kind.into())?;
            for topic in &self.topics {
                let labels = [("topic", topic.topic_name.as_str())];
                family.kind.encode((family.value)(topic), &mut metrics, &labels)?;
            }
        }
        for family in CHANNEL_FAMILIES {
            let mut metrics =
                encoder.encode_descriptor(family.name, family.help, None, family.kind.into())?;
            for topic in &self.topics {
                for channel in &topic.channels {
                    let labels = [
                        ("topic", topic.topic_name.as_str()),
                        ("channel", channel.channel_name.as_str()),
                    ];
                    family
                        .kind
                        .encode((family.value)(channel), &mut metrics, &labels)?;
                }
            }
        }
        Ok(())
    }
}

struct Family<T> {
    /// Counters get `_total` from the encoder.
    name: &'static str,
    help: &'static str,
    kind: Kind,
    value: fn(&T) -> u64,
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

impl Kind {
    fn encode<const N: usize>(
        self,
        value: u64,
        metrics: &mut prometheus_client::encoding::MetricEncoder<'_>,
        labels: &[(&str, &str); N],
    ) -> fmt::Result {
        let metric = metrics.encode_family(labels)?;
        match self {
            Self::Counter => ConstCounter::new(value).encode(metric),
            Self::Gauge => ConstGauge::new(value).encode(metric),
        }
    }
}

impl From<Kind> for MetricType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Counter => Self::Counter,
            Kind::Gauge => Self::Gauge,
        }
    }
}

const fn counter<T>(name: &'static str, help: &'static str, value: fn(&T) -> u64) -> Family<T> {
    Family {
        name,
        help,
        kind: Kind::Counter,
        value,
    }
}

const fn gauge<T>(name: &'static str, help: &'static str, value: fn(&T) -> u64) -> Family<T> {
    Family {
        name,
        help,
        kind: Kind::Gauge,
        value,
    }
}

const TOPIC_FAMILIES: [Family<TopicStats>; 5] = [
    counter("nsq_topic_messages", "Messages published", |topic| {
        topic.message_count
    }),
    counter("nsq_topic_bytes", "Body bytes published", |topic| {
        topic.message_bytes
    }),
    gauge(
        "nsq_topic_depth",
        "Messages that no channel has got yet",
        |topic| topic.depth,
    ),
    gauge("nsq_topic_disk_bytes", "Bytes of the files of a topic", |topic| {
        topic.disk_bytes
    }),
    gauge(
        "nsq_topic_memory_bytes",
        "Bytes of records held in memory",
        |topic| topic.memory_bytes,
    ),
];

const CHANNEL_FAMILIES: [Family<ChannelStats>; 10] = [
    counter("nsq_channel_messages", "Messages put into a channel", |channel| {
        channel.message_count
    }),
    gauge(
        "nsq_channel_depth",
        "Messages that wait for delivery",
        |channel| channel.depth,
    ),
    gauge(
        "nsq_channel_in_flight",
        "Messages delivered and not settled",
        |channel| channel.in_flight_count,
    ),
    gauge(
        "nsq_channel_deferred",
        "Messages held back until their time",
        |channel| channel.deferred_count,
    ),
    gauge("nsq_channel_clients", "Consumers", |channel| channel.client_count),
    counter("nsq_channel_requeued", "REQ commands", |channel| {
        channel.requeue_count
    }),
    counter("nsq_channel_timed_out", "Deliveries that timed out", |channel| {
        channel.timeout_count
    }),
    counter("nsq_channel_delivered", "Deliveries", |channel| {
        channel.delivered_count
    }),
    counter("nsq_channel_finished", "FIN commands", |channel| {
        channel.finished_count
    }),
    counter(
        "nsq_channel_dropped",
        "Messages an ephemeral channel had no room for",
        |channel| channel.dropped_count,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_has_its_labelled_values() {
        let snapshot = Snapshot {
            topics: vec![TopicStats {
                topic_name: "t".to_owned(),
                message_count: 5,
                channels: vec![ChannelStats {
                    channel_name: "c#ephemeral".to_owned(),
                    depth: 2,
                    finished_count: 3,
                    ..ChannelStats::default()
                }],
                ..TopicStats::default()
            }],
            producers: Vec::new(),
        };
        let page = page(snapshot, Memory::default(), true);
        for line in [
            "nsq_healthy 1\n",
            "# TYPE nsq_topic_messages_total counter\nnsq_topic_messages_total{topic=\"t\"} 5\n",
            "nsq_channel_depth{topic=\"t\",channel=\"c#ephemeral\"} 2\n",
            "nsq_channel_finished_total{topic=\"t\",channel=\"c#ephemeral\"} 3\n",
        ] {
            assert!(page.contains(line), "{line} is missing in\n{page}");
        }
    }
}
