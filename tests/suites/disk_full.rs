//! A disk that is really full, read-only, or out of file descriptors: publishing fails loudly, consuming goes on, and everything
//! recovers by itself.

use std::collections::HashSet;
use std::time::Duration;

use e2e::node::NodeSetup;
use e2e::small_disk::SmallDisk;
use e2e::wire::{Client, Frame, command};
use e2e::{Broker, Node, eventually, statements};

statements! {
    ours {
        publishing_fails_on_a_full_disk_and_consuming_goes_on,
        an_idle_broker_sees_a_full_disk_and_its_end,
        what_needs_the_store_is_refused_on_a_full_disk_and_leaves_things_as_they_were,
        a_read_only_disk_refuses_the_start,
        too_few_file_descriptors_refuse_and_recover,
    }
}

fn publishing_fails_on_a_full_disk_and_consuming_goes_on(broker: &Broker) {
    let setup = small_node(broker);
    let Some(disk) = SmallDisk::mount(setup.data_path(), 16) else {
        return;
    };
    let node = setup.start();
    let mut consumer = node.consumer("t", "c");
    let mut account = Account::default();
    disk.fill_but(3 * 1024);
    account.fill(&node);
    expect_red(&node);
    node.http()
        .post("/pub?topic=t", vec![b'x'; 20_000])
        .expect_error(503, "EXITING");

    // Consuming needs no space.
    consumer.ready(20);
    account.take(&mut consumer, 20);

    // Nobody publishes, and still it is noticed that there is space.
    disk.free();
    await_green(&node);
    node.http().post("/pub?topic=t", account.next_body()).expect_ok();
    account.promised += 1;

    // Full again, and the process ends in the middle of it.
    disk.fill_but(1024);
    account.fill(&node);
    let setup = node.kill();
    disk.free();
    let node = setup.start();
    await_green(&node);
    let mut consumer = node.consumer("t", "c");
    consumer.ready(100);
    account.take_the_rest(&mut consumer);

    disk.fill_but(1024);
    account.fill(&node);
    account.take_the_rest(&mut consumer);
    let setup = node.terminate();
    disk.free();
    let node = setup.start();
    node.await_channel("t", "c", |channel| channel["depth"] == 0);
    expect_no_panic(&node);
}

fn an_idle_broker_sees_a_full_disk_and_its_end(broker: &Broker) {
    let setup = small_node(broker);
    let Some(disk) = SmallDisk::mount(setup.data_path(), 16) else {
        return;
    };
    let node = setup.start();
    node.http().get("/ping").expect_ok();
    disk.fill_but(0);
    eventually("health is red", Duration::from_secs(5), || {
        (node.http().get("/ping").status == 500).then_some(())
    });
    assert_eq!(node.http().get("/readyz").status, 503);
    disk.free();
    await_green(&node);
    assert_eq!(node.http().get("/readyz").status, 200);
}

fn what_needs_the_store_is_refused_on_a_full_disk_and_leaves_things_as_they_were(broker: &Broker) {
    let setup = small_node(broker);
    let Some(disk) = SmallDisk::mount(setup.data_path(), 16) else {
        return;
    };
    let node = setup.start();
    node.client().subscribe("t", "c");
    node.client().subscribe("t", "d");
    let mut waiting = node.consumer("t", "c");
    disk.fill_but(0);
    // The store has some room of its own left.
    let mut made: HashSet<String> = HashSet::new();
    let refused = (0..20_000).map(|number| format!("topic-{number}")).find(|name| {
        let answer = node.http().post(&format!("/topic/create?topic={name}"), "");
        if answer.status == 200 {
            made.insert(name.clone());
            return false;
        }
        answer.expect_error(503, "EXITING");
        true
    });
    assert!(refused.is_some(), "the disk never was full");
    expect_red(&node);
    let mut subscriber = node.client();
    subscriber.send_line("SUB other c");
    subscriber.expect_fatal_starting("E_SUB_FAILED");
    // Whether one of these gets through or not: what is answered is what is.
    let calls = [
        "/topic/pause?topic=t",
        "/channel/pause?topic=t&channel=c",
        "/channel/delete?topic=t&channel=c",
        "/topic/delete?topic=t",
    ];
    for call in calls {
        let answer = node.http().post(call, "");
        answer.expect_error(503, "EXITING");
    }
    assert_eq!(node.topic("t")["paused"], false);
    assert_eq!(node.channel("t", "c")["paused"], false);
    waiting.send_line("NOP");
    waiting.expect_silence(Duration::from_millis(100));

    disk.free();
    await_green(&node);
    waiting.ready(1);
    node.client().publish("t", "after");
    assert_eq!(waiting.message().body, b"after");
    post(&node, "/channel/delete?topic=t&channel=d");
    let last = refused.expect("one was refused");
    post(&node, &format!("/topic/create?topic={last}"));
    made.insert(last);
    let node = node.kill().start();
    assert!(node.channel("t", "d").is_null());
    assert_eq!(node.channel("t", "c")["paused"], false);
    let stats = node.stats();
    let names = stats["topics"].as_array().expect("topics").iter();
    let found: HashSet<String> = names
        .filter_map(|topic| topic["topic_name"].as_str())
        .filter(|name| *name != "t")
        .map(str::to_owned)
        .collect();
    assert_eq!(found, made);
    expect_no_panic(&node);
}

fn a_read_only_disk_refuses_the_start(broker: &Broker) {
    let setup = small_node(broker);
    let Some(disk) = SmallDisk::mount(setup.data_path(), 16) else {
        return;
    };
    let node = setup.start();
    node.client().subscribe("t", "c");
    node.client().publish("t", "kept");
    let setup = node.terminate();
    disk.set_read_only(true);
    let exit = setup.clone().expect_exit();
    assert_eq!(exit.code, Some(1), "{}", exit.stderr);
    assert!(exit.stderr.contains("Read-only file system"), "{}", exit.stderr);
    assert!(!exit.stderr.contains("panicked"), "{}", exit.stderr);
    disk.set_read_only(false);
    let node = setup.start();
    let mut consumer = node.consumer("t", "c");
    consumer.ready(1);
    assert_eq!(consumer.message().body, b"kept");
}

fn too_few_file_descriptors_refuse_and_recover(broker: &Broker) {
    let node = broker
        .node()
        .open_files(80)
        .flag("max-bytes-per-file", 20_000)
        .flag("memory-tail", "64KiB")
        .start();
    let mut publisher = node.client();
    let mut consumer = node.consumer("t", "c");
    let mut account = Account::default();
    for _ in 0..20 {
        publisher.publish("t", account.next_body());
        account.promised += 1;
    }
    // Connections take what there is; some are not accepted before others leave.
    let crowd: Vec<Client> = (0..100)
        .map(|_| Client::connect_silently(node.tcp_address()))
        .collect();
    consumer.ready(5);
    account.take(&mut consumer, 5);
    // Publishing may need a new file and fail, or not.
    loop {
        publisher.send(&command::publish("t", &account.next_body()));
        let answer = publisher.frame();
        if answer.is_error() {
            assert!(answer.text().starts_with("E_PUB_FAILED"), "{answer:?}");
            account.unsure = true;
            break;
        }
        account.promised += 1;
        if account.promised > 100 {
            break;
        }
    }
    drop(crowd);
    await_green(&node);
    let mut publisher = node.client();
    publisher.publish("t", account.next_body());
    account.promised += 1;
    publisher.publish("fresh", "works again");
    consumer.ready(100);
    account.take_the_rest(&mut consumer);
    expect_no_panic(&node);
}

/// What was promised and what has come, on topic `t` and channel `c`.
#[derive(Default)]
struct Account {
    sent: u64,
    promised: usize,
    taken: HashSet<String>,
    /// One more than was promised may come.
    unsure: bool,
}

impl Account {
    fn next_body(&mut self) -> Vec<u8> {
        self.sent += 1;
        let mut body = format!("{} ", self.sent).into_bytes();
        body.resize(10_000, b'.');
        body
    }

    /// Publishes until the broker refuses.
    fn fill(&mut self, node: &Node) {
        let mut publisher = node.client();
        for _ in 0..10_000 {
            publisher.send(&command::publish("t", &self.next_body()));
            let answer = publisher.frame();
            if answer == Frame::response("OK") {
                self.promised += 1;
                continue;
            }
            assert!(
                answer.is_error() && answer.text().starts_with("E_PUB_FAILED"),
                "{answer:?}"
            );
            publisher.expect_closed();
            return;
        }
        panic!("the disk was never full");
    }

    /// Consumes `count` messages.
    fn take(&mut self, consumer: &mut Client, count: usize) {
        for _ in 0..count {
            let message = consumer.message();
            consumer.finish(&message.id);
            let name = message
                .body
                .split(|byte| *byte == b' ')
                .next()
                .unwrap_or_default();
            self.taken.insert(String::from_utf8_lossy(name).into_owned());
        }
    }

    /// Consumes until everything promised has come.
    fn take_the_rest(&mut self, consumer: &mut Client) {
        while self.taken.len() < self.promised {
            self.take(consumer, 1);
        }
        let surplus = self.taken.len() - self.promised;
        assert!(
            surplus == 0 || self.unsure,
            "{surplus} came that nobody was promised"
        );
    }
}

fn small_node(broker: &Broker) -> NodeSetup {
    broker
        .node()
        .flag("max-bytes-per-file", 500_000)
        .flag("memory-tail", "1MiB")
}

fn expect_red(node: &Node) {
    let health = node.http().get("/ping");
    assert_eq!(health.status, 500);
    assert!(health.text().starts_with("NOK - "), "{health:?}");
}

fn await_green(node: &Node) {
    eventually("health is green", Duration::from_secs(10), || {
        (node.http().get("/ping").status == 200).then_some(())
    });
}

fn post(node: &Node, target: &str) {
    node.http().post(target, "").expect_done();
}

fn expect_no_panic(node: &Node) {
    let log = node.log();
    assert!(!log.contains("panicked"), "{log}");
}
