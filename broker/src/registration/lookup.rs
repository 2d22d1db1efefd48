//! Duty: asks lookupds over HTTP which channels a topic has elsewhere (nsq-tcp 7.6). Comes in: their addresses,
//! a topic's name. Goes out: channels' names. Must not know connections to lookupds or what is created.

use std::collections::BTreeSet;

use serde::Deserialize;
use tokio::task::JoinSet;

use crate::http_client::{BadEndpoint, Endpoint, HttpClient, HttpError, add_to_query};

/// Why one lookupd gave no answer.
#[derive(Debug, thiserror::Error)]
enum LookupError {
    #[error(transparent)]
    Address(#[from] BadEndpoint),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("answer is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    channels: Option<Vec<String>>,
}

/// Asks all `lookupds` (host and HTTP port) at once; the union of the answers, sorted, without ephemeral ones.
pub(super) async fn channels(client: &HttpClient, lookupds: Vec<(String, u16)>, topic: &str) -> Vec<String> {
    let mut query = String::new();
    add_to_query(&mut query, "topic", topic.as_bytes());
    let mut asking = JoinSet::new();
    for (host, port) in lookupds {
        let (client, query) = (client.clone(), query.clone());
        asking.spawn(async move {
            let answer = ask(&client, &host, port, &query).await;
            answer.map_err(|error| (format!("{host}:{port}"), error))
        });
    }
    let mut channels = BTreeSet::new();
    while let Some(answer) = asking.join_next().await {
        match answer {
            Ok(Ok(found)) => channels.extend(found),
            Ok(Err((lookupd, error))) => {
                tracing::warn!(lookupd, topic, %error, "lookupd gave no channels for a new topic");
            }
            Err(error) => tracing::error!(topic, %error, "question to a lookupd broke"),
        }
    }
    channels.retain(|channel| !channel.ends_with(EPHEMERAL));
    channels.into_iter().collect()
}

async fn ask(client: &HttpClient, host: &str, port: u16, query: &str) -> Result<Vec<String>, LookupError> {
    let endpoint = Endpoint::http(host, port, "/channels")?;
    let body = client.get(&endpoint, query, ANSWER_MAX).await?;
    let answer: Answer = serde_json::from_slice(&body)?;
    Ok(answer.channels.unwrap_or_default())
}

const EPHEMERAL: &str = "#ephemeral";
/// Longest answer of a lookupd, in bytes.
const ANSWER_MAX: usize = 4 * 1024 * 1024;
