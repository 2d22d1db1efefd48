//! Duty: nsqd.dat, which stays as stock writes it (nsq-tcp 4.14): written on stock's occasions, read at start when somebody
//! else wrote it. The store is the truth. Must not know how the file looks.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::import::nsqd_dat::{self, ChannelEntry, TopicEntry};
use crate::topic::directory::Directory;

/// The file, and whose turn it is to write it.
pub(super) struct MetadataFile {
    folder: PathBuf,
    /// Fingerprint of what lies there.
    turn: Arc<Mutex<[u8; 8]>>,
}

impl MetadataFile {
    /// The file in `folder`, which may not be there yet.
    pub(super) fn new(folder: PathBuf) -> Self {
        let content = std::fs::read(folder.join(nsqd_dat::FILE_NAME)).unwrap_or_default();
        Self {
            folder,
            turn: Arc::new(Mutex::new(fingerprint(&content))),
        }
    }

    /// Fingerprint of the file as it was read or written last.
    pub(super) async fn fingerprint(&self) -> [u8; 8] {
        *self.turn.lock().await
    }

    /// Writes what is there now. A failure is logged: the store has it all the same. Cancel safe: what was begun is ended,
    /// and the next one waits for it, so that no older content comes after a newer one.
    pub(super) async fn write(&self, directory: &Arc<Directory>) {
        let (directory, folder, turn) = (Arc::clone(directory), self.folder.clone(), Arc::clone(&self.turn));
        let runtime = directory.founding().runtime().clone();
        let written =
            runtime.spawn(async move { write_in_turn(&directory, folder, &mut *turn.lock().await).await });
        if let Err(error) = written.await {
            tracing::error!(%error, "can not write nsqd.dat");
        }
    }
}

async fn write_in_turn(directory: &Directory, folder: PathBuf, on_disk: &mut [u8; 8]) {
    let content = match nsqd_dat::encode(&entries(directory)) {
        Ok(content) => content,
        Err(error) => return tracing::error!(%error, "can not write nsqd.dat"),
    };
    let (next, present) = (fingerprint(content.as_bytes()), *on_disk);
    let answer = directory.founding().store.transact(move |transaction| {
        if transaction.catalogue().fact(NEXT) != Some(&next) {
            transaction.set_fact(PRESENT, Some(present.to_vec()))?;
            transaction.set_fact(NEXT, Some(next.to_vec()))?;
        }
        Ok(())
    });
    // Noted first: a file that is ours must never be taken for somebody else's, whichever of the two a crash or a
    // full disk leaves.
    if let Err(error) = answer.await {
        return tracing::error!(%error, "can not note the fingerprint of nsqd.dat, which stays as it is");
    }
    let written = directory
        .founding()
        .runtime()
        .spawn_blocking(move || nsqd_dat::write(&folder, &content))
        .await;
    match written {
        Ok(Ok(())) => *on_disk = next,
        Ok(Err(error)) => tracing::error!(%error, "can not write nsqd.dat"),
        Err(error) => tracing::error!(%error, "can not write nsqd.dat"),
    }
}

/// Identifies the content of a file.
pub(super) fn fingerprint(content: &[u8]) -> [u8; 8] {
    let sum = crc32c::crc32c(content);
    let length = content.len() as u32;
    (u64::from(sum) << 32 | u64::from(length)).to_be_bytes()
}

fn entries(directory: &Directory) -> Vec<TopicEntry> {
    let mut topics: Vec<_> = directory
        .live_topics()
        .into_iter()
        .filter(|topic| topic.number().is_some())
        .collect();
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
                .map(|channel| ChannelEntry {
                    name: channel.name().to_string(),
                    paused: channel.is_paused(),
                })
                .collect(),
        })
        .collect()
}

/// Fact in the store: fingerprint of the file that was about to be written.
pub(super) const NEXT: &str = "nsqd.dat last";
/// Fact in the store: fingerprint of the file that it was to replace.
pub(super) const PRESENT: &str = "nsqd.dat before last";
