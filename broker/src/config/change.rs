//! Duty: the settings that a running broker can change, and the body of `PUT /config/:opt` as such a change.
//! Who acts on a change is not known here.

use nsqx_flags::{LogLevel, boolean};

/// Settings that can change at run time. A change is not stored. Source: nsq-http-and-tools 1.11,
/// youzan-extension 3.2 (the two compatibility switches).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changeable {
    /// Least important lines that are logged.
    pub log_level: LogLevel,
    /// `host:port` of every lookupd to register with.
    pub lookupd_tcp_addresses: Vec<String>,
    /// Extended publishes may go to plain topics without their header.
    pub allow_ext_compatible: bool,
    /// Plain subscribers may read extended topics; counts for connections made after a change.
    pub allow_sub_ext_compatible: bool,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The level of logging.
    LogLevel(LogLevel),
    /// The whole list of lookupds.
    LookupdTcpAddresses(Vec<String>),
    /// Extended publishes on plain topics.
    AllowExtCompatible(bool),
    /// Plain subscribers of extended topics.
    AllowSubExtCompatible(bool),
}

/// Why a change is refused; the texts are the answers' codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Unknown, or can not change at run time.
    #[error("INVALID_OPTION")]
    Option,
    /// Not a value of this setting.
    #[error("INVALID_VALUE")]
    Value,
}

impl Change {
    /// Reads the body of `PUT /config/key`. An empty body is for the caller to refuse (413).
    pub fn parse(key: &str, body: &[u8]) -> Result<Self, ChangeError> {
        match key {
            LOG_LEVEL => text(body)?
                .parse()
                .map(Self::LogLevel)
                .map_err(|_| ChangeError::Value),
            LOOKUPD_TCP_ADDRESSES => serde_json::from_slice(body)
                .map(|list: Option<Vec<String>>| Self::LookupdTcpAddresses(list.unwrap_or_default()))
                .map_err(|_| ChangeError::Value),
            ALLOW_EXT_COMPATIBLE => switch(body).map(Self::AllowExtCompatible),
            ALLOW_SUB_EXT_COMPATIBLE => switch(body).map(Self::AllowSubExtCompatible),
            _ => Err(ChangeError::Option),
        }
    }
}

impl Changeable {
    /// Takes a change over.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::LogLevel(level) => self.log_level = level,
            Change::LookupdTcpAddresses(addresses) => self.lookupd_tcp_addresses = addresses,
            Change::AllowExtCompatible(allow) => self.allow_ext_compatible = allow,
            Change::AllowSubExtCompatible(allow) => self.allow_sub_ext_compatible = allow,
        }
    }

    /// The setting of that key as JSON; `None` when the key can not change at run time.
    pub(super) fn value(&self, key: &str) -> Option<serde_json::Value> {
        Some(match key {
            LOG_LEVEL => (self.log_level as u8).into(),
            LOOKUPD_TCP_ADDRESSES => self.lookupd_tcp_addresses.clone().into(),
            ALLOW_EXT_COMPATIBLE => self.allow_ext_compatible.into(),
            ALLOW_SUB_EXT_COMPATIBLE => self.allow_sub_ext_compatible.into(),
            _ => return None,
        })
    }
}

fn text(body: &[u8]) -> Result<&str, ChangeError> {
    std::str::from_utf8(body).map_err(|_| ChangeError::Value)
}

fn switch(body: &[u8]) -> Result<bool, ChangeError> {
    boolean(text(body)?).map_err(|_| ChangeError::Value)
}

const LOG_LEVEL: &str = "log_level";
const LOOKUPD_TCP_ADDRESSES: &str = "nsqlookupd_tcp_addresses";
const ALLOW_EXT_COMPATIBLE: &str = "allow_ext_compatible";
const ALLOW_SUB_EXT_COMPATIBLE: &str = "allow_sub_ext_compatible";
