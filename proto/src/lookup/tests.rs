//! The decoder of nsqlookupd against the statements of nsq-tcp 9 that concern parsing.

use super::*;
use crate::limits::LINE_MAX;
use crate::name::{ChannelName, ChannelRef, TopicRef};

fn peer(distributed_id: &str) -> PeerInfo {
    PeerInfo {
        broadcast_address: "10.0.0.1".into(),
        distributed_id: distributed_id.into(),
        hostname: "h".into(),
        http_port: 4151,
        tcp_port: 4150,
        version: "1.3.0".into(),
    }
}

fn identified(distributed_id: &str) -> Session {
    let mut session = Session::new(1000);
    let mut bytes = Vec::new();
    client::put_identify(&mut bytes, &peer(distributed_id));
    let Step::Command { command, consumed } = session.next(&bytes) else {
        panic!("no command")
    };
    assert_eq!(
        (command, consumed),
        (Command::Identify(peer(distributed_id)), bytes.len())
    );
    session
}

fn refusal(session: &mut Session, input: &[u8]) -> String {
    match session.next(input) {
        Step::Refuse(error) => String::from_utf8(error.text()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn registration(session: &mut Session, line: &str) -> Registration {
    match session.next(line.as_bytes()) {
        Step::Command {
            command: Command::Register(it) | Command::Unregister(it),
            consumed,
        } => {
            assert_eq!(consumed, line.len());
            it
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn c_109_ping_needs_no_identify_and_register_does() {
    let mut session = Session::new(1000);
    assert_eq!(
        session.next(b" PING\r\n"),
        Step::Command {
            command: Command::Ping,
            consumed: 7
        }
    );
    assert_eq!(
        refusal(&mut session, b"REGISTER t c\n"),
        "E_INVALID client must IDENTIFY"
    );
}

#[test]
fn c_110_identify_needs_four_fields() {
    for missing in ["broadcast_address", "tcp_port", "http_port", "version"] {
        let mut json: serde_json::Value = serde_json::from_slice(&peer("").to_json()).unwrap();
        json.as_object_mut().unwrap().remove(missing);
        let error = PeerInfo::decode(json.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.text(), b"E_BAD_BODY IDENTIFY missing fields", "{missing}");
    }
    assert!(
        PeerInfo::decode(br#"{"broadcast_address":"a","tcp_port":1,"http_port":2,"version":"v"}"#).is_ok()
    );
}

#[test]
fn c_111_a_second_identify_is_refused_before_its_body() {
    let mut session = identified("");
    assert_eq!(
        refusal(&mut session, b"IDENTIFY\n"),
        "E_INVALID cannot IDENTIFY again"
    );
}

#[test]
fn bodies_are_bounded_in_both_directions() {
    for size in [-1_i32, 1001, i32::MAX, i32::MIN] {
        let input = [b"IDENTIFY\n".as_slice(), &size.to_be_bytes()].concat();
        let text = refusal(&mut Session::new(1000), &input);
        assert_eq!(text, format!("E_BAD_BODY IDENTIFY invalid body size {size}"));
    }
    let mut session = Session::new(1000);
    assert_eq!(session.next(b"IDENTIFY\n\0\0"), Step::NeedMore);
    let error = session.interrupted(b"IDENTIFY\n\0\0").unwrap();
    assert_eq!(error.text(), b"E_BAD_BODY IDENTIFY failed to read body size");
    assert_eq!(session.next(b"IDENTIFY\n\0\0\0\x02{"), Step::NeedMore);
    let error = session.interrupted(b"IDENTIFY\n\0\0\0\x02{").unwrap();
    assert_eq!(error.text(), b"E_BAD_BODY IDENTIFY failed to read body");
    assert_eq!(session.interrupted(b"IDENT"), None);
}

#[test]
fn c_112_register_names_a_topic_and_perhaps_a_channel() {
    let mut session = identified("");
    let it = registration(&mut session, "REGISTER t c extra\n");
    assert_eq!(
        (it.topic.as_str(), it.channel.as_ref().map(ChannelName::as_str)),
        ("t", Some("c"))
    );
    assert_eq!(registration(&mut session, "UNREGISTER t \n").channel, None);
    assert_eq!(
        refusal(&mut session, b"REGISTER\n"),
        "E_INVALID REGISTER insufficient number of params"
    );
    assert_eq!(
        refusal(&mut session, b"REGISTER $\n"),
        "E_BAD_TOPIC REGISTER topic name '$' is not valid"
    );
    let text = refusal(&mut session, b"UNREGISTER t $\n");
    assert_eq!(text, "E_BAD_CHANNEL UNREGISTER channel name '$' is not valid");
    assert_eq!(refusal(&mut session, b"\n"), "E_INVALID invalid command ");
}

#[test]
fn a_broker_with_a_distributed_id_puts_the_partition_before_the_channel() {
    let mut session = identified("10.0.0.1:1:2:3");
    let it = registration(&mut session, "REGISTER t 7 c\n");
    assert_eq!(
        (it.partition, it.channel.as_ref().map(ChannelName::as_str)),
        (Some(7), Some("c"))
    );
    assert_eq!(
        registration(&mut session, "REGISTER t -11\n").partition,
        Some(-11)
    );
    for bad in ["255", "-1", "x", ""] {
        let text = refusal(&mut session, format!("REGISTER t {bad} c\n").as_bytes());
        assert_eq!(
            text,
            format!("E_BAD_PARTITIONID REGISTER partition '{bad}' is not valid")
        );
    }
}

#[test]
fn a_line_without_end_closes() {
    let mut session = Session::new(1000);
    let line = vec![b'x'; LINE_MAX];
    assert_eq!(session.next(&line[..LINE_MAX - 1]), Step::NeedMore);
    assert_eq!(session.next(&line), Step::Close);
}

#[test]
fn what_the_client_writes_is_read_back() {
    let mut session = identified("");
    let (topic, channel) = (
        TopicRef::parse(b"t").unwrap(),
        ChannelRef::parse(b"c#ephemeral").unwrap(),
    );
    let mut bytes = Vec::new();
    client::put_register(&mut bytes, topic, Some(channel));
    assert_eq!(bytes, b"REGISTER t c#ephemeral\n");
    bytes.clear();
    client::put_unregister(&mut bytes, topic, None);
    assert_eq!(bytes, b"UNREGISTER t\n");
    assert!(matches!(
        session.next(&bytes),
        Step::Command {
            command: Command::Unregister(_),
            ..
        }
    ));
}
