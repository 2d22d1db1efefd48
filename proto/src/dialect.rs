//! Duty: the two families of clients on one port and what differs between them (architecture 4.0). A pure
//! classification; must not know which command revealed it.

/// Which family of clients a connection belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Everything that speaks to nsqd v1.3.0.
    #[default]
    Stock,
    /// Asked for something of Youzan's fork in IDENTIFY, or subscribed in one of its ways.
    Youzan,
}

impl Dialect {
    /// The version that IDENTIFY and `/info` show to this family; Youzan's Java client looks for `-HA.` in it.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Stock => "1.3.0",
            Self::Youzan => concat!("1.3.0-HA.", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Heartbeat intervals of silence after which the connection is given up (C-34, Y-43).
    pub const fn silent_heartbeats(self) -> u64 {
        match self {
            Self::Stock => 2,
            Self::Youzan => 3,
        }
    }

    /// Attempts as a consumer of this family may see them (C-67, Y-11).
    pub const fn attempts_shown(self, attempts: u16) -> u16 {
        match self {
            Self::Youzan if attempts > crate::limits::ATTEMPTS_SHOWN_MAX => crate::limits::ATTEMPTS_SHOWN_MAX,
            _ => attempts,
        }
    }
}
