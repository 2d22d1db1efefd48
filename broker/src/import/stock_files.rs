//! Duty: finds the disk queues of a stock data folder by the names of their files (nsq-http-and-tools 7.1, 7.6).
//! Must not know what is in the data files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::stock_meta::{Position, QueueMeta};
use super::{ImportError, Warning, name};

/// The files of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockQueue {
    /// The topic.
    pub topic: String,
    /// The channel, or `None` for the queue of the topic itself.
    pub channel: Option<String>,
    /// Where stock nsqd would read next.
    pub start: Position,
    /// Data files by number, from the one that `start` names.
    pub files: Vec<DataFile>,
}

/// One data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Its number.
    pub number: u64,
    /// Where it lies.
    pub path: PathBuf,
}

/// Finds every queue in `dir`. Left-overs (`.bad`, `.tmp`) and files below a queue's read position are ignored.
///
/// # Errors
/// [`ImportError::Read`].
pub fn find(dir: &Path) -> Result<(Vec<StockQueue>, Vec<Warning>), ImportError> {
    let unreadable = |source| ImportError::Read {
        path: dir.to_owned(),
        source,
    };
    let mut queues = BTreeMap::<(String, Option<String>), QueueFiles>::new();
    let mut warnings = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        match parse_file_name(&path) {
            ParsedName::Foreign => {}
            ParsedName::Bad => warnings.push(Warning::FileName(path)),
            ParsedName::Meta(queue) => queues.entry(queue).or_default().meta = Some(path),
            ParsedName::Data(queue, number) => {
                queues.entry(queue).or_default().data.insert(number, path);
            }
        }
    }
    warnings.sort_by_key(Warning::to_string);
    let mut found = Vec::new();
    for ((topic, channel), files) in queues {
        let start = files.start(dir, &topic, channel.as_deref(), &mut warnings)?;
        let files = files.data.into_iter().filter(|(number, _)| *number >= start.file);
        let files = files.map(|(number, path)| DataFile { number, path }).collect();
        found.push(StockQueue {
            topic,
            channel,
            start,
            files,
        });
    }
    Ok((found, warnings))
}

/// The name of a queue's files up to `.diskqueue.`.
pub fn file_prefix(topic: &str, channel: Option<&str>) -> String {
    match channel {
        Some(channel) => format!("{topic}:{channel}"),
        None => topic.to_owned(),
    }
}

/// Name of a queue's position file.
pub fn meta_file_name(prefix: &str) -> String {
    format!("{prefix}.diskqueue.meta.dat")
}

/// Name of a queue's data file.
pub fn data_file_name(prefix: &str, number: u64) -> String {
    format!("{prefix}.diskqueue.{number:06}.dat")
}

#[derive(Debug, Default)]
struct QueueFiles {
    meta: Option<PathBuf>,
    data: BTreeMap<u64, PathBuf>,
}

impl QueueFiles {
    /// Where to begin, and warnings about what is missing.
    fn start(
        &self,
        dir: &Path,
        topic: &str,
        channel: Option<&str>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Position, ImportError> {
        let prefix = file_prefix(topic, channel);
        let start = match &self.meta {
            None => {
                warnings.push(Warning::NoMeta(dir.join(meta_file_name(&prefix))));
                Position::default()
            }
            Some(path) => {
                let text = fs::read(path).map_err(|source| ImportError::Read {
                    path: path.clone(),
                    source,
                })?;
                let meta = std::str::from_utf8(&text).ok().and_then(QueueMeta::parse);
                if meta.is_none() {
                    warnings.push(Warning::Meta(path.clone()));
                }
                meta.unwrap_or_default().read
            }
        };
        let mut expected = start.file;
        for number in self.data.range(start.file..).map(|(number, _)| *number) {
            if number > expected {
                warnings.push(Warning::NoFile(dir.join(data_file_name(&prefix, expected))));
            }
            expected = number + 1;
        }
        Ok(start)
    }
}

enum ParsedName {
    /// Not a file of a queue, or one that stock never reads again.
    Foreign,
    /// Named like a file of a queue, but with names or a number that can not be.
    Bad,
    Meta((String, Option<String>)),
    Data((String, Option<String>), u64),
}

fn parse_file_name(path: &Path) -> ParsedName {
    let Some((queue, kind)) = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.rsplit_once(".diskqueue."))
    else {
        return ParsedName::Foreign;
    };
    let Some(kind) = kind.strip_suffix(".dat") else {
        return ParsedName::Foreign;
    };
    let (topic, channel) = match queue.split_once(':') {
        Some((topic, channel)) => (topic, Some(channel)),
        None => (queue, None),
    };
    if !name::is_valid(topic) || !channel.is_none_or(name::is_valid) {
        return ParsedName::Bad;
    }
    let queue = (topic.to_owned(), channel.map(str::to_owned));
    if kind == "meta" {
        return ParsedName::Meta(queue);
    }
    match kind.parse() {
        Ok(number) if format!("{number:06}") == kind => ParsedName::Data(queue, number),
        _ => ParsedName::Bad,
    }
}
