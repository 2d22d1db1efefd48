//! Duty: the commands of a broker to nsqlookupd, read from a line cut into words. Must not know bodies or connections.

use super::peer::PeerInfo;
use crate::code::ErrorCode;
use crate::name::{ChannelName, TopicName};
use crate::refusal::WireError;

/// A command of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Alive.
    Ping,
    /// Says who it is; once per connection.
    Identify(PeerInfo),
    /// Has a topic, or a channel of it.
    Register(Registration),
    /// No longer has a topic, or a channel of it.
    Unregister(Registration),
}

/// What a broker has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The topic.
    pub topic: TopicName,
    /// The channel; none for the topic itself.
    pub channel: Option<ChannelName>,
    /// The partition, only from brokers of Youzan's fork: 0..=254, or -11 for their old nodes.
    pub partition: Option<i32>,
}

/// Reads the parameters of REGISTER or UNREGISTER. `partitioned` is true for a broker of Youzan's fork, which puts the
/// partition in front of the channel.
pub(super) fn registration<'a>(
    name: &str,
    mut words: impl Iterator<Item = &'a [u8]>,
    partitioned: bool,
) -> Result<Registration, WireError> {
    let too_few = || {
        WireError::new(
            ErrorCode::Invalid,
            format!("{name} insufficient number of params"),
        )
    };
    let bad = |code, what: &str, raw: &[u8]| {
        let before = format!("{name} {what} name '");
        WireError::quoting(code, &[before.as_bytes(), raw, b"' is not valid"])
    };
    let topic = words.next().ok_or_else(too_few)?;
    let topic = TopicName::parse(topic).map_err(|_| bad(ErrorCode::BadTopic, "topic", topic))?;
    let partition = if partitioned {
        Some(partition(name, words.next().ok_or_else(too_few)?)?)
    } else {
        None
    };
    let channel = match words.next().filter(|channel| !channel.is_empty()) {
        None => None,
        Some(channel) => {
            Some(ChannelName::parse(channel).map_err(|_| bad(ErrorCode::BadChannel, "channel", channel))?)
        }
    };
    Ok(Registration {
        topic,
        channel,
        partition,
    })
}

fn partition(name: &str, word: &[u8]) -> Result<i32, WireError> {
    let number = crate::coding::integer(word).filter(|number| matches!(number, 0..=254 | &OLD_NODE));
    number.ok_or_else(|| {
        let before = format!("{name} partition '");
        WireError::quoting(
            ErrorCode::BadPartitionId,
            &[before.as_bytes(), word, b"' is not valid"],
        )
    })
}

/// Partition that nodes without partitions register.
const OLD_NODE: i32 = -11;
