//! Duty: the topic routes (nsq-http 1.8).

use super::body;
use super::error::HttpError;
use super::query::Query;
use super::routes::Call;
use super::style::Reply;
use crate::desk::Operation;

/// Does `operation` to the topic in the query.
pub(super) async fn change(operation: Operation, call: Call<'_>) -> Result<Reply, HttpError> {
    let query = Query::parse(call.query)?;
    body::discard(call.body).await?;
    let topic = query.topic().map_err(|error| word(operation, error))?;
    call.desk.topic(operation, topic).await?;
    Ok(Reply::empty())
}

/// Some routes do not look at the name: one that is not valid is just a topic that is not there.
fn word(operation: Operation, error: HttpError) -> HttpError {
    match (operation, error) {
        (Operation::Delete | Operation::Pause | Operation::Unpause, HttpError::InvalidTopic) => {
            HttpError::TopicNotFound
        }
        (_, error) => error,
    }
}
