//! Duty: the snappy framing format, chunk by chunk (nsq-tcp 2.1.4).

use std::io::{Read, Write};

/// The chunk that opens a stream.
pub const IDENTIFIER: &[u8] = b"\xff\x06\x00\x00sNaPpY";

/// One data chunk (compressed if that is shorter) with no stream identifier before it.
pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).expect("write to memory");
    let stream = encoder.into_inner().expect("flush to memory");
    stream
        .strip_prefix(IDENTIFIER)
        .expect("stream identifier first")
        .to_vec()
}

/// A chunk that every reader skips.
pub fn padding(length: u8) -> Vec<u8> {
    let mut chunk = vec![0xfe, length, 0, 0];
    chunk.resize(4 + usize::from(length), 0);
    chunk
}

/// Takes whole chunks out of received bytes and gives what they hold.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    identified: bool,
}

impl Decoder {
    /// Appends to `plain` what `received` completes.
    ///
    /// # Panics
    /// When the stream does not begin with its identifier, or a chunk is corrupt.
    pub fn decode(&mut self, received: &[u8], plain: &mut Vec<u8>) {
        self.pending.extend_from_slice(received);
        while let Some(chunk) = self.take_chunk() {
            if chunk == IDENTIFIER {
                self.identified = true;
                continue;
            }
            assert!(
                self.identified,
                "snappy stream begins with {}",
                chunk.escape_ascii()
            );
            let stream = [IDENTIFIER, &chunk].concat();
            snap::read::FrameDecoder::new(&*stream)
                .read_to_end(plain)
                .expect("snappy chunk");
        }
    }

    fn take_chunk(&mut self) -> Option<Vec<u8>> {
        let [_, low, middle, high] = *self.pending.first_chunk::<4>()?;
        let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
        (self.pending.len() >= 4 + length).then(|| self.pending.drain(..4 + length).collect())
    }
}
