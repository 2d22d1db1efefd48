//! Duty: `/stats` as text or JSON (nsq-http 1.10).

use std::time::Duration;

use super::error::HttpError;
use super::query::Query;
use super::routes::Call;
use super::style::Reply;
use super::{body, health};
use crate::metrics::snapshot::{Filter, Stats};
use crate::metrics::{memory, text};

/// The state of the broker, of one topic, or of the channels of one name.
pub(super) async fn stats(call: Call<'_>) -> Result<Reply, HttpError> {
    let query = Query::parse(call.query)?;
    body::discard(call.body).await?;
    let filter = Filter {
        topic: query.get("topic").unwrap_or_default().to_owned(),
        channel: query.get("channel").unwrap_or_default().to_owned(),
        clients: query.switch("include_clients").unwrap_or(true),
    };
    let memory = query
        .switch("include_mem")
        .unwrap_or(true)
        .then(memory::of_this_process);
    let view = filter.view(call.desk.snapshot(&filter).await);
    let health = health::line(call.desk);
    let info = call.desk.info();
    if query.get("format") == Some("json") {
        return Reply::json(&Stats {
            version: &info.version,
            health: &health,
            start_time: info.start_time,
            topics: &view.topics,
            memory,
            producers: &view.producers,
        });
    }
    let head = text::Head {
        version: &info.version,
        built_with: &info.built_with,
        health: &health,
        start_time: info.start_time,
        // The clock starts with the process.
        uptime: Duration::from_nanos(call.clock.now().as_nanos()),
        now: call.clock.wall() / 1_000_000_000,
        memory,
    };
    Ok(Reply::text(text::page(&head, &view)))
}
