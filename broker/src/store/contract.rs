//! Duty: the one suite that every [`CursorStore`] must pass; each engine runs it on a fresh store.

use proptest::collection::vec;
use proptest::prelude::*;

use super::cursor::{
    BLOCK, ChannelNumber, CursorDelta, FinishedBits, FinishedBlock, StoredCursor, Unsettled,
};
use super::cursors::{CursorStore, MemoryCursors};
use super::{Store, StoreError};
use crate::log::sequence::Sequence;

#[test]
fn cursors_in_memory_keep_the_contract() {
    keeps_the_contract(&MemoryCursors::default());
}

#[test]
fn the_store_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    keeps_the_contract(&Store::open(&dir.path().join("store")).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn both_engines_answer_the_same_to_any_deltas(deltas in vec(any_delta(), 1..12)) {
        let dir = tempfile::tempdir().unwrap();
        let channel = ChannelNumber(1);
        let memory = MemoryCursors::default();
        let sled = Store::open(dir.path()).unwrap();
        for engine in [&memory as &dyn CursorStore, &sled] {
            engine.create(channel, Sequence::default()).unwrap();
            for delta in &deltas {
                engine.save(&[(channel, delta.clone())]).unwrap();
            }
        }
        drop(sled);
        let sled = Store::open(dir.path()).unwrap();
        prop_assert_eq!(normal(sled.load(channel).unwrap()), normal(memory.load(channel).unwrap()));
    }
}

fn keeps_the_contract(store: &dyn CursorStore) {
    let (one, two) = (ChannelNumber(1), ChannelNumber(2));
    let save = |delta: CursorDelta| store.save(&[(one, delta)]).unwrap();
    let load = || normal(store.load(one).unwrap()).unwrap();

    assert_eq!(store.load(one), Ok(None), "1: a channel is made by create");
    save(CursorDelta {
        floor: Sequence::new(9),
        ..CursorDelta::default()
    });
    assert_eq!(store.load(one), Ok(None), "1: a late delta makes no channel");
    store.create(one, Sequence::new(3)).unwrap();
    store.create(two, Sequence::new(4)).unwrap();
    assert_eq!(load().floor, Sequence::new(3));

    save(CursorDelta {
        floor: Sequence::new(10),
        blocks: vec![
            bits(0, &[12, 70]),
            FinishedBlock {
                number: 1,
                bits: FinishedBits::Full,
            },
        ],
        unsettled: vec![unsettled(11, 1), unsettled(BLOCK * 3, 2)],
        ..CursorDelta::default()
    });
    let first = load();
    assert_eq!(first.blocks[0], bits(0, &[12, 70]));
    assert_eq!(first.blocks[1].bits, FinishedBits::Full);
    assert_eq!(first.unsettled, [unsettled(11, 1), unsettled(BLOCK * 3, 2)]);

    save(CursorDelta {
        floor: Sequence::new(2),
        blocks: vec![bits(0, &[13])],
        settled: vec![Sequence::new(BLOCK * 3)],
        unsettled: vec![unsettled(11, 5)],
        ..CursorDelta::default()
    });
    let second = load();
    assert_eq!(second.floor, Sequence::new(10), "4: the floor does not fall");
    assert_eq!(second.blocks[0], bits(0, &[13]), "6: a block is replaced");
    assert_eq!(second.unsettled, [unsettled(11, 5)]);

    save(CursorDelta {
        floor: Sequence::new(BLOCK * 2 - 1),
        ..CursorDelta::default()
    });
    let third = load();
    assert_eq!(third.blocks.len(), 1, "5: the block that holds the floor stays");
    assert_eq!(third.unsettled, [], "5: below the floor");

    save(CursorDelta {
        floor: Sequence::new(5),
        reset: true,
        unsettled: vec![unsettled(6, 1)],
        ..CursorDelta::default()
    });
    let fourth = load();
    assert_eq!(
        (fourth.floor, fourth.blocks.len()),
        (Sequence::new(5), 0),
        "3: reset comes first"
    );
    assert_eq!(fourth.unsettled, [unsettled(6, 1)]);

    let batch = [11, 12].map(|floor| CursorDelta {
        floor: Sequence::new(floor),
        ..CursorDelta::default()
    });
    let [first, second] = batch;
    store.save(&[(one, first), (two, second)]).unwrap();
    assert_eq!(load().floor, Sequence::new(11));
    store.remove(&[one, ChannelNumber(77)]).unwrap();
    assert_eq!(store.load(one), Ok(None));
    let floor_of_two = store.load(two).map(|cursor| cursor.map(|cursor| cursor.floor));
    assert_eq!(floor_of_two, Ok::<_, StoreError>(Some(Sequence::new(12))));
}

/// A cursor in the one form that clause 6 leaves open.
pub(super) fn normal(cursor: Option<StoredCursor>) -> Option<StoredCursor> {
    let mut cursor = cursor?;
    for block in &mut cursor.blocks {
        block.collapse();
    }
    cursor.blocks.retain(
        |block| !matches!(&block.bits, FinishedBits::Some(words) if words.iter().all(|word| *word == 0)),
    );
    Some(cursor)
}

fn bits(number: u64, finished: &[usize]) -> FinishedBlock {
    let mut words = vec![0; 1024];
    for bit in finished {
        words[bit / 64] |= 1 << (bit % 64);
    }
    FinishedBlock {
        number,
        bits: FinishedBits::Some(words.into()),
    }
}

fn unsettled(sequence: u64, attempts: u16) -> Unsettled {
    Unsettled {
        sequence: Sequence::new(sequence),
        attempts,
        due: -1,
        delay_ms: 90_000,
    }
}

/// Deltas over four blocks, with bits from none over few and long runs to noise.
pub(super) fn any_delta() -> impl Strategy<Value = CursorDelta> {
    let sequence = (0..BLOCK * 4).prop_map(Sequence::new);
    let message = (sequence.clone(), any::<u16>(), any::<i64>(), any::<u64>()).prop_map(
        |(sequence, attempts, due, delay_ms)| Unsettled {
            sequence,
            attempts,
            due,
            delay_ms,
        },
    );
    (
        sequence.clone(),
        prop::bool::weighted(0.15),
        vec(any_block(), 0..3),
        vec(message, 0..5),
        vec(sequence, 0..5),
    )
        .prop_map(|(floor, reset, blocks, unsettled, settled)| CursorDelta {
            // Small steps, so that the floor does not leave everything behind at once.
            floor: Sequence::new(floor.get() / 8),
            reset,
            blocks,
            unsettled,
            settled,
        })
}

fn any_block() -> impl Strategy<Value = FinishedBlock> {
    let runs = vec((0..BLOCK as usize, 1..20_000_usize), 0..6).prop_map(|runs| {
        let mut words = vec![0_u64; 1024];
        for (start, length) in runs {
            for bit in start..(start + length).min(BLOCK as usize) {
                words[bit / 64] |= 1 << (bit % 64);
            }
        }
        FinishedBits::Some(words.into())
    });
    let noise = any::<u64>().prop_map(|seed| {
        let word = |at: u64| (at + 1).wrapping_mul(seed | 1).rotate_left(at as u32);
        FinishedBits::Some((0..1024).map(word).collect())
    });
    (0_u64..4, prop_oneof![Just(FinishedBits::Full), runs, noise])
        .prop_map(|(number, bits)| FinishedBlock { number, bits })
}
