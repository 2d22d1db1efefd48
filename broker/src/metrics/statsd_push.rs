//! Duty: the task that sends statsd datagrams each interval (nsq-http 5). Must not know what is in them.

use std::future::Future;
use std::net::Ipv6Addr;
use std::time::Duration;

use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::memory;
use super::snapshot::Snapshot;
use super::statsd::{Reading, pack, pause_between};
use crate::config::StatsdConfig;

/// Sends what `take_snapshot` sees each interval, the first time after one interval. A failed push is logged and
/// its increase is lost, as with stock. Never returns; stop it by dropping it.
pub async fn push<F>(config: &StatsdConfig, take_snapshot: impl Fn() -> F + Send)
where
    F: Future<Output = Snapshot> + Send,
{
    let interval = config.interval.max(SHORTEST_INTERVAL);
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = Reading::default();
    loop {
        ticks.tick().await;
        let now = Reading::new(take_snapshot().await, memory::of_this_process());
        let datagrams = pack(config, &now, &before);
        if let Err(error) = send(&config.address, interval, &datagrams).await {
            tracing::error!(address = config.address, %error, "statsd push failed");
        }
        before = now;
    }
}

async fn send(address: &str, interval: Duration, datagrams: &[Vec<u8>]) -> std::io::Result<()> {
    let target = lookup_host(address)
        .await?
        .next()
        .ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    let socket = if target.is_ipv4() {
        UdpSocket::bind("0.0.0.0:0").await?
    } else {
        UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await?
    };
    socket.connect(target).await?;
    let pause = pause_between(interval, datagrams.len());
    for datagram in datagrams {
        socket.send(datagram).await?;
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }
    Ok(())
}

/// Keeps a mistyped interval from turning into a busy loop.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::snapshot::TopicStats;

    #[tokio::test]
    async fn an_interval_below_a_second_pushes_at_once() {
        let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let config = StatsdConfig {
            address: receiver.local_addr().unwrap().to_string(),
            prefix: "nsq.".to_owned(),
            interval: Duration::from_millis(20),
            mem_stats: false,
            packet_size: 59,
            exclude_ephemeral: false,
        };
        let snapshot = || async {
            Snapshot {
                topics: vec![TopicStats {
                    topic_name: "t".to_owned(),
                    message_count: 3,
                    ..TopicStats::default()
                }],
                producers: Vec::new(),
            }
        };
        let pushing = push(&config, snapshot);
        let receiving = async {
            let mut received = Vec::new();
            let mut buffer = [0; 1500];
            while received.len() < 4 {
                let length = receiver.recv(&mut buffer).await.unwrap();
                received.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
            }
            received
        };
        let received = tokio::select! {
            received = receiving => received,
            () = pushing => unreachable!("the task never returns"),
        };
        assert_eq!(
            received[..2],
            [
                "nsq.topic.t.message_count:3|c\n",
                "nsq.topic.t.message_bytes:0|c\nnsq.topic.t.depth:0|g\n"
            ]
        );
        assert_eq!(received[3], "nsq.topic.t.message_count:0|c\n");
    }
}
