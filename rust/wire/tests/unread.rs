//! Bounds on the memory of unread responses.

use std::sync::Arc;

use sharecore_wire::Unread;

const MB: u64 = 1 << 20;

#[test]
fn an_owner_gets_half_of_what_is_left_of_its_half() {
    let (mut unread, a, b) = (Unread::new(Some(128 * MB)), Arc::from("a"), Arc::from("b"));
    assert_eq!(unread.room(&a, 0), 32 * MB);
    unread.change(&a, 0, 32 * MB);
    assert_eq!(unread.room(&a, 0), 16 * MB);
    unread.change(&a, 32 * MB, 64 * MB);
    assert_eq!(unread.room(&a, 0), 0);
    assert!(unread.waits_for_own(&a));
    assert_eq!(unread.room(&b, 0), 32 * MB);
    assert_eq!(unread.room(&b, 63 * MB), MB / 2);
    assert_eq!(unread.room(&b, 64 * MB), 0);
    assert!(!unread.waits_for_own(&b));
    unread.change(&a, 64 * MB, 0);
    assert_eq!(
        (unread.used(), unread.room(&b, 128 * MB - 1)),
        (0, 64 << 10)
    );
}

#[test]
fn without_a_bound_nobody_waits() {
    let (mut unread, a) = (Unread::new(None), Arc::from("a"));
    unread.change(&a, 0, 1 << 40);
    assert_eq!(unread.room(&a, 1 << 40), u64::MAX);
    assert!(!unread.waits_for_own(&a));
}
