//! Duty: what follows an IDENTIFY that agreed on TLS or compression: each layer after the answer before it has left, then
//! an `OK` through it (nsq-tcp 2.1.4). Must not know how the layers work.

use std::time::Duration;

use nsqx_proto::session::Features;
use nsqx_proto::{WireError, frame};

use super::Connection;
use crate::clock::Moment;
use crate::ingress::layers::LayerError;

/// Layers that are still to be switched on.
#[derive(Debug)]
pub(super) struct Upgrade {
    tls: bool,
    snappy: bool,
    deflate: Option<u8>,
    /// When the handshake that goes on has to be done.
    handshake: Option<Moment>,
}

impl Upgrade {
    /// What `features` ask for; `None` when nothing has to be switched on.
    pub(super) fn after(features: &Features) -> Option<Self> {
        let upgrade = Self {
            tls: features.tls,
            snappy: features.snappy,
            deflate: features.deflate,
            handshake: None,
        };
        (upgrade.tls || upgrade.snappy || upgrade.deflate.is_some()).then_some(upgrade)
    }

    /// True while the peer has to send something for the upgrade to go on.
    pub(super) fn is_handshaking(&self) -> bool {
        self.handshake.is_some()
    }

    /// When the handshake has to be done.
    pub(super) fn deadline(&self) -> Option<Moment> {
        self.handshake
    }
}

impl Connection {
    /// Everything said so far has left: switches the next layer on. Answers whether there is something to say again.
    pub(super) fn go_on_upgrading(&mut self, now: Moment) -> bool {
        let Some(upgrade) = &mut self.upgrade else {
            return false;
        };
        if upgrade.handshake.is_some() {
            if self.wire.layers.is_handshaking() {
                return false;
            }
            upgrade.handshake = None;
            self.session.tls_active(true);
            if let Some(facts) = self.wire.layers.tls_facts() {
                self.client.set_tls(facts);
            }
        } else if std::mem::take(&mut upgrade.tls) {
            let Some(config) = self.doors.tls.as_ref().map(|tls| tls.config()) else {
                return false;
            };
            upgrade.handshake = Some(now + HANDSHAKE_TIME);
            if let Err(error) = self.wire.layers.start_tls(config) {
                self.layer_failed(&error);
            }
            return false;
        } else if std::mem::take(&mut upgrade.snappy) {
            self.wire.layers.start_snappy();
        } else if let Some(level) = upgrade.deflate.take() {
            self.wire.layers.start_deflate(level);
        } else {
            self.upgrade = None;
            self.input_is_news = true;
            return false;
        }
        frame::put_response(self.wire.output.reply(), frame::OK);
        true
    }

    /// The handshake took too long.
    pub(super) fn handshake_timed_out(&mut self) {
        self.fail_handshake("handshake timed out");
    }

    /// The peer's bytes can not be read any more: it is told only while it waits for its handshake.
    pub(super) fn layer_failed(&mut self, error: &LayerError) {
        self.span
            .in_scope(|| tracing::info!(%error, "connection can not be read"));
        if self.upgrade.is_some() {
            self.fail_handshake(&error.to_string());
        } else {
            self.ending = true;
        }
    }

    fn fail_handshake(&mut self, reason: &str) {
        self.upgrade = None;
        self.ending = true;
        let error = WireError::identify_failed(reason);
        frame::put_error(self.wire.behind_layers(), &error);
    }
}

/// How long a TLS handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
