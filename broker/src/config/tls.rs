//! Duty: which encryption is offered and which is demanded. Files are named here, not read.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use serde::{Serialize, Serializer};

use super::fault::{ConfigFault, Faults};

/// Raw flags of TLS.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "TLS")]
pub struct TlsOptions {
    /// Certificate file, PEM
    #[arg(long, default_value = "")]
    pub tls_cert: String,
    /// Private key file, PEM
    #[arg(long, default_value = "")]
    pub tls_key: String,
    /// Client certificates: require (any) or require-verify (signed by --tls-root-ca-file). Makes TLS required
    #[arg(long, default_value = "")]
    pub tls_client_auth_policy: String,
    /// File of the authorities that sign client certificates and HTTPS auth servers, PEM
    #[arg(long, default_value = "")]
    pub tls_root_ca_file: String,
    /// Refuse what is not encrypted: true, false, or tcp-https to leave plain HTTP open
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub tls_required: TlsRequired,
    /// Oldest TLS version taken: tls1.0, tls1.1, tls1.2 or tls1.3. Nothing older than 1.2 is ever negotiated
    #[arg(long, default_value = "tls1.0")]
    pub tls_min_version: TlsVersion,
}

/// Who must use TLS. Serialises as stock's number. Source: nsq-http-and-tools 1.2, 1.11.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsRequired {
    /// Nobody.
    #[default]
    No = 0,
    /// TCP clients; plain HTTP serves.
    TcpHttps = 1,
    /// Everybody.
    Yes = 2,
}

/// Not a truth value and not `tcp-https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be true, false or tcp-https")]
pub struct TlsRequiredError;

/// A truth value or `tcp-https`, in any case.
impl FromStr for TlsRequired {
    type Err = TlsRequiredError;

    fn from_str(text: &str) -> Result<Self, TlsRequiredError> {
        let word = text.to_ascii_lowercase();
        if word == "tcp-https" {
            return Ok(Self::TcpHttps);
        }
        let all = nsqx_flags::boolean(&word).map_err(|_| TlsRequiredError)?;
        Ok(if all { Self::Yes } else { Self::No })
    }
}

impl Serialize for TlsRequired {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// A version of TLS. Serialises as its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.0
    V10 = 0x0301,
    /// 1.1
    V11 = 0x0302,
    /// 1.2
    V12 = 0x0303,
    /// 1.3
    V13 = 0x0304,
}

/// The text names no TLS version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown tlsVersionOption {0:?}")]
pub struct TlsVersionError(String);

/// `tls1.0` to `tls1.3` in any case; empty is the default, `tls1.0`.
impl FromStr for TlsVersion {
    type Err = TlsVersionError;

    fn from_str(text: &str) -> Result<Self, TlsVersionError> {
        match text.to_ascii_lowercase().as_str() {
            "" | "tls1.0" => Ok(Self::V10),
            "tls1.1" => Ok(Self::V11),
            "tls1.2" => Ok(Self::V12),
            "tls1.3" => Ok(Self::V13),
            _ => Err(TlsVersionError(text.to_owned())),
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V10 => "tls1.0",
            Self::V11 => "tls1.1",
            Self::V12 => "tls1.2",
            Self::V13 => "tls1.3",
        })
    }
}

impl Serialize for TlsVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(*self as u16)
    }
}

/// Checked settings of TLS.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// Who must use it.
    pub required: TlsRequired,
    /// Certificate and key; without them there is no TLS.
    pub identity: Option<TlsIdentity>,
    /// What is asked of client certificates.
    pub client_certificate: ClientCertificate,
    /// Authorities for client certificates and HTTPS auth servers; `None` = those of the system.
    pub root_ca: Option<PathBuf>,
    /// Oldest version taken.
    pub min_version: TlsVersion,
}

/// The files that make TLS possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsIdentity {
    /// Certificate chain, PEM.
    pub certificate: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
}

/// What is asked of a client's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificate {
    /// None is requested.
    NotRequested,
    /// There must be one, whoever signed it.
    Any,
    /// There must be one that a known authority signed.
    Verified,
}

impl TlsOptions {
    pub(super) fn resolve(&self, faults: &mut Faults) -> TlsConfig {
        let required = self.required();
        let identity = self.identity(faults);
        if required != TlsRequired::No && self.tls_cert.is_empty() && self.tls_key.is_empty() {
            faults.add(ConfigFault::TlsRequiredWithoutKey);
        }
        TlsConfig {
            required,
            identity,
            client_certificate: match self.tls_client_auth_policy.as_str() {
                "require" => ClientCertificate::Any,
                "require-verify" => ClientCertificate::Verified,
                _ => ClientCertificate::NotRequested,
            },
            root_ca: (!self.tls_root_ca_file.is_empty()).then(|| PathBuf::from(&self.tls_root_ca_file)),
            min_version: self.tls_min_version,
        }
    }

    /// Any policy for client certificates makes TLS required, as in stock.
    fn required(&self) -> TlsRequired {
        if self.tls_required == TlsRequired::No && !self.tls_client_auth_policy.is_empty() {
            TlsRequired::Yes
        } else {
            self.tls_required
        }
    }

    fn identity(&self, faults: &mut Faults) -> Option<TlsIdentity> {
        let (given, missing) = match (self.tls_cert.is_empty(), self.tls_key.is_empty()) {
            (false, false) => {
                return Some(TlsIdentity {
                    certificate: PathBuf::from(&self.tls_cert),
                    key: PathBuf::from(&self.tls_key),
                });
            }
            (true, true) => return None,
            (false, true) => ("tls-cert", "tls-key"),
            (true, false) => ("tls-key", "tls-cert"),
        };
        faults.add(ConfigFault::Incomplete { given, missing });
        None
    }
}
