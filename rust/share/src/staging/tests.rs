use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn staging() -> Staging<Number> {
    Staging::new(100)
}

fn stage(staging: &mut Staging<Number>, is_plain: bool) -> Number {
    let number = staging.next;
    assert_eq!(staging.stage(is_plain, number), number);
    number
}

/// Sends all batches that may be sent, each as one append.
fn flush(staging: &mut Staging<Number>, now_ms: i64) -> Vec<Number> {
    let mut sent = Vec::new();
    for _ in 0..staging.to_flush() {
        let Some((number, _)) = staging.take() else {
            break;
        };
        staging.limit(number, now_ms);
        staging.send(number);
        staging.begin_appends(number, 1);
        sent.push(number);
    }
    sent
}

fn end(staging: &mut Staging<Number>, number: Number, is_lost: bool) {
    assert!(staging.end_appends(number, 1));
    staging.ended(number, is_lost);
    if !is_lost {
        staging.answer(number);
    }
}

#[test]
fn a_batch_goes_out_once_and_is_forgotten_when_all_are_notified() {
    let mut staging = staging();
    assert!(staging.begins_turn());
    let first = stage(&mut staging, true);
    assert!(!staging.begins_turn());
    assert_eq!(staging.last(), Some(&first));
    assert_eq!(flush(&mut staging, 0), [first]);
    assert_eq!((staging.to_flush(), staging.last()), (0, None));
    assert_eq!(staging.oldest(), Some(&first));
    end(&mut staging, first, false);
    assert_eq!(staging.mend(), None);
    assert_eq!((staging.oldest(), staging.all().count()), (None, 0));
}

#[test]
fn a_batch_whose_time_was_over_is_known_until_its_end_is_reported() {
    for is_plain in [true, false] {
        let mut staging = staging();
        let sent = stage(&mut staging, is_plain);
        flush(&mut staging, 0);
        staging.answer(sent);
        end(&mut staging, sent, true);
        let staged = stage(&mut staging, is_plain);
        staging.answer(staged);
        let gone = if is_plain {
            staging.abandon()
        } else {
            staging.abandon_transactions()
        };
        assert_eq!(gone, [sent, staged]);
        for number in gone {
            assert_eq!(staging.get(number), Some(&number));
            staging.answer(number);
        }
        assert_eq!(staging.all().count(), 0);
    }
}

#[test]
fn what_follows_a_lost_batch_waits_behind_it() {
    let mut staging = staging();
    let first = stage(&mut staging, true);
    flush(&mut staging, 0);
    end(&mut staging, first, true);
    let second = stage(&mut staging, true);
    assert_eq!(flush(&mut staging, 0), []);
    let mend = staging.mend().expect("something is lost");
    assert_eq!((mend.attempts, mend.is_overtaken), (1, false));
    assert_eq!(staging.mend(), None, "once");
    for number in staging.begin_again() {
        assert_eq!(staging.again(number), Some(&first));
        staging.send(number);
        staging.begin_appends(number, 1);
    }
    staging.end_again();
    end(&mut staging, first, false);
    assert_eq!(flush(&mut staging, 0), [second]);
}

#[test]
fn nothing_is_mended_while_something_is_under_way() {
    let mut staging = staging();
    let (first, second) = (stage(&mut staging, true), stage(&mut staging, true));
    flush(&mut staging, 0);
    end(&mut staging, first, true);
    assert_eq!(staging.mend(), None);
    end(&mut staging, second, false);
    let mend = staging.mend().expect("something is lost");
    assert!(mend.is_overtaken, "the second was written before the first");
    let moves = staging.moves();
    assert_eq!(staging.abandon(), [first]);
    assert!(staging.is_stale() && staging.moves() > moves);
    staging.answer(first);
    assert_eq!(staging.all().count(), 0);
}

#[test]
fn transactions_are_not_tried_again() {
    let mut staging = staging();
    let (plain, bound) = (stage(&mut staging, true), stage(&mut staging, false));
    flush(&mut staging, 0);
    end(&mut staging, plain, true);
    end(&mut staging, bound, true);
    let behind = stage(&mut staging, false);
    assert_eq!(staging.abandon_transactions(), [bound, behind]);
    assert_eq!(staging.lost().copied().collect::<Vec<_>>(), [plain]);
    assert!(!staging.begin_again().is_empty());
}

#[test]
fn a_batch_of_many_appends_ends_with_the_last() {
    let mut staging = staging();
    let number = stage(&mut staging, true);
    staging.take();
    staging.send(number);
    staging.begin_appends(number, 3);
    assert!(!staging.end_appends(number, 1));
    assert!(staging.end_appends(number, 2));
}

#[test]
fn whoever_waits_too_long_is_notified_and_the_batch_stays_under_way() {
    let mut staging = staging();
    let (first, second) = (stage(&mut staging, true), stage(&mut staging, true));
    flush(&mut staging, 5);
    assert_eq!(staging.arm(25), Some(80));
    assert_eq!(staging.overdue(104), None);
    assert_eq!(staging.overdue(105), Some(&first));
    staging.answer(first);
    assert_eq!(staging.oldest(), Some(&second));
    assert_eq!(staging.sent().count(), 2);
    end(&mut staging, first, false);
    staging.answer(second);
    end(&mut staging, second, false);
    assert_eq!((staging.arm(200), staging.all().count()), (None, 0));
}

#[test]
fn memory_that_was_read_anew_is_another() {
    let mut staging = staging();
    assert!(staging.is_stale());
    staging.set_stale(false);
    let moves = staging.moves();
    assert!(staging.is_at(moves));
    staging.note_move();
    assert!(!staging.is_at(moves) && staging.is_at(moves + 1));
}

proptest! {
    /// A log that ends appends in order and loses some: it holds the records in the order in which they were staged, and every
    /// waiter is notified once.
    #[test]
    fn the_order_stays_whatever_is_lost(steps in vec((0_u8..6, any::<bool>()), 0..120)) {
        let mut staging = staging();
        let (mut written, mut notified) = (Vec::new(), Vec::new());
        for (now_ms, (step, is_lost)) in (0..).zip(steps) {
            match step {
                0 | 1 => {
                    stage(&mut staging, true);
                }
                2 => {
                    flush(&mut staging, now_ms);
                }
                3 | 4 => {
                    let Some(number) = staging.sent().next().copied() else { continue };
                    end(&mut staging, number, is_lost);
                    if !is_lost {
                        written.push(number);
                        notified.push(number);
                    }
                }
                _ => {
                    let Some(mend) = staging.mend() else { continue };
                    if mend.is_overtaken || mend.attempts > 2 {
                        for number in staging.abandon() {
                            staging.answer(number);
                            notified.push(number);
                        }
                        staging.set_stale(false);
                    } else {
                        for number in staging.begin_again() {
                            if staging.again(number).is_some() {
                                staging.send(number);
                                staging.begin_appends(number, 1);
                            }
                        }
                        staging.end_again();
                    }
                }
            }
            prop_assert!(written.is_sorted(), "{written:?}");
        }
        let left: Vec<Number> = staging.all().copied().collect();
        notified.extend(&left);
        notified.sort_unstable();
        prop_assert_eq!(notified, (0..staging.next).collect::<Vec<_>>());
    }
}
