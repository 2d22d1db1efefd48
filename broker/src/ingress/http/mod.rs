//! Duty: the HTTP door (nsq-http 1, nsqx-interface 3). Requests come in from a socket, calls go to the [`Desk`], its
//! answers go out as stock would write them. Must not know rooms behind the desk.
//!
//! A request walks `serve` (socket) -> `dispatch` (one answer and one log line) -> `router` with the table in
//! `routes` -> a handler -> `style` (headers and body).
//!
//! | file | duty |
//! |---|---|
//! | `serve`, `head_guard` | listener and connections; a time limit for request heads |
//! | `dispatch` | request to response, whatever happens in between |
//! | `router`, `routes` | which route a method and path mean; the table of routes |
//! | `style`, `json`, `error` | how answers are written; JSON as Go writes it; what can be refused and how it is told |
//! | `query`, `body` | parameters; request bodies with bounds |
//! | `publish` | `/pub`, `/mpub` |
//! | `topics`, `channels` | create, delete, empty, pause, unpause |
//! | `stats`, `info`, `health`, `metrics` | what operators and scrapers read |
//! | `config`, `debug` | stock's odds and ends |
//! | `settings`, `seek`, `peek` | what stock lacks |

mod body;
mod channels;
mod config;
mod debug;
mod dispatch;
mod error;
mod head_guard;
mod health;
mod info;
mod json;
mod metrics;
mod peek;
mod publish;
mod query;
mod router;
mod routes;
mod seek;
mod serve;
mod settings;
mod stats;
mod style;
#[cfg(test)]
mod tests;
mod topics;

use std::sync::Arc;

use axum::Router;

use crate::clock::Clock;
use crate::desk::Desk;

pub use self::serve::{Connections, Remote, serve};

/// Through which door a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Plain HTTP.
    Plain,
    /// Plain HTTP of a broker that requires TLS: every request is refused and told the port of the right door
    /// (0 when there is none; nsq-http 1.2).
    PlainRefusing {
        /// Port of the HTTPS listener.
        https_port: u16,
    },
    /// HTTPS.
    Tls,
}

/// All routes, to be given to [`serve()`].
pub fn service(desk: Arc<dyn Desk>, clock: Clock, door: Door) -> Router {
    let shared = dispatch::Shared { desk, clock, door };
    Router::new()
        .fallback(dispatch::answer)
        .with_state(Arc::new(shared))
}
