//! Duty: the table of commands: wire name and the states that allow it (nsq-tcp 1.4, youzan-extension 2).
//! Must not know parameters or bodies.

use crate::session::State;

/// First word of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the table below gives each verb's wire name")]
pub enum Verb {
    Identify,
    Auth,
    Sub,
    SubAdvanced,
    SubOrdered,
    Pub,
    Mpub,
    Dpub,
    PubExt,
    MpubExt,
    PubTrace,
    MpubTrace,
    Rdy,
    Fin,
    Req,
    Touch,
    Cls,
    Nop,
    InternalCreateTopic,
}

impl Verb {
    /// The verb as it is written on the wire.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The verb with this wire name; names are upper case.
    pub fn from_word(word: &[u8]) -> Option<Self> {
        // The verbs of the hot path first; a table walk for each publish would show up in a profile.
        match word {
            b"PUB" => Some(Self::Pub),
            b"MPUB" => Some(Self::Mpub),
            b"FIN" => Some(Self::Fin),
            b"RDY" => Some(Self::Rdy),
            b"NOP" => Some(Self::Nop),
            _ => Self::all().find(|verb| verb.name().as_bytes() == word),
        }
    }

    /// Every verb, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(verb, _, _)| *verb)
    }

    /// True when a connection in `state` may use the verb.
    pub const fn allowed_in(self, state: State) -> bool {
        match TABLE[self as usize].2 {
            States::Any => true,
            States::Init => matches!(state, State::Init),
            States::Subscribed => matches!(state, State::Subscribed),
            States::SubscribedOrClosing => !matches!(state, State::Init),
        }
    }

    /// SUB for its two other forms, which share its errors about the state of the connection; else the verb itself.
    pub(crate) const fn plain_form(self) -> Self {
        match self {
            Self::SubAdvanced | Self::SubOrdered => Self::Sub,
            other => other,
        }
    }

    /// True for PUB and its relatives.
    pub const fn publishes(self) -> bool {
        matches!(
            self,
            Self::Pub
                | Self::Mpub
                | Self::Dpub
                | Self::PubExt
                | Self::MpubExt
                | Self::PubTrace
                | Self::MpubTrace
        )
    }

    /// True for the verbs that nsqd v1.3.0 knows.
    pub const fn is_stock(self) -> bool {
        !matches!(
            self,
            Self::SubAdvanced
                | Self::SubOrdered
                | Self::PubExt
                | Self::MpubExt
                | Self::PubTrace
                | Self::MpubTrace
                | Self::InternalCreateTopic
        )
    }
}

/// In which states a verb is legal.
#[derive(Clone, Copy)]
enum States {
    Init,
    Subscribed,
    SubscribedOrClosing,
    Any,
}

/// In the order of the enum. RDY is legal after CLS and then without effect.
const TABLE: [(Verb, &str, States); 19] = [
    (Verb::Identify, "IDENTIFY", States::Init),
    (Verb::Auth, "AUTH", States::Init),
    (Verb::Sub, "SUB", States::Init),
    (Verb::SubAdvanced, "SUB_ADVANCED", States::Init),
    (Verb::SubOrdered, "SUB_ORDERED", States::Init),
    (Verb::Pub, "PUB", States::Any),
    (Verb::Mpub, "MPUB", States::Any),
    (Verb::Dpub, "DPUB", States::Any),
    (Verb::PubExt, "PUB_EXT", States::Any),
    (Verb::MpubExt, "MPUB_EXT", States::Any),
    (Verb::PubTrace, "PUB_TRACE", States::Any),
    (Verb::MpubTrace, "MPUB_TRACE", States::Any),
    (Verb::Rdy, "RDY", States::SubscribedOrClosing),
    (Verb::Fin, "FIN", States::SubscribedOrClosing),
    (Verb::Req, "REQ", States::SubscribedOrClosing),
    (Verb::Touch, "TOUCH", States::SubscribedOrClosing),
    (Verb::Cls, "CLS", States::Subscribed),
    (Verb::Nop, "NOP", States::Any),
    (Verb::InternalCreateTopic, "INTERNAL_CREATE_TOPIC", States::Any),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum_and_every_name_is_found() {
        for (at, verb) in Verb::all().enumerate() {
            assert_eq!(verb as usize, at);
            assert_eq!(Verb::from_word(verb.name().as_bytes()), Some(verb));
        }
        assert_eq!(Verb::InternalCreateTopic as usize + 1, TABLE.len());
    }
}
