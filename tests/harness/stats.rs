//! Duty: reads the numbers of a node from `/stats`.
//!
//! In: a node. Out: JSON objects of topics, channels and clients, `Null` where there is none.

use std::time::Duration;

use serde_json::Value;

use crate::{Node, eventually};

impl Node {
    /// The whole `/stats?format=json`.
    pub fn stats(&self) -> Value {
        self.http().get("/stats?format=json").json()
    }

    /// The object of one topic.
    pub fn topic(&self, topic: &str) -> Value {
        named(&self.stats()["topics"], "topic_name", topic)
    }

    /// The object of one channel.
    pub fn channel(&self, topic: &str, channel: &str) -> Value {
        named(&self.topic(topic)["channels"], "channel_name", channel)
    }

    /// Waits until the channel's object fulfils `condition`, at most 5 s.
    pub fn await_channel(&self, topic: &str, channel: &str, condition: impl Fn(&Value) -> bool) -> Value {
        await_object("channel", || self.channel(topic, channel), condition)
    }

    /// Waits until the topic's object fulfils `condition`, at most 5 s.
    pub fn await_topic(&self, topic: &str, condition: impl Fn(&Value) -> bool) -> Value {
        await_object("topic", || self.topic(topic), condition)
    }

    /// Waits until neither `/stats` knows the topic.
    pub fn await_no_topic(&self, topic: &str, within: Duration) {
        eventually("the topic is gone", within, || {
            self.topic(topic).is_null().then_some(())
        });
    }
}

fn await_object(kind: &str, probe: impl Fn() -> Value, condition: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let deadline = std::time::Instant::now() + PATIENCE;
    while std::time::Instant::now() < deadline {
        last = probe();
        if condition(&last) {
            return last;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{kind} not as expected within {PATIENCE:?}, last: {last}");
}

fn named(list: &Value, key: &str, name: &str) -> Value {
    let found = list
        .as_array()
        .and_then(|items| items.iter().find(|item| item[key] == name));
    found.cloned().unwrap_or(Value::Null)
}

const PATIENCE: Duration = Duration::from_secs(5);
