//! Duty: stock's debug routes (nsq-http 1.12), as far as they make sense without a Go runtime. (Its profiles
//! are refused right in the table of routes: pretending would mislead.)

use axum::http::header;

use super::body;
use super::error::HttpError;
use super::query::Query;
use super::routes::Call;
use super::style::Reply;

/// Checks the rate as stock does and has nothing to set. Answers 200, where stock sets it and fails.
pub(super) async fn block_rate(call: Call<'_>) -> Result<Reply, HttpError> {
    let form = call
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    let body = body::read(call.body, MAX_FORM)
        .await
        .map_err(|_| HttpError::InvalidRequest)?;
    let body = String::from_utf8_lossy(&body.bytes);
    let of_form = if form { rate(&body) } else { None };
    let rate = of_form.or_else(|| rate(call.query)).unwrap_or_default();
    match rate.parse::<i64>() {
        Ok(_) => Ok(Reply::empty()),
        Err(_) => Err(HttpError::InvalidBlockRate(rate)),
    }
}

/// Memory goes back to the system by itself. Answers 200, where stock fails after the deed.
pub(super) fn free_memory() -> Reply {
    Reply::empty()
}

fn rate(text: &str) -> Option<String> {
    let query = Query::parse(text).ok()?;
    query.get("rate").map(str::to_owned)
}

/// Bytes of a form that are looked at.
const MAX_FORM: usize = 4096;
