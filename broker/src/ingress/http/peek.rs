//! Duty: `/message/peek` (nsqx-interface 3): looks at messages without changing anything.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::error::HttpError;
use super::query::Query;
use super::routes::Call;
use super::style::Reply;
use crate::desk::{Peek, PeekState, PeekedMessage};

/// Messages of a channel in one state.
pub(super) async fn peek(call: Call<'_>) -> Result<Reply, HttpError> {
    let query = Query::parse(call.query)?;
    let (topic, channel) = query.channel()?;
    let peek = Peek {
        state: state(&query)?,
        limit: limit(&query)?,
        max_bytes: call.desk.limits().max_body_size,
    };
    let messages = call.desk.peek(topic, channel, peek).await?;
    Reply::json(&Answer {
        messages: messages.iter().map(Message::new).collect(),
    })
}

fn state(query: &Query<'_>) -> Result<PeekState, HttpError> {
    match query.get("state") {
        None | Some("ready") => Ok(PeekState::Ready),
        Some("in_flight") => Ok(PeekState::InFlight),
        Some("deferred") => Ok(PeekState::Deferred),
        Some(_) => Err(HttpError::InvalidArgument(
            "state is ready, in_flight or deferred",
        )),
    }
}

fn limit(query: &Query<'_>) -> Result<usize, HttpError> {
    let Some(text) = query.get("limit") else {
        return Ok(DEFAULT_LIMIT);
    };
    let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
    limit.ok_or(HttpError::InvalidArgument("limit is a number from 1 to 100"))
}

#[derive(Serialize)]
struct Answer<'a> {
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    id: String,
    sequence: u64,
    timestamp: i64,
    attempts: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<i64>,
    /// When the body is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    /// When it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

impl<'a> Message<'a> {
    fn new(message: &'a PeekedMessage) -> Self {
        let body = std::str::from_utf8(&message.body).ok();
        Self {
            id: String::from_utf8_lossy(&message.id).into_owned(),
            sequence: message.sequence,
            timestamp: message.timestamp,
            attempts: message.attempts,
            due: message.due,
            body,
            body_base64: body.is_none().then(|| STANDARD.encode(&message.body)),
        }
    }
}

const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 100;
