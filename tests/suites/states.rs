//! C-37 to C-42, C-68, C-70: which command is allowed when, SUB, CLS (nsq-tcp 1.4, 2.2, 2.10).

use std::time::Duration;

use e2e::wire::Event;
use e2e::{Broker, statements};

statements! {
    both {
        c_38_sub_after_sub_is_refused,
        c_39_sub_needs_topic_and_channel,
        c_40_names_have_a_length_and_an_alphabet,
        c_41_a_channel_may_limit_its_consumers,
        c_42_consumer_commands_need_sub,
        c_68_after_cls_the_connection_finishes_its_work,
        c_68_a_second_cls_is_refused,
        c_70_cls_does_not_close_the_connection,
    }
}

fn c_38_sub_after_sub_is_refused(broker: &Broker) {
    let node = broker.start();
    let mut client = node.consumer("t", "c");
    client.send_line("SUB t d");
    client.expect_fatal("E_INVALID cannot SUB in current state");
}

fn c_39_sub_needs_topic_and_channel(broker: &Broker) {
    let node = broker.start();
    for line in ["SUB t", "SUB"] {
        let mut client = node.client();
        client.send_line(line);
        client.expect_fatal("E_INVALID SUB insufficient number of parameters");
    }
}

fn c_40_names_have_a_length_and_an_alphabet(broker: &Broker) {
    let node = broker.start();
    let longest = "n".repeat(64);
    node.client().subscribe(&longest, &longest);
    node.client()
        .subscribe("Aa.0_-", &format!("{}#ephemeral", "n".repeat(54)));
    let too_long = "n".repeat(65);
    for bad in [&too_long, "#ephemeral", "a$", "a#b", "ü"] {
        let mut client = node.client();
        client.send_line(&format!("SUB {bad} c"));
        client.expect_fatal(&format!("E_BAD_TOPIC SUB topic name \"{bad}\" is not valid"));
        let mut client = node.client();
        client.send_line(&format!("SUB t {bad}"));
        client.expect_fatal(&format!("E_BAD_CHANNEL SUB channel name \"{bad}\" is not valid"));
    }
}

fn c_41_a_channel_may_limit_its_consumers(broker: &Broker) {
    let node = broker.node().flag("max-channel-consumers", 1).start();
    let _first = node.consumer("t", "c");
    let mut second = node.client();
    second.send_line("SUB t c");
    second.expect_fatal("E_SUB_FAILED SUB failed consumers for t:c exceeds limit of 1");
    node.consumer("t", "d").expect_alive();
}

fn c_42_consumer_commands_need_sub(broker: &Broker) {
    let node = broker.start();
    for line in [
        "RDY 1",
        "FIN 0123456789abcdef",
        "REQ 0123456789abcdef 0",
        "TOUCH 0123456789abcdef",
        "CLS",
    ] {
        let mut client = node.client();
        client.send_line(line);
        let name = line.split(' ').next().unwrap_or_default();
        client.expect_fatal(&format!("E_INVALID cannot {name} in current state"));
    }
}

fn c_68_after_cls_the_connection_finishes_its_work(broker: &Broker) {
    let node = broker.start();
    let mut client = node.consumer("t", "c");
    client.publish("t", "one");
    client.ready(1);
    let message = client.message();
    client.send_line("CLS");
    client.expect_response("CLOSE_WAIT");
    client.send_line("RDY 5");
    client.send_line("RDY abc");
    client.finish(&message.id);
    client.publish("t", "two");
    let channel = node.await_channel("t", "c", |channel| channel["depth"] == 1);
    assert_eq!(channel["in_flight_count"], 0);
    assert_eq!(channel["clients"][0]["state"], 4);
    client.expect_silence(Duration::from_millis(200));
}

fn c_68_a_second_cls_is_refused(broker: &Broker) {
    let node = broker.start();
    let mut client = node.consumer("t", "c");
    client.send_line("CLS");
    client.expect_response("CLOSE_WAIT");
    client.send_line("CLS");
    client.expect_fatal("E_INVALID cannot CLS in current state");
}

fn c_70_cls_does_not_close_the_connection(broker: &Broker) {
    let node = broker.start();
    let mut client = node.consumer_with(r#"{"heartbeat_interval":1000}"#, "t", "c");
    client.send_line("CLS");
    client.expect_response("CLOSE_WAIT");
    for _ in 0..4 {
        match client.event(Duration::from_secs(3)) {
            Event::Frame(frame) => assert!(frame.is_heartbeat(), "{frame:?}"),
            other => panic!("expected a heartbeat, got {other:?}"),
        }
        client.send_line("NOP");
    }
    client.expect_alive();
}
