//! The settings of TLS against real handshakes.

use super::client_certificate::ClientPolicy;
use super::server::ServerTls;
use super::testing::{Authority, BOTH, Pair, handshake};
use super::*;

fn outcome(authority: &Authority, policy: ClientPolicy, shown: Option<&Pair>) -> Result<(), rustls::Error> {
    let server = ServerTls::load(authority.server_settings(&authority.issue("server"), policy)).unwrap();
    for versions in [&BOTH[..1], &BOTH[1..]] {
        handshake(server.config(), authority.client_config(shown, versions))?;
    }
    Ok(())
}

#[test]
fn without_a_policy_nobody_is_asked() {
    let authority = Authority::new();
    assert_eq!(outcome(&authority, ClientPolicy::from_word(""), None), Ok(()));
    assert_eq!(ClientPolicy::from_word("anything"), ClientPolicy::None);
}

#[test]
fn require_takes_any_certificate_but_not_none() {
    let authority = Authority::new();
    let policy = ClientPolicy::from_word("require");
    assert_eq!(
        outcome(&authority, policy, Some(&authority.self_signed("me"))),
        Ok(())
    );
    assert_eq!(
        outcome(&authority, policy, None),
        Err(rustls::Error::NoCertificatesPresented)
    );
}

#[test]
fn require_wants_the_key_to_the_certificate() {
    let authority = Authority::new();
    let stolen = Pair {
        certificate: authority.self_signed("victim").certificate,
        key: authority.self_signed("thief").key,
    };
    let config = authority.client_config(None, BOTH);
    let mut config = (*config).clone();
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(unchecked(&stolen)));
    let settings = authority.server_settings(&authority.issue("server"), ClientPolicy::Require);
    let server = ServerTls::load(settings).unwrap();
    assert_eq!(
        handshake(server.config(), Arc::new(config)),
        Err(rustls::Error::InvalidCertificate(
            rustls::CertificateError::BadSignature
        ))
    );
}

fn unchecked(pair: &Pair) -> rustls::sign::CertifiedKey {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let key = PrivateKeyDer::from_pem_file(&pair.key).unwrap();
    let key = provider().key_provider.load_private_key(key).unwrap();
    rustls::sign::CertifiedKey::new(
        vec![CertificateDer::from_pem_file(&pair.certificate).unwrap()],
        key,
    )
}

#[test]
fn require_verify_takes_only_whom_the_authority_vouches_for() {
    let authority = Authority::new();
    let policy = ClientPolicy::from_word("require-verify");
    assert_eq!(
        outcome(&authority, policy, Some(&authority.issue("friend"))),
        Ok(())
    );
    let refused = outcome(&authority, policy, Some(&authority.self_signed("stranger")));
    assert!(
        matches!(refused, Err(rustls::Error::InvalidCertificate(_))),
        "{refused:?}"
    );
    assert!(outcome(&authority, policy, None).is_err());
}

#[test]
fn the_minimum_version_is_kept() {
    assert_eq!("tls1.0".parse(), Ok(MinVersion::Tls12));
    assert_eq!("tls1.1".parse(), Ok(MinVersion::Tls12));
    assert!("ssl3.0".parse::<MinVersion>().is_err());
    let authority = Authority::new();
    let mut settings = authority.server_settings(&authority.issue("server"), ClientPolicy::None);
    settings.min_version = "tls1.3".parse().unwrap();
    let server = ServerTls::load(settings).unwrap();
    assert!(handshake(server.config(), authority.client_config(None, &BOTH[..1])).is_err());
    assert_eq!(
        handshake(server.config(), authority.client_config(None, BOTH)),
        Ok(())
    );
}

#[test]
fn a_reload_takes_effect_and_a_failed_one_changes_nothing() {
    let authority = Authority::new();
    let pair = authority.self_signed("server");
    let server = ServerTls::load(authority.server_settings(&pair, ClientPolicy::None)).unwrap();
    let client = || authority.client_config(None, BOTH);
    assert!(
        handshake(server.config(), client()).is_err(),
        "self-signed is not trusted"
    );

    authority.issue("server");
    server.reload().unwrap();
    assert_eq!(handshake(server.config(), client()), Ok(()));

    std::fs::write(&pair.key, "garbage").unwrap();
    assert!(matches!(server.reload(), Err(TlsError::Pem { .. })));
    assert_eq!(handshake(server.config(), client()), Ok(()));
}

#[test]
fn files_that_make_no_server_are_named() {
    let authority = Authority::new();
    let pair = authority.issue("server");
    let other = authority.issue("other");
    let mixed = Pair {
        certificate: pair.certificate.clone(),
        key: other.key,
    };
    let load = |pair: &Pair| ServerTls::load(authority.server_settings(pair, ClientPolicy::None));
    assert!(matches!(load(&mixed), Err(TlsError::Pair { .. })));
    let empty = Pair {
        certificate: authority.folder().join("empty"),
        key: pair.key,
    };
    assert!(load(&empty).unwrap_err().to_string().contains("empty"));
    std::fs::write(&empty.certificate, "").unwrap();
    assert!(matches!(load(&empty), Err(TlsError::NoCertificate { .. })));
}
