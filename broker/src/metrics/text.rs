//! Duty: the text form of `/stats` (nsq-http 1.10). A view comes in, the page goes out. Must not know HTTP or clocks.

use std::fmt::{self, Write};
use std::time::Duration;

use nsqx_flags::GoDuration;

use super::latency::LatencySummary;
use super::memory::Memory;
use super::snapshot::{ChannelStats, ClientStats, TopicStats, View};

/// What the page says besides the view.
#[derive(Debug)]
pub struct Head<'a> {
    /// The NSQ version, without prefix.
    pub version: &'a str,
    /// The compiler.
    pub built_with: &'a str,
    /// `OK` or `NOK - ` and why.
    pub health: &'a str,
    /// Unix seconds.
    pub start_time: i64,
    /// Time since start.
    pub uptime: Duration,
    /// Unix seconds.
    pub now: i64,
    /// Left out when nobody asked.
    pub memory: Option<Memory>,
}

/// The page.
pub fn page(head: &Head<'_>, view: &View) -> String {
    let mut out = String::with_capacity(4096);
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, head, view);
    out
}

fn write_page(out: &mut String, head: &Head<'_>, view: &View) -> fmt::Result {
    let started = jiff::Timestamp::from_second(head.start_time).unwrap_or_default();
    writeln!(out, "nsqd v{} (built w/{})", head.version, head.built_with)?;
    writeln!(out, "start_time {started}")?;
    writeln!(out, "uptime {}", GoDuration::from(head.uptime))?;
    writeln!(out, "\nHealth: {}", head.health)?;
    if let Some(memory) = &head.memory {
        write_memory(out, memory)?;
    }
    match view.topics.as_deref() {
        None | Some([]) => out.push_str("\nTopics: None\n"),
        Some(topics) => {
            out.push_str("\nTopics:");
            for topic in topics {
                write_topic(out, topic, head.now)?;
            }
        }
    }
    match view.producers.as_deref() {
        None | Some([]) => out.push_str("\nProducers: None\n"),
        Some(producers) => {
            out.push_str("\nProducers:\n");
            for producer in producers {
                write_client(out, "   ", producer, head.now)?;
            }
        }
    }
    Ok(())
}

fn write_memory(out: &mut String, memory: &Memory) -> fmt::Result {
    out.push_str("\nMemory:\n");
    for (label, value) in [
        ("heap_objects", memory.heap_objects),
        ("heap_idle_bytes", memory.heap_idle_bytes),
        ("heap_in_use_bytes", memory.heap_in_use_bytes),
        ("heap_released_bytes", memory.heap_released_bytes),
        ("gc_pause_usec_100", memory.gc_pause_usec_100),
        ("gc_pause_usec_99", memory.gc_pause_usec_99),
        ("gc_pause_usec_95", memory.gc_pause_usec_95),
        ("next_gc_bytes", memory.next_gc_bytes),
        ("gc_total_runs", memory.gc_total_runs),
    ] {
        writeln!(out, "   {label:<25}\t{value}")?;
    }
    Ok(())
}

fn write_topic(out: &mut String, topic: &TopicStats, now: i64) -> fmt::Result {
    writeln!(
        out,
        "\n{}[{:<15}] depth: {:<5} be-depth: {:<5} msgs: {:<8} e2e%: {}",
        if topic.paused { "*P " } else { "   " },
        topic.topic_name,
        topic.depth,
        topic.backend_depth,
        topic.message_count,
        Percentiles(&topic.e2e_processing_latency),
    )?;
    for channel in &topic.channels {
        write_channel(out, channel, now)?;
    }
    Ok(())
}

fn write_channel(out: &mut String, channel: &ChannelStats, now: i64) -> fmt::Result {
    writeln!(
        out,
        "   {}[{:<25}] depth: {:<5} be-depth: {:<5} inflt: {:<4} def: {:<4} re-q: {:<5} timeout: {:<5} \
         msgs: {:<8} e2e%: {}",
        if channel.paused { "*P " } else { "   " },
        channel.channel_name,
        channel.depth,
        channel.backend_depth,
        channel.in_flight_count,
        channel.deferred_count,
        channel.requeue_count,
        channel.timeout_count,
        channel.message_count,
        Percentiles(&channel.e2e_processing_latency),
    )?;
    for client in channel.clients.iter().flatten() {
        write_client(out, "        ", client, now)?;
    }
    Ok(())
}

fn write_client(out: &mut String, indent: &str, client: &ClientStats, now: i64) -> fmt::Result {
    let port = client
        .remote_address
        .rsplit_once(':')
        .map_or("", |(_, port)| port);
    let gap = if client.user_agent.is_empty() { "" } else { " " };
    let id = format!("{}:{port}{gap}{}", client.hostname, client.user_agent);
    let connected = Duration::from_secs(now.saturating_sub(client.connect_ts).max(0) as u64);
    let connected = GoDuration::from(connected);
    write!(out, "{indent}[{} {id:<21}] ", client.version)?;
    if client.pub_counts.is_empty() {
        return writeln!(
            out,
            "state: {} inflt: {:<4} rdy: {:<4} fin: {:<8} re-q: {:<8} msgs: {:<8} connected: {connected}",
            client.state,
            client.in_flight_count,
            client.ready_count,
            client.finish_count,
            client.requeue_count,
            client.message_count,
        );
    }
    let published: u64 = client.pub_counts.iter().map(|count| count.count).sum();
    let topics: Vec<_> = client
        .pub_counts
        .iter()
        .map(|count| format!("{}={}", count.topic, count.count))
        .collect();
    writeln!(
        out,
        "msgs: {published:<8} topics: {} connected: {connected}",
        topics.join(",")
    )
}

struct Percentiles<'a>(&'a LatencySummary);

impl fmt::Display for Percentiles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, percentile) in self.0.percentiles.iter().flatten().enumerate() {
            let nanos = percentile.value;
            let (unit, name) = UNITS
                .iter()
                .find(|(unit, _)| nanos > *unit)
                .unwrap_or(&(1.0, "ns"));
            let gap = if index == 0 { "" } else { ", " };
            write!(f, "{gap}{:.1}{name}", nanos / unit)?;
        }
        Ok(())
    }
}

const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::latency::Percentile;
    use crate::metrics::snapshot::PubCount;

    fn summary(values: &[f64]) -> LatencySummary {
        LatencySummary {
            count: 1,
            percentiles: Some(
                values
                    .iter()
                    .map(|value| Percentile {
                        quantile: 0.5,
                        value: *value,
                    })
                    .collect(),
            ),
        }
    }

    fn client(hostname: &str, address: &str, user_agent: &str) -> ClientStats {
        ClientStats {
            hostname: hostname.to_owned(),
            version: "V2",
            remote_address: address.to_owned(),
            user_agent: user_agent.to_owned(),
            connect_ts: 98,
            ..ClientStats::default()
        }
    }

    #[test]
    fn the_page_is_the_one_stock_writes() {
        let consumer = ClientStats {
            state: 3,
            ready_count: 3,
            finish_count: 2,
            message_count: 2,
            ..client("vm", "127.0.0.1:32914", "nsq_tail/1.3.0 go-nsq/1.1.0")
        };
        let producer = ClientStats {
            pub_counts: vec![PubCount {
                topic: "tt".to_owned(),
                count: 1,
            }],
            ..client("127.0.0.1", "127.0.0.1:32920", "")
        };
        let view = View {
            topics: Some(vec![
                TopicStats {
                    topic_name: "t1".to_owned(),
                    message_count: 1,
                    paused: true,
                    channels: vec![
                        ChannelStats {
                            channel_name: "c_29824".to_owned(),
                            depth: 1,
                            message_count: 1,
                            e2e_processing_latency: summary(&[1_500_000_000.0, 309_600_000.0, 1000.0, 0.0]),
                            ..ChannelStats::default()
                        },
                        ChannelStats {
                            channel_name: "ch".to_owned(),
                            paused: true,
                            clients: Some(vec![consumer]),
                            ..ChannelStats::default()
                        },
                    ],
                    ..TopicStats::default()
                },
                TopicStats {
                    topic_name: "t2".to_owned(),
                    ..TopicStats::default()
                },
            ]),
            producers: Some(vec![producer]),
        };
        let head = Head {
            version: "1.3.0",
            built_with: "go1.19.8",
            health: "OK",
            start_time: 1_796_053_195,
            uptime: Duration::from_nanos(49_544_774_675),
            now: 100,
            memory: Some(Memory {
                heap_objects: 2620,
                ..Memory::default()
            }),
        };
        let page = page(&head, &view);
        let expected = "\
nsqd v1.3.0 (built w/go1.19.8)
start_time 2026-11-30T15:39:55Z
uptime 49.544774675s

Health: OK

Memory:
   heap_objects             \t2620
   heap_idle_bytes          \t0
   heap_in_use_bytes        \t0
   heap_released_bytes      \t0
   gc_pause_usec_100        \t0
   gc_pause_usec_99         \t0
   gc_pause_usec_95         \t0
   next_gc_bytes            \t0
   gc_total_runs            \t0

Topics:
*P [t1             ] depth: 0     be-depth: 0     msgs: 1        e2e%: \n\
\x20     [c_29824                  ] depth: 1     be-depth: 0     inflt: 0    def: 0    re-q: 0     \
timeout: 0     msgs: 1        e2e%: 1.5s, 309.6ms, 1000.0ns, 0.0ns
   *P [ch                       ] depth: 0     be-depth: 0     inflt: 0    def: 0    re-q: 0     \
timeout: 0     msgs: 0        e2e%: \n\
\x20       [V2 vm:32914 nsq_tail/1.3.0 go-nsq/1.1.0] state: 3 inflt: 0    rdy: 3    fin: 2        \
re-q: 0        msgs: 2        connected: 2s

   [t2             ] depth: 0     be-depth: 0     msgs: 0        e2e%: \n\
\nProducers:
   [V2 127.0.0.1:32920      ] msgs: 1        topics: tt=1 connected: 2s
";
        assert_eq!(page, expected);
    }

    #[test]
    fn without_topics_producers_and_memory_the_page_says_none() {
        let head = Head {
            version: "1.3.0",
            built_with: "x",
            health: "NOK - disk",
            start_time: 0,
            uptime: Duration::from_mins(1),
            now: 0,
            memory: None,
        };
        let view = View {
            topics: None,
            producers: None,
        };
        let expected = "nsqd v1.3.0 (built w/x)\nstart_time 1970-01-01T00:00:00Z\nuptime 1m0s\n\n\
                        Health: NOK - disk\n\nTopics: None\n\nProducers: None\n";
        assert_eq!(page(&head, &view), expected);
    }
}
