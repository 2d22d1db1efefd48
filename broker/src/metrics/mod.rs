//! Duty: what the broker tells about itself, in every form an operator may ask for. A [`snapshot::Snapshot`] comes
//! in, JSON, text, Prometheus text and statsd datagrams go out. Must not know who took the snapshot.
//!
//! | file | duty |
//! |---|---|
//! | `snapshot` | the plain data: topics, channels, clients, and what a question about them leaves out |
//! | `memory` | the memory of this process |
//! | `latency` | percentiles of the time from publish to finish over a sliding window |
//! | `text` | the text form of `/stats` |
//! | `prometheus` | the text form of `/metrics` |
//! | `statsd` | snapshot to datagrams |
//! | `statsd_push` | the task that sends the datagrams |

pub mod latency;
pub mod memory;
pub mod prometheus;
pub mod snapshot;
pub mod statsd;
pub mod statsd_push;
pub mod text;
