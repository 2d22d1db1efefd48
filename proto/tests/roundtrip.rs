//! Duty: what a client writes is what the server reads: random commands and messages survive encode then decode.

use nsqx_proto::command::identify::IdentifyRequest;
use nsqx_proto::command::{Command, NewMessage, StartOffset, Subscribe, SubscribeMode, encode};
use nsqx_proto::dialect::Dialect;
use nsqx_proto::limits::Limits;
use nsqx_proto::message::{Delivery, Detail, Header, Layout, put_message};
use nsqx_proto::session::{Session, Step};
use nsqx_proto::{ChannelRef, MessageId, TopicRef, Verb};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const NAME: &str = "[.a-zA-Z0-9_-]{1,54}(#ephemeral)?";

fn subscribed(mode: SubscribeMode) -> Session {
    let mut session = Session::new(Limits::default());
    session.subscribed(mode);
    session
}

/// The one command that `bytes` are.
fn decode(mut session: Session, bytes: &[u8]) -> Command<'_> {
    match session.next(bytes) {
        Step::Command { command, consumed } if consumed == bytes.len() => command,
        other => panic!("{other:?}"),
    }
}

fn new_messages() -> impl Strategy<Value = Vec<(u64, Vec<u8>, Vec<u8>)>> {
    vec(
        (any::<u64>(), vec(any::<u8>(), 0..40), vec(any::<u8>(), 1..80)),
        1..20,
    )
}

proptest! {
    #[test]
    fn a_single_publish(
        verb in select(vec![Verb::Pub, Verb::PubTrace, Verb::PubExt]),
        name in NAME, partition in proptest::option::of(0..1024), messages in new_messages(),
    ) {
        let topic = TopicRef::parse(name.as_bytes()).unwrap();
        let message = published(verb, &messages[0]);
        let mut bytes = Vec::new();
        encode::publish(&mut bytes, verb, topic, partition, &message);
        let command = decode(Session::new(Limits::default()), &bytes);
        let Command::Publish(publish) = command else { panic!("{command:?}") };
        prop_assert_eq!((publish.verb, publish.topic, publish.partition), (verb, topic, partition));
        prop_assert_eq!(publish.messages.collect::<Vec<_>>(), [message]);
    }

    #[test]
    fn a_batch(
        verb in select(vec![Verb::Mpub, Verb::MpubTrace, Verb::MpubExt]),
        name in NAME, partition in proptest::option::of(0..1024), messages in new_messages(),
    ) {
        let topic = TopicRef::parse(name.as_bytes()).unwrap();
        let messages: Vec<_> = messages.iter().map(|message| published(verb, message)).collect();
        let mut bytes = Vec::new();
        encode::publish_batch(&mut bytes, verb, topic, partition, &messages);
        let command = decode(Session::new(Limits::default()), &bytes);
        let Command::Publish(publish) = command else { panic!("{command:?}") };
        prop_assert_eq!((publish.verb, publish.topic, publish.partition), (verb, topic, partition));
        prop_assert_eq!(publish.messages.collect::<Vec<_>>(), messages);
    }

    #[test]
    fn a_deferred_publish(name in NAME, delay in 0..=3_600_000_u64, body in vec(any::<u8>(), 1..80)) {
        let topic = TopicRef::parse(name.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        encode::publish_deferred(&mut bytes, topic, delay, &body);
        let command = decode(Session::new(Limits::default()), &bytes);
        let Command::Publish(mut publish) = command else { panic!("{command:?}") };
        prop_assert_eq!((publish.topic, publish.defer_ms), (topic, delay));
        prop_assert_eq!(publish.messages.next().unwrap().body, body);
    }

    #[test]
    fn a_subscription(
        topic in NAME, channel in NAME, partition in proptest::option::of(0..1024), start: Option<i64>,
        mode in select(vec![SubscribeMode::Plain, SubscribeMode::Advanced, SubscribeMode::Ordered]),
    ) {
        let start = start.filter(|_| mode == SubscribeMode::Advanced).map(StartOffset::Timestamp);
        let subscribe = Subscribe {
            topic: TopicRef::parse(topic.as_bytes()).unwrap(),
            channel: ChannelRef::parse(channel.as_bytes()).unwrap(),
            partition, mode, start,
        };
        let mut bytes = Vec::new();
        encode::subscribe(&mut bytes, &subscribe);
        prop_assert_eq!(decode(Session::new(Limits::default()), &bytes), Command::Subscribe(subscribe));
    }

    #[test]
    fn settling_with_both_forms_of_ids(internal in 1..u64::MAX / 2, trace: u64, delay in 0..=3_600_000_u64) {
        let forms = [
            (SubscribeMode::Plain, MessageId::hex(internal)),
            (SubscribeMode::Ordered, MessageId::binary(internal, trace)),
        ];
        for (mode, id) in forms {
            let mut bytes = Vec::new();
            encode::finish(&mut bytes, id);
            prop_assert_eq!(decode(subscribed(mode), &bytes), Command::Finish { id });
            bytes.clear();
            encode::requeue(&mut bytes, id, delay);
            prop_assert_eq!(decode(subscribed(mode), &bytes), Command::Requeue { id, delay_ms: delay });
            bytes.clear();
            encode::touch(&mut bytes, id);
            prop_assert_eq!(decode(subscribed(mode), &bytes), Command::Touch { id });
        }
    }

    #[test]
    fn an_identify_request(
        client_id: String, hostname: String, feature_negotiation: bool, heartbeat_interval: i64, sample_rate: i32,
        extend_support: bool, desired_tag: String, filter_key: String,
    ) {
        let request = IdentifyRequest {
            youzan: extend_support || !desired_tag.is_empty(),
            client_id, hostname, feature_negotiation, heartbeat_interval, sample_rate, extend_support, desired_tag,
            filter_key,
            ..IdentifyRequest::default()
        };
        let mut bytes = Vec::new();
        encode::identify(&mut bytes, &request.to_json());
        let command = decode(Session::new(Limits::default()), &bytes);
        let Command::Identify { body } = command else { panic!("{command:?}") };
        prop_assert_eq!(IdentifyRequest::decode(body), Ok(request));
    }

    #[test]
    fn a_delivery_in_every_layout(
        timestamp: i64, attempts: u16, id: [u8; 16], kind in 0..3, header: Vec<u8>, offset: u64, raw_size: u32,
        body: Vec<u8>, extended: bool, detail: bool,
    ) {
        let message = Delivery {
            timestamp,
            attempts,
            id: MessageId::from_bytes(id),
            header: match kind {
                _ if !extended => Header::None,
                0 => Header::None,
                1 => Header::Tag(&header),
                _ => Header::Json(&header),
            },
            detail: if detail { Detail { offset, raw_size } } else { Detail::default() },
            body: &body,
        };
        let layout = Layout { extended, detail, dialect: Dialect::Stock, json_version: 1 };
        let mut bytes = Vec::new();
        put_message(&mut bytes, layout, &message);
        prop_assert_eq!(Delivery::decode(&bytes[8..], layout), Ok(message));
    }
}

#[test]
fn the_short_commands() {
    let topic = TopicRef::parse(b"t").unwrap();
    let mut bytes = Vec::new();
    encode::auth(&mut bytes, b"secret");
    assert_eq!(
        decode(Session::new(Limits::default()), &bytes),
        Command::Auth { secret: b"secret" }
    );
    bytes.clear();
    encode::ready(&mut bytes, 7);
    assert_eq!(
        decode(subscribed(SubscribeMode::Plain), &bytes),
        Command::Ready { count: 7 }
    );
    bytes.clear();
    encode::close(&mut bytes);
    assert_eq!(decode(subscribed(SubscribeMode::Plain), &bytes), Command::Close);
    bytes.clear();
    encode::nop(&mut bytes);
    assert_eq!(decode(Session::new(Limits::default()), &bytes), Command::Nop);
    bytes.clear();
    encode::create_topic(&mut bytes, topic, 3, true);
    let created = Command::CreateTopic {
        topic,
        partition: 3,
        extended: true,
    };
    assert_eq!(decode(Session::new(Limits::default()), &bytes), created);
}

/// The message as `verb` can carry it.
fn published(verb: Verb, (trace_id, header, body): &(u64, Vec<u8>, Vec<u8>)) -> NewMessage<'_> {
    let (trace_id, header) = match verb {
        Verb::PubTrace | Verb::MpubTrace => (*trace_id, None),
        Verb::PubExt => (0, Some(&header[..])),
        Verb::MpubExt => (0, Some(&header[..]).filter(|header| !header.is_empty())),
        _ => (0, None),
    };
    NewMessage {
        trace_id,
        header,
        body,
    }
}
