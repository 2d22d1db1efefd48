//! Duty: a setting as `GET /config/:opt` shows it. Source: nsq-http-and-tools 1.11.

use serde_json::{Map, Value};

use super::change::Changeable;
use super::metrics::statsd_prefix;
use super::node::NodeConfig;
use super::{Config, Options};

/// A setting, as the body of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// Raw text; empty is an empty body.
    Text(String),
    /// JSON: durations in nanoseconds, levels and versions as numbers.
    Json(Value),
}

/// The setting under its config-file key; `None` when there is none.
pub fn render(config: &Config, changeable: &Changeable, key: &str) -> Option<Shown> {
    let value = changeable
        .value(key)
        .or_else(|| config.settings.0.get(key).cloned())?;
    Some(match value {
        Value::String(text) => Shown::Text(text),
        Value::Null => Shown::Text(String::new()),
        value => Shown::Json(value),
    })
}

/// All settings by key.
#[derive(Clone, Debug)]
pub(super) struct Settings(Map<String, Value>);

impl Settings {
    pub(super) fn of(options: &Options) -> Self {
        match serde_json::to_value(options) {
            Ok(Value::Object(settings)) => Self(settings),
            // A struct of numbers, texts and lists always becomes an object.
            _ => Self(Map::new()),
        }
    }

    /// Takes over what is known only when the ports are bound.
    pub(super) fn announce(&mut self, node: &NodeConfig) {
        let prefix = self
            .0
            .get(STATSD_PREFIX)
            .and_then(Value::as_str)
            .map(|pattern| statsd_prefix(pattern, &node.broadcast_address, node.broadcast_http_port));
        let known = [
            ("broadcast_tcp_port", node.broadcast_tcp_port.into()),
            ("broadcast_http_port", node.broadcast_http_port.into()),
            (STATSD_PREFIX, prefix.unwrap_or_default().into()),
        ];
        self.0.extend(known.map(|(key, value)| (key.to_owned(), value)));
    }
}

const STATSD_PREFIX: &str = "statsd_prefix";
