//! Bytes that no client would send never end a broker.

use std::thread;

use e2e::wire::command;
use e2e::{Broker, Node, statements};

statements! {
    both {
        garbage_on_the_tcp_port_does_not_end_the_broker,
        garbage_on_the_http_port_does_not_end_the_broker,
        connections_cut_inside_a_command_do_not_end_the_broker,
    }
}

fn garbage_on_the_tcp_port_does_not_end_the_broker(broker: &Broker) {
    let mut node = broker.start();
    for seed in 1..=200 {
        let mut random = Random(seed);
        let mut client = if seed % 4 == 0 {
            node.raw_client()
        } else {
            node.client()
        };
        if seed % 2 == 0 {
            client.send(random.pick(&STARTS).as_bytes());
        }
        client.send(&random.bytes());
    }
    expect_well(&mut node);
}

fn garbage_on_the_http_port_does_not_end_the_broker(broker: &Broker) {
    let mut node = broker.start();
    thread::scope(|scope| {
        for worker in 0..4 {
            let http = node.http();
            scope.spawn(move || {
                for seed in 1..=25 {
                    let mut random = Random(1000 * (worker + 1) + seed);
                    let mut bytes = random.pick(&REQUESTS).as_bytes().to_vec();
                    bytes.extend(random.bytes());
                    // Ends the request line and the head, so that the broker has to decide.
                    bytes.extend_from_slice(b"\r\n\r\n\r\n\r\n");
                    http.raw_and_forget(&bytes);
                }
            });
        }
    });
    expect_well(&mut node);
}

fn connections_cut_inside_a_command_do_not_end_the_broker(broker: &Broker) {
    let mut node = broker.start();
    let whole = [
        command::identify(r#"{"feature_negotiation":true}"#),
        command::publish_many("t", &[b"one", b"two"]),
        command::line("SUB t c"),
    ]
    .concat();
    for length in 0..whole.len() {
        let mut client = node.client();
        client.send(&whole[..length]);
    }
    expect_well(&mut node);
}

fn expect_well(node: &mut Node) {
    assert!(node.is_running(), "the broker ended; log:\n{}", node.log());
    node.client().expect_alive();
    node.http().get("/ping").expect_ok();
    let mut consumer = node.consumer("well", "c");
    consumer.ready(1);
    node.client().publish("well", "body");
    assert_eq!(consumer.message().body, b"body");
}

/// A xorshift generator: the same garbage in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[(self.next() % choices.len() as u64) as usize]
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.next() % 4096;
        (0..length).map(|_| (self.next() >> 32) as u8).collect()
    }
}

const STARTS: [&str; 9] = [
    "IDENTIFY\n",
    "AUTH\n",
    "PUB t\n",
    "MPUB t\n",
    "MPUB t\n\0\0\0\u{20}\0\0\0\u{2}",
    "DPUB t 5\n",
    "SUB t c\nFIN ",
    "SUB t c\nRDY ",
    "SUB t c\nREQ ",
];

const REQUESTS: [&str; 8] = [
    "",
    "GET ",
    "GET / HTTP/1.1\r\n",
    "POST /pub?topic=t HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
    "POST /mpub?topic=t&binary=1 HTTP/1.1\r\nContent-Length: 4000\r\n\r\n",
    "POST /pub?topic=t HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    "POST /pub?topic=t HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "PUT /config/nsqlookupd_tcp_addresses HTTP/1.1\r\nContent-Length: 40\r\n\r\n[",
];
