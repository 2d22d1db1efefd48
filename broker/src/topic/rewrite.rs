//! Duty: what a store is told that was broken: memory stays the truth meanwhile (architecture 3, metadata store e). Comes
//! in: the catalogue as the store kept it. Goes out: cursors for all of it, and what has to be taken back or told
//! anew once the store works. Must not know when that is.

use std::collections::HashSet;
use std::sync::Arc;

use super::Topic;
use super::directory::{Directory, DirectoryError};
use super::founding::hand_over_of;
use crate::log::sequence::Sequence;
use crate::store::catalogue::Catalogue;
use crate::store::cursor::{ChannelNumber, CursorDelta};

impl Directory {
    /// The whole cursor of every channel in `catalogue`. One that is not alive is being made, or was left by something
    /// that went wrong: it is given what its topic hands over from now on.
    pub fn cursors(&self, catalogue: &Catalogue) -> Vec<(ChannelNumber, CursorDelta)> {
        let topics = self.live_topics();
        let channels = topics.iter().flat_map(|topic| topic.channels());
        let mut cursors: Vec<_> = channels
            .filter_map(|channel| channel.number().zip(channel.full_checkpoint()))
            .collect();
        let alive: HashSet<_> = cursors.iter().map(|(number, _)| *number).collect();
        for (number, channel) in catalogue.channels().filter(|(number, _)| !alive.contains(number)) {
            let topic = topics.iter().find(|topic| topic.number() == Some(channel.topic));
            let floor = topic.map(|topic| topic.handed_over()).unwrap_or_default();
            cursors.push((
                number,
                CursorDelta {
                    floor,
                    ..CursorDelta::default()
                },
            ));
        }
        cursors
    }

    /// Takes back what the store has and memory has not, and tells it anew how topics stand: what could not be told while
    /// it was broken.
    ///
    /// # Errors
    /// What the store says.
    pub async fn settle(self: &Arc<Self>) -> Result<(), DirectoryError> {
        let this = Arc::clone(self);
        let forgotten = self.founding().store.transact(move |transaction| {
            let topics = transaction.catalogue().topics();
            let unknown: Vec<_> = topics
                .filter(|(_, topic)| !this.knows(&topic.name))
                .map(|(number, _)| number)
                .collect();
            for number in &unknown {
                transaction.delete_topic(*number, Sequence::default())?;
            }
            Ok(unknown)
        });
        for number in forgotten.await? {
            self.founding().remove_files(number).await?;
        }
        for topic in self.live_topics() {
            self.settle_topic(&topic).await?;
        }
        Ok(())
    }

    async fn settle_topic(&self, topic: &Topic) -> Result<(), DirectoryError> {
        let _turn = topic.admin.lock().await;
        let Some(number) = topic.number().filter(|_| !topic.is_closed()) else {
            return Ok(());
        };
        let alive: HashSet<_> = topic
            .channels()
            .iter()
            .filter_map(|channel| channel.number())
            .collect();
        let paused = topic.is_paused();
        let handed_over = hand_over_of(topic, paused);
        let settled = self.founding().store.transact(move |transaction| {
            let stored = transaction
                .catalogue()
                .channels_of(number)
                .map(|(channel, _)| channel);
            let unknown: Vec<_> = stored.filter(|channel| !alive.contains(channel)).collect();
            unknown
                .into_iter()
                .try_for_each(|channel| transaction.delete_channel(channel))?;
            transaction.update_topic(number, |state| {
                state.paused = paused;
                state.handed_over = handed_over;
            })
        });
        Ok(settled.await?)
    }
}
