//! Duty: the body of IDENTIFY (nsq-tcp 2.1.2, youzan-extension 2.2) and the JSON answer as a client reads it. What the
//! server makes of a request is [`crate::session::features`].

use serde::{Deserialize, Serialize};

use super::filter::ExtFilter;
use crate::code::ErrorCode;
use crate::error::ProtoError;
use crate::go_json::{Mismatch, Value, lossy, members, set};
use crate::refusal::WireError;

/// What a client wants. Zero, empty and false stand for "as it is".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IdentifyRequest {
    /// Shown in stats.
    pub client_id: String,
    /// Shown in stats.
    pub hostname: String,
    /// Shown in stats.
    pub user_agent: String,
    /// True: JSON answer and upgrades.
    pub feature_negotiation: bool,
    /// Milliseconds; -1 = off.
    pub heartbeat_interval: i64,
    /// Bytes; -1 = unbuffered.
    pub output_buffer_size: i64,
    /// Milliseconds; -1 = no timed flush.
    pub output_buffer_timeout: i64,
    /// Wants TLS.
    pub tls_v1: bool,
    /// Wants snappy.
    pub snappy: bool,
    /// Wants deflate.
    pub deflate: bool,
    /// 0 and below mean 6.
    pub deflate_level: i64,
    /// Percent of messages; 0 = all.
    pub sample_rate: i32,
    /// Milliseconds in flight.
    pub msg_timeout: i64,
    /// Wants the extended message layout.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub extend_support: bool,
    /// Tag of the messages it wants; empty = untagged ones.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub desired_tag: String,
    /// Filter of this consumer.
    #[serde(skip)]
    pub ext_filter: Option<ExtFilter>,
    /// Filter key for the channel; empty = none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_key: String,
    /// True when a key was there that only clients of Youzan's fork send, whatever its value (architecture 4.0).
    #[serde(skip)]
    pub youzan: bool,
}

impl IdentifyRequest {
    /// Reads the body of IDENTIFY as Go's `encoding/json` would.
    ///
    /// # Errors
    /// `E_BAD_BODY` when the body is no JSON object or a field has the wrong type.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut request = Self::default();
        members(&lossy(body), |key, value| request.set(key, value))
            .map_err(|Mismatch| WireError::new(ErrorCode::BadBody, "IDENTIFY failed to decode JSON body"))?;
        Ok(request)
    }

    /// The body that a client sends.
    pub fn to_json(&self) -> Vec<u8> {
        // Strings and numbers only: there is nothing in it that could fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn set(&mut self, key: &str, value: Value<'_>) -> Result<(), Mismatch> {
        match key {
            "client_id" => set(&mut self.client_id, value.string()?),
            "hostname" => set(&mut self.hostname, value.string()?),
            "user_agent" => set(&mut self.user_agent, value.string()?),
            "feature_negotiation" => set(&mut self.feature_negotiation, value.boolean()?),
            "heartbeat_interval" => set(&mut self.heartbeat_interval, value.integer()?),
            "output_buffer_size" => set(&mut self.output_buffer_size, value.integer()?),
            "output_buffer_timeout" => set(&mut self.output_buffer_timeout, value.integer()?),
            "tls_v1" => set(&mut self.tls_v1, value.boolean()?),
            "snappy" => set(&mut self.snappy, value.boolean()?),
            "deflate" => set(&mut self.deflate, value.boolean()?),
            "deflate_level" => set(&mut self.deflate_level, value.integer()?),
            "sample_rate" => set(&mut self.sample_rate, value.integer()?),
            "msg_timeout" => set(&mut self.msg_timeout, value.integer()?),
            "filter_key" => set(&mut self.filter_key, value.string()?),
            _ => self.set_youzan(key, value)?,
        }
        Ok(())
    }

    fn set_youzan(&mut self, key: &str, value: Value<'_>) -> Result<(), Mismatch> {
        match key {
            "extend_support" => set(&mut self.extend_support, value.boolean()?),
            "desired_tag" => set(&mut self.desired_tag, value.string()?),
            "ext_filter" => self.ext_filter.get_or_insert_default().merge(value)?,
            "multiplexing" => {
                value.boolean()?;
            }
            _ => return Ok(()),
        }
        self.youzan = true;
        Ok(())
    }
}

/// What a server agreed to, as a client reads it. A plain `OK` agrees to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IdentifyAnswer {
    /// Largest RDY the server takes.
    pub max_rdy_count: u64,
    /// Version of the server.
    pub version: String,
    /// Milliseconds.
    pub max_msg_timeout: u64,
    /// Milliseconds in flight for this client.
    pub msg_timeout: u64,
    /// A TLS handshake follows.
    pub tls_v1: bool,
    /// Deflate follows.
    pub deflate: bool,
    /// Level the server compresses with.
    pub deflate_level: u8,
    /// Snappy follows.
    pub snappy: bool,
    /// Percent of messages; 0 = all.
    pub sample_rate: u8,
    /// AUTH must follow.
    pub auth_required: bool,
    /// Bytes.
    pub output_buffer_size: u64,
    /// Milliseconds.
    pub output_buffer_timeout: u64,
    /// Tag that the server took over.
    pub desired_tag: String,
}

impl Default for IdentifyAnswer {
    fn default() -> Self {
        Self {
            max_rdy_count: crate::limits::Limits::default().max_rdy_count,
            version: String::new(),
            max_msg_timeout: 0,
            msg_timeout: 0,
            tls_v1: false,
            deflate: false,
            deflate_level: 0,
            snappy: false,
            sample_rate: 0,
            auth_required: false,
            output_buffer_size: 0,
            output_buffer_timeout: 0,
            desired_tag: String::new(),
        }
    }
}

impl IdentifyAnswer {
    /// Reads the data of the response to IDENTIFY.
    ///
    /// # Errors
    /// When it is neither `OK` nor the JSON object.
    pub fn decode(data: &[u8]) -> Result<Self, ProtoError> {
        if data == crate::frame::OK {
            return Ok(Self::default());
        }
        serde_json::from_slice(data).map_err(|_| ProtoError::Answer)
    }
}
