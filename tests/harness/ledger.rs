//! Duty: keeps account of messages over the lives of a broker: what was promised, what came, what must not come again.
//!
//! In: every publish, answer, delivery, finish and crash. Out: a panic that names the first broken promise. It must not know
//! connections. A message is known by the first word of its body.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::wire::Message;

/// The account of one topic and its channels.
#[derive(Debug)]
pub struct Ledger {
    topic: String,
    entries: Mutex<Entries>,
}

#[derive(Debug)]
struct Entries {
    /// Lives of the broker so far.
    life: u32,
    published: HashMap<String, Published>,
    channels: BTreeMap<String, HashMap<String, Delivered>>,
    repeats: u64,
}

#[derive(Debug)]
struct Published {
    life: u32,
    acknowledged: bool,
    id: Option<String>,
}

#[derive(Debug, Default)]
struct Delivered {
    times: u64,
    finished: Finished,
}

#[derive(Clone, Copy, Debug, Default)]
enum Finished {
    /// May come again.
    #[default]
    No,
    /// Executed, as a later answer has told; a crash may undo what is young.
    At(Instant),
    /// Whatever happens: it must not come again. So long before the broker ended was it finished.
    ForGood(Duration),
}

impl Ledger {
    /// An account of `topic` with these channels, all of which exist before the first publish.
    pub fn new(topic: &str, channels: &[&str]) -> Self {
        Self {
            topic: topic.to_owned(),
            entries: Mutex::new(Entries {
                life: 0,
                published: HashMap::new(),
                channels: channels
                    .iter()
                    .map(|channel| ((*channel).to_owned(), HashMap::new()))
                    .collect(),
                repeats: 0,
            }),
        }
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The channels.
    pub fn channels(&self) -> Vec<String> {
        self.entries().channels.keys().cloned().collect()
    }

    /// A message is about to be sent.
    pub fn sends(&self, name: &str) {
        let mut entries = self.entries();
        let published = Published {
            life: entries.life,
            acknowledged: false,
            id: None,
        };
        let before = entries.published.insert(name.to_owned(), published);
        assert!(before.is_none(), "{name} is sent twice");
    }

    /// The broker has promised to deliver these.
    pub fn acknowledged(&self, names: &[String]) {
        let mut entries = self.entries();
        for name in names {
            entries.published.get_mut(name).expect("sent before").acknowledged = true;
        }
    }

    /// A message came to a consumer of `channel`; answers its name.
    ///
    /// # Panics
    /// When nobody has sent it, its id has changed, or it was finished for good.
    pub fn delivered(&self, channel: &str, message: &Message) -> String {
        let name = message
            .body
            .split(|byte| *byte == b' ')
            .next()
            .unwrap_or_default();
        let name = String::from_utf8(name.to_vec()).expect("names are text");
        let mut entries = self.entries();
        let published = entries
            .published
            .get_mut(&name)
            .unwrap_or_else(|| panic!("{name} was never sent"));
        let id = published.id.get_or_insert_with(|| message.id.clone());
        assert_eq!(*id, message.id, "{name} has got another id");
        let delivered = entries
            .channels
            .get_mut(channel)
            .expect("a channel of the ledger");
        let delivered = delivered.entry(name.clone()).or_default();
        let again = format!("{channel}: {name} comes again (attempt {})", message.attempts);
        match delivered.finished {
            Finished::No => {}
            Finished::At(at) => panic!("{again}, finished {:?} ago", at.elapsed()),
            Finished::ForGood(age) => panic!("{again}, finished {age:?} before the broker ended"),
        }
        delivered.times += 1;
        entries.repeats += u64::from(message.attempts > 1);
        name
    }

    /// These were finished by `channel`, and the broker has executed that.
    pub fn finished(&self, channel: &str, names: &[String]) {
        let mut entries = self.entries();
        let delivered = entries
            .channels
            .get_mut(channel)
            .expect("a channel of the ledger");
        for name in names {
            delivered.get_mut(name).expect("delivered before").finished = Finished::At(Instant::now());
        }
    }

    /// The broker ended at `end`. What was finished longer than `window` before must not come again.
    pub fn broker_ended(&self, end: Instant, window: Duration) {
        let mut entries = self.entries();
        entries.life += 1;
        for delivered in entries.channels.values_mut().flat_map(HashMap::values_mut) {
            delivered.finished = match delivered.finished {
                Finished::At(at) if at + window > end => Finished::No,
                Finished::At(at) => Finished::ForGood(end - at),
                settled => settled,
            };
        }
    }

    /// Number of acknowledged messages so far.
    pub fn acknowledged_count(&self) -> usize {
        let entries = self.entries();
        entries
            .published
            .values()
            .filter(|published| published.acknowledged)
            .count()
    }

    /// Deliveries beyond the first of their message.
    pub fn repeats(&self) -> u64 {
        self.entries().repeats
    }

    /// Acknowledged messages that some channel has not delivered, with that channel.
    pub fn missing(&self) -> Vec<(String, String)> {
        let entries = self.entries();
        let promised = entries
            .published
            .iter()
            .filter(|(_, published)| published.acknowledged);
        promised
            .flat_map(|(name, _)| entries.channels.keys().map(move |channel| (channel, name)))
            .filter(|(channel, name)| !entries.channels[*channel].contains_key(*name))
            .map(|(channel, name)| (channel.clone(), name.clone()))
            .collect()
    }

    /// Checks that no two messages share an id and that ids grow from life to life.
    ///
    /// # Panics
    /// When they do not.
    pub fn expect_growing_ids(&self) {
        let entries = self.entries();
        let mut by_id = BTreeMap::new();
        for (name, published) in &entries.published {
            if let Some(id) = &published.id {
                let other = by_id.insert(id, (published.life, name));
                assert!(other.is_none(), "{name} has the id of {other:?}");
            }
        }
        let lives: Vec<_> = by_id.values().collect();
        for pair in lives.windows(2) {
            assert!(
                pair[0].0 <= pair[1].0,
                "ids fall from {:?} to {:?}",
                pair[0],
                pair[1]
            );
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().expect("nobody has panicked with the ledger")
    }
}
