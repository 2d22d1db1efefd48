//! Duty: what should be registered, what is, and the commands that lead from the one to the other. Pure. Must
//! not know connections.

use std::collections::BTreeMap;

use super::wire::Command;

/// A topic that this node hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// Its name.
    pub topic: String,
    /// Differs each time a topic of this name is created anew, so that a deletion which was followed at once by
    /// a creation is still told: the deletion may have been made at the lookupds too.
    pub incarnation: u64,
    /// Its channels, each with an incarnation of its own.
    pub channels: Vec<(String, u64)>,
}

/// All that should be registered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Desired {
    topics: BTreeMap<String, Topic>,
}

/// All that one lookupd has been told on its present connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Registered {
    topics: BTreeMap<String, Topic>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Topic {
    incarnation: u64,
    channels: BTreeMap<String, u64>,
}

impl Desired {
    pub(super) fn new(hosted: Vec<Hosted>) -> Self {
        let topics = hosted.into_iter().map(|hosted| {
            let topic = Topic {
                incarnation: hosted.incarnation,
                channels: hosted.channels.into_iter().collect(),
            };
            (hosted.topic, topic)
        });
        Self {
            topics: topics.collect(),
        }
    }
}

impl Registered {
    /// The commands after which what is registered equals `desired`, in the order to send them.
    pub(super) fn difference(&self, desired: &Desired) -> Vec<Command> {
        let mut commands = Vec::new();
        for (name, known) in &self.topics {
            let wanted = desired.topics.get(name);
            let stays = wanted.filter(|wanted| wanted.incarnation == known.incarnation);
            // Channels go one by one even with their topic: only so an ephemeral one leaves the lookupd's list.
            for (channel, incarnation) in &known.channels {
                if stays.and_then(|topic| topic.channels.get(channel)) != Some(incarnation) {
                    commands.push(Command::Unregister(name.clone(), Some(channel.clone())));
                }
            }
            if stays.is_none() {
                commands.push(Command::Unregister(name.clone(), None));
            }
        }
        for (name, wanted) in &desired.topics {
            let known = self.topics.get(name);
            let stays = known.filter(|known| known.incarnation == wanted.incarnation);
            for (channel, incarnation) in &wanted.channels {
                if stays.and_then(|topic| topic.channels.get(channel)) != Some(incarnation) {
                    commands.push(Command::Register(name.clone(), Some(channel.clone())));
                }
            }
            // Registering a channel registers its topic.
            if stays.is_none() && wanted.channels.is_empty() {
                commands.push(Command::Register(name.clone(), None));
            }
        }
        commands
    }

    /// All of `desired` has been told.
    pub(super) fn set(&mut self, desired: &Desired) {
        self.topics.clone_from(&desired.topics);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// What a lookupd holds, by the rules of nsq-tcp 7.3: a set of (topic) and (topic, channel).
    #[derive(Default)]
    struct Lookupd(BTreeSet<(String, Option<String>)>);

    impl Lookupd {
        fn apply(&mut self, command: Command) {
            match command {
                Command::Register(topic, channel) => {
                    self.0.insert((topic.clone(), None));
                    self.0.insert((topic, channel));
                }
                Command::Unregister(topic, None) => self.0.retain(|(known, _)| *known != topic),
                Command::Unregister(topic, channel) => {
                    self.0.remove(&(topic, channel));
                }
                Command::Identify(_) | Command::Ping => panic!("not a registration"),
            }
        }
    }

    fn hosted() -> impl Strategy<Value = Vec<Hosted>> {
        let channels = proptest::collection::btree_map("[xyz]", 0_u64..2, 0..3);
        let topics = proptest::collection::btree_map("[abc]", (0_u64..2, channels), 0..3);
        topics.prop_map(|topics| {
            topics
                .into_iter()
                .map(|(topic, (incarnation, channels))| Hosted {
                    topic,
                    incarnation,
                    channels: channels.into_iter().collect(),
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn any_walk_of_states_ends_with_the_last_one_at_the_lookupd(
            states in proptest::collection::vec(hosted(), 1..6)
        ) {
            let mut lookupd = Lookupd::default();
            let mut registered = Registered::default();
            for state in &states {
                let desired = Desired::new(state.clone());
                for command in registered.difference(&desired) {
                    lookupd.apply(command);
                }
                registered.set(&desired);
                prop_assert!(registered.difference(&desired).is_empty());
            }
            let mut expected = BTreeSet::new();
            for hosted in states.last().unwrap() {
                expected.insert((hosted.topic.clone(), None));
                for (channel, _) in &hosted.channels {
                    expected.insert((hosted.topic.clone(), Some(channel.clone())));
                }
            }
            prop_assert_eq!(lookupd.0, expected);
        }
    }

    #[test]
    fn a_topic_made_anew_is_taken_back_and_registered_again() {
        let hosted = |incarnation| Hosted {
            topic: "t".to_owned(),
            incarnation,
            channels: vec![("c".to_owned(), incarnation)],
        };
        let mut registered = Registered::default();
        registered.set(&Desired::new(vec![hosted(1)]));
        assert_eq!(
            registered.difference(&Desired::new(vec![hosted(2)])),
            [
                Command::Unregister("t".to_owned(), Some("c".to_owned())),
                Command::Unregister("t".to_owned(), None),
                Command::Register("t".to_owned(), Some("c".to_owned())),
            ]
        );
    }
}
