//! Duty: RDY, FIN, REQ, TOUCH, timeouts and leaving, statement by statement (nsq-tcp section 9).

use std::time::Duration;

use super::bed::{Bed, CONSUMER, Got};
use crate::channel::{Counts, SettleError};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn c52_rdy_is_a_level_and_a_fin_brings_exactly_one_more() {
    let mut bed = Bed::new();
    let first = bed.publish(4);
    bed.subscribe(1, 2);
    let got: Vec<u64> = bed.run().iter().map(|(_, got)| got.sequence).collect();
    assert_eq!(got, [first, first + 1]);
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
fn c63_an_unanswered_message_comes_again_after_its_timeout() {
    let mut bed = Bed::new();
    let message = bed.publish(1);
    bed.subscribe_as(
        1,
        1,
        crate::channel::ConsumerRules {
            msg_timeout: ms(1000),
            ..CONSUMER
        },
    );
    assert_eq!(bed.run().len(), 1);
    bed.sleep(ms(999));
    assert_eq!(bed.run(), []);
    bed.sleep(ms(21));
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
fn c58_only_the_owner_settles() {
    let mut bed = Bed::new();
    let message = bed.publish(1);
    bed.subscribe(1, 1);
    bed.subscribe(2, 1);
    assert_eq!(bed.take(1).len(), 1);
    assert_eq!(bed.finish(2, message), Err(SettleError::NotOwner));
    assert_eq!(bed.requeue(2, message, ms(0)), Err(SettleError::NotOwner));
    assert_eq!(bed.touch(2, message), Err(SettleError::NotOwner));
    assert_eq!(bed.finish(1, message + 1), Err(SettleError::NotInFlight));
    assert_eq!(bed.finish(1, message), Ok(()));
    assert_eq!(bed.finish(1, message), Err(SettleError::NotInFlight));
    assert_eq!(bed.channel.floor().get(), message + 1);
}
