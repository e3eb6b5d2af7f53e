//! Which requests are admitted, which wait, and in which order.

use std::sync::Arc;

use sharecore_wire::{Room, SMALL_BYTES};

const MB: usize = 1 << 20;

fn owner(name: &str) -> Arc<str> {
    Arc::from(name)
}

fn room() -> Room {
    Room::new(Some(128 * MB as u64))
}

#[test]
fn one_owner_cannot_take_all() {
    let (mut room, greedy, other) = (room(), owner("greedy"), owner("other"));
    let admitted = (0..200).filter(|who| room.ask(&greedy, *who, MB)).count();
    assert_eq!(
        admitted, 48,
        "half of what there is for requests of this size"
    );
    assert!(room.ask(&other, 1000, MB));
    assert!(room.wanted()[0].for_own);
    assert_eq!(room.wanted().len(), 1);
    assert_eq!(room.wanted()[0].bytes, (200 - 48) * MB as u64);
}

#[test]
fn large_requests_do_not_hold_up_smaller_ones() {
    let mut room = room();
    assert!(
        room.ask(&owner("a"), 1, 100 * MB),
        "one alone gets in whatever its size"
    );
    assert!(!room.ask(&owner("b"), 2, 100 * MB));
    for who in 0..16 {
        assert!(room.ask(&owner("c"), 10 + who, MB));
    }
    assert!(room.ask(&owner("d"), 3, SMALL_BYTES));
}

#[test]
fn small_requests_do_not_keep_a_large_one_waiting_for_ever() {
    let (mut room, many, few) = (room(), owner("many"), owner("few"));
    for each in ["many", "more"] {
        for who in 0..48 {
            assert!(room.ask(&owner(each), who, MB));
        }
    }
    assert!(!room.ask(&few, 100, 40 * MB));
    assert!(!room.ask(&many, 101, MB));
    let mut admitted = Vec::new();
    for _ in 0..48 {
        room.give(&many, MB);
        admitted.extend(std::iter::from_fn(|| room.admit()));
    }
    for _ in 0..16 {
        room.give(&owner("more"), MB);
        admitted.extend(std::iter::from_fn(|| room.admit()));
    }
    assert_eq!(
        admitted,
        [100, 101],
        "the large one, though one that is smaller waited, too"
    );
}

#[test]
fn owners_take_turns() {
    let mut room = room();
    assert!(room.ask(&owner("x"), 0, 60 * MB));
    for (who, name) in [(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "c")] {
        assert!(!room.ask(&owner(name), who, 20 * MB));
    }
    room.give(&owner("x"), 60 * MB);
    let first: Vec<_> = std::iter::from_fn(|| room.admit()).collect();
    assert_eq!(first, [1, 4, 5]);
    room.give(&owner("a"), 20 * MB);
    assert_eq!(room.admit(), Some(2));
    assert_eq!(room.admit(), None);
}

#[test]
fn who_has_gone_waits_no_longer() {
    let (mut room, a) = (room(), owner("a"));
    assert!(room.ask(&a, 0, 100 * MB));
    assert!(!room.ask(&a, 1, 20 * MB));
    assert!(!room.ask(&a, 2, 30 * MB));
    room.withdraw(&a, 1);
    room.withdraw(&a, 1);
    room.give(&a, 100 * MB);
    assert_eq!(room.admit(), Some(2));
    room.give(&a, 30 * MB);
    assert!(!room.is_wanted());
    assert_eq!(room.used(), 0);
}

#[test]
fn what_is_taken_is_given_back() {
    let (mut room, a) = (room(), owner("a"));
    for size in [
        1,
        SMALL_BYTES,
        SMALL_BYTES + 1,
        8 * MB,
        8 * MB + 1,
        100 * MB,
    ] {
        room.take(&a, size);
    }
    for size in [
        1,
        SMALL_BYTES,
        SMALL_BYTES + 1,
        8 * MB,
        8 * MB + 1,
        100 * MB,
    ] {
        room.give(&a, size);
    }
    assert_eq!(room.used(), 0);
    assert!(!room.is_crowded());
    for _ in 0..=2048 {
        room.take(&a, SMALL_BYTES);
    }
    assert!(room.is_crowded());
}

#[test]
fn what_waits_for_something_else_makes_room() {
    let (mut room, a, b) = (room(), owner("a"), owner("b"));
    for who in 0..3 {
        assert!(room.ask(&a, who, 10 * MB));
    }
    assert!(!room.ask(&a, 3, 10 * MB));
    assert!(room.park(&a, 10 * MB));
    assert_eq!(room.admit(), Some(3));
    assert!(!room.park(&a, 10 * MB), "an owner parks an eighth, or one");
    assert!(room.ask(&b, 4, 20 * MB));
    assert!(room.park(&b, 20 * MB));
    assert!(!room.park(&b, SMALL_BYTES), "which takes no room of others");
    assert_eq!(room.used(), 60 * MB as u64);
    room.give_parked(&a, 10 * MB);
    room.give_parked(&b, 20 * MB);
    for _ in 0..3 {
        room.give(&a, 10 * MB);
    }
    assert_eq!(room.used(), 0);
}

#[test]
fn without_a_bound_nobody_waits() {
    let mut room = Room::new(None);
    for who in 0..100 {
        assert!(room.ask(&owner("a"), who, 100 * MB));
    }
    assert!(!room.is_wanted());
}
