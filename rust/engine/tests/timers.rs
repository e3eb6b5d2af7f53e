//! The timing wheel against a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;
use sharecore_engine::timer::{Handle, Wheel};

#[derive(Clone, Debug)]
enum Step {
    Start(u64),
    /// Cancels one of the timers ever started: it may have ended, and its number may be another's now.
    Cancel(usize),
    Advance(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let after = prop_oneof![
        0..4_u64,
        0..200_u64,
        Just(30_000),
        0..100_000_u64,
        0..1_u64 << 40
    ];
    let step = prop_oneof![
        6 => after.clone().prop_map(Step::Start),
        3 => any::<usize>().prop_map(Step::Cancel),
        2 => after.prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn ends_what_a_heap_ends(start in 0..1_u64 << 41, steps in steps()) {
        let mut now = start;
        let mut wheel = Wheel::default();
        let mut heap = BinaryHeap::new();
        let mut started: Vec<(Handle, bool)> = Vec::new();
        for step in steps {
            match step {
                Step::Start(after) => {
                    let id = started.len();
                    started.push((wheel.insert(now, now + after, id), true));
                    heap.push(Reverse((now + after, id)));
                }
                Step::Cancel(any) if !started.is_empty() => {
                    let id = any % started.len();
                    let (handle, runs) = started[id];
                    prop_assert_eq!(wheel.deadline(handle).is_some(), runs);
                    prop_assert_eq!(wheel.cancel(handle), runs);
                    started[id].1 = false;
                }
                Step::Cancel(_) => {}
                Step::Advance(by) => {
                    now += by;
                    let mut ended = Vec::new();
                    while let Some(id) = wheel.pop(now) {
                        ended.push(id);
                    }
                    let mut expected = Vec::new();
                    while let Some(&Reverse((deadline, id))) = heap.peek().filter(|Reverse((deadline, _))| *deadline <= now) {
                        heap.pop();
                        if std::mem::take(&mut started[id].1) {
                            expected.push((deadline, id));
                        }
                    }
                    ended.sort_unstable();
                    expected.sort_unstable_by_key(|&(_, id)| id);
                    prop_assert_eq!(ended, expected.iter().map(|&(_, id)| id).collect::<Vec<_>>());
                }
            }
            while heap.peek().is_some_and(|Reverse((_, id))| !started[*id].1) {
                heap.pop();
            }
            prop_assert_eq!(wheel.next_deadline(), heap.peek().map(|Reverse((deadline, _))| *deadline));
            prop_assert_eq!(wheel.len(), started.iter().filter(|(_, runs)| *runs).count());
        }
    }
}

#[test]
fn deadlines_come_in_order() {
    let mut wheel = Wheel::default();
    for id in 0..10_000_u64 {
        wheel.insert(5, 5 + id * 7919 % 100_003, id * 7919 % 100_003);
    }
    let ended: Vec<u64> = std::iter::from_fn(|| wheel.pop(200_000)).collect();
    assert_eq!(ended.len(), 10_000);
    assert!(ended.is_sorted());
}

#[test]
fn a_million_timers_live_at_once() {
    let mut wheel = Wheel::default();
    let handles: Vec<Handle> = (0..1_000_000_u64)
        .map(|id| wheel.insert(id / 100, id / 100 + 30_000, id))
        .collect();
    assert!(
        wheel.memory_bytes() < 1_000_000 * 40,
        "{} bytes",
        wheel.memory_bytes()
    );
    for handle in handles.iter().skip(1).step_by(2) {
        assert!(wheel.cancel(*handle));
    }
    assert_eq!(wheel.next_deadline(), Some(30_000));
    let mut ended = 0;
    for now in (0..50_000).step_by(17) {
        while let Some(id) = wheel.pop(now) {
            assert!(id / 100 + 30_000 <= now && now < id / 100 + 30_000 + 17);
            ended += 1;
        }
    }
    assert_eq!(ended, 500_000);
}

#[test]
fn a_jump_of_years_is_one_step() {
    let mut wheel = Wheel::default();
    wheel.insert(0, 1 << 50, "late");
    assert_eq!(wheel.pop((1 << 50) - 1), None);
    assert_eq!(wheel.pop(u64::MAX), Some("late"));
    assert_eq!(wheel.pop(u64::MAX), None);
}
