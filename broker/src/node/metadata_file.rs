//! Duty: nsqd.dat, which stays as stock writes it (nsq-tcp 4.14): written on stock's occasions, read at start when somebody
//! else wrote it. The store is the truth. Must not know how the file looks.

use std::path::PathBuf;

use tokio::sync::Mutex;

use crate::import::nsqd_dat::{self, ChannelEntry, TopicEntry};
use crate::topic::directory::Directory;

/// The file, and whose turn it is to write it.
pub(super) struct MetadataFile {
    folder: PathBuf,
    turn: Mutex<()>,
}

impl MetadataFile {
    /// The file in `folder`.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, turn: Mutex::new(()) }
    }

    /// Writes what is there now. A failure is logged: the store has it all the same.
    pub(super) async fn write(&self, directory: &Directory) {
        let _turn = self.turn.lock().await;
        let content = match nsqd_dat::encode(&entries(directory)) {
            Ok(content) => content,
            Err(error) => return tracing::error!(%error, "can not write nsqd.dat"),
        };
        let folder = self.folder.clone();
        let hash = fingerprint(content.as_bytes());
        let answer = directory.founding().store.transact(move |transaction| {
            let last = transaction.catalogue().fact(LAST).map(<[u8]>::to_vec);
            if last.as_deref() != Some(&hash) {
                transaction.set_fact(BEFORE_LAST, last)?;
                transaction.set_fact(LAST, Some(hash.to_vec()))?;
            }
            Ok(())
        });
        // Noted first: a file that is ours must never be taken for somebody else's.
        if let Err(error) = answer.await {
            tracing::error!(%error, "can not note the hash of nsqd.dat");
        }
        let written = directory.founding().runtime().spawn_blocking(move || nsqd_dat::write(&folder, &content)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "can not write nsqd.dat"),
            Err(error) => tracing::error!(%error, "can not write nsqd.dat"),
        }
    }
}

/// Identifies the content of a file.
pub(super) fn fingerprint(content: &[u8]) -> [u8; 8] {
    let sum = crc32c::crc32c(content);
    let length = content.len() as u32;
    (u64::from(sum) << 32 | u64::from(length)).to_be_bytes()
}

fn entries(directory: &Directory) -> Vec<TopicEntry> {
    let mut topics: Vec<_> = directory.live_topics().into_iter().filter(|topic| topic.number().is_some()).collect();
    topics.sort_by(|left, right| left.name().cmp(right.name()));
    topics
        .iter()
        .map(|topic| TopicEntry {
            name: topic.name().to_string(),
            paused: topic.is_paused(),
            channels: topic
                .channels()
                .iter()
                .filter(|channel| channel.number().is_some())
                .map(|channel| ChannelEntry { name: channel.name().to_string(), paused: channel.is_paused() })
                .collect(),
        })
        .collect()
}

/// Facts in the store: fingerprints of the last two files that were written.
pub(super) const LAST: &str = "nsqd.dat last";
/// See [`LAST`].
pub(super) const BEFORE_LAST: &str = "nsqd.dat before last";
