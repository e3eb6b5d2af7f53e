//! Compares the timers with a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;
use sharecore_engine::timer::Timers;

#[derive(Clone, Debug)]
enum Step {
    Start(u64),
    /// Restarts a timer, whether it runs or has expired.
    Restart(usize, u64),
    /// Removes a timer, whether it runs or has expired.
    Remove(usize),
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
        2 => (any::<usize>(), after.clone()).prop_map(|(any, after)| Step::Restart(any, after)),
        3 => any::<usize>().prop_map(Step::Remove),
        2 => after.prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn ends_what_a_heap_ends(start in 0..1_u64 << 41, steps in steps()) {
        let mut now = start;
        let mut timers = Timers::default();
        // A timer that is removed or restarted leaves its old deadline in the heap
        let mut heap = BinaryHeap::new();
        let mut count = 0;
        let mut known: Vec<(u32, u64, bool)> = Vec::new();
        for step in steps {
            match step {
                Step::Start(after) => {
                    known.push((timers.insert(now, now + after, count), count, true));
                    heap.push(Reverse((now + after, count)));
                    count += 1;
                }
                Step::Restart(any, after) if !known.is_empty() => {
                    let timer = any % known.len();
                    let (index, _, runs) = &mut known[timer];
                    timers.restart(*index, now, now + after);
                    *runs = true;
                    timers[*index] = count;
                    known[timer].1 = count;
                    heap.push(Reverse((now + after, count)));
                    count += 1;
                }
                Step::Remove(any) if !known.is_empty() => {
                    let (index, id, runs) = known.swap_remove(any % known.len());
                    prop_assert_eq!(timers.deadline(index).is_some(), runs);
                    prop_assert_eq!(timers[index], id);
                    timers.remove(index);
                }
                Step::Restart(..) | Step::Remove(_) => {}
                Step::Advance(by) => {
                    now += by;
                    let mut ended = Vec::new();
                    while let Some(index) = timers.pop(now) {
                        ended.push(timers[index]);
                    }
                    let mut expected = Vec::new();
                    while let Some(&Reverse((_, id))) = heap.peek().filter(|Reverse((deadline, _))| *deadline <= now) {
                        heap.pop();
                        if let Some(timer) = known.iter_mut().find(|timer| timer.1 == id) {
                            timer.2 = false;
                            expected.push(id);
                        }
                    }
                    ended.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(ended, expected);
                }
            }
            let runs = |id| known.iter().any(|timer| timer.1 == id && timer.2);
            while heap.peek().is_some_and(|Reverse((_, id))| !runs(*id)) {
                heap.pop();
            }
            prop_assert_eq!(timers.next_deadline(), heap.peek().map(|Reverse((deadline, _))| *deadline));
            prop_assert_eq!(timers.len(), known.iter().filter(|timer| timer.2).count());
        }
    }
}

#[test]
fn deadlines_come_in_order() {
    let mut timers = Timers::default();
    for id in 0..10_000_u64 {
        timers.insert(5, 5 + id * 7919 % 100_003, id * 7919 % 100_003);
    }
    let ended: Vec<u64> =
        std::iter::from_fn(|| timers.pop(200_000).map(|index| timers[index])).collect();
    assert_eq!(ended.len(), 10_000);
    assert!(ended.is_sorted());
}

#[test]
fn a_million_timers_live_at_once() {
    let mut timers = Timers::default();
    let known: Vec<u32> = (0..1_000_000_u64)
        .map(|id| timers.insert(id / 100, id / 100 + 30_000, id))
        .collect();
    assert!(
        timers.memory_bytes() < 1_000_000 * 40,
        "{} bytes",
        timers.memory_bytes()
    );
    for timer in known.iter().skip(1).step_by(2) {
        timers.remove(*timer);
    }
    assert_eq!(timers.next_deadline(), Some(30_000));
    let mut ended = 0;
    for now in (0..50_000).step_by(17) {
        while let Some(index) = timers.pop(now) {
            let id = timers[index];
            assert!(id / 100 + 30_000 <= now && now < id / 100 + 30_000 + 17);
            ended += 1;
        }
    }
    assert_eq!(ended, 500_000);
}

#[test]
fn a_jump_of_years_is_one_step() {
    let mut timers = Timers::default();
    timers.insert(0, 1 << 50, "late");
    assert_eq!(timers.pop((1 << 50) - 1), None);
    assert_eq!(
        timers.pop(u64::MAX).map(|index| timers[index]),
        Some("late")
    );
    assert_eq!(timers.pop(u64::MAX), None);
}
