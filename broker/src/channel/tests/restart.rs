//! Duty: what a checkpoint says and what a channel is after a restart.

use std::time::Duration;

use super::bed::{Bed, Got, RULES, START, apply};
use crate::channel::Channel;
use crate::clock::Moment;
use crate::log::sequence::{Sequence, SequenceRange};
use crate::store::cursor::{BLOCK, CursorDelta, FinishedBits, StoredCursor, Unsettled};

const WALL: i64 = 1_700_000_000_000_000_000;

fn stored(floor: u64) -> StoredCursor {
    StoredCursor {
        floor: Sequence::new(floor),
        ..StoredCursor::default()
    }
}

fn checkpoint(bed: &mut Bed) -> Option<CursorDelta> {
    bed.channel.checkpoint(WALL, bed.now)
}

/// Restarts the bed's channel from `stored` after `time` on the wall clock, with a monotonic clock of its own.
fn restart(bed: &mut Bed, stored: &StoredCursor, time: Duration) {
    let wall = WALL + time.as_nanos() as i64;
    bed.now = Moment::from_nanos(77_000_000);
    let (log, end) = (&bed.log, Sequence::new(bed.log.end));
    bed.channel = Channel::restore(RULES, stored, end, |range| log.count(range), bed.now, wall);
}

#[test]
fn an_idle_channel_has_nothing_to_store() {
    let mut bed = Bed::new();
    bed.publish(5);
    assert_eq!(checkpoint(&mut bed), None);
}

#[test]
fn in_order_finishing_stores_the_floor_only() {
    let mut bed = Bed::new();
    let first = bed.publish(5);
    bed.subscribe(1, 5);
    bed.run();
    bed.finish(1, first).unwrap();
    bed.finish(1, first + 1).unwrap();
    assert_eq!(bed.channel.dirty_finishes(), 2);
    let delta = checkpoint(&mut bed).unwrap();
    assert_eq!(
        delta,
        CursorDelta {
            floor: Sequence::new(first + 2),
            ..CursorDelta::default()
        }
    );
    assert_eq!(bed.channel.dirty_finishes(), 0);
    assert_eq!(checkpoint(&mut bed), None);
}

#[test]
fn only_blocks_that_changed_are_stored() {
    let mut bed = Bed::new();
    let first = bed.publish(3 * BLOCK);
    bed.log.chunk = 10_000;
    bed.subscribe(1, 3 * BLOCK);
    bed.run();
    bed.finish(1, first + 2).unwrap();
    bed.finish(1, first + BLOCK).unwrap();
    let numbers = |delta: &CursorDelta| delta.blocks.iter().map(|block| block.number).collect::<Vec<_>>();
    let delta = checkpoint(&mut bed).unwrap();
    assert_eq!(numbers(&delta), [START / BLOCK, START / BLOCK + 1]);
    let second = (START / BLOCK + 1) * BLOCK;
    for sequence in (second..second + BLOCK).filter(|sequence| *sequence != first + BLOCK) {
        bed.finish(1, sequence).unwrap();
    }
    let delta = checkpoint(&mut bed).unwrap();
    assert_eq!(numbers(&delta), [START / BLOCK + 1]);
    assert_eq!(delta.blocks[0].bits, FinishedBits::Full);
}

#[test]
fn a_message_that_came_back_keeps_its_attempts_over_a_crash() {
    let mut bed = Bed::new();
    let message = bed.publish(2);
    bed.subscribe(1, 1);
    for _ in 0..3 {
        bed.take(1);
        bed.requeue(1, message, Duration::ZERO).unwrap();
        bed.channel.hand_over(Sequence::new(bed.log.end), 0, &[]);
        let again = bed.take(1);
        bed.requeue(1, again[0].sequence, Duration::ZERO).unwrap();
    }
    let mut cursor = stored(START);
    apply(&mut cursor, checkpoint(&mut bed).unwrap());
    restart(&mut bed, &cursor, Duration::ZERO);
    assert_eq!(bed.channel.counts().depth, 2);
    bed.subscribe(1, 10);
    let got: Vec<u16> = bed.run().iter().map(|(_, got)| got.attempts).collect();
    assert_eq!(got, [4, 4]);
}

#[test]
fn c86_after_a_clean_stop_what_was_in_flight_has_attempts_one_higher() {
    let mut bed = Bed::new();
    let message = bed.publish(2);
    bed.subscribe(1, 1);
    bed.run();
    let mut cursor = stored(START);
    assert_eq!(
        checkpoint(&mut bed),
        None,
        "a first delivery alone is not worth a write"
    );
    apply(&mut cursor, bed.channel.final_checkpoint(WALL, bed.now).unwrap());
    restart(&mut bed, &cursor, Duration::ZERO);
    bed.subscribe(1, 5);
    let mut got = bed.take(1);
    got.sort_unstable_by_key(|got| got.sequence);
    assert_eq!(
        got,
        [
            Got {
                sequence: message,
                attempts: 2
            },
            Got {
                sequence: message + 1,
                attempts: 1
            }
        ]
    );
}

#[test]
fn what_is_left_of_a_delay_is_clamped_to_its_length() {
    // Time that passed on the wall clock, and when the message may come, both in milliseconds.
    for (passed, comes_after) in [
        (0_i64, 5000),
        (2000, 3000),
        (5000, 0),
        (900_000, 0),
        (-900_000, 5000),
    ] {
        let mut bed = Bed::new();
        let message = bed.publish(1);
        bed.subscribe(1, 1);
        bed.run();
        bed.requeue(1, message, Duration::from_secs(5)).unwrap();
        let mut cursor = stored(START);
        apply(&mut cursor, checkpoint(&mut bed).unwrap());
        for unsettled in &mut cursor.unsettled {
            unsettled.due -= passed * 1_000_000;
        }
        restart(&mut bed, &cursor, Duration::ZERO);
        bed.subscribe(1, 1);
        if comes_after > 0 {
            bed.sleep(Duration::from_millis(comes_after - 1));
            assert_eq!(bed.run(), [], "{passed} ms passed");
            bed.sleep(Duration::from_millis(12));
        }
        assert_eq!(
            bed.run(),
            [(
                1,
                Got {
                    sequence: message,
                    attempts: 2
                }
            )],
            "{passed} ms passed"
        );
    }
}

#[test]
fn the_store_forgets_what_is_settled() {
    let mut bed = Bed::new();
    let message = bed.publish(1);
    bed.subscribe(1, 1);
    bed.run();
    bed.requeue(1, message, Duration::ZERO).unwrap();
    let delta = checkpoint(&mut bed).unwrap();
    let expected = Unsettled {
        sequence: Sequence::new(message),
        attempts: 1,
        due: 0,
        delay_ms: 0,
    };
    assert_eq!(delta.unsettled, [expected]);
    bed.run();
    bed.finish(1, message).unwrap();
    let delta = checkpoint(&mut bed).unwrap();
    assert_eq!(delta.settled, [Sequence::new(message)]);
    let again = bed.publish(1);
    bed.run();
    bed.requeue(1, again, Duration::ZERO).unwrap();
    bed.run();
    bed.finish(1, again).unwrap();
    let delta = checkpoint(&mut bed).unwrap();
    assert_eq!(
        (delta.unsettled.len(), delta.settled.len()),
        (0, 0),
        "it came and went between two checkpoints"
    );
}

#[test]
fn a_cursor_ahead_of_the_log_never_hides_a_message() {
    let mut bed = Bed::new();
    bed.publish(10);
    let mut cursor = stored(START);
    let mut bits = vec![0_u64; 1024].into_boxed_slice();
    for sequence in START + 5..START + 40 {
        let bit = (sequence % BLOCK) as usize;
        bits[bit / 64] |= 1 << (bit % 64);
    }
    let number = START / BLOCK;
    cursor.blocks.push(crate::store::cursor::FinishedBlock {
        number,
        bits: FinishedBits::Some(bits),
    });
    cursor.unsettled.push(Unsettled {
        sequence: Sequence::new(START + 20),
        attempts: 9,
        due: 0,
        delay_ms: 0,
    });
    restart(&mut bed, &cursor, Duration::ZERO);
    assert_eq!(bed.channel.counts().depth, 5);
    bed.subscribe(1, 100);
    assert_eq!(bed.run().len(), 5);
    bed.publish(30);
    assert_eq!(bed.run().len(), 30, "what was published after the restart is new");
    let delta = checkpoint(&mut bed).unwrap();
    assert_eq!(delta.settled, [Sequence::new(START + 20)]);
}

#[test]
fn a_seek_starts_over_from_its_place_and_resets_the_store() {
    let mut bed = Bed::new();
    let first = bed.publish(10);
    bed.subscribe(1, 20);
    bed.run();
    for sequence in first..first + 8 {
        bed.finish(1, sequence).unwrap();
    }
    let range = SequenceRange::new(Sequence::new(first + 3), Sequence::new(first + 10));
    bed.channel.seek(range.start, bed.log.count(range));
    let counts = bed.channel.counts();
    assert_eq!(
        (counts.depth, counts.in_flight, bed.consumer_counts(1).in_flight),
        (7, 0, 0)
    );
    let delta = checkpoint(&mut bed).unwrap();
    assert_eq!((delta.reset, delta.floor), (true, range.start));
    let got: Vec<u64> = bed.run().iter().map(|(_, got)| got.sequence - first).collect();
    assert_eq!(got, [3, 4, 5, 6, 7, 8, 9]);
}
