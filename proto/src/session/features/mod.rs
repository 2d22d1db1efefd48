//! Duty: what IDENTIFY settles for a connection (nsq-tcp 2.1, youzan-extension 2.2). The request, the server's limits and
//! what held so far come in; the new features and the answer go out. Must not switch anything on.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::code::ErrorCode;
use crate::command::identify::IdentifyRequest;
use crate::dialect::Dialect;
use crate::frame;
use crate::limits::{
    DEFLATE_LEVEL_DEFAULT, HEARTBEAT_MIN_MS, MSG_TIMEOUT_MIN_MS, OUTPUT_BUFFER_MIN, SAMPLE_RATE_MAX,
    ServerLimits,
};
use crate::message::tag::{InvalidTag, Tag};
use crate::quote::quoted;
use crate::refusal::WireError;

/// What holds for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// Family of the client.
    pub dialect: Dialect,
    /// Time between heartbeats; none when they are off.
    pub heartbeat: Option<Duration>,
    /// Bytes of the write buffer; 1 = unbuffered.
    pub output_buffer_size: u64,
    /// Longest time that messages stay in the buffer; none for no timed flush.
    pub output_buffer_timeout: Option<Duration>,
    /// Percent of messages that are wanted, less one; 0 = all (nsq-tcp 4.12).
    pub sample_rate: u8,
    /// Time in flight.
    pub msg_timeout: Duration,
    /// A TLS handshake follows the answer.
    pub tls: bool,
    /// Snappy follows the answer.
    pub snappy: bool,
    /// Deflate with this level follows the answer.
    pub deflate: Option<u8>,
    /// The extended message layout and binary ids.
    pub extend_support: bool,
    /// Tag of the messages that are wanted.
    pub desired_tag: Option<Tag>,
}

impl Features {
    /// What holds before IDENTIFY.
    pub fn initial(limits: &ServerLimits) -> Self {
        Self {
            dialect: Dialect::Stock,
            heartbeat: Some(Duration::from_millis(limits.heartbeat_interval_ms)),
            output_buffer_size: limits.output_buffer_size,
            output_buffer_timeout: Some(Duration::from_millis(limits.output_buffer_timeout_ms)),
            sample_rate: 0,
            msg_timeout: Duration::from_millis(limits.msg_timeout_ms),
            tls: false,
            snappy: false,
            deflate: None,
            extend_support: false,
            desired_tag: None,
        }
    }
}

/// Settles `request`; `current` is what held until now. Answers the features and the data of the response.
///
/// # Errors
/// Fatal `E_BAD_BODY`, `E_BAD_TAG` or `E_IDENTIFY_FAILED`: the first of the checks of nsq-tcp 2.1.1 that fails.
pub fn negotiate(
    request: &IdentifyRequest,
    limits: &ServerLimits,
    current: &Features,
) -> Result<(Features, Vec<u8>), WireError> {
    let mut features = current.clone();
    features.dialect = if request.youzan {
        Dialect::Youzan
    } else {
        Dialect::Stock
    };
    features.extend_support = request.extend_support;
    set_heartbeat(&mut features, request.heartbeat_interval, limits)?;
    set_output_buffer(&mut features, request, limits)?;
    features.sample_rate = match request.sample_rate {
        rate @ 0..=SAMPLE_RATE_MAX => rate as u8,
        rate => return Err(invalid("sample rate", i64::from(rate))),
    };
    features.msg_timeout = match request.msg_timeout {
        0 => features.msg_timeout,
        asked => in_range(asked, MSG_TIMEOUT_MIN_MS, limits.max_msg_timeout_ms)
            .map(Duration::from_millis)
            .ok_or_else(|| invalid("msg timeout", asked))?,
    };
    features.desired_tag = desired_tag(&request.desired_tag)?;

    features.tls = request.feature_negotiation && request.tls_v1 && limits.tls;
    features.snappy = request.feature_negotiation && request.snappy && limits.snappy;
    let deflate = request.feature_negotiation && request.deflate && limits.deflate;
    let level = deflate_level(request, deflate, limits);
    features.deflate = deflate.then_some(level);
    if !request.feature_negotiation {
        return Ok((features, frame::OK.to_vec()));
    }
    if features.snappy && deflate {
        let text = "cannot enable both deflate and snappy compression";
        return Err(WireError::new(ErrorCode::IdentifyFailed, text));
    }
    let answer = answer(&features, level, limits);
    Ok((features, answer))
}

fn set_heartbeat(features: &mut Features, asked: i64, limits: &ServerLimits) -> Result<(), WireError> {
    features.heartbeat = match asked {
        -1 => None,
        0 => features.heartbeat,
        asked => Some(
            in_range(asked, HEARTBEAT_MIN_MS, limits.max_heartbeat_interval_ms)
                .map(Duration::from_millis)
                .ok_or_else(|| invalid("heartbeat interval", asked))?,
        ),
    };
    Ok(())
}

fn set_output_buffer(
    features: &mut Features,
    request: &IdentifyRequest,
    limits: &ServerLimits,
) -> Result<(), WireError> {
    let (mut timeout, mut size) = (request.output_buffer_timeout, request.output_buffer_size);
    if request.youzan {
        // Youzan's server lowers a large buffer and raises a short timeout where stock refuses.
        size = size.min(limits.max_output_buffer_size as i64);
        if timeout > 0 {
            timeout = timeout.max(limits.min_output_buffer_timeout_ms as i64);
        }
    }
    features.output_buffer_timeout = match timeout {
        -1 => None,
        0 => features.output_buffer_timeout,
        asked => {
            let min = limits.min_output_buffer_timeout_ms as i64;
            let time = in_range(asked, min, limits.max_output_buffer_timeout_ms);
            Some(
                time.map(Duration::from_millis)
                    .ok_or_else(|| invalid("output buffer timeout", asked))?,
            )
        }
    };
    match size {
        -1 => {
            // One byte is no buffer: every write passes straight through.
            features.output_buffer_size = 1;
            features.output_buffer_timeout = None;
        }
        0 => {}
        asked => {
            features.output_buffer_size = in_range(asked, OUTPUT_BUFFER_MIN, limits.max_output_buffer_size)
                .ok_or_else(|| invalid("output buffer size", asked))?;
        }
    }
    Ok(())
}

fn desired_tag(asked: &str) -> Result<Option<Tag>, WireError> {
    if asked.is_empty() {
        return Ok(None);
    }
    Tag::parse(asked).map(Some).map_err(|error| match error {
        InvalidTag::Length(len) => {
            WireError::new(ErrorCode::BadBody, format!("IDENTIFY invalid tag len {len}"))
        }
        InvalidTag::Character => {
            let text = format!("IDENTIFY tag {} is not valid", quoted(asked.as_bytes()));
            WireError::new(ErrorCode::BadTag, text)
        }
    })
}

/// The level that is reported, also when deflate is off.
fn deflate_level(request: &IdentifyRequest, deflate: bool, limits: &ServerLimits) -> u8 {
    let asked = if deflate && request.deflate_level > 0 {
        u8::try_from(request.deflate_level).unwrap_or(u8::MAX)
    } else {
        DEFLATE_LEVEL_DEFAULT
    };
    asked.min(limits.max_deflate_level)
}

fn in_range(asked: i64, min: i64, max: u64) -> Option<u64> {
    if asked < min {
        return None;
    }
    u64::try_from(asked).ok().filter(|asked| *asked <= max)
}

fn invalid(what: &str, asked: i64) -> WireError {
    WireError::new(
        ErrorCode::BadBody,
        format!("IDENTIFY {what} ({asked}) is invalid"),
    )
}

/// Compact, in stock's order of keys; Java clients search the text and need a key behind `deflate_level`.
fn answer(features: &Features, deflate_level: u8, limits: &ServerLimits) -> Vec<u8> {
    let ms = |time: Duration| time.as_millis() as u64;
    let mut json = format!(
        concat!(
            r#"{{"max_rdy_count":{},"version":"{}","max_msg_timeout":{},"msg_timeout":{},"tls_v1":{},"deflate":{},"#,
            r#""deflate_level":{},"max_deflate_level":{},"snappy":{},"sample_rate":{},"auth_required":{},"#,
            r#""output_buffer_size":{},"output_buffer_timeout":{}"#
        ),
        limits.max_rdy_count,
        features.dialect.version(),
        limits.max_msg_timeout_ms,
        ms(features.msg_timeout),
        features.tls,
        features.deflate.is_some(),
        deflate_level,
        limits.max_deflate_level,
        features.snappy,
        features.sample_rate,
        limits.auth_required,
        features.output_buffer_size,
        features.output_buffer_timeout.map_or(0, ms),
    );
    // Present only on Youzan connections, since asking for a tag makes one. Its characters need no escape.
    if let Some(tag) = &features.desired_tag {
        json.push_str(r#","desired_tag":""#);
        json.push_str(tag.as_str());
        json.push('"');
    }
    json.push('}');
    json.into_bytes()
}
