//! Duty: what is wrong with bytes that a client of this crate received. Facts only; what a server tells its clients is
//! [`crate::refusal`].

/// Bytes that a correct peer does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtoError {
    /// The size field of a frame or answer is below its fixed part or above the reader's bound.
    #[error("size {size} is outside {min}..={max}")]
    Size {
        /// What the field says.
        size: i64,
        /// Smallest possible size.
        min: u64,
        /// Largest size the reader accepts.
        max: u64,
    },
    /// A frame type other than response, error and message.
    #[error("unknown frame type {0}")]
    FrameType(i32),
    /// A message shorter than its layout.
    #[error("a message of {len} bytes is too short for its layout")]
    MessageCutShort {
        /// Bytes in the frame.
        len: usize,
    },
    /// Not the JSON answer that the command calls for.
    #[error("answer is not the expected JSON")]
    Answer,
}
