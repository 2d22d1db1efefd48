//! Duty: `/metrics` (nsqx-interface 3).

use super::error::HttpError;
use super::style::Reply;
use crate::desk::Desk;
use crate::metrics::snapshot::Filter;
use crate::metrics::{memory, prometheus};

/// Prometheus text over all queues.
pub(super) async fn metrics(desk: &dyn Desk) -> Result<Reply, HttpError> {
    let snapshot = desk.snapshot(&Filter::default()).await;
    let page = prometheus::page(snapshot, memory::of_this_process(), desk.health().is_ok());
    Ok(Reply::text(page).typed(prometheus::CONTENT_TYPE))
}
