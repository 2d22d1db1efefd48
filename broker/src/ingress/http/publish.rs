//! Duty: `/pub` and `/mpub`: every check in stock's order (nsq-http 1.6, 1.7), then one call to the desk.

use std::time::Duration;

use super::body;
use super::error::HttpError;
use super::query::Query;
use super::routes::Call;
use super::style::Reply;
use crate::desk::batch::Batch;
use crate::desk::{DeskError, Operation};

/// Publishes the body as one message.
pub(super) async fn one(call: Call<'_>) -> Result<Reply, HttpError> {
    let limits = call.desk.limits();
    if body::announces_more_than(&call.body, limits.max_msg_size) {
        return Err(HttpError::MsgTooBig);
    }
    let body = body::read(call.body, limits.max_msg_size)
        .await
        .map_err(broken_off)?;
    if body.goes_on {
        return Err(HttpError::MsgTooBig);
    }
    if body.bytes.is_empty() {
        return Err(HttpError::MsgEmpty);
    }
    let query = Query::parse(call.query)?;
    let topic = query.topic()?;
    // A refused delay leaves the topic behind (H-09).
    let created = call.desk.topic(Operation::Create, topic.clone());
    created.await.map_err(unwritten)?;
    let delay_ms = delay_ms(&query, limits.max_delay)?;
    let published = call.desk.publish(topic, Batch::single(body.bytes), delay_ms);
    published.await.map_err(unwritten)?;
    Ok(Reply::text("OK"))
}

/// Publishes the messages in the body, all or none.
pub(super) async fn many(call: Call<'_>) -> Result<Reply, HttpError> {
    let limits = call.desk.limits();
    if body::announces_more_than(&call.body, limits.max_body_size) {
        return Err(HttpError::BodyTooBig);
    }
    let query = Query::parse(call.query)?;
    let topic = query.topic()?;
    let created = call.desk.topic(Operation::Create, topic.clone());
    created.await.map_err(unwritten)?;
    let binary = is_binary(&query);
    let body = body::read(call.body, limits.max_body_size)
        .await
        .map_err(|error| broken_body(binary, &error))?;
    let batch = if binary {
        Batch::counted(body, limits.max_msg_size, limits.max_body_size)?
    } else {
        Batch::lines(body, limits.max_msg_size)?
    };
    call.desk.publish(topic, batch, 0).await.map_err(unwritten)?;
    Ok(Reply::text("OK"))
}

/// Words that stock does not know, none included, mean binary.
fn is_binary(query: &Query<'_>) -> bool {
    let Some(word) = query.get("binary") else {
        return false;
    };
    query.switch("binary").unwrap_or_else(|| {
        tracing::warn!("deprecated value '{word}' used for /mpub binary param");
        true
    })
}

/// The `defer` parameter in milliseconds. Numbers that do not fit are refused, where stock lets some wrap.
fn delay_ms(query: &Query<'_>, longest: Duration) -> Result<u64, HttpError> {
    let Some(text) = query.get("defer") else {
        return Ok(0);
    };
    let delay: i64 = text.parse().map_err(|_| HttpError::InvalidDefer)?;
    let delay = u64::try_from(delay).map_err(|_| HttpError::InvalidDefer)?;
    if Duration::from_millis(delay) <= longest {
        Ok(delay)
    } else {
        Err(HttpError::InvalidDefer)
    }
}

/// Stock has one word for everything that keeps a message from being written.
fn unwritten(error: DeskError) -> HttpError {
    if let DeskError::Failed(reason) = &error {
        tracing::error!(reason, "publish failed");
    }
    HttpError::Exiting
}

fn broken_off(error: axum::Error) -> HttpError {
    HttpError::Internal(format!("body broke off: {error}"))
}

/// A binary body that breaks off is cut short like any other.
fn broken_body(binary: bool, error: &axum::Error) -> HttpError {
    if binary {
        return HttpError::BadMessage;
    }
    HttpError::Internal(format!("body broke off: {error}"))
}
