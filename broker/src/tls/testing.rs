//! Duty: certificates and handshakes for tests. Comes in: names. Goes out: PEM files, outcomes of handshakes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use super::client_certificate::ClientPolicy;
use super::server::ServerTlsSettings;
use super::{MinVersion, provider};

/// An authority whose files live as long as it does.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as files.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { folder, issuer }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A certificate for loopback, issued by this authority.
    pub(crate) fn issue(&self, common_name: &str) -> Pair {
        let key = KeyPair::generate().unwrap();
        let certificate = params(common_name).signed_by(&key, &self.issuer).unwrap();
        self.write(common_name, &certificate.pem(), &key)
    }

    /// A certificate that vouches for itself.
    pub(crate) fn self_signed(&self, common_name: &str) -> Pair {
        let key = KeyPair::generate().unwrap();
        let certificate = params(common_name).self_signed(&key).unwrap();
        self.write(common_name, &certificate.pem(), &key)
    }

    /// A server that shows `pair`.
    pub(crate) fn server_settings(&self, pair: &Pair, client_policy: ClientPolicy) -> ServerTlsSettings {
        ServerTlsSettings {
            certificate: pair.certificate.clone(),
            key: pair.key.clone(),
            root_ca: Some(self.file()),
            client_policy,
            min_version: MinVersion::default(),
        }
    }

    /// A client that trusts this authority, offers `versions` and shows `pair`.
    pub(crate) fn client_config(
        &self,
        pair: Option<&Pair>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(self.file()).unwrap())
            .unwrap();
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match pair {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let chain = vec![CertificateDer::from_pem_file(&pair.certificate).unwrap()];
                let key = PrivateKeyDer::from_pem_file(&pair.key).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        })
    }

    fn write(&self, name: &str, certificate: &str, key: &KeyPair) -> Pair {
        let pair = Pair {
            certificate: self.folder.path().join(format!("{name}.pem")),
            key: self.folder.path().join(format!("{name}.key")),
        };
        std::fs::write(&pair.certificate, certificate).unwrap();
        std::fs::write(&pair.key, key.serialize_pem()).unwrap();
        pair
    }
}

pub(crate) const BOTH: &[&rustls::SupportedProtocolVersion] =
    &[&rustls::version::TLS12, &rustls::version::TLS13];

pub(crate) fn client(config: Arc<ClientConfig>) -> ClientConnection {
    ClientConnection::new(config, ServerName::try_from("127.0.0.1").unwrap()).unwrap()
}

/// Lets both sides talk until neither has more to say; the server's verdict.
pub(crate) fn handshake(server: Arc<ServerConfig>, config: Arc<ClientConfig>) -> Result<(), rustls::Error> {
    let mut server = ServerConnection::new(server).unwrap();
    let mut client = client(config);
    while server.is_handshaking() || client.wants_write() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        assert!(!bytes.is_empty(), "the client waits in vain");
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() {
            server.read_tls(&mut bytes).unwrap();
            server.process_new_packets()?;
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() {
            client.read_tls(&mut bytes).unwrap();
            client.process_new_packets()?;
        }
    }
    Ok(())
}

fn params(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "organisation");
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}
