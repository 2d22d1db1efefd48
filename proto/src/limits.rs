//! Duty: every bound of the wire, with unit and source. Numbers come in from configuration, nothing goes out.

/// Longest topic or channel name in bytes, `#ephemeral` included (nsq-tcp 0).
pub const NAME_MAX: usize = 64;

/// Longest command line in bytes, its LF included (nsq-tcp 1.3).
pub const LINE_MAX: usize = 16_384;

/// Longest `desired_tag` in bytes (youzan-extension 1.5).
pub const TAG_MAX: usize = 100;

/// Attempts are shown to Youzan consumers as at most this, since larger numbers look like their storage marker
/// (youzan-extension 1.6).
pub const ATTEMPTS_SHOWN_MAX: u16 = 4_000;

/// Compression level of a client that names none (nsq-tcp 2.1.2).
pub const DEFLATE_LEVEL_DEFAULT: u8 = 6;

/// What a server allows in commands; defaults are the flags' defaults of nsqd (nsq-tcp 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `--max-msg-size`: bytes of one message, extension included.
    pub max_msg_size: u64,
    /// `--max-body-size`: bytes of an IDENTIFY, AUTH or MPUB body.
    pub max_body_size: u64,
    /// `--max-rdy-count`.
    pub max_rdy_count: u64,
    /// `--max-req-timeout` in milliseconds: REQ is cut down to it.
    pub max_req_timeout_ms: u64,
    /// `--max-deferred-time` in milliseconds: DPUB above it is refused.
    pub max_deferred_ms: u64,
    /// `--tls-required`: in the clear only IDENTIFY is allowed.
    pub tls_required: bool,
    /// True when AUTH is configured: a batch asks for permission before its body is read.
    pub auth_required: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_msg_size: 1_048_576,
            max_body_size: 5_242_880,
            max_rdy_count: 2_500,
            max_req_timeout_ms: 3_600_000,
            max_deferred_ms: 3_600_000,
            tls_required: false,
            auth_required: false,
        }
    }
}

impl Limits {
    /// Most messages one MPUB may announce (nsq-tcp 2.4): each takes at least a size field and one byte.
    pub fn max_batch_count(&self) -> u64 {
        self.max_body_size.saturating_sub(4) / 5
    }
}

/// What IDENTIFY may settle; defaults are the flags' defaults of nsqd (nsq-tcp 0). Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// `--max-rdy-count`, reported only.
    pub max_rdy_count: u64,
    /// Heartbeat of a client that names none: half the client timeout.
    pub heartbeat_interval_ms: u64,
    /// `--max-heartbeat-interval`.
    pub max_heartbeat_interval_ms: u64,
    /// Write buffer of a client that names none, bytes.
    pub output_buffer_size: u64,
    /// `--max-output-buffer-size`, bytes.
    pub max_output_buffer_size: u64,
    /// `--output-buffer-timeout`.
    pub output_buffer_timeout_ms: u64,
    /// `--min-output-buffer-timeout`.
    pub min_output_buffer_timeout_ms: u64,
    /// `--max-output-buffer-timeout`.
    pub max_output_buffer_timeout_ms: u64,
    /// `--msg-timeout`.
    pub msg_timeout_ms: u64,
    /// `--max-msg-timeout`.
    pub max_msg_timeout_ms: u64,
    /// True when a certificate is configured.
    pub tls: bool,
    /// `--deflate`.
    pub deflate: bool,
    /// `--max-deflate-level`, 1..=9.
    pub max_deflate_level: u8,
    /// `--snappy`.
    pub snappy: bool,
    /// True when AUTH is configured, reported only.
    pub auth_required: bool,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_rdy_count: 2_500,
            heartbeat_interval_ms: 30_000,
            max_heartbeat_interval_ms: 60_000,
            output_buffer_size: 16_384,
            max_output_buffer_size: 65_536,
            output_buffer_timeout_ms: 250,
            min_output_buffer_timeout_ms: 25,
            max_output_buffer_timeout_ms: 30_000,
            msg_timeout_ms: 60_000,
            max_msg_timeout_ms: 900_000,
            tls: false,
            deflate: true,
            max_deflate_level: 6,
            snappy: true,
            auth_required: false,
        }
    }
}

/// Shortest heartbeat interval a client may ask for, milliseconds (nsq-tcp 2.1.2).
pub(crate) const HEARTBEAT_MIN_MS: i64 = 1_000;
/// Smallest output buffer a client may ask for, bytes (nsq-tcp 2.1.2).
pub(crate) const OUTPUT_BUFFER_MIN: i64 = 64;
/// Shortest message timeout a client may ask for, milliseconds (nsq-tcp 2.1.2).
pub(crate) const MSG_TIMEOUT_MIN_MS: i64 = 1_000;
/// Largest sample rate in percent (nsq-tcp 2.1.2).
pub(crate) const SAMPLE_RATE_MAX: i32 = 99;
