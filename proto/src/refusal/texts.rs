//! Duty: the errors that a server decides on itself, after a command was decoded, with their exact texts (nsq-tcp 2 and
//! 5, youzan-extension 2). The decoders' own errors are written where they are found.

use super::WireError;
use crate::code::ErrorCode;
use crate::command::Verb;
use crate::dialect::Dialect;
use crate::message::{IdForm, MessageId};
use crate::name::{ChannelRef, TopicRef};
use crate::quote::quoted;

impl WireError {
    /// Answer to an unknown magic.
    pub fn bad_protocol() -> Self {
        Self::new(ErrorCode::BadProtocol, "")
    }

    /// TLS or compression could not be switched on.
    pub fn identify_failed(reason: &str) -> Self {
        Self::new(ErrorCode::IdentifyFailed, format!("IDENTIFY failed {reason}"))
    }

    /// A publish that could not be stored; `reason` is `exiting` or what the log says. Whether the connection
    /// survives depends on its dialect.
    pub fn publish_failed(verb: Verb, dialect: Dialect, reason: &str) -> Self {
        let (code, name) = match verb {
            Verb::Dpub => (ErrorCode::DpubFailed, "DPUB"),
            Verb::Mpub | Verb::MpubExt | Verb::MpubTrace => (ErrorCode::MpubFailed, verb.name()),
            _ => (ErrorCode::PubFailed, verb.name()),
        };
        let survives = dialect == Dialect::Youzan && verb != Verb::Dpub;
        Self::new(code, format!("{name} failed {reason}")).fatal_if(!survives)
    }

    /// FIN, REQ or TOUCH of a message that cannot be settled: `ID not in flight`, `client does not own message`.
    pub fn settle_failed(verb: Verb, id: MessageId, form: IdForm, reason: &str) -> Self {
        let code = match verb {
            Verb::Req => ErrorCode::ReqFailed,
            Verb::Touch => ErrorCode::TouchFailed,
            _ => ErrorCode::FinFailed,
        };
        // A binary id would put control bytes into the text: show the half that FIN matches on.
        let shown = match form {
            IdForm::Hex => id,
            IdForm::Binary => MessageId::hex(id.internal_id(form).unwrap_or_default()),
        };
        let name = verb.name().as_bytes();
        Self::quoting(
            code,
            &[name, b" ", shown.as_bytes(), b" failed ", reason.as_bytes()],
        )
    }

    /// SUB of a channel that has all the consumers it may have.
    pub fn too_many_consumers(topic: TopicRef<'_>, channel: ChannelRef<'_>, limit: u64) -> Self {
        let text = format!("SUB failed consumers for {topic}:{channel} exceeds limit of {limit}");
        Self::new(ErrorCode::SubFailed, text)
    }

    /// SUB that failed for another reason: `exiting`, `to deleted topic/channel`.
    pub fn subscribe_failed(reason: &str) -> Self {
        Self::new(ErrorCode::SubFailed, format!("SUB failed {reason}"))
    }

    /// A checked command before AUTH.
    pub fn auth_first(verb: Verb) -> Self {
        Self::new(
            ErrorCode::AuthFirst,
            format!("AUTH required before {}", verb.name()),
        )
    }

    /// The auth server failed or answered badly.
    pub fn auth_failed() -> Self {
        Self::new(ErrorCode::AuthFailed, "AUTH failed")
    }

    /// AUTH without an auth server.
    pub fn auth_disabled() -> Self {
        Self::new(ErrorCode::AuthDisabled, "AUTH disabled")
    }

    /// AUTH after a successful AUTH.
    pub fn auth_already_set() -> Self {
        Self::new(ErrorCode::Invalid, "AUTH already set")
    }

    /// The auth server granted nothing.
    pub fn no_authorizations() -> Self {
        Self::new(ErrorCode::Unauthorized, "AUTH no authorizations found")
    }

    /// No grant covers the command; `channel` is absent for publishes.
    pub fn unauthorized(verb: Verb, topic: TopicRef<'_>, channel: Option<ChannelRef<'_>>) -> Self {
        let topic = quoted(topic.as_str().as_bytes());
        let channel = quoted(channel.map_or("", ChannelRef::as_str).as_bytes());
        let text = format!("AUTH failed for {} on {topic} {channel}", verb.name());
        Self::new(ErrorCode::Unauthorized, text)
    }

    /// A topic or partition that this server does not hold; clients match the code and the space after it.
    pub fn topic_not_exist() -> Self {
        Self::new(ErrorCode::TopicNotExist, "")
    }

    /// Another server leads the topic. Fatal for everything but publishes.
    pub fn not_leader(verb: Verb) -> Self {
        Self::new(ErrorCode::NotLeader, "").fatal_if(!verb.publishes())
    }

    /// The cluster refuses writes at the moment. Fatal for everything but publishes.
    pub fn not_writable(verb: Verb) -> Self {
        Self::new(ErrorCode::NotWritable, "").fatal_if(!verb.publishes())
    }

    /// An extended header for a topic without them.
    pub fn ext_not_supported(topic: TopicRef<'_>) -> Self {
        Self::new(
            ErrorCode::ExtNotSupported,
            format!("ext content not supported in topic {topic}"),
        )
    }

    /// A publish above its rate limit; it may be tried again after `wait_ms`.
    pub fn rate_limited(wait_ms: u64) -> Self {
        Self::new(ErrorCode::RateLimited, wait_ms.to_string())
    }

    /// SUB with a `filter_key` that differs from the channel's.
    pub fn filter_mismatch(channel: ChannelRef<'_>) -> Self {
        Self::new(
            ErrorCode::FilterMismatch,
            format!("SUB filter differs from that of channel {channel}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(error: &WireError) -> String {
        String::from_utf8(error.text()).unwrap()
    }

    #[test]
    fn c_01_the_magic_error_is_a_bare_code() {
        assert_eq!(text(&WireError::bad_protocol()), "E_BAD_PROTOCOL");
    }

    #[test]
    fn y_16_an_empty_description_keeps_its_space() {
        assert_eq!(text(&WireError::topic_not_exist()), "E_TOPIC_NOT_EXIST ");
    }

    #[test]
    fn a_failed_publish_closes_stock_connections_only() {
        let stock = WireError::publish_failed(Verb::Pub, Dialect::Stock, "exiting");
        assert_eq!(text(&stock), "E_PUB_FAILED PUB failed exiting");
        assert!(stock.is_fatal());
        let youzan = WireError::publish_failed(Verb::MpubExt, Dialect::Youzan, "disk full");
        assert_eq!(text(&youzan), "E_MPUB_FAILED MPUB_EXT failed disk full");
        assert!(!youzan.is_fatal());
        assert!(WireError::publish_failed(Verb::Dpub, Dialect::Youzan, "exiting").is_fatal());
    }

    #[test]
    fn c_56_and_c_58_settle_errors_name_the_id_and_are_not_fatal() {
        let id = MessageId::hex(0x0d85_e0b1_1e40_0000);
        let error = WireError::settle_failed(Verb::Fin, id, IdForm::Hex, "ID not in flight");
        assert_eq!(
            text(&error),
            "E_FIN_FAILED FIN 0d85e0b11e400000 failed ID not in flight"
        );
        assert!(!error.is_fatal());
        let error =
            WireError::settle_failed(Verb::Touch, MessageId::binary(10, 7), IdForm::Binary, "exiting");
        assert_eq!(
            text(&error),
            "E_TOUCH_FAILED TOUCH 000000000000000a failed exiting"
        );
    }

    #[test]
    fn c_41_and_c_95_name_topic_and_channel() {
        let (topic, channel) = (TopicRef::parse(b"t").unwrap(), ChannelRef::parse(b"c").unwrap());
        assert_eq!(
            text(&WireError::too_many_consumers(topic, channel, 1)),
            "E_SUB_FAILED SUB failed consumers for t:c exceeds limit of 1"
        );
        assert_eq!(
            text(&WireError::unauthorized(Verb::Pub, topic, None)),
            r#"E_UNAUTHORIZED AUTH failed for PUB on "t" """#
        );
    }

    #[test]
    fn another_leader_ends_a_subscription_but_not_a_publisher() {
        assert!(WireError::not_leader(Verb::Sub).is_fatal());
        assert!(!WireError::not_leader(Verb::PubExt).is_fatal());
    }
}
