//! Duty: random load on a node, in threads of its own, all of it written down in a [`Ledger`].
//!
//! In: a node, a ledger, a seed. Out: publishes and deliveries until the node ends or the load is told to stop. Whatever the
//! broker does wrong panics in the thread and again in [`Load::join`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;

use crate::Node;
use crate::ledger::Ledger;
use crate::wire::{Client, Event, Frame, Message, command};

/// Clients that run.
#[derive(Debug)]
pub struct Load {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

/// How consumers treat what they get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manners {
    /// Some messages are requeued, touched or left to their timeout.
    Varied,
    /// Everything is finished.
    Finishing,
}

impl Load {
    /// Starts `publishers` on the ledger's topic and two consumers on each of its channels.
    pub fn start(
        node: &Node,
        ledger: &Arc<Ledger>,
        publishers: u32,
        manners: Manners,
        rng: &mut Rng,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for channel in ledger.channels() {
            for _ in 0..2 {
                let mut consumer = Consumer {
                    client: node.consumer(ledger.topic(), &channel),
                    ledger: Arc::clone(ledger),
                    channel: channel.clone(),
                    manners,
                    unproved: Vec::new(),
                    asked: VecDeque::new(),
                    rng: rng.fork(),
                };
                let stop = Arc::clone(&stop);
                threads.push(thread::spawn(move || consumer.run(&stop)));
            }
        }
        for _ in 0..publishers {
            let mut publisher = Publisher {
                client: node.client(),
                ledger: Arc::clone(ledger),
                prefix: format!("{:016x}", rng.u64(..)),
                count: 0,
                rng: rng.fork(),
            };
            let stop = Arc::clone(&stop);
            threads.push(thread::spawn(move || publisher.run(&stop)));
        }
        Self { threads, stop }
    }

    /// Waits until every client has noticed that the node has ended.
    ///
    /// # Panics
    /// When any of them has met something wrong.
    pub fn join(self) {
        for thread in self.threads {
            thread.join().expect("a client met something wrong");
        }
    }

    /// Tells every client to stop and waits for it.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.join();
    }
}

struct Publisher {
    client: Client,
    ledger: Arc<Ledger>,
    prefix: String,
    count: u64,
    rng: Rng,
}

impl Publisher {
    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let mut bytes = Vec::new();
            let groups: Vec<Vec<String>> = (0..self.rng.usize(1..6))
                .map(|_| self.command(&mut bytes))
                .collect();
            self.client.send(&bytes);
            for group in groups {
                match self.client.event_until_killed(PATIENCE) {
                    Event::Frame(frame) if frame == Frame::response("OK") => self.ledger.acknowledged(&group),
                    // A broker that is told to stop may say so before it closes.
                    Event::Closed => return,
                    Event::Frame(frame) if frame.is_error() && frame.text().ends_with(" exiting") => return,
                    other => panic!("a publish was answered by {other:?}"),
                }
            }
            if self.rng.u8(..4) == 0 {
                thread::sleep(Duration::from_micros(self.rng.u64(..3000)));
            }
        }
    }

    /// Adds one random command to `bytes`; answers the names of its messages.
    fn command(&mut self, bytes: &mut Vec<u8>) -> Vec<String> {
        let topic = self.ledger.topic().to_owned();
        match self.rng.u8(..4) {
            0 => {
                let count = self.rng.usize(1..20);
                let (names, bodies): (Vec<_>, Vec<_>) = (0..count).map(|_| self.message()).unzip();
                let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
                bytes.extend(command::publish_many(&topic, &bodies));
                names
            }
            1 => {
                let (name, body) = self.message();
                bytes.extend(command::publish_deferred(&topic, self.rng.u64(..300), &body));
                vec![name]
            }
            _ => {
                let (name, body) = self.message();
                bytes.extend(command::publish(&topic, &body));
                vec![name]
            }
        }
    }

    fn message(&mut self) -> (String, Vec<u8>) {
        self.count += 1;
        let name = format!("{}-{}", self.prefix, self.count);
        self.ledger.sends(&name);
        let mut body = name.clone().into_bytes();
        body.push(b' ');
        body.resize(body.len() + self.rng.usize(..1500), b'.');
        (name, body)
    }
}

struct Consumer {
    client: Client,
    ledger: Arc<Ledger>,
    channel: String,
    manners: Manners,
    /// Finished, in this client's opinion, since the last question.
    unproved: Vec<(String, String)>,
    /// What is proved to be finished by the answer to each question asked.
    asked: VecDeque<Vec<(String, String)>>,
    rng: Rng,
}

impl Consumer {
    fn run(&mut self, stop: &AtomicBool) {
        self.client.ready(self.rng.u32(1..100));
        while !stop.load(Ordering::Relaxed) {
            match self.client.event_until_killed(TURN) {
                Event::Frame(frame) if frame.is_message() => self.treat(&frame.message()),
                Event::Frame(frame) if frame.is_heartbeat() => self.client.send_line("NOP"),
                Event::Frame(frame) if frame.is_error() && frame.text().ends_with(" exiting") => return,
                Event::Frame(frame) if frame.is_error() => self.was_late(&frame.text()),
                Event::Frame(_) => {
                    let proved = self.asked.pop_front().expect("an answer to a question");
                    let names: Vec<String> = proved.into_iter().map(|(_, name)| name).collect();
                    self.ledger.finished(&self.channel, &names);
                }
                Event::Silence => self.ask(),
                Event::Closed => return,
            }
            if self.unproved.len() >= 20 {
                self.ask();
            }
        }
    }

    fn treat(&mut self, message: &Message) {
        let name = self.ledger.delivered(&self.channel, message);
        let dice = match self.manners {
            Manners::Varied => self.rng.u8(..100),
            Manners::Finishing => 100,
        };
        match dice {
            0..4 => self.client.requeue(&message.id, 0),
            4..8 => self.client.requeue(&message.id, self.rng.u64(..200)),
            8..10 => {}
            _ => {
                if dice < 14 {
                    self.client.touch(&message.id);
                }
                self.client.finish(&message.id);
                self.unproved.push((message.id.clone(), name));
            }
        }
    }

    /// Commands are executed in order: the answer to a publish proves every FIN before it.
    fn ask(&mut self) {
        if !self.unproved.is_empty() {
            self.client.send(&command::publish("proof", b"?"));
            self.asked.push_back(std::mem::take(&mut self.unproved));
        }
    }

    /// A FIN, REQ or TOUCH came after the message's timeout: it will come again.
    fn was_late(&mut self, text: &str) {
        let id = text.split(' ').nth(2).unwrap_or_default();
        assert!(
            ["E_FIN_FAILED ", "E_REQ_FAILED ", "E_TOUCH_FAILED "]
                .iter()
                .any(|code| text.starts_with(code)),
            "a consumer was told {text}"
        );
        for proved in self.asked.iter_mut().chain([&mut self.unproved]) {
            proved.retain(|(known, _)| known != id);
        }
    }
}

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a consumer without messages looks up.
const TURN: Duration = Duration::from_millis(20);
