//! The decoder of a connection against the statements of nsq-tcp 9 that concern parsing. What the server around it
//! answers is replayed byte for byte in `tests/vectors.rs`.

use super::*;
use crate::command::{Command, NewMessage, SubscribeMode};
use crate::limits::{LINE_MAX, Limits};
use crate::message::MessageId;
use crate::name::TopicRef;
use crate::refusal::WireError;

fn session() -> Session {
    Session::new(Limits::default())
}

fn subscribed() -> Session {
    let mut session = session();
    session.subscribed(SubscribeMode::Plain);
    session
}

fn binary() -> Session {
    let mut session = session();
    session.subscribed(SubscribeMode::Advanced);
    session
}

fn sized(line: &[u8], size: i32, rest: &[u8]) -> Vec<u8> {
    [line, &size.to_be_bytes(), rest].concat()
}

#[track_caller]
fn command<'a>(session: &mut Session, input: &'a [u8]) -> Command<'a> {
    match session.next(input) {
        Step::Command { command, consumed } => {
            assert_eq!(consumed, input.len());
            command
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(mut session: Session, input: &[u8]) -> String {
    match session.next(input) {
        Step::Refuse(refusal) => text(&refusal.error),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn interrupted(mut session: Session, input: &[u8]) -> Option<String> {
    assert_eq!(session.next(input), Step::NeedMore);
    session.interrupted(input).map(|refusal| text(&refusal.error))
}

#[track_caller]
fn text(error: &WireError) -> String {
    assert!(error.is_fatal());
    String::from_utf8_lossy(&error.text()).into_owned()
}

#[test]
fn c_01_only_two_magics_are_known() {
    assert_eq!(Protocol::from_magic(*b"  V2"), Some(Protocol::V2));
    assert_eq!(Protocol::from_magic(*b"  V1"), Some(Protocol::V1));
    assert_eq!(Protocol::from_magic(*b"GET "), None);
}

#[test]
fn c_03_nop_with_two_carriage_returns_is_an_unknown_command() {
    assert_eq!(command(&mut session(), b"NOP\r\n"), Command::Nop);
    assert_eq!(
        refused(session(), b"NOP\r\r\n"),
        "E_INVALID invalid command NOP\r"
    );
}

#[test]
fn c_04_an_empty_line_is_an_unknown_command() {
    assert_eq!(refused(session(), b"\n"), "E_INVALID invalid command ");
}

#[test]
fn c_05_verbs_are_upper_case() {
    assert_eq!(refused(session(), b"nop\n"), "E_INVALID invalid command nop");
}

#[test]
fn c_06_two_spaces_make_an_empty_topic() {
    assert_eq!(
        refused(session(), b"PUB  t\n"),
        "E_BAD_TOPIC PUB topic name \"\" is not valid"
    );
}

#[test]
fn c_07_surplus_words_are_ignored() {
    let input = sized(b"PUB t extra words\n", 1, b"m");
    assert!(matches!(command(&mut session(), &input), Command::Publish(_)));
}

#[test]
fn c_08_a_line_ends_within_16384_bytes() {
    let mut line = b"NOP ".to_vec();
    line.resize(LINE_MAX - 1, b'x');
    line.push(b'\n');
    assert_eq!(command(&mut session(), &line), Command::Nop);
    line.insert(5, b'x');
    assert_eq!(session().next(&line), Step::Close);
    assert_eq!(session().next(&line[..LINE_MAX]), Step::Close);
    assert_eq!(interrupted(session(), &line[..LINE_MAX - 1]), None);
}

#[test]
fn c_15_identify_bodies_are_bounded_before_they_are_read() {
    let refused = |size| refused(session(), &sized(b"IDENTIFY\n", size, b""));
    assert_eq!(refused(0), "E_BAD_BODY IDENTIFY invalid body size 0");
    assert_eq!(refused(-1), "E_BAD_BODY IDENTIFY invalid body size -1");
    assert_eq!(
        refused(5_242_881),
        "E_BAD_BODY IDENTIFY body too big 5242881 > 5242880"
    );
}

#[test]
fn c_24_and_c_38_identify_auth_and_sub_are_for_the_initial_state() {
    for verb in ["IDENTIFY", "AUTH", "SUB"] {
        let expected = format!("E_INVALID cannot {verb} in current state");
        assert_eq!(refused(subscribed(), format!("{verb}\n").as_bytes()), expected);
    }
    let text = refused(subscribed(), b"SUB_ORDERED t c\n");
    assert_eq!(text, "E_INVALID cannot SUB in current state");
}

#[test]
fn c_37_sub_needs_heartbeats() {
    let mut session = session();
    let initial = Features::initial(&crate::limits::ServerLimits::default());
    session.identified(&Features {
        heartbeat: None,
        ..initial
    });
    assert_eq!(
        refused(session, b"SUB\n"),
        "E_INVALID cannot SUB with heartbeats disabled"
    );
}

#[test]
fn c_39_sub_needs_topic_and_channel() {
    assert_eq!(
        refused(session(), b"SUB t\n"),
        "E_INVALID SUB insufficient number of parameters"
    );
}

#[test]
fn c_40_sub_checks_topic_before_channel() {
    let long = "t".repeat(65);
    let text = refused(session(), format!("SUB {long} #ephemeral\n").as_bytes());
    assert_eq!(
        text,
        format!("E_BAD_TOPIC SUB topic name \"{long}\" is not valid")
    );
    let text = refused(session(), b"SUB t #ephemeral\n");
    assert_eq!(text, "E_BAD_CHANNEL SUB channel name \"#ephemeral\" is not valid");
    let line = format!("SUB {} c\n", &long[..64]);
    assert!(matches!(
        command(&mut session(), line.as_bytes()),
        Command::Subscribe(_)
    ));
}

#[test]
fn c_42_consuming_needs_a_subscription() {
    for verb in ["RDY", "FIN", "REQ", "TOUCH", "CLS"] {
        let expected = format!("E_INVALID cannot {verb} in current state");
        assert_eq!(refused(session(), format!("{verb}\n").as_bytes()), expected);
    }
}

#[test]
fn c_43_and_c_44_messages_have_1_to_max_msg_size_bytes() {
    let refused = |size| refused(session(), &sized(b"PUB t\n", size, b""));
    assert_eq!(
        refused(1_048_577),
        "E_BAD_MESSAGE PUB message too big 1048577 > 1048576"
    );
    assert_eq!(refused(0), "E_BAD_MESSAGE PUB invalid message body size 0");
    let input = sized(b"PUB t\n", 1_048_576, &vec![b'x'; 1_048_576]);
    let Command::Publish(publish) = command(&mut session(), &input) else {
        panic!("no publish")
    };
    assert_eq!(
        publish
            .messages
            .map(|message| message.body.len())
            .collect::<Vec<_>>(),
        [1_048_576]
    );
}

#[test]
fn c_45_mpub_says_bad_topic_twice() {
    let text = refused(session(), b"MPUB $\n");
    assert_eq!(text, "E_BAD_TOPIC E_BAD_TOPIC MPUB topic name \"$\" is not valid");
}

#[test]
fn c_46_mpub_has_1_to_1048575_messages() {
    for count in [0, 1_048_576, -1] {
        let text = refused(session(), &sized(b"MPUB t\n", 4, &i32::to_be_bytes(count)));
        assert_eq!(text, format!("E_BAD_BODY MPUB invalid message count {count}"));
    }
    let input = sized(b"MPUB t\n", 4, &1_048_575_i32.to_be_bytes());
    assert_eq!(session().next(&input), Step::NeedMore);
}

#[test]
fn c_47_one_empty_message_refuses_the_batch_and_still_creates_the_topic() {
    let mut input = sized(b"MPUB t\n", 34, &6_i32.to_be_bytes());
    for _ in 0..5 {
        input.extend(sized(b"", 1, b"m"));
    }
    input.extend([0; 4]);
    let Step::Refuse(refusal) = session().next(&input) else {
        panic!("not refused")
    };
    assert_eq!(
        text(&refusal.error),
        "E_BAD_MESSAGE MPUB invalid message(5) body size 0"
    );
    assert_eq!(refusal.create_topic, TopicRef::parse(b"t").ok());
}

#[test]
fn c_48_a_batch_is_driven_by_its_count_not_by_its_size() {
    let messages = [sized(b"", 1, b"a"), sized(b"", 2, b"bb")].concat();
    for declared in [1, 15, 19] {
        let input = [
            sized(b"MPUB t\n", declared, &2_i32.to_be_bytes()),
            messages.clone(),
        ]
        .concat();
        let Command::Publish(publish) = command(&mut session(), &input) else {
            panic!("no publish")
        };
        assert_eq!(publish.messages.len(), 2);
        let bodies: Vec<&[u8]> = publish.messages.map(|message| message.body).collect();
        assert_eq!(bodies, [&b"a"[..], b"bb"]);
    }
}

#[test]
fn c_49_a_deferral_is_bounded_and_never_cut_down() {
    let input = sized(b"DPUB t 3600000\n", 1, b"m");
    let Command::Publish(publish) = command(&mut session(), &input) else {
        panic!("no publish")
    };
    assert_eq!(publish.defer_ms, 3_600_000);
    let text = refused(session(), b"DPUB t 3600001\n");
    assert_eq!(text, "E_INVALID DPUB timeout 3600001 out of range 0-3600000");
    assert_eq!(
        refused(session(), b"DPUB t -1\n"),
        "E_INVALID DPUB could not parse timeout -1"
    );
}

#[test]
fn c_54_rdy_without_count_is_rdy_1() {
    assert_eq!(command(&mut subscribed(), b"RDY\n"), Command::Ready { count: 1 });
    assert_eq!(command(&mut subscribed(), b"RDY \n"), Command::Ready { count: 0 });
}

#[test]
fn c_55_rdy_is_bounded() {
    assert_eq!(
        refused(subscribed(), b"RDY 2501\n"),
        "E_INVALID RDY count 2501 out of range 0-2500"
    );
    assert_eq!(
        refused(subscribed(), b"RDY -1\n"),
        "E_INVALID RDY could not parse count -1"
    );
    assert_eq!(
        command(&mut subscribed(), b"RDY 2500\n"),
        Command::Ready { count: 2_500 }
    );
}

#[test]
fn c_56_any_16_bytes_are_an_id_of_a_stock_connection() {
    let id = |bytes: &[u8; 16]| Command::Finish {
        id: MessageId::from_bytes(*bytes),
    };
    assert_eq!(
        command(&mut subscribed(), b"FIN 0123456789abcdef\n"),
        id(b"0123456789abcdef")
    );
    assert_eq!(
        command(&mut subscribed(), b"FIN 0123456789abcdef\r\n"),
        id(b"0123456789abcdef")
    );
    assert_eq!(
        command(&mut subscribed(), b"FIN \x00123456789abcdef\n"),
        id(b"\x00123456789abcdef")
    );
    assert_eq!(
        command(&mut subscribed(), b"FIN 0123456789abcdef surplus\n"),
        id(b"0123456789abcdef")
    );
}

#[test]
fn c_57_an_id_has_16_bytes() {
    for id in [
        "0123456789abcde",
        "0123456789abcdefg",
        "0123456789abcde\r",
        "01234567 9abcdef",
        "",
    ] {
        let text = refused(subscribed(), format!("FIN {id}\n").as_bytes());
        assert_eq!(text, "E_INVALID invalid message ID", "{id:?}");
    }
    assert_eq!(
        refused(subscribed(), b"FIN\n"),
        "E_INVALID FIN insufficient number of params"
    );
}

#[test]
fn c_61_a_requeue_delay_is_cut_down() {
    let id = MessageId::from_bytes(*b"0123456789abcdef");
    for delay in ["99999999999", "9223372036855", "99999999999999999999999999"] {
        let line = format!("REQ 0123456789abcdef {delay}\n");
        let expected = Command::Requeue {
            id,
            delay_ms: 3_600_000,
        };
        assert_eq!(command(&mut subscribed(), line.as_bytes()), expected);
    }
}

#[test]
fn c_62_a_requeue_delay_has_digits_only() {
    let text = refused(subscribed(), b"REQ 0123456789abcdef -1\n");
    assert_eq!(text, "E_INVALID REQ could not parse timeout -1");
    let text = refused(subscribed(), b"REQ 0123456789abcdef\n");
    assert_eq!(text, "E_INVALID REQ insufficient number of params");
}

#[test]
fn c_68_rdy_after_cls_is_not_even_looked_at() {
    let mut session = subscribed();
    assert_eq!(command(&mut session, b"CLS\n"), Command::Close);
    session.closing();
    assert_eq!(command(&mut session, b"RDY abc\n"), Command::Nop);
    assert!(matches!(
        command(&mut session, b"FIN 0123456789abcdef\n"),
        Command::Finish { .. }
    ));
    assert_eq!(
        refused(session, b"CLS\n"),
        "E_INVALID cannot CLS in current state"
    );
}

#[test]
fn c_103_in_the_clear_only_identify_passes_where_tls_is_required() {
    let strict = || {
        Session::new(Limits {
            tls_required: true,
            ..Limits::default()
        })
    };
    for verb in ["NOP", "SUB", "FOO", "FIN 0123456789abcdef", ""] {
        let word = verb.split(' ').next().unwrap();
        let expected = format!("E_INVALID cannot {word} in current state (TLS required)");
        assert_eq!(refused(strict(), format!("{verb}\n").as_bytes()), expected);
    }
    assert!(matches!(
        command(&mut strict(), &sized(b"IDENTIFY\n", 2, b"{}")),
        Command::Identify { .. }
    ));
    let mut session = strict();
    session.tls_active(true);
    assert_eq!(command(&mut session, b"NOP\n"), Command::Nop);
}

#[test]
fn c_91_a_batch_asks_before_its_body_is_there() {
    let mut session = Session::new(Limits {
        auth_required: true,
        ..Limits::default()
    });
    let input = [sized(b"MPUB t\n", 9, &1_i32.to_be_bytes()), sized(b"", 1, b"a")].concat();
    let topic = TopicRef::parse(b"t").unwrap();
    assert_eq!(
        session.next(&input[..7]),
        Step::Authorise {
            verb: crate::Verb::Mpub,
            topic
        }
    );
    assert_eq!(session.next(&input[..7]), Step::NeedMore);
    assert!(matches!(command(&mut session, &input), Command::Publish(_)));
    assert!(matches!(session.next(&input), Step::Authorise { .. }));
}

#[test]
fn c_35_an_end_inside_a_body_names_what_was_awaited() {
    let pub_size = interrupted(session(), b"PUB t\n\0\0").unwrap();
    assert_eq!(pub_size, "E_BAD_MESSAGE PUB failed to read message body size");
    let pub_body = interrupted(session(), &sized(b"PUB t\n", 2, b"m")).unwrap();
    assert_eq!(pub_body, "E_BAD_MESSAGE PUB failed to read message body");
    let count = sized(b"MPUB t\n", 20, &[0, 0]);
    assert_eq!(
        interrupted(session(), &count).unwrap(),
        "E_BAD_BODY MPUB failed to read message count"
    );
    let second = [
        sized(b"MPUB t\n", 20, &2_i32.to_be_bytes()),
        sized(b"", 1, b"a"),
        vec![0],
    ]
    .concat();
    let expected = "E_BAD_MESSAGE MPUB failed to read message(1) body size";
    assert_eq!(interrupted(session(), &second).unwrap(), expected);
    assert_eq!(interrupted(session(), b"PUB t"), None);
}

#[test]
fn an_interrupted_batch_still_creates_its_topic() {
    let mut session = session();
    let input = sized(b"MPUB t\n", 20, b"");
    assert_eq!(session.next(&input), Step::NeedMore);
    let refusal = session.interrupted(&input).unwrap();
    assert_eq!(refusal.create_topic, TopicRef::parse(b"t").ok());
}

#[test]
fn a_body_is_not_looked_at_again_before_it_is_there() {
    let mut session = session();
    let input = sized(b"PUB t\n", 1_000, &[b'x'; 1_000]);
    assert_eq!(session.next(&input[..10]), Step::NeedMore);
    assert_eq!(session.wanted(), input.len());
    // Had it looked, this would be another command.
    assert_eq!(session.next(b"NOP\n"), Step::NeedMore);
    assert!(matches!(command(&mut session, &input), Command::Publish(_)));
    assert_eq!(session.wanted(), 1);
}

#[test]
fn a_batch_in_pieces_is_walked_once() {
    let mut session = session();
    let mut input = sized(b"MPUB t\n", 5_004, &1_000_i32.to_be_bytes());
    for _ in 0..1_000 {
        input.extend(sized(b"", 1, b"m"));
    }
    let half = 15 + 5 * 500;
    assert_eq!(session.next(&input[..half]), Step::NeedMore);
    // What was walked is not read again: it may as well be gone.
    input[15..half].fill(0xff);
    let Step::Command {
        command: Command::Publish(publish),
        consumed,
    } = session.next(&input)
    else {
        panic!("no publish")
    };
    assert_eq!((publish.messages.len(), consumed), (1_000, input.len()));
}

#[test]
fn y_09_binary_ids_may_hold_line_ends_and_spaces() {
    let id = *b"\0\0\0\0\0\0\n \n\n\n\n    ";
    let line = |before: &[u8], after: &[u8]| [before, &id[..], after].concat();
    let id = MessageId::from_bytes(id);
    assert_eq!(
        command(&mut binary(), &line(b"FIN ", b"\n")),
        Command::Finish { id }
    );
    assert_eq!(
        command(&mut binary(), &line(b"FIN ", b"\r\n")),
        Command::Finish { id }
    );
    assert_eq!(
        command(&mut binary(), &line(b"TOUCH ", b"\n")),
        Command::Touch { id }
    );
    let requeue = Command::Requeue { id, delay_ms: 7 };
    assert_eq!(command(&mut binary(), &line(b"REQ ", b" 7\n")), requeue);
    assert_eq!(
        refused(binary(), &line(b"FIN ", b"x\n")),
        "E_INVALID invalid message ID"
    );
    assert_eq!(
        refused(binary(), &line(b"REQ ", b"\n")),
        "E_INVALID REQ insufficient number of params"
    );
    assert_eq!(
        refused(binary(), b"FIN\n"),
        "E_INVALID FIN insufficient number of params"
    );
}

#[test]
fn y_10_a_binary_id_is_above_zero() {
    for first in [0, 0x80] {
        let mut line = b"FIN ".to_vec();
        line.push(first);
        line.extend([0; 15]);
        line.push(b'\n');
        assert_eq!(refused(binary(), &line), "E_INVALID Invalid Message ID");
    }
}

#[test]
fn y_14_a_partition_is_a_number_for_youzan_clients_only() {
    let input = sized(b"PUB t x\n", 1, b"m");
    let text = refused(binary(), &input);
    assert_eq!(text, "E_BAD_PARTITION PUB topic partition \"x\" is not valid");
    for (word, partition) in [
        ("", None),
        (" ", None),
        (" -1", None),
        (" x", None),
        (" 7", Some(7)),
        (" 7 x", None),
    ] {
        let input = sized(format!("PUB t{word}\n").as_bytes(), 1, b"m");
        let Command::Publish(publish) = command(&mut session(), &input) else {
            panic!("no publish")
        };
        assert_eq!(publish.partition, partition, "{word:?}");
    }
}

#[test]
fn y_22_and_y_26_headers_come_before_bodies() {
    let refused = |rest| refused(session(), &sized(b"PUB_EXT t\n", 4, rest));
    assert_eq!(refused(b"\0\x02{}"), "E_BAD_BODY PUB_EXT invalid body size 4");
    assert_eq!(refused(b"\0\x03{}"), "E_BAD_BODY PUB_EXT invalid body size 4");
    let input = sized(b"PUB_EXT t\n", 3, b"\0\0m");
    let Command::Publish(mut publish) = command(&mut session(), &input) else {
        panic!("no publish")
    };
    let empty = NewMessage {
        trace_id: 0,
        header: Some(b""),
        body: b"m",
    };
    assert_eq!(publish.messages.next(), Some(empty));
    let batch = [sized(b"", 3, b"\0\0m"), sized(b"", 5, b"\0\x02{}m")].concat();
    let input = [sized(b"MPUB_EXT t\n", 20, &2_i32.to_be_bytes()), batch].concat();
    let Command::Publish(publish) = command(&mut session(), &input) else {
        panic!("no publish")
    };
    let headers: Vec<_> = publish.messages.map(|message| message.header).collect();
    assert_eq!(headers, [None, Some(&b"{}"[..])]);
}
