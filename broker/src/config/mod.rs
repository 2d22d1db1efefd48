//! Duty: the broker's settings in two phases. What was typed (`Options`, a struct for each room) comes in;
//! [`Options::resolve`] gives what it means (`Config`), or all that is wrong with it. Nothing is opened or bound.
//!
//! A field of an options struct is a key of the config file and of `/config/:opt`, its `long` a flag, its doc
//! comment the help text: there is no other list of flags. What a running broker can change is kept apart from
//! `Config`, in [`Changeable`].
//!
//! | file | duty |
//! |---|---|
//! | `node` | who this broker is |
//! | `ingress`, `tls`, `negotiate` | doors, encryption, what clients may ask for |
//! | `admit` | authentication and flow control |
//! | `topic`, `channel`, `extension` | the queues, the extended header |
//! | `log` | storage |
//! | `metrics`, `logging` | what is told to operators |
//! | `address` | TCP address or socket file |
//! | `fault` | what can be wrong |
//! | `change` | what can change at run time |
//! | `show` | a setting as `/config/:opt` shows it |

mod address;
mod admit;
mod change;
mod channel;
mod extension;
mod fault;
mod ingress;
mod log;
mod logging;
mod metrics;
mod negotiate;
mod node;
mod show;
mod tls;
mod topic;
mod unserved;

pub use address::Address;
pub use admit::{AdmitConfig, AdmitOptions, AuthExpiry, HttpAuth, JwtConfig, OnRateLimit};
pub use change::{Change, ChangeError, Changeable};
pub use channel::{ChannelConfig, ChannelOptions};
pub use extension::{ExtensionConfig, ExtensionOptions};
pub use fault::ConfigFault;
pub use ingress::{IngressConfig, IngressOptions};
pub use log::{LogConfig, LogOptions};
pub use logging::LoggingOptions;
pub use metrics::{MetricsConfig, MetricsOptions, StatsdConfig};
pub use negotiate::{NegotiateConfig, NegotiateOptions};
pub use node::{NodeConfig, NodeOptions};
pub use show::{Shown, render};
pub use tls::{
    ClientCertificate, TlsConfig, TlsIdentity, TlsOptions, TlsRequired, TlsRequiredError, TlsVersion,
    TlsVersionError,
};
pub use topic::{TopicConfig, TopicOptions};

use clap::Args;
use serde::Serialize;

use fault::Faults;
use show::Settings;

/// What was typed, after environment and file were looked at.
#[derive(Args, Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "each section is documented at its type")]
pub struct Options {
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub ingress: IngressOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub tls: TlsOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub negotiate: NegotiateOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub admit: AdmitOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub topic: TopicOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub channel: ChannelOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub extension: ExtensionOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub log: LogOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub metrics: MetricsOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub logging: LoggingOptions,
}

/// What it means: checked, complete, and the same until the broker ends.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each section is documented at its type")]
pub struct Config {
    pub node: NodeConfig,
    pub ingress: IngressConfig,
    pub tls: TlsConfig,
    pub negotiate: NegotiateConfig,
    pub admit: AdmitConfig,
    pub topic: TopicConfig,
    pub channel: ChannelConfig,
    pub extension: ExtensionConfig,
    pub log: LogConfig,
    pub metrics: MetricsConfig,
    pub logging: LoggingOptions,
    settings: Settings,
}

impl Options {
    /// Checks and completes the options. `host` is the name of this host.
    ///
    /// # Errors
    /// Everything that no broker can run with.
    pub fn resolve(mut self, host: &str) -> Result<(Config, Changeable), Vec<ConfigFault>> {
        let mut faults = Faults::default();
        self.metrics.sort_percentiles();
        let negotiate = self.negotiate.resolve(&mut faults);
        let node = self.node.resolve(host, &mut faults);
        let tls = self.tls.resolve(&mut faults);
        let channel = self.channel.resolve(&mut faults);
        let topic = self.topic.resolve(channel.max_req_timeout, &mut faults);
        let admit = self.admit.resolve(&node.data_path, &mut faults);

        // From here on what was typed is what `/config/:opt` shows: complete, as the rooms see it.
        self.node.id = Some(node.id.into());
        self.node.broadcast_address = Some(node.broadcast_address.clone());
        self.tls.tls_required = tls.required;
        self.topic.max_deferred_time = topic.max_deferred_time.into();
        self.admit.http_auth = Some(admit.http_auth);
        let config = Config {
            ingress: self.ingress.resolve(tls.identity.is_some(), &mut faults),
            extension: self.extension.resolve(&mut faults),
            log: self.log.resolve(&mut faults),
            metrics: self.metrics.resolve(&mut faults),
            logging: self.logging.clone(),
            settings: Settings::of(&self),
            node,
            tls,
            negotiate,
            admit,
            topic,
            channel,
        };
        let changeable = Changeable {
            log_level: self.logging.log_level,
            lookupd_tcp_addresses: self.node.nsqlookupd_tcp_addresses,
            allow_ext_compatible: self.extension.allow_ext_compatible,
            allow_sub_ext_compatible: self.extension.allow_sub_ext_compatible,
        };
        faults.or((config, changeable))
    }
}

impl Config {
    /// Completes what depends on the ports that were bound; `None` = no such port, or a socket file.
    pub fn announce(&mut self, tcp_port: Option<u16>, http_port: Option<u16>) {
        let node = &mut self.node;
        for (told, bound) in [
            (&mut node.broadcast_tcp_port, tcp_port),
            (&mut node.broadcast_http_port, http_port),
        ] {
            if *told == 0 {
                *told = bound.unwrap_or(0);
            }
        }
        self.settings.announce(node);
        if let Some(statsd) = &mut self.metrics.statsd {
            statsd.prefix =
                metrics::statsd_prefix(&statsd.prefix, &node.broadcast_address, node.broadcast_http_port);
        }
    }
}

#[cfg(test)]
mod tests;
