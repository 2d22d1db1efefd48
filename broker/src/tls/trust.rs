//! Duty: whom this process trusts, and the TLS configuration of its outgoing calls. Comes in: the root file.
//! Goes out: authorities, `ClientConfig`. Must not know whom is called.

use std::path::Path;

use rustls::{ClientConfig, RootCertStore};

use super::{MinVersion, TlsError, provider, server};

/// The authorities in `root_ca`, else those of the operating system. Blocks on the disk.
///
/// # Errors
/// When the file holds no usable authority, or the system none at all.
pub fn roots(root_ca: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = root_ca else {
        // A system's list may hold some that are of no use; the others are good nevertheless.
        let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return if added == 0 {
            Err(TlsError::NoSystemAuthorities)
        } else {
            Ok(roots)
        };
    };
    for certificate in server::read_certificates(path)? {
        roots.add(certificate).map_err(|source| TlsError::Authority {
            path: path.to_owned(),
            source,
        })?;
    }
    Ok(roots)
}

/// The configuration of outgoing calls that accept who is vouched for by `roots`.
///
/// # Errors
/// When the cryptography does not offer such a version.
pub fn client_config(roots: RootCertStore, min_version: MinVersion) -> Result<ClientConfig, TlsError> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(min_version.versions())
        .map_err(TlsError::Versions)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
