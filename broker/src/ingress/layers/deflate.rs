//! Duty: raw deflate (RFC 1951) with a sync flush after every piece, both directions (nsq-tcp 2.1.4). Comes in:
//! bytes cut anywhere, plain bytes to send. Goes out: plain bytes, flushed blocks. Must not know what they mean.

use flate2::{Compress, Compression, Decompress, DecompressError, FlushCompress, FlushDecompress, Status};

/// Both directions of one connection.
#[derive(Debug)]
pub(super) struct Deflate {
    receiving: Decompress,
    sending: Compress,
    has_ended: bool,
}

impl Deflate {
    /// Compresses at `level`, 1..=9.
    pub(super) fn new(level: u8) -> Self {
        Self {
            receiving: Decompress::new(false),
            sending: Compress::new(Compression::new(u32::from(level.clamp(1, 9))), false),
            has_ended: false,
        }
    }

    /// Decodes from the front of `input`. Stops early, and answers true, once `plain` has grown to `plain_end`.
    pub(super) fn decode(
        &mut self,
        input: &mut &[u8],
        plain: &mut Vec<u8>,
        plain_end: usize,
    ) -> Result<bool, DecompressError> {
        loop {
            if self.has_ended {
                *input = &[];
                return Ok(false);
            }
            let start = plain.len();
            if start >= plain_end {
                return Ok(true);
            }
            let room = (input.len() * 4).clamp(ROOM_MIN, ROOM_MAX).min(plain_end - start);
            plain.resize(start + room, 0);
            let (consumed_before, produced_before) = (self.receiving.total_in(), self.receiving.total_out());
            let outcome = self
                .receiving
                .decompress(input, &mut plain[start..], FlushDecompress::None);
            let produced = (self.receiving.total_out() - produced_before) as usize;
            plain.truncate(start + produced);
            *input = &input[(self.receiving.total_in() - consumed_before) as usize..];
            match outcome? {
                Status::StreamEnd => self.has_ended = true,
                // Room that was left free means that nothing more can be had from these bytes.
                Status::Ok | Status::BufError if produced < room && input.is_empty() => return Ok(false),
                Status::BufError if produced == 0 => return Ok(false),
                Status::Ok | Status::BufError => {}
            }
        }
    }

    /// Encodes `plain` and a sync flush.
    pub(super) fn encode(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        let mut rest = plain;
        loop {
            out.reserve(rest.len() / 2 + FLUSH_ROOM);
            let consumed_before = self.sending.total_in();
            // The only error is a wrong stream state, which a safe caller cannot bring about.
            let outcome = self.sending.compress_vec(rest, out, FlushCompress::Sync);
            debug_assert!(outcome.is_ok(), "{outcome:?}");
            rest = &rest[(self.sending.total_in() - consumed_before) as usize..];
            // Room that was left free means that the flush is complete.
            if rest.is_empty() && out.len() < out.capacity() || outcome.is_err() {
                return;
            }
        }
    }

    /// True when the peer has finished its stream, which no client does but on its way out.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }
}

const ROOM_MIN: usize = 512;
const ROOM_MAX: usize = 16 * 1024;
const FLUSH_ROOM: usize = 256;
