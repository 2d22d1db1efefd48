//! Duty: the stage of every scenario: one topic with one channel, how to start a consumer on it and publish to
//! it, and how to wait for what `/stats` says about it.

use e2e::{Node, eventually};
use serde_json::Value;

use super::program::{Library, PATIENCE, Program};

pub(super) fn consume(library: Library, node: &Node, options: &str) -> Program {
    let nsqd = nsqd(node);
    let arguments = [nsqd.as_str(), "topic=t", "channel=c"];
    library.start("consume", arguments.into_iter().chain(options.split_whitespace()))
}

/// Publishes `m0` and so on at once.
pub(super) fn publish(node: &Node, count: usize) {
    let bodies: Vec<_> = (0..count).map(|number| format!("m{number}")).collect();
    node.http()
        .post(&format!("/mpub?topic={TOPIC}"), bodies.join("\n"))
        .expect_ok();
}

pub(super) fn nsqd(node: &Node) -> String {
    format!("nsqd={}", node.tcp_address())
}

/// Waits until `count` consumers have asked for messages, or have had some.
pub(super) fn await_ready(node: &Node, count: usize) -> Value {
    await_channel(node, "the consumers are ready", |channel| {
        let clients = channel["clients"].as_array();
        clients.is_some_and(|clients| {
            clients.len() == count && clients.iter().all(|client| client["ready_count"] != 0)
        })
    })
}

/// Waits until `count` messages, and no others, have been finished.
pub(super) fn await_finished(node: &Node, count: u64) -> Value {
    await_channel(node, "everything is finished", |channel| {
        is_finished(channel, count)
    })
}

pub(super) fn is_finished(channel: &Value, count: u64) -> bool {
    let clients = channel["clients"].as_array().map_or(&[][..], Vec::as_slice);
    let finished: Option<u64> = clients.iter().map(|client| client["finish_count"].as_u64()).sum();
    finished == Some(count) && is_empty(channel)
}

pub(super) fn is_empty(channel: &Value) -> bool {
    ["depth", "in_flight_count", "deferred_count"]
        .iter()
        .all(|count| channel[count] == 0)
}

pub(super) fn await_channel(node: &Node, what: &str, mut condition: impl FnMut(&Value) -> bool) -> Value {
    eventually(what, PATIENCE, || {
        Some(node.channel(TOPIC, CHANNEL)).filter(|channel| condition(channel))
    })
}

pub(super) const TOPIC: &str = "t";
pub(super) const CHANNEL: &str = "c";
