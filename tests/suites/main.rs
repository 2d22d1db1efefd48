//! Duty: the black-box suites. Each statement of the conformance pages is a test named by its number, and
//! each test runs against stock nsqd (`stock::`) and against our broker (`ours::`).
//!
//! `NSQX_NSQD` names our broker (default: that of this repository, built as this test was). `NSQX_STOCK_NSQD`
//! and `NSQX_STOCK_NSQLOOKUPD` name the stock programs, see `tests/stock/build.sh`; without them the tests
//! that need them print `skipped:` and pass.
//! `NSQX_INTEROP_DIR` names the prepared client libraries in the same way, see `tests/interop/README.md`.

mod auth;
mod compression;
mod corruption;
mod crash;
mod disconnects;
mod disk;
mod disk_full;
mod docs;
mod ephemeral;
mod flags;
mod flow;
mod garbage;
mod heartbeat;
mod http_admin;
mod http_config;
mod http_publish;
mod http_routes;
mod http_stats;
mod identify;
mod interop;
mod lines;
mod lookup_peer;
mod migrate;
mod output_buffer;
mod persistence;
mod publish;
mod regressions;
mod seek;
mod states;
mod statsd;
mod tidy;
mod tls;
mod topics_channels;
