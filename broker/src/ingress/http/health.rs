//! Duty: `/ping` for stock's checks, `/livez` and `/readyz` for orchestrators.

use axum::http::StatusCode;
use serde::Serialize;

use super::error::HttpError;
use super::style::Reply;
use crate::desk::{Desk, Readiness};

/// `OK`, or 500 and why not (nsq-http 1.4).
pub(super) fn ping(desk: &dyn Desk) -> Result<Reply, HttpError> {
    desk.health().map_err(HttpError::Unhealthy)?;
    Ok(Reply::text("OK"))
}

/// The process answers, and that is all this says.
pub(super) fn live() -> Result<Reply, HttpError> {
    Reply::json(&State {
        status: "ok",
        reasons: &[],
    })
}

/// 503 while this broker should get no traffic (nsqx-interface 3).
pub(super) fn ready(desk: &dyn Desk) -> Result<Reply, HttpError> {
    let Readiness { ready, reasons } = desk.readiness();
    let (status, word) = if ready {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
    };
    let state = State {
        status: word,
        reasons: &reasons,
    };
    Ok(Reply::json(&state)?.status(status))
}

/// What [`ping`] says as one line of `/stats`.
pub(super) fn line(desk: &dyn Desk) -> String {
    match desk.health() {
        Ok(()) => "OK".to_owned(),
        Err(reason) => HttpError::Unhealthy(reason).to_string(),
    }
}

#[derive(Serialize)]
struct State<'a> {
    status: &'static str,
    reasons: &'a [String],
}
