//! Duty: the channel routes (nsq-http 1.9).

use super::body;
use super::error::HttpError;
use super::query::Query;
use super::routes::Call;
use super::style::Reply;
use crate::desk::Operation;

/// Does `operation` to the channel in the query.
pub(super) async fn change(operation: Operation, call: Call<'_>) -> Result<Reply, HttpError> {
    let query = Query::parse(call.query)?;
    body::discard(call.body).await?;
    let (topic, channel) = query.channel()?;
    call.desk.channel(operation, topic, channel).await?;
    Ok(Reply::empty())
}
