//! Duty: certificates for TLS tests: one authority, a server, clients.
//!
//! In: nothing. Out: PEM files for a broker's flags and configurations for clients.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

/// An authority with a server certificate it signed, as files.
#[derive(Debug)]
pub struct Pki {
    folder: TempDir,
    authority: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Pki {
    /// A fresh authority and a server certificate for 127.0.0.1 and `localhost`, by which name some client
    /// libraries check it.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("pki-")
            .tempdir()
            .expect("folder for certificates");
        let mut params = named("test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("key");
        let certificate = params.self_signed(&key).expect("certificate");
        fs::write(folder.path().join(AUTHORITY), certificate.pem()).expect("authority file");
        let pki = Self {
            folder,
            authority: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        };
        pki.write_server();
        pki
    }

    /// `--tls-cert` and `--tls-key`.
    pub fn server_flags(&self) -> Vec<String> {
        let (certificate, key) = (self.file(SERVER), self.file(SERVER_KEY));
        vec![
            format!("--tls-cert={}", certificate.display()),
            format!("--tls-key={}", key.display()),
        ]
    }

    /// The authority's certificate in PEM.
    pub fn authority_file(&self) -> PathBuf {
        self.file(AUTHORITY)
    }

    /// A client certificate with this common name, signed by the authority.
    pub fn signed_client(&self, name: &str) -> Identity {
        let key = KeyPair::generate().expect("key");
        let certificate = named(name).signed_by(&key, &self.issuer).expect("certificate");
        Identity::new(certificate.der(), &key)
    }

    /// A client certificate that only vouches for itself.
    pub fn self_signed_client(&self, name: &str) -> Identity {
        let key = KeyPair::generate().expect("key");
        let certificate = named(name).self_signed(&key).expect("certificate");
        Identity::new(certificate.der(), &key)
    }

    /// A client that trusts the authority and shows no certificate.
    pub fn client(&self) -> Arc<ClientConfig> {
        Arc::new(
            ClientConfig::builder()
                .with_root_certificates(self.roots())
                .with_no_client_auth(),
        )
    }

    /// A client that trusts the authority and shows `identity`.
    pub fn client_as(&self, identity: Identity) -> Arc<ClientConfig> {
        let chain = vec![identity.certificate];
        let config = ClientConfig::builder()
            .with_root_certificates(self.roots())
            .with_client_auth_cert(chain, PrivateKeyDer::Pkcs8(identity.key));
        Arc::new(config.expect("client certificate"))
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).expect("authority");
        roots
    }

    fn write_server(&self) {
        let key = KeyPair::generate().expect("key");
        let mut params = named("test server");
        params.subject_alt_names = vec![
            SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            SanType::DnsName("localhost".try_into().expect("DNS name")),
        ];
        let certificate = params.signed_by(&key, &self.issuer).expect("certificate");
        fs::write(self.file(SERVER), certificate.pem()).expect("certificate file");
        fs::write(self.file(SERVER_KEY), key.serialize_pem()).expect("key file");
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }
}

impl Default for Pki {
    fn default() -> Self {
        Self::new()
    }
}

impl Identity {
    fn new(certificate: &CertificateDer<'static>, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.clone(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
        }
    }
}

/// The name that the server certificate is made out to.
pub fn server_name() -> ServerName<'static> {
    ServerName::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST).into())
}

fn named(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

const AUTHORITY: &str = "authority.pem";
const SERVER: &str = "server.pem";
const SERVER_KEY: &str = "server.key";
