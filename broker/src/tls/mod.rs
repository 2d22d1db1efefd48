//! Duty: what TLS needs before there is a connection: certificates, keys, who is trusted. Comes in: file names
//! and policies. Goes out: ready rustls configurations for the doors and for outgoing calls. Must not know what
//! is said over TLS.
//!
//! | file | duty |
//! |---|---|
//! | `server` | the configuration of the listening side, reloadable |
//! | `client_certificate` | which client certificates are asked for and accepted |
//! | `trust` | trusted authorities, and the configuration of outgoing calls |

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;

pub mod client_certificate;
pub mod server;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod trust;

/// Lowest version to agree to (`--tls-min-version`).
///
/// `tls1.0` (the default) and `tls1.1` are accepted as values so that existing configurations work, and mean
/// TLS 1.2: older versions are broken and not offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2 and 1.3.
    #[default]
    Tls12,
    /// TLS 1.3 only.
    Tls13,
}

/// A word that names no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown TLS version {0:?}, want tls1.0, tls1.1, tls1.2 or tls1.3")]
pub struct UnknownVersion(String);

/// Why TLS cannot be set up. Names files, never what is in them.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read, or not as PEM.
    #[error("cannot read {what} from {path}: {source}")]
    Pem {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: rustls::pki_types::pem::Error,
    },
    /// A file without any certificate in it.
    #[error("no certificate in {path}")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate that cannot serve as an authority.
    #[error("certificate in {path} is no usable authority: {source}")]
    Authority {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: rustls::Error,
    },
    /// The operating system trusts nobody, or does not say whom.
    #[error("no trusted authorities found on this system")]
    NoSystemAuthorities,
    /// The client policy cannot be carried out.
    #[error("client certificates cannot be checked: {0}")]
    ClientPolicy(#[from] rustls::server::VerifierBuilderError),
    /// Certificate and key do not fit, or one of them is of no use.
    #[error("certificate {certificate} with key {key}: {source}")]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What was wrong.
        source: rustls::Error,
    },
    /// The cryptography does not offer the versions asked for.
    #[error("TLS: {0}")]
    Versions(rustls::Error),
}

impl FromStr for MinVersion {
    type Err = UnknownVersion;

    fn from_str(word: &str) -> Result<Self, UnknownVersion> {
        match word {
            "tls1.0" | "tls1.1" | "tls1.2" => Ok(Self::Tls12),
            "tls1.3" => Ok(Self::Tls13),
            other => Err(UnknownVersion(other.to_owned())),
        }
    }
}

impl MinVersion {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => &FROM_12,
            Self::Tls13 => &FROM_13,
        }
    }
}

/// The cryptography of all TLS here; named, so that no crate's feature can change it.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

static FROM_12: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];
static FROM_13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
