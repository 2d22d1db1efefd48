//! Duty: what a broker tells about itself in IDENTIFY, and what nsqlookupd tells back (nsq-tcp 7.2). JSON comes in and
//! goes out. Must not know connections.

use serde::{Deserialize, Serialize};

use crate::code::ErrorCode;
use crate::error::ProtoError;
use crate::go_json::{Mismatch, Value, lossy, members, set};
use crate::refusal::WireError;

/// A broker, or the nsqlookupd that answers it. Keys are written in alphabetical order, as both sides of stock do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerInfo {
    /// Address that clients can reach.
    pub broadcast_address: String,
    /// `ip:rpcport:tcpport:nodeid`; only brokers of Youzan's fork have one. It decides the form of their REGISTER.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub distributed_id: String,
    /// Name of the machine.
    pub hostname: String,
    /// HTTP port for clients.
    pub http_port: u16,
    /// TCP port for clients.
    pub tcp_port: u16,
    /// Version of the program.
    pub version: String,
}

impl PeerInfo {
    /// Reads the body of IDENTIFY.
    ///
    /// # Errors
    /// `E_BAD_BODY` when it is no JSON object, a field has the wrong type, or address, a port or version is missing.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let bad_body = |text| WireError::new(ErrorCode::BadBody, text);
        let mut peer = Self::default();
        members(&lossy(body), |key, value| peer.set(key, value))
            .map_err(|Mismatch| bad_body("IDENTIFY failed to decode JSON body"))?;
        let missing = peer.broadcast_address.is_empty()
            || peer.tcp_port == 0
            || peer.http_port == 0
            || peer.version.is_empty();
        if missing {
            Err(bad_body("IDENTIFY missing fields"))
        } else {
            Ok(peer)
        }
    }

    /// Reads the answer to IDENTIFY, which needs no field.
    ///
    /// # Errors
    /// When it is not the JSON object, such as an error text.
    pub fn decode_answer(data: &[u8]) -> Result<Self, ProtoError> {
        serde_json::from_slice(data).map_err(|_| ProtoError::Answer)
    }

    /// The body of IDENTIFY, or the data of the answer to it.
    pub fn to_json(&self) -> Vec<u8> {
        // Strings and numbers only: there is nothing in it that could fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn set(&mut self, key: &str, value: Value<'_>) -> Result<(), Mismatch> {
        match key {
            "broadcast_address" => set(&mut self.broadcast_address, value.string()?),
            "distributed_id" => set(&mut self.distributed_id, value.string()?),
            "hostname" => set(&mut self.hostname, value.string()?),
            "http_port" => set(&mut self.http_port, value.integer()?),
            "tcp_port" => set(&mut self.tcp_port, value.integer()?),
            "version" => set(&mut self.version, value.string()?),
            _ => {}
        }
        Ok(())
    }
}
