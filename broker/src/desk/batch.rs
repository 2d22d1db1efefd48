//! Duty: the messages of one publish, kept in the body they came in so that a body of millions of messages costs
//! no memory beside itself (nsq-http 1.6, 1.7). A body comes in and is checked once; slices of it go out.
//! Must not know HTTP or topics.

use bytes::Bytes;

/// Checked messages of one publish.
#[derive(Clone, Debug)]
pub struct Batch {
    body: Bytes,
    form: Form,
    count: usize,
}

/// Why a body is not a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// A message is longer than allowed.
    #[error("message too big")]
    MessageTooBig,
    /// The body is longer than allowed.
    #[error("body too big")]
    BodyTooBig,
    /// The message count is missing or impossible.
    #[error("bad message count")]
    BadCount,
    /// A message is cut short, empty or longer than allowed.
    #[error("bad message")]
    BadMessage,
}

/// A body that was read up to a limit.
#[derive(Clone, Debug)]
pub struct ReadBody {
    /// At most as many bytes as the limit allows.
    pub bytes: Bytes,
    /// True when the body goes on behind `bytes`.
    pub goes_on: bool,
}

impl Batch {
    /// One message: the whole body.
    pub fn single(body: Bytes) -> Self {
        Self {
            body,
            form: Form::Single,
            count: 1,
        }
    }

    /// The lines of the body; empty ones are no messages. `\r` belongs to its line.
    ///
    /// # Errors
    /// The first fault in the order of the body: a line above `max_msg_size`, or a body that goes on.
    pub fn lines(body: ReadBody, max_msg_size: usize) -> Result<Self, BatchError> {
        let mut count = 0;
        for line in Lines(&body.bytes) {
            let cut_off = body.goes_on && !line.ended;
            if cut_off {
                break;
            }
            if line.text.len() > max_msg_size {
                return Err(BatchError::MessageTooBig);
            }
            if !line.text.is_empty() {
                count += 1;
            }
        }
        if body.goes_on {
            return Err(BatchError::BodyTooBig);
        }
        Ok(Self {
            body: body.bytes,
            form: Form::Lines,
            count,
        })
    }

    /// A big-endian message count, then per message its size and its bytes. What follows the last one is ignored.
    ///
    /// # Errors
    /// As nsq-http 1.7; [`BatchError::BodyTooBig`] when the counted messages reach beyond a body that goes on
    /// (stock reads on without bound).
    pub fn counted(body: ReadBody, max_msg_size: usize, max_body_size: usize) -> Result<Self, BatchError> {
        let most = max_body_size.saturating_sub(4) / 5;
        let (count, mut rest) = split_size(&body.bytes).ok_or(BatchError::BadCount)?;
        if count == 0 || count > most {
            return Err(BatchError::BadCount);
        }
        let cut_short = if body.goes_on {
            BatchError::BodyTooBig
        } else {
            BatchError::BadMessage
        };
        for _ in 0..count {
            if rest.len() < 4 {
                return Err(cut_short);
            }
            let (size, after) = split_size(rest).ok_or(BatchError::BadMessage)?;
            if size == 0 || size > max_msg_size {
                return Err(BatchError::BadMessage);
            }
            rest = after.get(size..).ok_or(cut_short)?;
        }
        Ok(Self {
            body: body.bytes,
            form: Form::Counted,
            count,
        })
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True when there is no message: a text body of nothing but newlines.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The messages in order.
    pub fn messages(&self) -> Messages<'_> {
        Messages {
            rest: match self.form {
                Form::Counted => self.body.get(4..).unwrap_or_default(),
                Form::Single | Form::Lines => &self.body,
            },
            form: self.form,
            left: self.count,
        }
    }
}

/// Walks the messages of a [`Batch`].
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
    form: Form,
    left: usize,
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        match self.form {
            Form::Single => Some(self.rest),
            Form::Lines => {
                let mut lines = Lines(self.rest);
                let line = lines.find(|line| !line.text.is_empty())?;
                self.rest = lines.0;
                Some(line.text)
            }
            Form::Counted => {
                let (size, after) = split_size(self.rest)?;
                let (message, rest) = after.split_at_checked(size)?;
                self.rest = rest;
                Some(message)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Messages<'_> {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Single,
    Lines,
    Counted,
}

struct Lines<'a>(&'a [u8]);

struct Line<'a> {
    text: &'a [u8],
    ended: bool,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let Some(end) = memchr::memchr(b'\n', self.0) else {
            let text = std::mem::take(&mut self.0);
            return Some(Line { text, ended: false });
        };
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(Line { text, ended: true })
    }
}

/// The big-endian `int32` at the start of `bytes` and what follows; `None` when it is cut short or negative.
fn split_size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    Some((usize::try_from(i32::from_be_bytes(*size)).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(bytes: &[u8]) -> ReadBody {
        ReadBody {
            bytes: Bytes::copy_from_slice(bytes),
            goes_on: false,
        }
    }

    fn cut(bytes: &[u8]) -> ReadBody {
        ReadBody {
            goes_on: true,
            ..whole(bytes)
        }
    }

    fn counted(count: i32, messages: &[&[u8]]) -> Vec<u8> {
        let mut body = count.to_be_bytes().to_vec();
        for message in messages {
            body.extend((message.len() as i32).to_be_bytes());
            body.extend(*message);
        }
        body
    }

    fn all(batch: &Batch) -> Vec<&[u8]> {
        batch.messages().collect()
    }

    #[test]
    fn h_11_empty_lines_are_no_messages() {
        let batch = Batch::lines(whole(b"a\nb\n\nc\n"), 10).unwrap();
        assert_eq!(all(&batch), [b"a", b"b", b"c"]);
        assert_eq!(batch.len(), 3);
        let batch = Batch::lines(whole(b"\n\na\nlast"), 10).unwrap();
        assert_eq!(all(&batch), [&b"a"[..], b"last"]);
    }

    #[test]
    fn h_13_carriage_returns_stay() {
        assert_eq!(
            all(&Batch::lines(whole(b"a\r\n\r\n"), 10).unwrap()),
            [&b"a\r"[..], b"\r"]
        );
    }

    #[test]
    fn h_14_the_first_fault_of_a_text_body_counts() {
        assert_eq!(
            Batch::lines(whole(b"a\nlong\nb"), 3).unwrap_err(),
            BatchError::MessageTooBig
        );
        assert_eq!(
            Batch::lines(cut(b"a\nlong\nb"), 3).unwrap_err(),
            BatchError::MessageTooBig
        );
        assert_eq!(
            Batch::lines(cut(b"a\nlong"), 3).unwrap_err(),
            BatchError::BodyTooBig
        );
    }

    #[test]
    fn h_18_a_count_must_be_there_and_possible() {
        for body in [&b""[..], b"\0\0\0", &counted(0, &[]), &counted(-1, &[])] {
            assert_eq!(
                Batch::counted(whole(body), 10, 100).unwrap_err(),
                BatchError::BadCount
            );
        }
        assert_eq!(
            Batch::counted(whole(&counted(20, &[])), 10, 100).unwrap_err(),
            BatchError::BadCount
        );
    }

    #[test]
    fn h_19_a_bad_message_spoils_the_batch() {
        for body in [
            counted(1, &[b""]),
            counted(2, &[b"a"]),
            counted(1, &[b"eleven byte"]),
        ] {
            assert_eq!(
                Batch::counted(whole(&body), 10, 100).unwrap_err(),
                BatchError::BadMessage
            );
        }
        let short = &counted(1, &[b"abc"])[..9];
        assert_eq!(
            Batch::counted(whole(short), 10, 100).unwrap_err(),
            BatchError::BadMessage
        );
        assert_eq!(
            Batch::counted(cut(short), 10, 100).unwrap_err(),
            BatchError::BodyTooBig
        );
    }

    #[test]
    fn h_20_bytes_after_the_last_message_are_ignored() {
        let mut body = counted(2, &[b"one", b"two"]);
        body.extend(b"rest");
        assert_eq!(
            all(&Batch::counted(whole(&body), 10, 100).unwrap()),
            [b"one", b"two"]
        );
        assert_eq!(Batch::counted(cut(&body), 10, 100).unwrap().len(), 2);
    }

    proptest! {
        #[test]
        fn any_body_ends_in_a_batch_that_gives_what_it_counts(bytes: Vec<u8>, goes_on: bool) {
            let body = ReadBody { bytes: bytes.into(), goes_on };
            if let Ok(batch) = Batch::lines(body.clone(), 5) {
                prop_assert_eq!(batch.messages().count(), batch.len());
            }
            if let Ok(batch) = Batch::counted(body, 5, 1000) {
                prop_assert_eq!(batch.messages().count(), batch.len());
            }
        }
    }
}
