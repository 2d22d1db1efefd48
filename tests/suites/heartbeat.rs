//! C-33 to C-37: heartbeats and read deadlines (nsq-tcp 1.3, 3.2).

use std::time::{Duration, Instant};

use e2e::wire::{Client, Event, Frame};
use e2e::{Broker, statements};

statements! {
    both {
        c_33_answered_heartbeats_keep_the_connection,
        c_34_a_silent_client_is_closed_after_two_intervals,
        c_35_a_body_that_stops_coming_is_refused_after_two_intervals,
        c_36_without_heartbeats_the_idle_connection_stays,
        c_37_sub_needs_heartbeats,
    }
}

fn c_33_answered_heartbeats_keep_the_connection(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.identify(EVERY_SECOND);
    for _ in 0..4 {
        let before = Instant::now();
        assert!(client.frame().is_heartbeat());
        let waited = before.elapsed();
        assert!(
            (SECOND * 7 / 10..SECOND * 14 / 10).contains(&waited),
            "a heartbeat after {waited:?}"
        );
        client.send_line("NOP");
    }
    client.expect_alive();
}

fn c_34_a_silent_client_is_closed_after_two_intervals(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.identify(EVERY_SECOND);
    let began = Instant::now();
    let frames = frames_until_closed(&mut client);
    assert!(
        frames.iter().all(Frame::is_heartbeat),
        "only heartbeats before the end: {frames:?}"
    );
    expect_about_two_seconds(began.elapsed());
}

fn c_35_a_body_that_stops_coming_is_refused_after_two_intervals(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.identify(EVERY_SECOND);
    let began = Instant::now();
    client.send(b"PUB t\n\0\0");
    let mut frames = frames_until_closed(&mut client);
    frames.retain(|frame| !frame.is_heartbeat());
    assert_eq!(
        frames,
        [Frame::error("E_BAD_MESSAGE PUB failed to read message body size")]
    );
    expect_about_two_seconds(began.elapsed());
}

fn c_36_without_heartbeats_the_idle_connection_stays(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.identify(r#"{"heartbeat_interval":-1}"#);
    // A broker that took no notice would beat after 30 s and close after 60 s.
    client.expect_silence(SECOND * 61);
    client.expect_alive();
}

fn c_37_sub_needs_heartbeats(broker: &Broker) {
    let node = broker.start();
    let mut client = node.client();
    client.identify(r#"{"heartbeat_interval":-1}"#);
    client.send_line("SUB t c");
    client.expect_fatal("E_INVALID cannot SUB with heartbeats disabled");
}

fn frames_until_closed(client: &mut Client) -> Vec<Frame> {
    let mut frames = Vec::new();
    loop {
        match client.event(SECOND * 5) {
            Event::Frame(frame) => frames.push(frame),
            Event::Closed => return frames,
            Event::Silence => panic!("still open, after {frames:?}"),
        }
    }
}

fn expect_about_two_seconds(passed: Duration) {
    assert!(
        (SECOND * 19 / 10..SECOND * 3).contains(&passed),
        "closed after {passed:?}"
    );
}

const SECOND: Duration = Duration::from_secs(1);
const EVERY_SECOND: &str = r#"{"heartbeat_interval":1000}"#;
