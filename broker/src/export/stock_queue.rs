//! Duty: the files of one stock disk queue, written record by record (nsq-http-and-tools 7.3, 7.4; D-02, D-04).
//! Must not know where the messages come from.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::ExportError;
use crate::import::stock_files::{data_file_name, file_prefix, meta_file_name};
use crate::import::stock_meta::{Position, QueueMeta};
use crate::import::stock_queue::StockMessage;
use crate::import::{name, small_file};

/// Writes one queue. Stock nsqd can read it after [`QueueWriter::finish`].
#[derive(Debug)]
pub struct QueueWriter {
    dir: PathBuf,
    prefix: String,
    max_bytes_per_file: u64,
    file: Option<BufWriter<File>>,
    meta: QueueMeta,
}

impl QueueWriter {
    /// Begins the queue of a topic or, with `channel`, of one of its channels. `max_bytes_per_file` is that of the
    /// nsqd which will read it; a longer message gets a file of its own.
    ///
    /// # Errors
    /// [`ExportError::Name`], [`ExportError::Exists`].
    pub fn create(
        dir: &Path,
        topic: &str,
        channel: Option<&str>,
        max_bytes_per_file: u64,
    ) -> Result<Self, ExportError> {
        if let Some(name) = [Some(topic), channel]
            .into_iter()
            .flatten()
            .find(|name| !name::is_valid(name))
        {
            return Err(ExportError::Name(name.to_owned()));
        }
        let prefix = file_prefix(topic, channel);
        for file in [meta_file_name(&prefix), data_file_name(&prefix, 0)] {
            let path = dir.join(file);
            if path.exists() {
                return Err(ExportError::Exists(path));
            }
        }
        Ok(Self {
            dir: dir.to_owned(),
            prefix,
            max_bytes_per_file,
            file: None,
            meta: QueueMeta::default(),
        })
    }

    /// Adds a message behind those added before. After an error the queue is of no use.
    ///
    /// # Errors
    /// [`ExportError::TooBig`], [`ExportError::Write`].
    pub fn append(&mut self, message: &StockMessage<'_>) -> Result<(), ExportError> {
        let too_big = || ExportError::TooBig(message.body.len());
        let length = i32::try_from(message.body.len() + HEADER_BYTES).map_err(|_| too_big())?;
        let whole = 4 + length as u64;
        let Position { offset, .. } = self.meta.write;
        if offset > 0 && offset + whole > self.max_bytes_per_file {
            self.close_file()?;
            self.meta.write = Position {
                file: self.meta.write.file + 1,
                offset: 0,
            };
        }
        self.write(length, message)
            .map_err(|source| self.failed(source))?;
        self.meta.write.offset += whole;
        self.meta.depth += 1;
        Ok(())
    }

    /// Ends the queue: everything is on the disk when this returns. Answers what its position file says.
    ///
    /// # Errors
    /// [`ExportError::Write`].
    pub fn finish(mut self) -> Result<QueueMeta, ExportError> {
        self.close_file()?;
        let path = self.dir.join(meta_file_name(&self.prefix));
        small_file::replace(&path, self.meta.encode().as_bytes())
            .map_err(|source| ExportError::Write { path, source })?;
        Ok(self.meta)
    }

    fn write(&mut self, length: i32, message: &StockMessage<'_>) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.open_file()?,
        };
        let file = self.file.insert(file);
        file.write_all(&length.to_be_bytes())?;
        file.write_all(&message.timestamp.to_be_bytes())?;
        file.write_all(&message.attempts.to_be_bytes())?;
        file.write_all(&message.id)?;
        file.write_all(message.body)
    }

    fn open_file(&self) -> io::Result<BufWriter<File>> {
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.path())?;
        Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
    }

    fn close_file(&mut self) -> Result<(), ExportError> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        file.flush()
            .and_then(|()| file.get_ref().sync_all())
            .map_err(|source| self.failed(source))
    }

    fn path(&self) -> PathBuf {
        self.dir.join(data_file_name(&self.prefix, self.meta.write.file))
    }

    fn failed(&self, source: io::Error) -> ExportError {
        ExportError::Write {
            path: self.path(),
            source,
        }
    }
}

/// Bytes of timestamp, attempts and id.
const HEADER_BYTES: usize = 8 + 2 + 16;
const BUFFER_BYTES: usize = 64 << 10;
