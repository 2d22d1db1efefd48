//! Duty: who is woken for what, in which order messages come, what happens when memory does not hold them.

use std::time::Duration;

use super::bed::{Bed, CONSUMER, Got, RULES};
use crate::channel::{ChannelRules, ConsumerRules};
use crate::ids::ConnectionId;
use crate::log::record::NewRecord;
use crate::log::sequence::Sequence;

const AT_ONCE: Duration = Duration::ZERO;

fn bed_with_mem_queue_size(mem_queue_size: u64) -> Bed {
    Bed::with_rules(ChannelRules {
        mem_queue_size,
        ..RULES
    })
}

#[test]
fn one_message_wakes_one_consumer() {
    let mut bed = Bed::new();
    for consumer in 1..=3 {
        bed.subscribe(consumer, 10);
    }
    assert!(bed.channel.is_hungry());
    let first = bed.publish(1);
    assert_eq!(bed.channel.wake_next(), Some(ConnectionId(1)));
    assert_eq!(
        bed.channel.wake_next(),
        None,
        "the message is offered to the first already"
    );
    bed.publish(1);
    assert_eq!(
        bed.channel.wake_next(),
        Some(ConnectionId(2)),
        "a second message wakes a second consumer"
    );
    assert_eq!(
        bed.take(2),
        [
            Got {
                sequence: first,
                attempts: 1
            },
            Got {
                sequence: first + 1,
                attempts: 1
            }
        ]
    );
    assert_eq!(bed.take(1), []);
    bed.publish(1);
    assert_eq!(
        bed.channel.wake_next(),
        Some(ConnectionId(3)),
        "whoever waited longest comes first"
    );
}

#[test]
fn a_consumer_that_cannot_take_now_passes_its_turn_on() {
    let mut bed = Bed::new();
    bed.subscribe(1, 10);
    bed.subscribe(2, 10);
    bed.publish(1);
    assert_eq!(bed.channel.wake_next(), Some(ConnectionId(1)));
    let (taken, _) = bed.take_at_most(1, 0, usize::MAX);
    assert!(taken.more, "it is to look again when it can");
    assert_eq!(bed.channel.wake_next(), Some(ConnectionId(2)));
}

#[test]
fn a_woken_consumer_that_leaves_gives_its_offer_back() {
    let mut bed = Bed::new();
    bed.subscribe(1, 10);
    bed.subscribe(2, 10);
    bed.publish(1);
    assert_eq!(bed.channel.wake_next(), Some(ConnectionId(1)));
    bed.channel.unsubscribe(ConnectionId(1));
    assert_eq!(bed.channel.wake_next(), Some(ConnectionId(2)));
}

#[test]
fn nobody_is_hungry_without_credit() {
    let mut bed = Bed::new();
    bed.subscribe(1, 0);
    assert!(!bed.channel.is_hungry());
    let message = bed.publish(1);
    assert_eq!(bed.channel.wake_next(), None);
    bed.channel.set_ready(ConnectionId(1), 1);
    assert!(bed.channel.is_hungry());
    assert_eq!(bed.run().len(), 1);
    assert!(!bed.channel.is_hungry());
    bed.finish(1, message).unwrap();
    assert!(bed.channel.is_hungry());
    bed.channel.unsubscribe(ConnectionId(1));
    assert!(!bed.channel.is_hungry());
}

#[test]
fn a_limit_ends_a_turn_and_leaves_the_consumer_unparked() {
    let mut bed = Bed::new();
    bed.subscribe(1, 100);
    bed.publish(10);
    let (taken, got) = bed.take_at_most(1, 4, usize::MAX);
    assert_eq!((got.len(), taken.more), (4, true));
    let record = taken.bytes / 4;
    let (taken, got) = bed.take_at_most(1, 100, record + 1);
    assert_eq!(
        (got.len(), taken.more),
        (2, true),
        "the limit is passed by one message at most"
    );
    let (taken, got) = bed.take_at_most(1, 100, 0);
    assert_eq!(
        (got.len(), taken.more),
        (1, true),
        "the first message always goes"
    );
    let (taken, got) = bed.take_at_most(1, 3, usize::MAX);
    assert_eq!((got.len(), taken.more), (3, false), "nothing is left to look for");
}

#[test]
fn a_returned_message_comes_behind_what_was_queued() {
    let mut bed = bed_with_mem_queue_size(100);
    let first = bed.publish(5);
    bed.subscribe(1, 1);
    bed.take(1);
    bed.requeue(1, first, AT_ONCE).unwrap();
    bed.publish(5);
    let order: Vec<u64> = std::iter::from_fn(|| {
        let got = bed.take(1).pop()?;
        bed.finish(1, got.sequence).unwrap();
        Some(got.sequence - first)
    })
    .collect();
    assert_eq!(order, [1, 2, 3, 4, 0, 5, 6, 7, 8, 9]);
}

#[test]
fn a_returned_message_never_waits_for_a_whole_backlog() {
    for (mem_queue_size, ahead) in [(3, 3), (0, 1)] {
        let mut bed = bed_with_mem_queue_size(mem_queue_size);
        let first = bed.publish(50);
        bed.subscribe(1, 2);
        bed.take(1);
        bed.requeue(1, first + 1, AT_ONCE).unwrap();
        bed.requeue(1, first, AT_ONCE).unwrap();
        bed.channel.set_ready(ConnectionId(1), ahead + 2);
        let order: Vec<u64> = bed.take(1).iter().map(|got| got.sequence - first).collect();
        let expected: Vec<u64> = (2..2 + ahead).chain([1, 0]).collect();
        assert_eq!(order, expected, "first in, first out behind {ahead} fresh ones");
    }
}

#[test]
fn deferred_messages_come_in_order_of_their_due_times() {
    let mut bed = Bed::new();
    bed.subscribe(1, 10);
    let delays = [503, 501, 900, 502, 501];
    let sequences = delays.map(|delay| bed.publish_delayed(Duration::from_millis(delay)));
    bed.sleep(Duration::from_secs(1));
    let order: Vec<u64> = bed.take(1).iter().map(|got| got.sequence).collect();
    assert_eq!(order, [1, 4, 3, 0, 2].map(|index: usize| sequences[index]));
}

#[test]
fn what_memory_does_not_hold_is_asked_for_and_supplied() {
    let mut bed = Bed::new();
    bed.subscribe(1, 100);
    let first = bed.publish(20);
    bed.log.cached_from = first + 12;
    assert_eq!(bed.take(1), []);
    assert_eq!(bed.channel.wanted(), Some(Sequence::new(first)));
    assert_eq!(bed.channel.wake_next(), None, "nothing to take before the answer");
    bed.channel.supply(Sequence::new(first + 1), None);
    assert_eq!(
        bed.channel.wanted(),
        Some(Sequence::new(first)),
        "an answer to another question"
    );
    assert_eq!(bed.run().len(), 20);
    assert_eq!(bed.channel.wanted(), None);

    bed.log.cached_from = bed.log.end;
    bed.requeue(1, first + 3, AT_ONCE).unwrap();
    assert_eq!(bed.take(1), []);
    assert_eq!(bed.channel.wanted(), Some(Sequence::new(first + 3)));
    let fresh = bed.publish(1);
    bed.log.cached_from = fresh;
    assert_eq!(
        bed.take(1),
        [Got {
            sequence: fresh,
            attempts: 1
        }],
        "fresh ones need not wait for the disk"
    );
    assert_eq!(
        bed.run(),
        [(
            1,
            Got {
                sequence: first + 3,
                attempts: 2
            }
        )]
    );
}

#[test]
fn damaged_records_are_counted_and_do_not_hold_the_channel_up() {
    let mut bed = Bed::new();
    bed.subscribe(1, 100);
    let first = bed.publish(10);
    bed.log.remove(first + 4);
    bed.log.remove(first + 9);
    bed.log.cached_from = bed.log.end;
    let got: Vec<u64> = bed.run().iter().map(|(_, got)| got.sequence - first).collect();
    assert_eq!(got, [0, 1, 2, 3, 5, 6, 7, 8]);
    bed.requeue(1, first, AT_ONCE).unwrap();
    bed.requeue(1, first + 1, AT_ONCE).unwrap();
    bed.log.remove(first);
    bed.log.remove(first + 1);
    bed.log.cached_from = 0;
    assert_eq!(bed.run(), [], "neither from memory");
    let counts = bed.channel.counts();
    assert_eq!((counts.lost, counts.depth, counts.in_flight), (4, 0, 6));
    for sequence in [2, 3, 5, 6, 7, 8] {
        bed.finish(1, first + sequence).unwrap();
    }
    assert_eq!(bed.channel.floor(), bed.channel.handed_over());
}

#[test]
fn an_answer_of_nothing_does_not_touch_what_was_handed_over_since() {
    let mut bed = Bed::new();
    bed.subscribe(1, 100);
    let first = bed.publish(2);
    bed.log.cached_from = bed.log.end;
    bed.log.remove(first);
    bed.log.remove(first + 1);
    bed.take(1);
    let new = bed.publish(1);
    bed.channel.supply(Sequence::new(first), None);
    assert_eq!(
        bed.run(),
        [(
            1,
            Got {
                sequence: new,
                attempts: 1
            }
        )]
    );
    assert_eq!(bed.channel.counts().lost, 2);
}

#[test]
fn c76_an_ephemeral_channel_keeps_the_newest_within_its_bound() {
    let mut bed = ephemeral(100);
    let first = bed.publish(150);
    let counts = bed.channel.counts();
    assert_eq!(
        (counts.depth, counts.dropped, counts.message_count),
        (100, 50, 150)
    );
    assert_eq!(bed.channel.floor().get(), first + 50);
    bed.subscribe(1, 200);
    assert_eq!(bed.run().len(), 100);
    bed.publish(200);
    assert_eq!(
        bed.channel.counts().dropped,
        50,
        "the bound is at least what consumers are ready for"
    );
}

#[test]
fn an_ephemeral_channel_drops_a_returned_message_first_and_none_in_flight() {
    let mut bed = ephemeral(2);
    let first = bed.publish(2);
    bed.subscribe(1, 2);
    bed.run();
    bed.requeue(1, first + 1, AT_ONCE).unwrap();
    let second = bed.publish(3);
    let counts = bed.channel.counts();
    assert_eq!((counts.depth, counts.dropped, counts.in_flight), (2, 2, 1));
    assert_eq!(bed.channel.floor().get(), first);
    bed.finish(1, first).unwrap();
    assert_eq!(bed.channel.floor().get(), second + 1);
    assert_eq!(bed.channel.checkpoint(0, bed.now), None, "it is never stored");
}

#[test]
fn an_ephemeral_channel_gives_up_a_hand_over_with_gaps_as_a_whole() {
    let mut bed = ephemeral(3);
    bed.log.append(NewRecord::default());
    bed.log.skip(1000);
    bed.log.append(NewRecord::default());
    bed.channel.hand_over(Sequence::new(bed.log.end), 2, &[]);
    let second = bed.publish(2);
    let counts = bed.channel.counts();
    assert_eq!((counts.depth, counts.dropped), (2, 2));
    assert_eq!(bed.channel.floor().get(), second);
    bed.subscribe(1, 10);
    assert_eq!(bed.run().len(), 2);
}

#[test]
fn an_imported_message_is_found_by_its_own_id_while_in_flight() {
    let mut bed = Bed::new();
    let id = *b"0a1b2c3d4e5f6071";
    let message = bed.log.append(NewRecord {
        own_id: Some(id),
        attempts: 7,
        ..NewRecord::default()
    });
    bed.channel.hand_over(Sequence::new(bed.log.end), 1, &[]);
    bed.subscribe_as(
        1,
        1,
        ConsumerRules {
            msg_timeout: Duration::from_secs(1),
            ..CONSUMER
        },
    );
    assert_eq!(bed.channel.sequence_of(id), None);
    for attempts in [8, 9, 10] {
        assert_eq!(
            bed.run(),
            [(
                1,
                Got {
                    sequence: message,
                    attempts
                }
            )]
        );
        assert_eq!(bed.channel.sequence_of(id), Some(Sequence::new(message)));
        bed.sleep(Duration::from_millis(1011));
        assert_eq!(bed.channel.sequence_of(id), None);
    }
    bed.run();
    bed.finish(1, message).unwrap();
    assert_eq!(bed.channel.sequence_of(id), None);
}

fn ephemeral(bound: u64) -> Bed {
    Bed::with_rules(ChannelRules {
        mem_queue_size: bound,
        drop_oldest_beyond: Some(bound),
        durable: false,
        ..RULES
    })
}
