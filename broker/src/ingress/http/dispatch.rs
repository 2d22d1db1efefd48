//! Duty: one answer and one log line for every request, whatever happens on the way. A request comes in, the
//! response goes out. Must not know what routes do.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use futures_util::FutureExt;
use nsqx_flags::GoDuration;

use super::Door;
use super::error::HttpError;
use super::query::unescape;
use super::router::{Miss, Route, find};
use super::routes::{Action, Call, ROUTES, serve};
use super::serve::Remote;
use super::style::{self, Reply, Style};
use crate::clock::Clock;
use crate::desk::Desk;

/// What every request needs.
pub(super) struct Shared {
    pub(super) desk: Arc<dyn Desk>,
    pub(super) clock: Clock,
    pub(super) door: Door,
}

/// Answers `request`.
pub(super) async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    if let Door::PlainRefusing { https_port } = shared.door {
        return style::tls_required(https_port);
    }
    let started = shared.clock.now();
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let (response, logged) = match unescape(path, false) {
        None => return style::write(Style::Plain, Err(HttpError::BadPath)),
        Some(path) => match find(ROUTES, &head.method, &path) {
            Ok((route, segment)) => {
                let call = Call {
                    desk: &*shared.desk,
                    clock: shared.clock,
                    query: head.uri.query().unwrap_or_default(),
                    headers: &head.headers,
                    segment,
                    body,
                };
                (run(route, call).await, route.logged)
            }
            Err(miss) => (without_route(&head.method, &head.uri, miss), true),
        },
    };
    if logged {
        let status = response.status().as_u16();
        let remote = head.extensions.get::<Remote>().map_or("", |remote| &remote.0);
        let elapsed = GoDuration::from(shared.clock.now().since(started));
        tracing::info!("{status} {} {} ({remote}) {elapsed}", head.method, head.uri);
    }
    response
}

async fn run(route: &Route<Action>, call: Call<'_>) -> Response {
    let Ok(outcome) = AssertUnwindSafe(serve(route.action, call)).catch_unwind().await else {
        let error = HttpError::Internal("handler panicked".to_owned());
        tracing::error!(path = route.path, %error, "request failed");
        return style::write(Style::V1, Err(error));
    };
    if let Err(error @ HttpError::Internal(_)) = &outcome {
        tracing::error!(path = route.path, %error, "request failed");
    }
    style::write(route.style, outcome)
}

fn without_route(method: &Method, uri: &Uri, miss: Miss) -> Response {
    match miss {
        Miss::Redirect(path) => redirect(method, uri, path),
        Miss::Options(allowed) => allowing(style::write(Style::Plain, Ok(Reply::empty())), &allowed),
        // `OPTIONS *` asks about the server as a whole.
        Miss::NotFound if uri.path() == "*" && *method == Method::OPTIONS => {
            style::write(Style::Plain, Ok(Reply::empty()))
        }
        Miss::NotAllowed(allowed) => allowing(
            style::write(Style::V1, Err(HttpError::MethodNotAllowed)),
            &allowed,
        ),
        Miss::NotFound => style::write(Style::V1, Err(HttpError::NotFound)),
    }
}

fn allowing(mut response: Response, methods: &str) -> Response {
    if let Ok(methods) = HeaderValue::from_str(methods) {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    response
}

/// 301 with a small page for GET, 307 without a body for the rest, as Go's server does it.
fn redirect(method: &Method, uri: &Uri, path: String) -> Response {
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let reply = if *method == Method::GET {
        let link = escape_html(&target);
        Reply::text(format!("<a href=\"{link}\">Moved Permanently</a>.\n\n"))
            .typed("text/html; charset=utf-8")
            .status(StatusCode::MOVED_PERMANENTLY)
    } else {
        Reply::empty().status(StatusCode::TEMPORARY_REDIRECT)
    };
    let mut response: Response<Body> = style::write(Style::Plain, Ok(reply));
    if let Ok(target) = HeaderValue::from_str(&target) {
        response.headers_mut().insert(header::LOCATION, target);
    }
    response
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
}
