//! Duty: raw deflate with a sync flush after every write (nsq-tcp 2.1.4).

use std::fmt;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

/// Both directions of a deflate connection.
pub struct Deflate {
    compress: Compress,
    decompress: Decompress,
}

impl Deflate {
    /// Fresh streams.
    pub fn new() -> Self {
        Self {
            compress: Compress::new(Compression::default(), false),
            decompress: Decompress::new(false),
        }
    }

    /// `plain` as bytes that the peer can decode at once.
    pub fn encode(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(plain.len() + 1024);
        self.compress
            .compress_vec(plain, &mut bytes, FlushCompress::Sync)
            .expect("deflate");
        assert!(bytes.len() < bytes.capacity(), "room for the sync flush");
        bytes
    }

    /// Appends to `plain` all that `received` gives.
    ///
    /// # Panics
    /// When `received` is not raw deflate.
    pub fn decode(&mut self, received: &[u8], plain: &mut Vec<u8>) {
        let mut rest = received;
        loop {
            plain.reserve(64 * 1024);
            let (taken, given) = (self.decompress.total_in(), self.decompress.total_out());
            self.decompress
                .decompress_vec(rest, plain, FlushDecompress::Sync)
                .expect("raw deflate");
            rest = &rest[(self.decompress.total_in() - taken) as usize..];
            if rest.is_empty() && self.decompress.total_out() == given {
                return;
            }
        }
    }
}

impl Default for Deflate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Deflate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Deflate")
    }
}
