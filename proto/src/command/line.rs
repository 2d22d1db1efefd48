//! Duty: a command line cut into words (nsq-tcp 1.3): LF ends it, one CR before LF goes, every single space separates.
//! Must not know verbs.

/// The words of a line. More than six are counted as six and kept nowhere: no command reads them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    words: [&'a [u8]; WORDS_MAX],
    count: usize,
    /// Bytes of the line, LF included.
    pub(crate) len: usize,
}

impl<'a> Line<'a> {
    /// Cuts the line of `len` bytes, LF included, that starts `input`.
    pub(crate) fn cut(input: &'a [u8], len: usize) -> Self {
        let text = &input[..len - 1];
        let mut rest = text.strip_suffix(b"\r").unwrap_or(text);
        let mut line = Self {
            words: [b""; WORDS_MAX],
            count: 0,
            len,
        };
        loop {
            let end = memchr::memchr(b' ', rest);
            line.words[line.count] = &rest[..end.unwrap_or(rest.len())];
            line.count += 1;
            match end {
                Some(end) if line.count < WORDS_MAX => rest = &rest[end + 1..],
                _ => return line,
            }
        }
    }

    /// The first word; empty for an empty line.
    pub(crate) fn verb(&self) -> &'a [u8] {
        self.words[0]
    }

    /// The word at `at`, counted from the verb; empty when two spaces follow each other.
    pub(crate) fn word(&self, at: usize) -> Option<&'a [u8]> {
        self.words[..self.count].get(at).copied()
    }

    /// How many words there are, the verb included; at most six.
    pub(crate) fn count(&self) -> usize {
        self.count
    }
}

/// Verb and four parameters, and one more to tell that there are too many.
const WORDS_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[u8]) -> Vec<&[u8]> {
        let line = Line::cut(line, line.len());
        line.words[..line.count].to_vec()
    }

    #[test]
    fn every_single_space_separates() {
        assert_eq!(words(b"SUB t c\n"), [&b"SUB"[..], b"t", b"c"]);
        assert_eq!(words(b" PUB  t \n"), [&b""[..], b"PUB", b"", b"t", b""]);
        assert_eq!(words(b"\n"), [b""]);
        assert_eq!(words(b"a\tb\n"), [b"a\tb"]);
        assert_eq!(words(b"1 2 3 4 5 6 7 8\n").len(), WORDS_MAX);
    }

    #[test]
    fn c_03_one_carriage_return_goes() {
        assert_eq!(words(b"NOP\r\n"), [b"NOP"]);
        assert_eq!(words(b"NOP\r\r\n"), [b"NOP\r"]);
        assert_eq!(words(b"\r\n"), [b""]);
    }
}
