//! Duty: how answers are written: stock's two response styles and our own (nsq-http 1.1, nsqx-interface 3).

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use hyper::ext::ReasonPhrase;
use serde::Serialize;

use super::error::HttpError;
use super::json;

/// How a route answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `X-NSQ-Content-Type` always; errors are JSON with the code alone.
    V1,
    /// No `X-NSQ-Content-Type`; errors are raw text.
    Plain,
    /// Our own routes: as `V1`, but errors explain themselves behind the code.
    Own,
}

/// A successful answer.
#[derive(Debug)]
pub(super) struct Reply {
    status: StatusCode,
    content_type: Option<&'static str>,
    body: Bytes,
}

impl Reply {
    /// 200 without a body.
    pub(super) fn empty() -> Self {
        Self::text(Bytes::new())
    }

    /// 200 with raw text.
    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: None,
            body: text.into(),
        }
    }

    /// 200 with the JSON form of `value`.
    pub(super) fn json(value: &impl Serialize) -> Result<Self, HttpError> {
        Ok(Self::raw_json(json::encode(value)?))
    }

    /// 200 with text that is JSON already.
    pub(super) fn raw_json(text: impl Into<Bytes>) -> Self {
        Self::text(text).typed(JSON)
    }

    /// The same with this content type.
    pub(super) fn typed(self, content_type: &'static str) -> Self {
        Self {
            content_type: Some(content_type),
            ..self
        }
    }

    /// The same with this status.
    pub(super) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }
}

/// Writes an answer or a refusal.
pub(super) fn write(style: Style, outcome: Result<Reply, HttpError>) -> Response {
    let reply = outcome.unwrap_or_else(|error| refusal(style, &error));
    let content_type = reply.content_type.or_else(|| sniff(&reply.body));
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = reply.status;
    if reply.status == StatusCode::PAYLOAD_TOO_LARGE {
        response.extensions_mut().insert(OLD_TOO_LARGE);
    }
    let headers = response.headers_mut();
    if let Some(content_type) = content_type {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    if style != Style::Plain {
        headers.insert(NSQ_CONTENT_TYPE, HeaderValue::from_static("nsq; version=1.0"));
    }
    response
}

/// The answer of a broker that requires TLS (nsq-http 1.2); the spaces are stock's.
pub(super) fn tls_required(https_port: u16) -> Response {
    let text = format!(r#"{{"message": "TLS_REQUIRED", "https_port": {https_port}}}"#);
    write(Style::V1, Ok(Reply::raw_json(text).status(StatusCode::FORBIDDEN)))
}

fn refusal(style: Style, error: &HttpError) -> Reply {
    let (status, code) = error.wire();
    let reply = match style {
        Style::Plain => Ok(Reply::text(error.to_string())),
        Style::V1 => Reply::json(&Message {
            message: code.to_owned(),
        }),
        // What went wrong inside is for the log.
        Style::Own if matches!(error, HttpError::Internal(_)) => Reply::json(&Message {
            message: format!("{code} see the log of the broker"),
        }),
        Style::Own => Reply::json(&Message {
            message: format!("{code} {error}"),
        }),
    };
    reply.unwrap_or_else(|_| Reply::empty()).status(status)
}

/// What Go's server would call `body`: of all its guesses only text and bytes can come up here.
fn sniff(body: &[u8]) -> Option<&'static str> {
    let start = &body[..body.len().min(512)];
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 11 | 14..=26 | 28..=31);
    match start {
        [] => None,
        _ if start.iter().any(is_binary) => Some("application/octet-stream"),
        _ => Some("text/plain; charset=utf-8"),
    }
}

#[derive(Serialize)]
struct Message {
    message: String,
}

/// Go still says what RFC 2616 said.
const OLD_TOO_LARGE: ReasonPhrase = ReasonPhrase::from_static(b"Request Entity Too Large");
const JSON: &str = "application/json; charset=utf-8";
const NSQ_CONTENT_TYPE: HeaderName = HeaderName::from_static("x-nsq-content-type");
