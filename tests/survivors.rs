//! The survivors' predicate against a naive model: a list of objects that are allocated and freed one by one.

use std::sync::Arc;

use proptest::prelude::*;
use vramscope::align::{Opened, build};
use vramscope::analysis::{FreeBy, GroupBy, Index, Query, Selection, UserCode, group, kept, totals};
use vramscope::model::{
    Allocation, BEFORE_NS, Clock, NEVER_NS, PoolId, Recording, SourceKind, StackId, TimeRange,
};

/// An object as the naive model knows it.
#[derive(Clone, Copy, Debug)]
struct Object {
    made: i64,
    asked_to_free: i64,
    freed: i64,
    bytes: u64,
    is_private: bool,
}

const END: i64 = 1000;

/// Objects with any order of times: freed or not, waiting for a stream or not, from before the recording or not.
fn objects() -> impl Strategy<Value = Vec<Object>> {
    let object =
        (0..END, 0..400_i64, 0..60_i64, 1..5000_u64, 0..20_u8).prop_map(|(made, life, wait, bytes, dice)| {
            let (asked, freed) = (made + life, made + life + wait);
            Object {
                made: if dice == 0 { BEFORE_NS } else { made },
                asked_to_free: if asked < END && dice != 1 { asked } else { NEVER_NS },
                freed: if freed < END && dice > 2 { freed } else { NEVER_NS },
                bytes,
                is_private: dice == 3,
            }
        });
    prop::collection::vec(object, 0..200)
}

fn session_of(objects: &[Object]) -> Index {
    let mut recording = Recording::new(SourceKind::Snapshot, "made up", Clock::Unix);
    recording.pools.push((0, 1));
    recording.span = Some(TimeRange::new(0, END));
    for (position, object) in objects.iter().enumerate() {
        recording.allocations.push(Allocation {
            address: 0x1000 + position as u64 * 0x10_000,
            size_bytes: object.bytes,
            alloc_ns: object.made,
            free_requested_ns: object.asked_to_free.min(object.freed),
            free_completed_ns: object.freed,
            pool: PoolId(u16::from(object.is_private)),
            stack: StackId::EMPTY,
            ..Allocation::default()
        });
    }
    recording.allocations.sort_by_time();
    let opened = Opened::new("made-up", Arc::new(recording));
    Index::new(Arc::new(build(&[opened])), UserCode::default())
}

/// The survivors as one would say it: walks through the range and looks at each object by itself.
fn naive(objects: &[Object], range: TimeRange, free_by: FreeBy) -> (u64, u64) {
    let (mut count, mut bytes) = (0, 0);
    for object in objects {
        if object.made == BEFORE_NS || object.made < range.start_ns || object.made >= range.end_ns {
            continue;
        }
        let is_gone = |time: i64| match free_by {
            FreeBy::RecordingEnd => time != NEVER_NS,
            FreeBy::RangeEnd => time < range.end_ns,
        };
        if !is_gone(object.freed) && !is_gone(object.asked_to_free.min(object.freed)) && !object.is_private {
            count += 1;
            bytes += object.bytes;
        }
    }
    (count, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn survivors_are_what_the_naive_model_says(objects in objects(), a in 0..END, b in 0..END) {
        let index = session_of(&objects);
        let range = TimeRange::new(a, b);
        let selection = Selection::default();
        let sums = totals(&index.session, selection, range);
        for free_by in [FreeBy::RecordingEnd, FreeBy::RangeEnd] {
            let rows = kept(&index.session, &Query { selection, range, free_by });
            let bytes: u64 = rows.iter().map(|row| row.get(&index.session).size_bytes).sum();
            let expected = naive(&objects, range, free_by);
            prop_assert_eq!((rows.len() as u64, bytes), expected);
            let of_totals = match free_by {
                FreeBy::RecordingEnd => sums.recording_end,
                FreeBy::RangeEnd => sums.range_end,
            };
            prop_assert_eq!((of_totals.count, of_totals.bytes), expected);
        }
        let made: i64 = objects.iter().filter(|o| o.made != BEFORE_NS && range.contains(o.made)).map(|o| o.bytes as i64).sum();
        let freed: i64 = objects.iter().filter(|o| o.freed != NEVER_NS && range.contains(o.freed)).map(|o| o.bytes as i64).sum();
        prop_assert_eq!(sums.net_bytes(), made - freed);
    }

    #[test]
    fn groups_hold_each_row_once(objects in objects()) {
        let index = session_of(&objects);
        let query = Query { selection: Selection::default(), range: TimeRange::new(0, END), free_by: FreeBy::RecordingEnd };
        let rows = kept(&index.session, &query);
        for by in GroupBy::ALL {
            let groups = group(&index, &rows, by);
            let mut grouped: Vec<_> = groups.iter().flat_map(|group| group.rows.iter().copied()).collect();
            grouped.sort_unstable();
            prop_assert_eq!(&grouped, &rows);
            for group in &groups {
                let bytes: u64 = group.rows.iter().map(|row| row.get(&index.session).size_bytes).sum();
                prop_assert_eq!((group.count, group.bytes), (group.rows.len() as u64, bytes));
                prop_assert!(group.rows.is_sorted());
            }
            prop_assert!(groups.is_sorted_by(|a, b| a.bytes >= b.bytes));
        }
    }
}
