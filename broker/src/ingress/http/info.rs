//! Duty: `/info` (nsq-http 1.5).

use super::error::HttpError;
use super::style::Reply;
use crate::desk::Desk;

/// Who this broker is.
pub(super) fn info(desk: &dyn Desk) -> Result<Reply, HttpError> {
    Reply::json(&desk.info())
}
