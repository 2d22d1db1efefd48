//! Duty: what every connection shares: limits, clocks, the way to the rooms. Must not know any one connection.

use std::sync::Arc;

use nsqx_proto::limits::{Limits, ServerLimits};

use super::client::Clients;
use crate::admit::auth_query::AuthQuery;
use crate::clock::Clock;
use crate::tls::server::ServerTls;
use crate::topic::directory::Directory;

/// The surroundings of a connection.
pub struct Doors {
    /// What commands may ask for.
    pub limits: Limits,
    /// What IDENTIFY may settle.
    pub server_limits: ServerLimits,
    /// Ten bits that go into every message id (`--node-id`).
    pub node_id: u16,
    /// False when PUB and SUB need a topic that is there (`--auto-create-topics=false`).
    pub auto_create: bool,
    /// The clocks.
    pub clock: Clock,
    /// Topics and channels.
    pub directory: Arc<Directory>,
    /// Connections, for `/stats`.
    pub clients: Clients,
    /// Auth servers; `None` = AUTH is off.
    pub auth: Option<Arc<AuthQuery>>,
    /// The certificate; `None` = TLS is not offered.
    pub tls: Option<Arc<ServerTls>>,
}
