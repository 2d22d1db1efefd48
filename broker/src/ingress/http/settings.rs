//! Duty: `/topic/settings` and `/channel/settings` (nsqx-interface 3).

use super::body;
use super::error::HttpError;
use super::query::Query;
use super::routes::Call;
use super::style::Reply;

/// The settings of a topic.
pub(super) async fn read_topic(call: Call<'_>) -> Result<Reply, HttpError> {
    let topic = Query::parse(call.query)?.topic()?;
    Reply::json(&call.desk.topic_settings(topic).await?)
}

/// Merges the body into the settings of a topic; answers the new ones.
pub(super) async fn write_topic(call: Call<'_>) -> Result<Reply, HttpError> {
    let topic = Query::parse(call.query)?.topic()?;
    let patch = body::read_json(call.body).await?;
    Reply::json(&call.desk.set_topic(topic, patch).await?)
}

/// The settings of a channel.
pub(super) async fn read_channel(call: Call<'_>) -> Result<Reply, HttpError> {
    let (topic, channel) = Query::parse(call.query)?.channel()?;
    Reply::json(&call.desk.channel_settings(topic, channel).await?)
}

/// Merges the body into the settings of a channel; answers the new ones.
pub(super) async fn write_channel(call: Call<'_>) -> Result<Reply, HttpError> {
    let (topic, channel) = Query::parse(call.query)?.channel()?;
    let patch = body::read_json(call.body).await?;
    Reply::json(&call.desk.set_channel(topic, channel, patch).await?)
}
