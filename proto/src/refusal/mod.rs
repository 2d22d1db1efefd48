//! Duty: an error as a server sends it: code, description, fatal or not. Facts come in, the exact text goes out.
//! Must not know how the text is framed.

use std::borrow::Cow;
use std::fmt;

use bytes::BufMut;

use crate::code::{ErrorCode, Severity};

mod texts;

/// An error of the wire. Its text is `CODE`, one space, description; the description is bytes, since some quote the
/// client verbatim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    code: ErrorCode,
    description: Cow<'static, [u8]>,
    fatal: bool,
}

impl WireError {
    /// An error with a fixed or formatted description. Fatal unless the code is always non-fatal.
    pub fn new(code: ErrorCode, description: impl Into<Cow<'static, str>>) -> Self {
        let description = match description.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Self::from_bytes(code, description)
    }

    /// An error whose description quotes the client's bytes: `parts` one after another.
    pub fn quoting(code: ErrorCode, parts: &[&[u8]]) -> Self {
        Self::from_bytes(code, Cow::Owned(parts.concat()))
    }

    fn from_bytes(code: ErrorCode, description: Cow<'static, [u8]>) -> Self {
        let fatal = code.severity() != Severity::NonFatal;
        Self {
            code,
            description,
            fatal,
        }
    }

    fn fatal_if(mut self, fatal: bool) -> Self {
        self.fatal = fatal;
        self
    }

    /// First word of the text.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// True when the connection is closed after this error was sent.
    pub fn is_fatal(&self) -> bool {
        self.fatal
    }

    /// What follows the code.
    pub fn description(&self) -> &[u8] {
        &self.description
    }

    /// Bytes that [`WireError::put`] will add.
    pub fn text_len(&self) -> usize {
        self.code.text().len() + self.separator().len() + self.description.len()
    }

    /// Appends the text.
    pub fn put(&self, out: &mut impl BufMut) {
        out.put_slice(self.code.text().as_bytes());
        out.put_slice(self.separator());
        out.put_slice(&self.description);
    }

    /// The text as bytes of its own.
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.text_len());
        self.put(&mut text);
        text
    }

    /// Every text has the space, even before nothing (youzan-extension 2.1); only the magic's error is a bare code.
    fn separator(&self) -> &'static [u8] {
        match self.code {
            ErrorCode::BadProtocol if self.description.is_empty() => b"",
            _ => b" ",
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.description.escape_ascii())
    }
}

impl std::error::Error for WireError {}
