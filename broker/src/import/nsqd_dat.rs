//! Duty: `nsqd.dat` as values and back (nsq-tcp 4.14, nsq-http-and-tools 7.2). Must not know live topics.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{ImportError, Warning, name, small_file};

/// A topic in `nsqd.dat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicEntry {
    /// Its name, a legal one.
    pub name: String,
    /// True while it hands nothing over.
    pub paused: bool,
    /// Its channels.
    pub channels: Vec<ChannelEntry>,
}

/// A channel in `nsqd.dat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelEntry {
    /// Its name, a legal one.
    pub name: String,
    /// True while it delivers nothing.
    pub paused: bool,
}

/// The topics in `nsqd.dat`, and what of it was left out.
pub type Content = (Vec<TopicEntry>, Vec<Warning>);

/// Reads `nsqd.dat` in `dir`; `None` when there is none. Ephemeral names that appear are answered as well.
///
/// # Errors
/// [`ImportError::NsqdDat`] when it is empty or not JSON of the right form, [`ImportError::Read`].
pub fn read(dir: &Path) -> Result<Option<Content>, ImportError> {
    let path = dir.join(FILE_NAME);
    match fs::read(&path) {
        Ok(bytes) => match decode(&bytes) {
            Ok(content) => Ok(Some(content)),
            Err(source) => Err(ImportError::NsqdDat { path, source }),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ImportError::Read { path, source }),
    }
}

/// Reads the content of `nsqd.dat`. Unknown keys are ignored, missing ones and `null` are false or empty, entries
/// with illegal names are left out with a warning.
///
/// # Errors
/// When it is empty or not JSON of the right form.
pub fn decode(bytes: &[u8]) -> serde_json::Result<Content> {
    let file: Option<RawFile> = serde_json::from_slice(bytes)?;
    let mut warnings = Vec::new();
    let mut topics = Vec::new();
    for raw in file.and_then(|file| file.topics).unwrap_or_default() {
        let name = raw.name.unwrap_or_default();
        if !name::is_valid(&name) {
            warnings.push(Warning::TopicName(name));
            continue;
        }
        let mut channels = Vec::new();
        for raw in raw.channels.unwrap_or_default() {
            let channel = raw.name.unwrap_or_default();
            if name::is_valid(&channel) {
                channels.push(ChannelEntry {
                    name: channel,
                    paused: raw.paused.unwrap_or_default(),
                });
            } else {
                warnings.push(Warning::ChannelName {
                    topic: name.clone(),
                    channel,
                });
            }
        }
        topics.push(TopicEntry {
            name,
            paused: raw.paused.unwrap_or_default(),
            channels,
        });
    }
    Ok((topics, warnings))
}

/// The content of `nsqd.dat` for these topics, byte for byte as stock writes it. Ephemeral topics and channels are
/// left out.
///
/// # Errors
/// None that could happen: names and flags always fit into JSON.
pub fn encode(topics: &[TopicEntry]) -> serde_json::Result<String> {
    let channels = |topic: &TopicEntry| {
        let lasting = topic
            .channels
            .iter()
            .filter(|channel| !name::is_ephemeral(&channel.name));
        let raw = lasting.map(|channel| RawChannel {
            name: Some(channel.name.clone()),
            paused: Some(channel.paused),
        });
        list(raw)
    };
    let lasting = topics.iter().filter(|topic| !name::is_ephemeral(&topic.name));
    let raw = lasting.map(|topic| RawTopic {
        name: Some(topic.name.clone()),
        paused: Some(topic.paused),
        channels: channels(topic),
    });
    serde_json::to_string(&RawFile {
        topics: list(raw),
        version: Some(STOCK_VERSION.into()),
    })
}

/// Replaces `nsqd.dat` in `dir`: a crash leaves the old file or the new one.
///
/// # Errors
/// [`ImportError::Write`].
pub fn write(dir: &Path, content: &str) -> Result<(), ImportError> {
    let path = dir.join(FILE_NAME);
    small_file::replace(&path, content.as_bytes()).map_err(|source| ImportError::Write { path, source })
}

/// A list as Go writes it: `null` when there is nothing in it.
fn list<T>(items: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let items: Vec<_> = items.collect();
    (!items.is_empty()).then_some(items)
}

#[derive(Serialize, Deserialize)]
struct RawFile {
    topics: Option<Vec<RawTopic>>,
    version: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct RawTopic {
    name: Option<String>,
    paused: Option<bool>,
    channels: Option<Vec<RawChannel>>,
}

#[derive(Serialize, Deserialize)]
struct RawChannel {
    name: Option<String>,
    paused: Option<bool>,
}

/// Name of the file in the data folder.
pub const FILE_NAME: &str = "nsqd.dat";
/// The version of nsqd whose form this is.
const STOCK_VERSION: &str = "1.3.0";
