//! Duty: request bodies with bounds. A stream comes in, at most a limit of bytes goes out. Must not know routes.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use super::error::HttpError;
use crate::desk::batch::ReadBody;

/// Reads up to `limit` bytes. The rest is left unread.
///
/// # Errors
/// When the connection breaks or the chunks are malformed.
pub(super) async fn read(mut body: Body, limit: usize) -> Result<ReadBody, axum::Error> {
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(mut data) = next_data(&mut body).await? {
        let room = limit - first.len().max(joined.len());
        let goes_on = data.len() > room;
        data.truncate(room);
        // A body of one piece, by far the most frequent case, is not copied.
        if first.is_empty() && joined.is_empty() {
            first = data;
        } else {
            joined.extend_from_slice(&std::mem::take(&mut first));
            joined.extend_from_slice(&data);
        }
        if goes_on {
            return Ok(ReadBody {
                bytes: joined_or(first, joined),
                goes_on,
            });
        }
    }
    Ok(ReadBody {
        bytes: joined_or(first, joined),
        goes_on: false,
    })
}

/// Reads the JSON object in the body of one of our own routes.
pub(super) async fn read_json<T: serde::de::DeserializeOwned>(body: Body) -> Result<T, HttpError> {
    let body = read(body, MAX_JSON)
        .await
        .map_err(|_| HttpError::InvalidRequest)?;
    if body.goes_on {
        return Err(HttpError::BodyTooBig);
    }
    // Read from an array, a struct would take its fields by position.
    if body.bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(HttpError::InvalidBody("expected a JSON object".to_owned()));
    }
    serde_json::from_slice(&body.bytes).map_err(|error| HttpError::InvalidBody(error.to_string()))
}

/// Reads the whole body and forgets it, as the management routes do.
pub(super) async fn discard(mut body: Body) -> Result<(), HttpError> {
    loop {
        match next_data(&mut body).await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(_) => return Err(HttpError::InvalidRequest),
        }
    }
}

/// True when the request announces more than `limit` bytes.
pub(super) fn announces_more_than(body: &Body, limit: usize) -> bool {
    let announced = hyper::body::Body::size_hint(body).exact();
    announced.is_some_and(|length| length > limit as u64)
}

async fn next_data(body: &mut Body) -> Result<Option<Bytes>, axum::Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn joined_or(first: Bytes, joined: BytesMut) -> Bytes {
    if joined.is_empty() { first } else { joined.freeze() }
}

/// Largest JSON body of our own routes in bytes.
const MAX_JSON: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(pieces: &'static [&'static str]) -> Body {
        let pieces = pieces
            .iter()
            .map(|piece| Ok::<_, std::io::Error>(Bytes::from(*piece)));
        Body::from_stream(futures_util::stream::iter(pieces))
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_the_limit_and_not_further() {
        for (limit, bytes, goes_on) in [
            (6, "abcdef", false),
            (7, "abcdef", false),
            (5, "abcde", true),
            (0, "", true),
        ] {
            let read = read(pieces(&["ab", "", "cde", "f"]), limit).await.unwrap();
            assert_eq!((&*read.bytes, read.goes_on), (bytes.as_bytes(), goes_on));
        }
        let read = read(pieces(&[]), 0).await.unwrap();
        assert!(read.bytes.is_empty() && !read.goes_on);
    }
}
