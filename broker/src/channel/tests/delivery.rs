//! Duty: RDY, FIN, REQ, TOUCH, timeouts and leaving, statement by statement (nsq-tcp section 9).

use std::time::Duration;

use super::bed::{Bed, CONSUMER, Got, RULES};
use crate::channel::{ChannelRules, ConsumerRules, Counts, SettleError};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn sequences(got: &[(u64, Got)]) -> Vec<u64> {
    got.iter().map(|(_, got)| got.sequence).collect()
}

/// A bed whose consumer 1 has RDY `ready` and a message timeout.
fn bed_with_timeout(ready: u64, timeout: Duration) -> Bed {
    let mut bed = Bed::with_rules(ChannelRules {
        max_msg_timeout: ms(3000),
        ..RULES
    });
    bed.subscribe_as(
        1,
        ready,
        ConsumerRules {
            msg_timeout: timeout,
            ..CONSUMER
        },
    );
    bed
}

#[test]
fn c50_a_delayed_message_comes_when_it_is_due_and_not_before() {
    let mut bed = Bed::new();
    bed.subscribe(1, 10);
    let message = bed.publish_delayed(ms(700));
    let counts = bed.channel.counts();
    assert_eq!((counts.deferred, counts.depth, counts.message_count), (1, 0, 1));
    bed.sleep(ms(699));
    assert_eq!(bed.run(), []);
    bed.sleep(ms(11));
    assert_eq!(
        bed.run(),
        [(
            1,
            Got {
                sequence: message,
                attempts: 1
            }
        )]
    );
    let counts = bed.channel.counts();
    assert_eq!((counts.deferred, counts.depth, counts.message_count), (0, 0, 1));
}

#[test]
fn c50_a_delayed_message_that_is_met_before_its_announcement_waits_for_it() {
    let mut bed = Bed::new();
    bed.subscribe(1, 10);
    let delayed = bed.append_delayed(ms(500));
    let plain = bed.publish(1);
    let due = bed.now + ms(500);
    assert_eq!(sequences(&bed.run()), [plain]);
    assert_eq!(
        (bed.channel.counts().depth, bed.channel.floor().get()),
        (1, delayed)
    );
    bed.announce(delayed, due);
    bed.announce(delayed, due);
    assert_eq!(
        (bed.channel.counts().depth, bed.channel.counts().deferred),
        (0, 1)
    );
    bed.sleep(ms(510));
    assert_eq!(sequences(&bed.run()), [delayed]);
    bed.announce(delayed, due);
    assert_eq!(
        bed.channel.counts().deferred,
        0,
        "an announcement after the delivery changes nothing"
    );
}

#[test]
fn c52_rdy_is_a_level_and_a_fin_brings_exactly_one_more() {
    let mut bed = Bed::new();
    let first = bed.publish(4);
    bed.subscribe(1, 2);
    assert_eq!(sequences(&bed.run()), [first, first + 1]);
    bed.finish(1, first).unwrap();
    assert_eq!(
        bed.run(),
        [(
            1,
            Got {
                sequence: first + 2,
                attempts: 1
            }
        )]
    );
    assert_eq!(bed.run(), []);
    let Counts {
        depth,
        in_flight,
        finish_count,
        message_count,
        ..
    } = bed.channel.counts();
    assert_eq!((depth, in_flight, finish_count, message_count), (1, 2, 1, 4));
}

#[test]
fn c53_a_lower_rdy_recalls_nothing_and_holds_back_until_there_is_room() {
    let mut bed = Bed::new();
    let first = bed.publish(4);
    bed.subscribe(1, 3);
    assert_eq!(bed.run().len(), 3);
    bed.channel.set_ready(crate::ids::ConnectionId(1), 1);
    bed.finish(1, first).unwrap();
    bed.finish(1, first + 1).unwrap();
    assert_eq!(bed.run(), []);
    bed.finish(1, first + 2).unwrap();
    assert_eq!(sequences(&bed.run()), [first + 3]);
}

#[test]
fn c56_an_unknown_message_is_not_in_flight() {
    let mut bed = Bed::new();
    let waiting = bed.publish(1);
    bed.subscribe(1, 0);
    for sequence in [0, waiting, waiting + 1, u64::MAX] {
        assert_eq!(bed.finish(1, sequence), Err(SettleError::NotInFlight));
        assert_eq!(bed.requeue(1, sequence, ms(1)), Err(SettleError::NotInFlight));
        assert_eq!(bed.touch(1, sequence), Err(SettleError::NotInFlight));
    }
    assert_eq!(SettleError::NotInFlight.to_string(), "ID not in flight");
}

#[test]
fn c58_only_the_owner_settles() {
    let mut bed = Bed::new();
    let message = bed.publish(1);
    bed.subscribe(1, 1);
    bed.subscribe(2, 1);
    assert_eq!(bed.take(1).len(), 1);
    for other in [2, 99] {
        assert_eq!(bed.finish(other, message), Err(SettleError::NotOwner));
        assert_eq!(bed.requeue(other, message, ms(0)), Err(SettleError::NotOwner));
        assert_eq!(bed.touch(other, message), Err(SettleError::NotOwner));
    }
    assert_eq!(SettleError::NotOwner.to_string(), "client does not own message");
    assert_eq!(bed.finish(1, message), Ok(()));
    assert_eq!(bed.finish(1, message), Err(SettleError::NotInFlight));
    assert_eq!(bed.channel.floor().get(), message + 1);
}

#[test]
fn c59_req_0_comes_again_at_once_on_an_idle_channel() {
    let mut bed = Bed::new();
    let message = bed.publish(1);
    bed.subscribe(1, 1);
    bed.run();
    bed.requeue(1, message, ms(0)).unwrap();
    assert_eq!(bed.channel.counts().depth, 1);
    assert_eq!(
        bed.run(),
        [(
            1,
            Got {
                sequence: message,
                attempts: 2
            }
        )]
    );
    let counts = bed.channel.counts();
    assert_eq!(
        (counts.requeue_count, counts.timeout_count, counts.message_count),
        (1, 0, 1)
    );
}

#[test]
fn c60_a_requeued_message_is_deferred_for_its_delay() {
    let mut bed = Bed::new();
    let message = bed.publish(1);
    bed.subscribe(1, 1);
    bed.run();
    bed.requeue(1, message, ms(500)).unwrap();
    assert_eq!(
        (bed.channel.counts().deferred, bed.channel.counts().depth),
        (1, 0)
    );
    bed.sleep(ms(499));
    assert_eq!(bed.run(), []);
    bed.sleep(ms(12));
    assert_eq!(
        bed.run(),
        [(
            1,
            Got {
                sequence: message,
                attempts: 2
            }
        )]
    );
}

#[test]
fn c61_a_longer_delay_than_allowed_is_the_longest_allowed() {
    let mut bed = Bed::new();
    let message = bed.publish(1);
    bed.subscribe(1, 1);
    bed.run();
    bed.requeue(1, message, ms(99_999_999_999)).unwrap();
    bed.sleep(ms(3_599_999));
    assert_eq!(bed.run(), []);
    bed.sleep(ms(12));
    assert_eq!(bed.run().len(), 1);
}

#[test]
fn c63_an_unanswered_message_comes_again_after_its_timeout() {
    let mut bed = bed_with_timeout(1, ms(1000));
    let message = bed.publish(1);
    assert_eq!(bed.run().len(), 1);
    bed.sleep(ms(999));
    assert_eq!(bed.run(), []);
    bed.sleep(ms(12));
    assert_eq!(
        bed.run(),
        [(
            1,
            Got {
                sequence: message,
                attempts: 2
            }
        )]
    );
    let counts = bed.channel.counts();
    assert_eq!(
        (counts.timeout_count, counts.requeue_count, counts.message_count),
        (1, 0, 1)
    );
}

#[test]
fn c64_a_fin_after_the_timeout_fails_unless_the_same_consumer_has_it_again() {
    let mut bed = bed_with_timeout(1, ms(1000));
    let message = bed.publish(1);
    bed.run();
    bed.sleep(ms(1020));
    assert_eq!(bed.finish(1, message), Err(SettleError::NotInFlight));
    assert_eq!(bed.run().len(), 1);
    assert_eq!(bed.finish(1, message), Ok(()));
}

#[test]
fn c65_touching_keeps_a_message_up_to_max_msg_timeout_and_no_longer() {
    let mut bed = bed_with_timeout(1, ms(1000));
    let message = bed.publish(1);
    bed.run();
    for _ in 0..7 {
        bed.sleep(ms(400));
        assert_eq!(bed.touch(1, message), Ok(()));
    }
    bed.sleep(ms(199));
    assert_eq!(bed.channel.counts().timeout_count, 0);
    assert_eq!(bed.touch(1, message), Ok(()), "the cap is no error");
    bed.sleep(ms(22));
    assert_eq!(bed.channel.counts().timeout_count, 1);
    assert_eq!(
        bed.run(),
        [(
            1,
            Got {
                sequence: message,
                attempts: 2
            }
        )],
        "touching changes no attempts"
    );
    bed.sleep(ms(900));
    assert_eq!(bed.touch(1, message), Ok(()));
    bed.sleep(ms(900));
    assert_eq!(
        bed.channel.counts().timeout_count,
        1,
        "a new delivery starts a new cap"
    );
}

#[test]
fn c67_attempts_wrap() {
    let mut bed = Bed::new();
    let message = bed.publish(1);
    bed.subscribe(1, 1);
    for delivery in 1..=65_537_u32 {
        assert_eq!(
            bed.take(1),
            [Got {
                sequence: message,
                attempts: delivery as u16
            }]
        );
        bed.requeue(1, message, ms(0)).unwrap();
    }
}

#[test]
fn c69_what_a_consumer_leaves_behind_waits_for_its_timeout() {
    let mut bed = bed_with_timeout(1, ms(1000));
    let message = bed.publish(1);
    bed.run();
    bed.channel.unsubscribe(crate::ids::ConnectionId(1));
    bed.subscribe(2, 1);
    assert_eq!(bed.run(), []);
    assert_eq!(bed.finish(2, message), Err(SettleError::NotOwner));
    bed.sleep(ms(1011));
    assert_eq!(
        bed.run(),
        [(
            2,
            Got {
                sequence: message,
                attempts: 2
            }
        )]
    );
    assert_eq!(bed.finish(2, message), Ok(()));
}

#[test]
fn y52_what_an_extended_consumer_leaves_comes_back_at_once_and_uncounted() {
    let mut bed = Bed::new();
    let first = bed.publish(3);
    bed.subscribe_as(
        1,
        3,
        ConsumerRules {
            return_on_leave: true,
            ..CONSUMER
        },
    );
    bed.subscribe(2, 0);
    bed.run();
    bed.finish(1, first + 1).unwrap();
    bed.channel.unsubscribe(crate::ids::ConnectionId(1));
    bed.channel.set_ready(crate::ids::ConnectionId(2), 3);
    let expected = [first, first + 2].map(|sequence| {
        (
            2,
            Got {
                sequence,
                attempts: 1,
            },
        )
    });
    assert_eq!(bed.run(), expected);
    let counts = bed.channel.counts();
    assert_eq!((counts.timeout_count, counts.requeue_count), (0, 0));
}

#[test]
fn c73_a_paused_channel_delivers_nothing_and_goes_on_under_the_old_rdy() {
    let mut bed = bed_with_timeout(2, ms(1000));
    let first = bed.publish(1);
    bed.run();
    bed.channel.pause();
    let second = bed.publish(1);
    assert_eq!(bed.run(), []);
    assert_eq!(bed.take(1), []);
    bed.sleep(ms(1020));
    let counts = bed.channel.counts();
    assert_eq!((counts.timeout_count, counts.depth), (1, 2), "timeouts run on");
    bed.channel.unpause();
    assert_eq!(sequences(&bed.run()), [second, first]);
}

#[test]
fn c79_emptying_drops_everything_and_a_new_message_comes_at_once() {
    let mut bed = Bed::new();
    bed.subscribe(1, 2);
    let first = bed.publish(5);
    bed.publish_delayed(ms(100));
    bed.run();
    bed.requeue(1, first, ms(50)).unwrap();
    bed.run();
    bed.channel.empty();
    assert_eq!(bed.finish(1, first + 1), Err(SettleError::NotInFlight));
    let counts = bed.channel.counts();
    assert_eq!((counts.depth, counts.in_flight, counts.deferred), (0, 0, 0));
    assert_eq!(bed.channel.floor(), bed.channel.handed_over());
    assert_eq!(bed.consumer_counts(1).in_flight, 0);
    let new = bed.publish(1);
    assert_eq!(sequences(&bed.run()), [new]);
    bed.sleep(ms(200));
    assert_eq!(bed.run(), []);
}

#[test]
fn c80_sampling_removes_what_it_does_not_keep() {
    for (rate, expected) in [
        (0, 10_000..=10_000),
        (99, 10_000..=10_000),
        (50, 4_900..=5_300),
        (1, 140..=260),
    ] {
        let mut bed = Bed::new();
        bed.publish(10_000);
        bed.subscribe_as(
            1,
            20_000,
            ConsumerRules {
                sample_rate: rate,
                ..CONSUMER
            },
        );
        let got = bed.run();
        assert!(expected.contains(&got.len()), "{} of 10000 at {rate}", got.len());
        for sequence in sequences(&got) {
            bed.finish(1, sequence).unwrap();
        }
        let counts = bed.channel.counts();
        assert_eq!((counts.depth, counts.in_flight), (0, 0));
        assert_eq!(counts.sampled_out + counts.finish_count, 10_000);
        assert_eq!(bed.channel.floor(), bed.channel.handed_over());
    }
}

#[test]
fn consumers_have_their_own_counts() {
    let mut bed = Bed::new();
    let first = bed.publish(3);
    bed.subscribe(1, 2);
    bed.run();
    bed.finish(1, first).unwrap();
    bed.requeue(1, first + 1, ms(100)).unwrap();
    bed.run();
    let counts = bed.consumer_counts(1);
    assert_eq!((counts.ready, counts.in_flight, counts.message_count), (2, 1, 3));
    assert_eq!((counts.finish_count, counts.requeue_count), (1, 1));
    assert_eq!(bed.channel.consumer_counts(crate::ids::ConnectionId(9)), None);
}
