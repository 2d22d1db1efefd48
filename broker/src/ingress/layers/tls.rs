//! Duty: one connection's TLS, seen from the server (nsq-tcp 6). Comes in: TLS records cut anywhere, plain bytes
//! to send. Goes out: plain bytes, TLS records, what was agreed on. Must not know where certificates come from.

use std::io::{BufRead, Write};
use std::sync::Arc;

use rustls::{CipherSuite, ProtocolVersion, ServerConfig, ServerConnection};
use x509_parser::prelude::{FromDer, X509Certificate};

/// What the two sides agreed on, in the words of `/stats` (nsq-http 1.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// `TLS1.2`, `TLS1.3`, or `Unknown` and the number.
    pub version: String,
    /// The suite's name if it is one that stock nsqd knows, else `Unknown` and its number.
    pub cipher_suite: String,
    /// The protocol agreed on with ALPN, empty if none.
    pub protocol: String,
    /// Whether both sides had a say in that; always true, as in stock nsqd.
    pub protocol_is_mutual: bool,
    /// Common name of the subject of the client's certificate, empty if it sent none or it has none.
    pub common_name: String,
}

#[derive(Debug)]
pub(super) struct Tls {
    connection: ServerConnection,
    peer_has_closed: bool,
}

impl Tls {
    pub(super) fn new(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        let mut connection = ServerConnection::new(config)?;
        // Every call takes along what it produced, so the caller's bounds are the only ones needed.
        connection.set_buffer_limit(None);
        Ok(Self {
            connection,
            peer_has_closed: false,
        })
    }

    pub(super) fn decode(&mut self, mut raw: &[u8], plain: &mut Vec<u8>) -> Result<(), rustls::Error> {
        while !raw.is_empty() {
            // Reading from memory fails only for back-pressure, and nothing is left inside to cause it.
            match self.connection.read_tls(&mut raw) {
                Ok(read) if read > 0 => {}
                _ => break,
            }
            let outcome = self.connection.process_new_packets();
            self.take_plain(plain);
            self.peer_has_closed = outcome?.peer_has_closed();
        }
        Ok(())
    }

    pub(super) fn encode(&mut self, plain: &[u8], raw: &mut Vec<u8>) {
        // Without a limit the buffer takes everything.
        let written = self.connection.writer().write_all(plain);
        debug_assert!(written.is_ok(), "{written:?}");
        self.pending_raw(raw);
    }

    pub(super) fn pending_raw(&mut self, raw: &mut Vec<u8>) {
        while self.connection.wants_write() {
            if self.connection.write_tls(raw).is_err() {
                return;
            }
        }
    }

    pub(super) fn close(&mut self, raw: &mut Vec<u8>) {
        self.connection.send_close_notify();
        self.pending_raw(raw);
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    pub(super) fn peer_has_closed(&self) -> bool {
        self.peer_has_closed
    }

    pub(super) fn facts(&self) -> Option<TlsFacts> {
        if self.is_handshaking() {
            return None;
        }
        let certificate = self
            .connection
            .peer_certificates()
            .and_then(<[_]>::first)
            .map(AsRef::as_ref);
        Some(TlsFacts {
            version: version_name(self.connection.protocol_version()?),
            cipher_suite: suite_name(self.connection.negotiated_cipher_suite()?.suite()),
            protocol: self
                .connection
                .alpn_protocol()
                .map(|protocol| String::from_utf8_lossy(protocol).into_owned())
                .unwrap_or_default(),
            protocol_is_mutual: true,
            common_name: certificate.and_then(common_name).unwrap_or_default(),
        })
    }

    fn take_plain(&mut self, plain: &mut Vec<u8>) {
        let mut reader = self.connection.reader();
        while let Ok(chunk) = reader.fill_buf() {
            let taken = chunk.len();
            if taken == 0 {
                return;
            }
            plain.extend_from_slice(chunk);
            reader.consume(taken);
        }
    }
}

fn version_name(version: ProtocolVersion) -> String {
    match version {
        ProtocolVersion::TLSv1_2 => "TLS1.2".to_owned(),
        ProtocolVersion::TLSv1_3 => "TLS1.3".to_owned(),
        other => format!("Unknown {}", u16::from(other)),
    }
}

/// Stock nsqd knows 13 suites by name; these are the ones among them that this server offers.
fn suite_name(suite: CipherSuite) -> String {
    match suite {
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => {
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned()
        }
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => {
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".to_owned()
        }
        other => format!("Unknown {}", u16::from(other)),
    }
}

/// The last common name of the subject counts, as in stock nsqd.
fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let name = certificate.subject().iter_common_name().last()?;
    name.as_str().ok().map(str::to_owned)
}
