//! Duty: reads the records of a stock disk queue one by one (nsq-http-and-tools 7.3, 7.6). Memory: one record.
//! Must not know what becomes of the messages.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use super::stock_files::{DataFile, StockQueue};
use super::stock_meta::Position;
use super::{ImportError, Warning};

/// A message as stock nsqd stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockMessage<'a> {
    /// When it was published, nanoseconds since the Unix epoch.
    pub timestamp: i64,
    /// Deliveries so far.
    pub attempts: u16,
    /// Its id, 16 lower-case hex digits.
    pub id: [u8; 16],
    /// Its body.
    pub body: &'a [u8],
}

/// Reads the records of one queue in order.
#[derive(Debug)]
pub struct QueueReader {
    /// Files not yet opened, last first.
    files: Vec<DataFile>,
    current: Option<OpenFile>,
    /// Where the next record begins, or the place to begin at.
    position: Position,
    max_body: u32,
    body: Vec<u8>,
    warnings: Vec<Warning>,
}

impl QueueReader {
    /// Reads `queue` from `start`: its own [`StockQueue::start`], or what [`QueueReader::position`] said in an
    /// earlier run. A record with a body above `max_body` bytes (`--max-msg-size`) counts as damage.
    pub fn new(queue: &StockQueue, start: Position, max_body: u32) -> Self {
        let files = queue.files.iter().rev().filter(|file| file.number >= start.file);
        Self {
            files: files.cloned().collect(),
            current: None,
            position: start,
            max_body,
            body: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The next message, or `None` at the end of the last file.
    ///
    /// # Errors
    /// [`ImportError::Read`]; damage in a file is a warning, and reading goes on with the next file.
    pub fn next_message(&mut self) -> Result<Option<StockMessage<'_>>, ImportError> {
        let Some((header, body_len)) = self.next_header()? else {
            return Ok(None);
        };
        self.body.resize(body_len, 0);
        if let Some(file) = &mut self.current {
            file.reader
                .read_exact(&mut self.body)
                .map_err(|source| file.unreadable(source))?;
        }
        Ok(Some(header.message(&self.body)))
    }

    /// Passes over the next message; answers the length of its body, or `None` at the end of the last file.
    ///
    /// # Errors
    /// As [`QueueReader::next_message`].
    pub fn skip_message(&mut self) -> Result<Option<usize>, ImportError> {
        let Some((_, body_len)) = self.next_header()? else {
            return Ok(None);
        };
        if let Some(file) = &mut self.current {
            let skipped = file.reader.seek_relative(body_len as i64);
            skipped.map_err(|source| file.unreadable(source))?;
        }
        Ok(Some(body_len))
    }

    /// Where the next record begins; reading can go on from here later.
    pub fn position(&self) -> Position {
        self.position
    }

    /// What was passed over so far.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Reads up to the next record's body and counts the whole record as read.
    fn next_header(&mut self) -> Result<Option<(Header, usize)>, ImportError> {
        loop {
            let Some(file) = &mut self.current else {
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            let offset = self.position.offset;
            let left = file.length.saturating_sub(offset);
            if left == 0 {
                self.current = None;
                continue;
            }
            let path = file.path.clone();
            if left < LENGTH_BYTES {
                self.give_up_file(Warning::Short { path, offset, left });
                continue;
            }
            let mut length = [0; LENGTH_BYTES as usize];
            file.reader
                .read_exact(&mut length)
                .map_err(|source| file.unreadable(source))?;
            let length = i32::from_be_bytes(length);
            let Some(body_len) = body_len(length, self.max_body) else {
                self.give_up_file(Warning::Length {
                    path,
                    offset,
                    length,
                    left,
                });
                continue;
            };
            let whole = LENGTH_BYTES + HEADER_BYTES as u64 + body_len as u64;
            if whole > left {
                self.give_up_file(Warning::Short { path, offset, left });
                continue;
            }
            let mut header = Header([0; HEADER_BYTES]);
            file.reader
                .read_exact(&mut header.0)
                .map_err(|source| file.unreadable(source))?;
            self.position.offset += whole;
            return Ok(Some((header, body_len)));
        }
    }

    /// Opens the next file at the place to read from; false when there is none.
    fn open_next(&mut self) -> Result<bool, ImportError> {
        let Some(DataFile { number, path }) = self.files.pop() else {
            return Ok(false);
        };
        if number != self.position.file {
            self.position = Position {
                file: number,
                offset: 0,
            };
        }
        let offset = self.position.offset;
        let mut file = OpenFile::open(path)?;
        if offset > file.length {
            self.give_up_file(Warning::Position {
                path: file.path,
                offset,
            });
            return Ok(true);
        }
        file.reader
            .seek_relative(offset as i64)
            .map_err(|source| file.unreadable(source))?;
        self.current = Some(file);
        Ok(true)
    }

    fn give_up_file(&mut self, warning: Warning) {
        self.warnings.push(warning);
        self.current = None;
        self.position = Position {
            file: self.position.file + 1,
            offset: 0,
        };
    }
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    /// The real length; stock's limit on it may have been another one when it was written.
    length: u64,
    reader: BufReader<File>,
}

impl OpenFile {
    fn open(path: PathBuf) -> Result<Self, ImportError> {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((length, file)) => Ok(Self {
                path,
                length,
                reader: BufReader::with_capacity(BUFFER_BYTES, file),
            }),
            Err(source) => Err(ImportError::Read { path, source }),
        }
    }

    fn unreadable(&self, source: io::Error) -> ImportError {
        ImportError::Read {
            path: self.path.clone(),
            source,
        }
    }
}

/// What precedes the body in a record, without the length.
struct Header([u8; HEADER_BYTES]);

impl Header {
    fn message<'a>(&self, body: &'a [u8]) -> StockMessage<'a> {
        let [t0, t1, t2, t3, t4, t5, t6, t7, a0, a1, id @ ..] = self.0;
        StockMessage {
            timestamp: i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            attempts: u16::from_be_bytes([a0, a1]),
            id,
            body,
        }
    }
}

fn body_len(length: i32, max_body: u32) -> Option<usize> {
    let body = u32::try_from(length).ok()?.checked_sub(HEADER_BYTES as u32)?;
    (body <= max_body).then_some(body as usize)
}

/// Bytes of a record's length field.
const LENGTH_BYTES: u64 = 4;
/// Bytes of timestamp, attempts and id.
const HEADER_BYTES: usize = 8 + 2 + 16;
const BUFFER_BYTES: usize = 64 << 10;
