//! Duty: the error codes of the wire and whether the connection survives them (nsq-tcp 2.13, youzan-extension 2.7,
//! nsqx-interface 2). Must not know the descriptions that follow a code.

use std::fmt;

/// First word of an error frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the table below gives each code's wire text")]
pub enum ErrorCode {
    Invalid,
    BadProtocol,
    BadBody,
    BadTopic,
    BadChannel,
    BadMessage,
    IdentifyFailed,
    SubFailed,
    PubFailed,
    MpubFailed,
    DpubFailed,
    FinFailed,
    ReqFailed,
    TouchFailed,
    AuthFirst,
    AuthFailed,
    AuthDisabled,
    AuthError,
    Unauthorized,
    BadPartition,
    BadExt,
    TopicNotExist,
    SubOrderIsMust,
    SubExtendNeed,
    SubExtendForbidden,
    SubChannelNotRegistered,
    NotLeader,
    NotWritable,
    PubTooMuchWaiting,
    ExtNotSupported,
    InvalidJsonHeader,
    InvalidTraceId,
    CreateTopicFailed,
    BadTag,
    TagNotSupported,
    BadPartitionId,
    RateLimited,
    FilterMismatch,
}

/// What an error means for the connection it is sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The frame is sent, then the connection is closed.
    Fatal,
    /// The connection stays usable.
    NonFatal,
    /// Fatal for stock connections, non-fatal for Youzan ones (architecture 4.0).
    ByDialect,
    /// Fatal for SUB and FIN, non-fatal for publishes (youzan-extension 2.7).
    ByVerb,
}

impl ErrorCode {
    /// The code as it is written on the wire.
    pub const fn text(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// What the code means for the connection.
    pub const fn severity(self) -> Severity {
        TABLE[self as usize].2
    }

    /// The code with this wire text.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        Self::all().find(|code| code.text().as_bytes() == text)
    }

    /// Every code, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(code, _, _)| *code)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

use Severity::{ByDialect, ByVerb, Fatal, NonFatal};

/// In the order of the enum. A code that goes out of use stays listed: clients in the field still know it.
const TABLE: [(ErrorCode, &str, Severity); 38] = [
    (ErrorCode::Invalid, "E_INVALID", Fatal),
    (ErrorCode::BadProtocol, "E_BAD_PROTOCOL", Fatal),
    (ErrorCode::BadBody, "E_BAD_BODY", Fatal),
    (ErrorCode::BadTopic, "E_BAD_TOPIC", Fatal),
    (ErrorCode::BadChannel, "E_BAD_CHANNEL", Fatal),
    (ErrorCode::BadMessage, "E_BAD_MESSAGE", Fatal),
    (ErrorCode::IdentifyFailed, "E_IDENTIFY_FAILED", Fatal),
    (ErrorCode::SubFailed, "E_SUB_FAILED", Fatal),
    (ErrorCode::PubFailed, "E_PUB_FAILED", ByDialect),
    (ErrorCode::MpubFailed, "E_MPUB_FAILED", ByDialect),
    (ErrorCode::DpubFailed, "E_DPUB_FAILED", Fatal),
    (ErrorCode::FinFailed, "E_FIN_FAILED", NonFatal),
    (ErrorCode::ReqFailed, "E_REQ_FAILED", NonFatal),
    (ErrorCode::TouchFailed, "E_TOUCH_FAILED", NonFatal),
    (ErrorCode::AuthFirst, "E_AUTH_FIRST", Fatal),
    (ErrorCode::AuthFailed, "E_AUTH_FAILED", Fatal),
    (ErrorCode::AuthDisabled, "E_AUTH_DISABLED", Fatal),
    (ErrorCode::AuthError, "E_AUTH_ERROR", Fatal),
    (ErrorCode::Unauthorized, "E_UNAUTHORIZED", Fatal),
    (ErrorCode::BadPartition, "E_BAD_PARTITION", Fatal),
    (ErrorCode::BadExt, "E_BAD_EXT", Fatal),
    (ErrorCode::TopicNotExist, "E_TOPIC_NOT_EXIST", Fatal),
    (ErrorCode::SubOrderIsMust, "E_SUB_ORDER_IS_MUST", Fatal),
    (ErrorCode::SubExtendNeed, "E_SUB_EXTEND_NEED", Fatal),
    (ErrorCode::SubExtendForbidden, "E_SUB_EXTEND_FORBIDDON", Fatal),
    (
        ErrorCode::SubChannelNotRegistered,
        "E_SUB_CHANNEL_NOT_REGISTERED",
        Fatal,
    ),
    (ErrorCode::NotLeader, "E_FAILED_ON_NOT_LEADER", ByVerb),
    (ErrorCode::NotWritable, "E_FAILED_ON_NOT_WRITABLE", ByVerb),
    (ErrorCode::PubTooMuchWaiting, "E_PUB_TOO_MUCH_WAITING", Fatal),
    (ErrorCode::ExtNotSupported, "E_EXT_NOT_SUPPORT", NonFatal),
    (ErrorCode::InvalidJsonHeader, "E_INVALID_JSON_HEADER", NonFatal),
    // The only code of the fork without the prefix.
    (ErrorCode::InvalidTraceId, "INVALID_TRACE_ID", NonFatal),
    (ErrorCode::CreateTopicFailed, "E_CREATE_TOPIC_FAILED", NonFatal),
    (ErrorCode::BadTag, "E_BAD_TAG", Fatal),
    // Known to the fork's clients, sent by no server of this generation.
    (ErrorCode::TagNotSupported, "E_TAG_NOT_SUPPORT", NonFatal),
    // Lookup protocol only, where every error is fatal.
    (ErrorCode::BadPartitionId, "E_BAD_PARTITIONID", Fatal),
    (ErrorCode::RateLimited, "E_RATE_LIMITED", NonFatal),
    (ErrorCode::FilterMismatch, "E_FILTER_MISMATCH", Fatal),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum_and_its_texts_differ() {
        for (at, code) in ErrorCode::all().enumerate() {
            assert_eq!(code as usize, at);
            assert_eq!(ErrorCode::from_text(code.text().as_bytes()), Some(code));
        }
        assert_eq!(ErrorCode::FilterMismatch as usize + 1, TABLE.len());
        assert_eq!(ErrorCode::from_text(b"E_NEVER_HEARD_OF"), None);
    }
}
