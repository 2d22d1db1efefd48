//! Duty: the table of routes and which handler serves which of them.

use axum::body::Body;
use axum::http::{HeaderMap, Method};

use super::error::HttpError;
use super::router::Route;
use super::style::{Reply, Style};
use super::{channels, config, debug, health, info, metrics, peek, publish, seek, settings, stats, topics};
use crate::clock::Clock;
use crate::desk::{Desk, Operation};

/// A request on its way to a handler.
pub(super) struct Call<'a> {
    pub(super) desk: &'a dyn Desk,
    pub(super) clock: Clock,
    /// The raw query string.
    pub(super) query: &'a str,
    pub(super) headers: &'a HeaderMap,
    /// The segment that the path leaves open.
    pub(super) segment: &'a str,
    pub(super) body: Body,
}

/// What a route does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Ping,
    Info,
    Stats,
    Publish,
    PublishMany,
    Topic(Operation),
    Channel(Operation),
    ReadOption,
    WriteOption,
    Profile,
    BlockRate,
    FreeMemory,
    Seek,
    Peek,
    ReadTopicSettings,
    WriteTopicSettings,
    ReadChannelSettings,
    WriteChannelSettings,
    Metrics,
    Live,
    Ready,
}

/// Lets the handler of `action` answer.
pub(super) async fn serve(action: Action, call: Call<'_>) -> Result<Reply, HttpError> {
    match action {
        Action::Ping => health::ping(call.desk),
        Action::Live => health::live(),
        Action::Ready => health::ready(call.desk),
        Action::Info => info::info(call.desk),
        Action::Stats => stats::stats(call).await,
        Action::Metrics => metrics::metrics(call.desk).await,
        Action::Publish => publish::one(call).await,
        Action::PublishMany => publish::many(call).await,
        Action::Topic(operation) => topics::change(operation, call).await,
        Action::Channel(operation) => channels::change(operation, call).await,
        Action::ReadOption => config::read(call.desk, call.segment),
        Action::WriteOption => config::write(call).await,
        Action::Profile => Err(HttpError::NoProfiles),
        Action::BlockRate => debug::block_rate(call).await,
        Action::FreeMemory => Ok(debug::free_memory()),
        Action::Seek => seek::seek(call).await,
        Action::Peek => peek::peek(call).await,
        Action::ReadTopicSettings => settings::read_topic(call).await,
        Action::WriteTopicSettings => settings::write_topic(call).await,
        Action::ReadChannelSettings => settings::read_channel(call).await,
        Action::WriteChannelSettings => settings::write_channel(call).await,
    }
}

/// Every route (nsq-http 1.3; nsqx-interface 3).
pub(super) const ROUTES: &[Route<Action>] = &[
    post("/pub", Action::Publish).unlogged(),
    post("/mpub", Action::PublishMany).unlogged(),
    get("/ping", Action::Ping).plain(),
    get("/info", Action::Info),
    get("/stats", Action::Stats),
    post("/topic/create", Action::Topic(Operation::Create)),
    post("/topic/delete", Action::Topic(Operation::Delete)),
    post("/topic/empty", Action::Topic(Operation::Empty)),
    post("/topic/pause", Action::Topic(Operation::Pause)),
    post("/topic/unpause", Action::Topic(Operation::Unpause)),
    post("/channel/create", Action::Channel(Operation::Create)),
    post("/channel/delete", Action::Channel(Operation::Delete)),
    post("/channel/empty", Action::Channel(Operation::Empty)),
    post("/channel/pause", Action::Channel(Operation::Pause)),
    post("/channel/unpause", Action::Channel(Operation::Unpause)),
    get("/config/:opt", Action::ReadOption),
    put("/config/:opt", Action::WriteOption),
    profile(Method::GET, "/debug/pprof/"),
    profile(Method::GET, "/debug/pprof/cmdline"),
    profile(Method::GET, "/debug/pprof/profile"),
    profile(Method::GET, "/debug/pprof/symbol"),
    profile(Method::POST, "/debug/pprof/symbol"),
    profile(Method::GET, "/debug/pprof/heap"),
    profile(Method::GET, "/debug/pprof/goroutine"),
    profile(Method::GET, "/debug/pprof/block"),
    profile(Method::GET, "/debug/pprof/threadcreate"),
    put("/debug/setblockrate", Action::BlockRate).plain(),
    post("/debug/freememory", Action::FreeMemory).plain(),
    post("/channel/seek", Action::Seek).own(),
    get("/message/peek", Action::Peek).own(),
    get("/topic/settings", Action::ReadTopicSettings).own(),
    put("/topic/settings", Action::WriteTopicSettings).own(),
    get("/channel/settings", Action::ReadChannelSettings).own(),
    put("/channel/settings", Action::WriteChannelSettings).own(),
    get("/metrics", Action::Metrics).own(),
    get("/livez", Action::Live).own(),
    get("/readyz", Action::Ready).own(),
];

impl Route<Action> {
    const fn new(method: Method, path: &'static str, action: Action) -> Self {
        Self {
            method,
            path,
            style: Style::V1,
            logged: true,
            action,
        }
    }

    const fn plain(mut self) -> Self {
        self.style = Style::Plain;
        self
    }

    const fn own(mut self) -> Self {
        self.style = Style::Own;
        self
    }

    const fn unlogged(mut self) -> Self {
        self.logged = false;
        self
    }
}

const fn get(path: &'static str, action: Action) -> Route<Action> {
    Route::new(Method::GET, path, action)
}

const fn post(path: &'static str, action: Action) -> Route<Action> {
    Route::new(Method::POST, path, action)
}

const fn put(path: &'static str, action: Action) -> Route<Action> {
    Route::new(Method::PUT, path, action)
}

const fn profile(method: Method, path: &'static str) -> Route<Action> {
    Route::new(method, path, Action::Profile).plain().unlogged()
}
