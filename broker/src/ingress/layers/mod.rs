//! Duty: what lies between the bytes of a socket and the bytes of the protocol: TLS, snappy, deflate. Comes in:
//! raw bytes as they were read, plain bytes to send. Goes out: the other form of each. Must not know sockets,
//! clocks or commands.
//!
//! A connection starts plain. After an IDENTIFY it adds TLS, then one compression inside it, in the order of
//! nsq-tcp 2.1.4, and sends an `OK` through each new layer:
//!
//! ```text
//! socket  <->  Tls  <->  Snappy or Deflate  <->  protocol
//! ```
//!
//! | file | duty |
//! |---|---|
//! | `tls` | one connection's TLS |
//! | `snappy` | the snappy framing format |
//! | `deflate` | raw deflate with sync flushes |

use std::sync::Arc;

pub use self::snappy::SnappyError;
pub use self::tls::TlsFacts;

use self::deflate::Deflate;
use self::snappy::Snappy;
use self::tls::Tls;

mod deflate;
mod snappy;
#[cfg(test)]
mod tests;
mod tls;

/// The layers of one connection.
///
/// For each read of the socket call [`decode`](Self::decode), and again with no bytes while
/// [`has_more`](Self::has_more) says so; then send what [`pending_raw`](Self::pending_raw) gives, which while
/// TLS is being set up is never nothing for long. For each flush call [`encode`](Self::encode).
#[derive(Debug, Default)]
pub struct Layers {
    tls: Option<Box<Tls>>,
    compression: Compression,
    /// Compressed bytes that were received and not yet decoded.
    held: Vec<u8>,
    has_more: bool,
}

#[derive(Debug, Default)]
enum Compression {
    #[default]
    None,
    Snappy(Box<Snappy>),
    Deflate(Box<Deflate>),
}

/// Why the peer's bytes cannot be read. The connection is of no use afterwards.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The peer broke TLS, or its certificate was refused. An alert may wait in [`Layers::pending_raw`].
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// Not a snappy stream.
    #[error("snappy: {0}")]
    Snappy(#[from] SnappyError),
    /// Not a deflate stream.
    #[error("deflate: {0}")]
    Deflate(#[from] flate2::DecompressError),
}

impl Layers {
    /// True while raw and plain bytes are the same, so that a connection may leave the layers out.
    pub fn is_plain(&self) -> bool {
        self.tls.is_none() && matches!(self.compression, Compression::None)
    }

    /// Turns what was read from the socket into protocol bytes, appended to `plain`. Partial records and chunks
    /// are kept for the next call. One call adds at most [`DECODE_STEP`] bytes and the rest of one snappy chunk
    /// however much a compressed stream would swell; see [`has_more`](Self::has_more).
    ///
    /// # Errors
    /// When the bytes are not what the layers expect. What was decoded before that is in `plain`.
    pub fn decode(&mut self, raw: &[u8], plain: &mut Vec<u8>) -> Result<(), LayerError> {
        let plain_before = plain.len();
        if let Compression::None = self.compression {
            match &mut self.tls {
                None => plain.extend_from_slice(raw),
                Some(tls) => tls.decode(raw, plain)?,
            }
            return Ok(());
        }
        match &mut self.tls {
            Some(tls) => tls.decode(raw, &mut self.held)?,
            None if self.held.is_empty() => return self.decompress_direct(raw, plain, plain_before),
            None => self.held.extend_from_slice(raw),
        }
        let mut held = std::mem::take(&mut self.held);
        let mut rest = held.as_slice();
        let outcome = self.decompress(&mut rest, plain, plain_before + DECODE_STEP);
        let consumed = held.len() - rest.len();
        held.drain(..consumed);
        self.held = held;
        outcome
    }

    /// True when received bytes still hold plain ones that [`decode`](Self::decode) has not handed out. Until
    /// they are taken nothing more should be read from the socket.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Turns protocol bytes into what the socket must carry, appended to `raw`. Each call is a flush: the peer
    /// can decode all of `plain` once it has these bytes.
    pub fn encode(&mut self, plain: &[u8], raw: &mut Vec<u8>) {
        if plain.is_empty() {
            return self.pending_raw(raw);
        }
        let Some(tls) = &mut self.tls else {
            return self.compression.encode(plain, raw);
        };
        if let Compression::None = self.compression {
            return tls.encode(plain, raw);
        }
        let mut compressed = Vec::new();
        self.compression.encode(plain, &mut compressed);
        tls.encode(&compressed, raw);
    }

    /// Appends what TLS itself has to say (handshake, alerts, key updates) to `raw`.
    pub fn pending_raw(&mut self, raw: &mut Vec<u8>) {
        if let Some(tls) = &mut self.tls {
            tls.pending_raw(raw);
        }
    }

    /// From here on raw bytes are TLS, this side being the server.
    ///
    /// # Errors
    /// When the configuration does not allow a connection.
    pub fn start_tls(&mut self, config: Arc<rustls::ServerConfig>) -> Result<(), LayerError> {
        self.tls = Some(Box::new(Tls::new(config)?));
        Ok(())
    }

    /// True from [`start_tls`](Self::start_tls) until both sides have agreed on keys.
    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// From here on the bytes, inside TLS if there is TLS, are a snappy stream in both directions.
    pub fn start_snappy(&mut self) {
        self.compression = Compression::Snappy(Box::new(Snappy::new()));
    }

    /// From here on the bytes, inside TLS if there is TLS, are raw deflate in both directions. `level` is 1..=9.
    pub fn start_deflate(&mut self, level: u8) {
        self.compression = Compression::Deflate(Box::new(Deflate::new(level)));
    }

    /// What was agreed on; `None` without TLS and until its handshake is done.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.tls.as_ref().and_then(|tls| tls.facts())
    }

    /// True when the peer has said that nothing follows (TLS close, end of the deflate stream): an end of file
    /// inside the layers.
    pub fn peer_has_closed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.peer_has_closed())
            || matches!(&self.compression, Compression::Deflate(deflate) if deflate.has_ended())
    }

    /// Appends the TLS farewell to `raw`, to be sent before the socket is closed.
    pub fn close(&mut self, raw: &mut Vec<u8>) {
        if let Some(tls) = &mut self.tls {
            tls.close(raw);
        }
    }

    /// Decodes straight from the caller's bytes and keeps only what is left of them.
    fn decompress_direct(
        &mut self,
        raw: &[u8],
        plain: &mut Vec<u8>,
        plain_before: usize,
    ) -> Result<(), LayerError> {
        let mut rest = raw;
        let outcome = self.decompress(&mut rest, plain, plain_before + DECODE_STEP);
        self.held.extend_from_slice(rest);
        outcome
    }

    fn decompress(
        &mut self,
        input: &mut &[u8],
        plain: &mut Vec<u8>,
        plain_end: usize,
    ) -> Result<(), LayerError> {
        self.has_more = match &mut self.compression {
            Compression::None => false,
            Compression::Snappy(snappy) => snappy.decode(input, plain, plain_end)?,
            Compression::Deflate(deflate) => deflate.decode(input, plain, plain_end)?,
        };
        Ok(())
    }
}

impl Compression {
    fn encode(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::None => out.extend_from_slice(plain),
            Self::Snappy(snappy) => snappy.encode(plain, out),
            Self::Deflate(deflate) => deflate.encode(plain, out),
        }
    }
}

/// Plain bytes after which a call of [`Layers::decode`] stops decompressing.
pub const DECODE_STEP: usize = 128 * 1024;
