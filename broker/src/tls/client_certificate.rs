//! Duty: which client certificates a server asks for and accepts (nsq-tcp 6). Comes in: the policy's word,
//! certificates. Goes out: a rustls verifier. Must not know connections.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use super::{TlsError, trust};

/// Which client certificates are accepted (`--tls-client-auth-policy`). Those of X.509 version 1 never are: they
/// cannot be looked into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientPolicy {
    /// None is asked for.
    #[default]
    None,
    /// One must be sent, any will do.
    Require,
    /// One must be sent that a trusted authority vouches for.
    RequireVerify,
}

impl ClientPolicy {
    /// The policy behind a word of the configuration. As in stock nsqd an unknown word asks for no certificate.
    pub fn from_word(word: &str) -> Self {
        match word {
            "require" => Self::Require,
            "require-verify" => Self::RequireVerify,
            _ => Self::None,
        }
    }

    pub(super) fn verifier(
        self,
        root_ca: Option<&Path>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        match self {
            Self::None => Ok(Arc::new(NoClientAuth)),
            Self::Require => Ok(Arc::new(AnyCertificate {
                provider: Arc::clone(provider),
            })),
            Self::RequireVerify => {
                let roots = Arc::new(trust::roots(root_ca)?);
                Ok(WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider)).build()?)
            }
        }
    }
}

/// Takes any certificate, and has the client prove that it holds the key to it: else anyone could show the
/// certificate of somebody else.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
