//! C-01 to C-11: magic, command lines, framing (nsq-tcp 1).

use std::time::Duration;

use e2e::wire::{Event, command};
use e2e::{Broker, statements};

statements! {
    both {
        c_01_a_foreign_magic_is_refused,
        c_02_a_good_magic_alone_is_not_answered,
        c_03_nop_with_one_carriage_return_is_accepted,
        c_03_nop_with_two_carriage_returns_is_refused,
        c_04_an_empty_line_is_an_invalid_command,
        c_05_commands_are_upper_case,
        c_06_two_spaces_make_an_empty_parameter,
        c_07_surplus_parameters_are_ignored,
        c_08_the_longest_line_is_accepted,
        c_08_a_longer_line_closes_without_an_error,
        c_09_pipelined_publishes_are_answered_in_order,
        c_10_what_came_before_a_half_close_is_answered,
        c_11_the_size_counts_type_and_data,
    }
}

fn c_01_a_foreign_magic_is_refused(broker: &Broker) {
    let node = broker.start();
    for magic in [b"  V1", b"GET ", b"\0\0\0\0"] {
        let mut client = node.raw_client();
        client.send(magic);
        client.expect_fatal("E_BAD_PROTOCOL");
    }
}

fn c_02_a_good_magic_alone_is_not_answered(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.expect_silence(Duration::from_millis(300));
    client.expect_alive();
}

fn c_03_nop_with_one_carriage_return_is_accepted(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send(b"NOP\r\n");
    client.expect_alive();
}

fn c_03_nop_with_two_carriage_returns_is_refused(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send(b"NOP\r\r\n");
    client.expect_fatal("E_INVALID invalid command NOP\r");
}

fn c_04_an_empty_line_is_an_invalid_command(broker: &Broker) {
    let node = broker.start();
    for line in [&b"\n"[..], b"\r\n"] {
        let mut client = node.client();
        client.send(line);
        client.expect_fatal("E_INVALID invalid command ");
    }
}

fn c_05_commands_are_upper_case(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send_line("nop");
    client.expect_fatal("E_INVALID invalid command nop");
}

fn c_06_two_spaces_make_an_empty_parameter(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send_line("PUB  t");
    client.expect_fatal("E_BAD_TOPIC PUB topic name \"\" is not valid");
}

fn c_07_surplus_parameters_are_ignored(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send(&command::sized("PUB t extra", b"body"));
    client.expect_ok();
    node.await_topic("t", |topic| topic["depth"] == 1);
}

fn c_08_the_longest_line_is_accepted(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send_line(&nop_of(16_383));
    client.expect_alive();
}

fn c_08_a_longer_line_closes_without_an_error(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send_line(&nop_of(16_384));
    client.expect_closed();
}

/// A NOP line of `length` bytes, the line feed not counted.
fn nop_of(length: usize) -> String {
    let name = "NOP ";
    format!("{name}{}", "x".repeat(length - name.len()))
}

fn c_09_pipelined_publishes_are_answered_in_order(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    let ten: Vec<u8> = (0..10)
        .flat_map(|number| command::publish("t", &[number]))
        .collect();
    client.send(&ten);
    for _ in 0..10 {
        client.expect_ok();
    }
    let mut consumer = node.consumer("t", "c");
    consumer.ready(10);
    let bodies: Vec<_> = consumer
        .messages(10)
        .into_iter()
        .map(|message| message.body[0])
        .collect();
    assert_eq!(bodies, (0..10).collect::<Vec<u8>>());
}

fn c_10_what_came_before_a_half_close_is_answered(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    let five: Vec<u8> = (0..5)
        .flat_map(|number| command::publish("t", &[number]))
        .collect();
    client.send(&five);
    client.half_close();
    for _ in 0..5 {
        client.expect_ok();
    }
    client.expect_closed();
}

/// The frame reader takes exactly as many bytes as the size says; here the sizes are compared with what is
/// known to have been sent: a response, a message, an error.
fn c_11_the_size_counts_type_and_data(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.send_line("SUB t c");
    assert_eq!(client.bytes(10), b"\0\0\0\x06\0\0\0\0OK");
    node.client().publish("t", "body");
    client.ready(1);
    assert_eq!(client.bytes(8), b"\0\0\0\x22\0\0\0\x02");
    let message = client.bytes(0x22 - 4);
    assert!(message.ends_with(b"body"), "{}", message.escape_ascii());
    client.send_line("FOO");
    assert_eq!(
        client.bytes(4 + 0x21),
        b"\0\0\0\x21\0\0\0\x01E_INVALID invalid command FOO"
    );
    assert_eq!(client.event(Duration::from_secs(5)), Event::Closed);
}
