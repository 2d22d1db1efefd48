//! Duty: `/config/:opt` (nsq-http 1.11). Which options there are is the desk's business.

use super::body;
use super::error::HttpError;
use super::routes::Call;
use super::style::Reply;
use crate::config::Shown;
use crate::desk::Desk;

/// The value of an option.
pub(super) fn read(desk: &dyn Desk, key: &str) -> Result<Reply, HttpError> {
    shown(desk.option(key).ok_or(HttpError::InvalidOption)?)
}

/// Changes an option to the value in the body; answers the new one.
pub(super) async fn write(call: Call<'_>) -> Result<Reply, HttpError> {
    let value = body::read(call.body, call.desk.limits().max_msg_size)
        .await
        .map_err(|error| HttpError::Internal(format!("body broke off: {error}")))?;
    if value.bytes.is_empty() || value.goes_on {
        return Err(HttpError::ValueLength);
    }
    shown(call.desk.set_option(call.segment, &value.bytes)?)
}

fn shown(value: Shown) -> Result<Reply, HttpError> {
    match value {
        Shown::Text(text) => Ok(Reply::text(text)),
        Shown::Json(value) => Reply::json(&value),
    }
}
