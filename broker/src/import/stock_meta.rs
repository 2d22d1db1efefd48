//! Duty: the position file of a stock disk queue as a value (nsq-http-and-tools 7.4). Must not know data files.

use serde::{Deserialize, Serialize};

/// What `meta.dat` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueMeta {
    /// Messages in the queue; wrong after a crash, so only told, never trusted.
    pub depth: u64,
    /// Where the next message is read.
    pub read: Position,
    /// Where the next message is written.
    pub write: Position,
}

/// A place in the data files of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Number of the file.
    pub file: u64,
    /// Bytes from its beginning.
    pub offset: u64,
}

impl QueueMeta {
    /// Reads `DEPTH\nFILE,OFFSET\nFILE,OFFSET\n`; `None` when it is anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let depth = lines.next()?.parse().ok()?;
        let (read, write) = (Position::parse(lines.next()?)?, Position::parse(lines.next()?)?);
        lines.next().is_none().then_some(Self { depth, read, write })
    }

    /// The file's text.
    pub fn encode(&self) -> String {
        let Self { depth, read, write } = self;
        format!(
            "{depth}\n{},{}\n{},{}\n",
            read.file, read.offset, write.file, write.offset
        )
    }
}

impl Position {
    fn parse(line: &str) -> Option<Self> {
        let (file, offset) = line.split_once(',')?;
        Some(Self {
            file: file.parse().ok()?,
            offset: offset.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_specification_is_read_and_written() {
        let meta = QueueMeta {
            depth: 6,
            read: Position { file: 0, offset: 0 },
            write: Position { file: 2, offset: 77 },
        };
        assert_eq!(QueueMeta::parse("6\n0,0\n2,77\n"), Some(meta));
        assert_eq!(meta.encode(), "6\n0,0\n2,77\n");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "6",
            "6\n0,0\n",
            "6\n0,0\n2;77\n",
            "-1\n0,0\n0,0\n",
            "6\n0,0\n0,0\nx\n",
            "a\n0,0\n0,0\n",
        ] {
            assert_eq!(QueueMeta::parse(text), None, "{text:?}");
        }
    }
}
