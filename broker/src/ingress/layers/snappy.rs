//! Duty: the snappy framing format, both directions (nsq-tcp 2.1.4). Comes in: bytes cut anywhere, plain bytes
//! to send. Goes out: plain bytes, whole chunks. Must not know what the bytes mean.
//!
//! ```text
//! chunk: kind u8 | length u24 little-endian | content
//!   ff      stream identifier "sNaPpY"; the first chunk, and again at any time
//!   00, 01  masked CRC-32C of the plain bytes, u32 little-endian | compressed or plain bytes, at most 65,536 plain
//!   80..fe  skipped
//! ```

/// Both directions of one connection.
pub(super) struct Snappy {
    awaiting: Awaiting,
    /// The part of the current chunk that has arrived, when it did not arrive in one piece. Below [`CHUNK_MAX`].
    partial: Vec<u8>,
    decoder: snap::raw::Decoder,
    encoder: snap::raw::Encoder,
    identifier_sent: bool,
}

/// Where in the received stream we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaiting {
    /// At the very start.
    Identifier,
    /// At or in a chunk.
    Chunk,
    /// In a chunk to skip, with so many bytes left of it.
    Skipped(usize),
}

/// Why bytes are not a snappy stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnappyError {
    /// The stream does not begin with its identifier, or the identifier is spelled wrong.
    #[error("no stream identifier")]
    Identifier,
    /// A chunk of a kind that must be understood and is not.
    #[error("chunk of unknown kind {0:#04x}")]
    Kind(u8),
    /// A chunk of an impossible length.
    #[error("chunk of kind {kind:#04x} with impossible length {length}")]
    Length {
        /// The chunk's kind.
        kind: u8,
        /// Its length in bytes: of the content as sent, or what it claims to decompress to.
        length: usize,
    },
    /// A compressed block that does not decompress.
    #[error(transparent)]
    Block(#[from] snap::Error),
    /// The checksum does not fit the bytes.
    #[error("chunk checksum does not fit")]
    Checksum,
}

impl Snappy {
    pub(super) fn new() -> Self {
        Self {
            awaiting: Awaiting::Identifier,
            partial: Vec::new(),
            decoder: snap::raw::Decoder::new(),
            encoder: snap::raw::Encoder::new(),
            identifier_sent: false,
        }
    }

    /// Decodes whole chunks from the front of `input` and keeps a last partial one. Stops early, and answers
    /// true, once `plain` has grown to `plain_end`; at most one chunk beyond it.
    pub(super) fn decode(
        &mut self,
        input: &mut &[u8],
        plain: &mut Vec<u8>,
        plain_end: usize,
    ) -> Result<bool, SnappyError> {
        loop {
            if let Awaiting::Skipped(left) = self.awaiting {
                let skipped = left.min(input.len());
                *input = &input[skipped..];
                if skipped < left {
                    self.awaiting = Awaiting::Skipped(left - skipped);
                    return Ok(false);
                }
                self.awaiting = Awaiting::Chunk;
            }
            if input.is_empty() {
                return Ok(false);
            }
            if plain.len() >= plain_end {
                return Ok(true);
            }
            if !self.decode_chunk(input, plain)? {
                return Ok(false);
            }
        }
    }

    /// Encodes `plain` as chunks, after the stream identifier if nothing was sent yet.
    pub(super) fn encode(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        if !self.identifier_sent {
            out.extend_from_slice(&IDENTIFIER);
            self.identifier_sent = true;
        }
        for block in plain.chunks(BLOCK_MAX) {
            self.encode_block(block, out);
        }
    }

    /// Takes one chunk, or for a chunk to skip its head. False when it has not wholly arrived.
    fn decode_chunk(&mut self, input: &mut &[u8], plain: &mut Vec<u8>) -> Result<bool, SnappyError> {
        if self.partial.is_empty()
            && let Some(head) = input.first_chunk::<HEAD>()
        {
            let (kind, length) = self.check_head(*head)?;
            if let SKIPPED_FIRST..=SKIPPED_LAST = kind {
                *input = &input[HEAD..];
                self.awaiting = Awaiting::Skipped(length);
                return Ok(true);
            }
            if let Some((chunk, rest)) = input.split_at_checked(HEAD + length) {
                *input = rest;
                self.decode_content(kind, &chunk[HEAD..], plain)?;
                return Ok(true);
            }
        }
        self.continue_partial(input, plain)
    }

    /// As [`Self::decode_chunk`], for a chunk that arrives in pieces.
    fn continue_partial(&mut self, input: &mut &[u8], plain: &mut Vec<u8>) -> Result<bool, SnappyError> {
        if !self.fill_partial(input, HEAD) {
            return Ok(false);
        }
        let head = [self.partial[0], self.partial[1], self.partial[2], self.partial[3]];
        let (kind, length) = self.check_head(head)?;
        if let SKIPPED_FIRST..=SKIPPED_LAST = kind {
            self.partial.clear();
            self.awaiting = Awaiting::Skipped(length);
            return Ok(true);
        }
        if !self.fill_partial(input, HEAD + length) {
            return Ok(false);
        }
        let mut chunk = std::mem::take(&mut self.partial);
        let outcome = self.decode_content(kind, &chunk[HEAD..], plain);
        chunk.clear();
        self.partial = chunk;
        outcome.map(|()| true)
    }

    /// Moves bytes over until the partial chunk has `wanted` of them; false when `input` holds too few.
    fn fill_partial(&mut self, input: &mut &[u8], wanted: usize) -> bool {
        let missing = wanted.saturating_sub(self.partial.len()).min(input.len());
        let (moved, rest) = input.split_at(missing);
        self.partial.extend_from_slice(moved);
        *input = rest;
        self.partial.len() >= wanted
    }

    /// Kind and length of a chunk, checked before any of its content is waited for.
    fn check_head(&self, head: [u8; HEAD]) -> Result<(u8, usize), SnappyError> {
        let kind = head[0];
        let length = usize::from(head[1]) | usize::from(head[2]) << 8 | usize::from(head[3]) << 16;
        if self.awaiting == Awaiting::Identifier && head != IDENTIFIER[..HEAD] {
            return Err(SnappyError::Identifier);
        }
        let longest = match kind {
            KIND_COMPRESSED => CHUNK_MAX,
            KIND_PLAIN => CHECKSUM + BLOCK_MAX,
            SKIPPED_FIRST..=SKIPPED_LAST => return Ok((kind, length)),
            KIND_IDENTIFIER if length == IDENTIFIER.len() - HEAD => return Ok((kind, length)),
            KIND_IDENTIFIER => return Err(SnappyError::Identifier),
            unknown => return Err(SnappyError::Kind(unknown)),
        };
        if (CHECKSUM..=longest).contains(&length) {
            Ok((kind, length))
        } else {
            Err(SnappyError::Length { kind, length })
        }
    }

    fn decode_content(&mut self, kind: u8, content: &[u8], plain: &mut Vec<u8>) -> Result<(), SnappyError> {
        if kind == KIND_IDENTIFIER {
            if content != &IDENTIFIER[HEAD..] {
                return Err(SnappyError::Identifier);
            }
            self.awaiting = Awaiting::Chunk;
            return Ok(());
        }
        let (checksum, block) = content.split_at(CHECKSUM);
        let start = plain.len();
        if kind == KIND_PLAIN {
            plain.extend_from_slice(block);
        } else {
            let length = snap::raw::decompress_len(block)?;
            if length > BLOCK_MAX {
                return Err(SnappyError::Length { kind, length });
            }
            plain.resize(start + length, 0);
            if let Err(error) = self.decoder.decompress(block, &mut plain[start..]) {
                plain.truncate(start);
                return Err(error.into());
            }
        }
        if masked_checksum(&plain[start..]).to_le_bytes() == checksum {
            Ok(())
        } else {
            plain.truncate(start);
            Err(SnappyError::Checksum)
        }
    }

    fn encode_block(&mut self, block: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let body = start + HEAD + CHECKSUM;
        out.resize(body + snap::raw::max_compress_len(block.len()), 0);
        // The buffer has the size that the encoder asks for, so it cannot fail; were it to, plain is right too.
        let compressed = self
            .encoder
            .compress(block, &mut out[body..])
            .unwrap_or(block.len());
        // Below an eighth saved, the peer's work to decompress is not worth it.
        let kind = if compressed < block.len() - block.len() / 8 {
            out.truncate(body + compressed);
            KIND_COMPRESSED
        } else {
            out.truncate(body);
            out.extend_from_slice(block);
            KIND_PLAIN
        };
        let length = (out.len() - start - HEAD) as u32;
        out[start..start + HEAD].copy_from_slice(&(length << 8 | u32::from(kind)).to_le_bytes());
        out[start + HEAD..body].copy_from_slice(&masked_checksum(block).to_le_bytes());
    }
}

impl std::fmt::Debug for Snappy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snappy")
            .field("awaiting", &self.awaiting)
            .field("partial", &self.partial.len())
            .finish_non_exhaustive()
    }
}

/// The format stores no bare CRC, so that data which holds checksums of its own keeps them meaningful.
fn masked_checksum(plain: &[u8]) -> u32 {
    crc32c::crc32c(plain).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Most plain bytes of one chunk.
const BLOCK_MAX: usize = 65_536;
/// Longest content of a compressed chunk: the checksum and [`BLOCK_MAX`] bytes that do not compress.
const CHUNK_MAX: usize = CHECKSUM + 76_490;
const HEAD: usize = 4;
const CHECKSUM: usize = 4;
const IDENTIFIER: [u8; 10] = *b"\xff\x06\0\0sNaPpY";
const KIND_COMPRESSED: u8 = 0x00;
const KIND_PLAIN: u8 = 0x01;
const KIND_IDENTIFIER: u8 = 0xff;
const SKIPPED_FIRST: u8 = 0x80;
const SKIPPED_LAST: u8 = 0xfe;
