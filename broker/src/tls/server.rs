//! Duty: the TLS configuration of the listening side, for the TCP port and HTTPS alike, and its reload while
//! connections live. Comes in: file names, policy. Goes out: `Arc<ServerConfig>`. Must not know listeners.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};

use super::client_certificate::ClientPolicy;
use super::{MinVersion, TlsError, provider};

/// What the server's TLS is made of (nsq-tcp 6).
#[derive(Clone, Debug)]
pub struct ServerTlsSettings {
    /// PEM file with the certificate chain, the server's own first (`--tls-cert`).
    pub certificate: PathBuf,
    /// PEM file with the private key (`--tls-key`).
    pub key: PathBuf,
    /// PEM file with the authorities for client certificates; the system's if `None` (`--tls-root-ca-file`).
    pub root_ca: Option<PathBuf>,
    /// Which client certificates are accepted (`--tls-client-auth-policy`).
    pub client_policy: ClientPolicy,
    /// Lowest version (`--tls-min-version`).
    pub min_version: MinVersion,
}

/// The server's TLS configuration as its files were when they were last read.
#[derive(Debug)]
pub struct ServerTls {
    settings: ServerTlsSettings,
    current: RwLock<Arc<ServerConfig>>,
}

impl ServerTls {
    /// Reads the files. Blocks on the disk.
    ///
    /// # Errors
    /// When a file cannot be read or certificate, key and policy do not make a server.
    pub fn load(settings: ServerTlsSettings) -> Result<Self, TlsError> {
        let current = RwLock::new(Arc::new(build(&settings)?));
        Ok(Self { settings, current })
    }

    /// The configuration for a new connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read())
    }

    /// Reads the files again, for connections from now on. Blocks on the disk.
    ///
    /// # Errors
    /// As [`ServerTls::load`]; the configuration from before then stays in force.
    pub fn reload(&self) -> Result<(), TlsError> {
        let config = Arc::new(build(&self.settings)?);
        *self.current.write() = config;
        Ok(())
    }
}

fn build(settings: &ServerTlsSettings) -> Result<ServerConfig, TlsError> {
    let provider = provider();
    let pair = |source| TlsError::Pair {
        certificate: settings.certificate.clone(),
        key: settings.key.clone(),
        source,
    };
    let chain = read_certificates(&settings.certificate)?;
    let key = read_key(&settings.key)?;
    let key = provider.key_provider.load_private_key(key).map_err(pair)?;
    let certified = CertifiedKey::new(chain, key);
    // Other errors say that the two cannot be compared: the case with old self-made certificates (X.509
    // version 1), which serve their purpose all the same.
    if let Err(source @ rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) =
        certified.keys_match()
    {
        return Err(pair(source));
    }
    let verifier = settings
        .client_policy
        .verifier(settings.root_ca.as_deref(), &provider)?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(settings.min_version.versions())
        .map_err(TlsError::Versions)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    Ok(config)
}

/// All certificates of a PEM file, at least one.
pub(super) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |source| TlsError::Pem {
        what: "certificates",
        path: path.to_owned(),
        source,
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable)?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate {
            path: path.to_owned(),
        });
    }
    Ok(certificates)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|source| TlsError::Pem {
        what: "a private key",
        path: path.to_owned(),
        source,
    })
}
