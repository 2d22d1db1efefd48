//! Duty: what a configuration can get wrong, in the words an operator sees, and the checks that collect such
//! faults so that all are reported together.

use std::time::Duration;

use nsqx_flags::GoDuration;

/// A value that no broker can run with. Stock's texts where stock has the check: nsq-http-and-tools 4.3.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigFault {
    /// A node id that does not fit into a message id.
    #[error("--node-id must be [0,1024)")]
    NodeId,
    /// No such compression level.
    #[error("--max-deflate-level must be [1,9]")]
    DeflateLevel,
    /// A latency percentile that is no fraction.
    #[error("invalid E2E processing latency percentile: {0}")]
    Percentile(f64),
    /// TLS is demanded but can not be offered.
    #[error("cannot require TLS client connections without TLS key and cert")]
    TlsRequiredWithoutKey,
    /// One half of a pair.
    #[error("--{missing} must be given together with --{given}")]
    Incomplete {
        /// The flag that is there.
        given: &'static str,
        /// The flag that is not.
        missing: &'static str,
    },
    /// Below zero.
    #[error("--{0} must not be negative")]
    Negative(&'static str),
    /// Zero or below.
    #[error("--{0} must be above 0")]
    NotPositive(&'static str),
    /// Too large for the field that carries it.
    #[error("--{flag} must be [{low},{high}]")]
    Range {
        /// The flag.
        flag: &'static str,
        /// Lowest value.
        low: i64,
        /// Highest value.
        high: i64,
    },
    /// An address that must be there.
    #[error("--{0} must not be empty")]
    Empty(&'static str),
    /// An address that can not be a socket file.
    #[error("--{0} must be host:port")]
    NotHostPort(&'static str),
    /// Credentials are demanded that nobody could have.
    #[error("--http-auth={0} needs --auth-http-address or --auth-jwks-url")]
    HttpAuthWithoutAuth(&'static str),
    /// Keys would be fetched over a line that anybody can read and change.
    #[error("--auth-jwks-url must be https, or http on a loopback address")]
    JwksUrl,
}

/// The faults found so far. A check that fails answers zero; it is never used, as there is no `Config` then.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<ConfigFault>);

impl Faults {
    pub(super) fn add(&mut self, fault: ConfigFault) {
        self.0.push(fault);
    }

    /// A count or a number of bytes, 0 included.
    pub(super) fn amount(&mut self, flag: &'static str, value: i64) -> u64 {
        u64::try_from(value).unwrap_or_else(|_| {
            self.add(ConfigFault::Negative(flag));
            0
        })
    }

    /// A count or a number of bytes above 0.
    pub(super) fn positive(&mut self, flag: &'static str, value: i64) -> u64 {
        if value <= 0 {
            self.add(ConfigFault::NotPositive(flag));
        }
        value.unsigned_abs()
    }

    /// A value from `low` to `high`, both at least 0 and included.
    pub(super) fn within(&mut self, flag: &'static str, value: i64, low: i64, high: i64) -> u64 {
        if !(low..=high).contains(&value) {
            self.add(ConfigFault::Range { flag, low, high });
        }
        value.unsigned_abs()
    }

    /// A length of time, 0 included.
    pub(super) fn time(&mut self, flag: &'static str, value: GoDuration) -> Duration {
        value.to_std().unwrap_or_else(|| {
            self.add(ConfigFault::Negative(flag));
            Duration::ZERO
        })
    }

    /// A length of time above 0.
    pub(super) fn positive_time(&mut self, flag: &'static str, value: GoDuration) -> Duration {
        if value.as_nanos() <= 0 {
            self.add(ConfigFault::NotPositive(flag));
        }
        value.to_std().unwrap_or_default()
    }

    /// `checked` when nothing was wrong.
    pub(super) fn or<T>(self, checked: T) -> Result<T, Vec<ConfigFault>> {
        if self.0.is_empty() {
            Ok(checked)
        } else {
            Err(self.0)
        }
    }
}
