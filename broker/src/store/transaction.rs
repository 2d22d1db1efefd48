//! Duty: the changes that can be made to the store, gathered so that they are stored together. Must not know
//! when they reach the disk.

use super::StoreError;
use super::catalogue::{Catalogue, Channel, ChannelState, Entry, Numbers, Topic, TopicState};
use super::cursor::{ChannelNumber, CursorDelta, TopicNumber};
use super::database::{Database, Staged, Writes};
use super::{catalogue_rows, cursor_rows};
use crate::log::sequence::Sequence;

/// Changes that are stored whole or not at all. Later ones see earlier ones.
pub struct Transaction<'a> {
    catalogue: &'a mut Catalogue,
    staged: Staged<'a>,
    undo: Vec<Entry>,
    counted: bool,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(catalogue: &'a mut Catalogue, database: &'a Database) -> Self {
        Self {
            catalogue,
            staged: Staged::new(database),
            undo: Vec::new(),
            counted: false,
        }
    }

    /// The catalogue with the changes made so far.
    pub fn catalogue(&self) -> &Catalogue {
        self.catalogue
    }

    /// Creates a topic; its number was never used before.
    ///
    /// # Errors
    /// [`StoreError::TopicExists`].
    pub fn create_topic(&mut self, name: &str, state: TopicState) -> Result<TopicNumber, StoreError> {
        if self.catalogue.topics().any(|(_, topic)| topic.name == name) {
            return Err(StoreError::TopicExists(name.to_owned()));
        }
        let number = TopicNumber(self.take_number()?);
        self.put(Entry::Topic(
            number,
            Some(Topic {
                name: name.to_owned(),
                state,
            }),
        ))?;
        Ok(number)
    }

    /// Changes a topic.
    ///
    /// # Errors
    /// [`StoreError::UnknownTopic`].
    pub fn update_topic(
        &mut self,
        number: TopicNumber,
        change: impl FnOnce(&mut TopicState),
    ) -> Result<(), StoreError> {
        let mut topic = self
            .catalogue
            .topic(number)
            .cloned()
            .ok_or(StoreError::UnknownTopic(number))?;
        change(&mut topic.state);
        self.put(Entry::Topic(number, Some(topic)))
    }

    /// Deletes a topic with its channels and their cursors. `end` is the end of its log: no sequence below it is
    /// given to a topic created later.
    ///
    /// # Errors
    /// [`StoreError::UnknownTopic`].
    pub fn delete_topic(&mut self, number: TopicNumber, end: Sequence) -> Result<(), StoreError> {
        if self.catalogue.topic(number).is_none() {
            return Err(StoreError::UnknownTopic(number));
        }
        let channels: Vec<_> = self
            .catalogue
            .channels_of(number)
            .map(|(channel, _)| channel)
            .collect();
        for channel in channels {
            self.delete_channel(channel)?;
        }
        self.put(Entry::Topic(number, None))?;
        self.put_numbers(|numbers| {
            numbers.entries -= 1;
            numbers.fresh_from = numbers.fresh_from.max(end);
        })
    }

    /// Creates a channel for which everything below `floor` is finished; its number was never used before.
    ///
    /// # Errors
    /// [`StoreError::UnknownTopic`], [`StoreError::ChannelExists`].
    pub fn create_channel(
        &mut self,
        topic: TopicNumber,
        name: &str,
        state: ChannelState,
        floor: Sequence,
    ) -> Result<ChannelNumber, StoreError> {
        if self.catalogue.topic(topic).is_none() {
            return Err(StoreError::UnknownTopic(topic));
        }
        if self
            .catalogue
            .channels_of(topic)
            .any(|(_, channel)| channel.name == name)
        {
            return Err(StoreError::ChannelExists(name.to_owned()));
        }
        let number = ChannelNumber(self.take_number()?);
        self.put(Entry::Channel(
            number,
            Some(Channel {
                topic,
                name: name.to_owned(),
                state,
            }),
        ))?;
        self.create_cursor(number, floor);
        Ok(number)
    }

    /// Changes a channel.
    ///
    /// # Errors
    /// [`StoreError::UnknownChannel`].
    pub fn update_channel(
        &mut self,
        number: ChannelNumber,
        change: impl FnOnce(&mut ChannelState),
    ) -> Result<(), StoreError> {
        let mut channel = self
            .catalogue
            .channel(number)
            .cloned()
            .ok_or(StoreError::UnknownChannel(number))?;
        change(&mut channel.state);
        self.put(Entry::Channel(number, Some(channel)))
    }

    /// Deletes a channel and its cursor.
    ///
    /// # Errors
    /// [`StoreError::UnknownChannel`].
    pub fn delete_channel(&mut self, number: ChannelNumber) -> Result<(), StoreError> {
        if self.catalogue.channel(number).is_none() {
            return Err(StoreError::UnknownChannel(number));
        }
        self.put(Entry::Channel(number, None))?;
        self.put_numbers(|numbers| numbers.entries -= 1)?;
        self.remove_cursor(number)
    }

    /// Applies a delta to a channel's cursor. That of a channel that was deleted meanwhile is dropped.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn save_cursor(&mut self, channel: ChannelNumber, delta: &CursorDelta) -> Result<(), StoreError> {
        cursor_rows::save(&mut self.staged, channel, delta)
    }

    /// Keeps a fact about this node under a name of the caller's choice; `None` forgets it.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn set_fact(&mut self, name: &str, value: Option<Vec<u8>>) -> Result<(), StoreError> {
        self.put(Entry::Fact(name.to_owned(), value))
    }

    pub(super) fn create_cursor(&mut self, channel: ChannelNumber, floor: Sequence) {
        cursor_rows::create(&mut self.staged, channel, floor);
    }

    pub(super) fn remove_cursor(&mut self, channel: ChannelNumber) -> Result<(), StoreError> {
        cursor_rows::remove(&mut self.staged, channel)
    }

    /// The undo list, to be put back last first, and what is to be written.
    pub(super) fn into_parts(self) -> (Vec<Entry>, Writes) {
        (self.undo, self.staged.into_writes())
    }

    fn take_number(&mut self) -> Result<u64, StoreError> {
        let number = self.catalogue.numbers().next;
        self.put_numbers(|numbers| {
            numbers.next += 1;
            numbers.entries += 1;
        })?;
        Ok(number)
    }

    fn put_numbers(&mut self, change: impl FnOnce(&mut Numbers)) -> Result<(), StoreError> {
        let mut numbers = self.catalogue.numbers();
        change(&mut numbers);
        self.write(Entry::Numbers(numbers))
    }

    /// Changes one entry; the first change of a transaction counts for all of it.
    fn put(&mut self, entry: Entry) -> Result<(), StoreError> {
        if !self.counted {
            self.counted = true;
            self.put_numbers(|numbers| numbers.changes += 1)?;
        }
        self.write(entry)
    }

    fn write(&mut self, entry: Entry) -> Result<(), StoreError> {
        let (key, value) = catalogue_rows::row(&entry)?;
        self.staged.set(key, value)?;
        self.undo.push(self.catalogue.put(entry));
        Ok(())
    }
}
