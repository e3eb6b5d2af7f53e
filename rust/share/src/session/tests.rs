use super::*;

type Named = Session<u8, char>;

fn session(partitions: &[u8]) -> Named {
    let mut session = Named::default();
    for each in partitions {
        session.add(*each);
    }
    session
}

fn order(session: &Named) -> Vec<u8> {
    session.partitions().collect()
}

fn owed(session: &Named) -> Vec<u8> {
    session.unreported().collect()
}

fn looked_at(session: &Named, first: Place) -> String {
    let mut walk = session.walk(first);
    std::iter::from_fn(|| session.step(&mut walk).copied()).collect()
}

/// Partitions 0 to 9, all ready; each has its number as its leader.
fn ready() -> Named {
    let mut session = session(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for each in 0..10 {
        assert!(session.put(&each, char::from(b'0' + each)));
    }
    session
}

#[test]
fn epochs_count_up_and_begin_again_at_one() {
    assert_eq!(next_epoch(0), 1);
    assert_eq!(next_epoch(7), 8);
    assert_eq!(next_epoch(i32::MAX), 1);
    assert_eq!(Named::default().epoch, 1);
}

#[test]
fn partitions_take_turns_at_being_first() {
    let mut session = session(&[4, 5, 6, 4]);
    let mut first = Vec::new();
    for epoch in 1..=4 {
        session.epoch = epoch;
        first.push(session.in_order(order(&session), session.rotation())[0]);
    }
    assert_eq!(first, [4, 5, 6, 4]);
    session.epoch = 3;
    assert_eq!(session.in_order([5, 6, 9], session.rotation()), [6, 5]);
    session.forget(&5);
    session.forget(&9);
    assert_eq!(order(&session), [4, 6]);
    session.forget(&4);
    assert_eq!(session.rotation(), 0);
}

#[test]
fn what_brought_records_goes_behind_the_others_from_the_second_answer_on() {
    let mut session = session(&[1, 2, 3]);
    session.report([1, 2, 3], [], [1]);
    assert_eq!(order(&session), [1, 2, 3]);
    session.report([1], [], [1]);
    assert_eq!(order(&session), [2, 3, 1]);
    session.forget(&2);
    session.report([2, 3], [], [2, 3]);
    assert_eq!(order(&session), [1, 3]);
}

#[test]
fn an_answer_owes_each_partition_once_and_again_after_an_error() {
    let mut session = session(&[1, 2]);
    assert_eq!(owed(&session), [1, 2]);
    session.report([1], [], [1]);
    assert!(
        owed(&session).is_empty(),
        "the first answer is the one that counts"
    );
    session.add(1);
    session.add(3);
    assert_eq!(owed(&session), [3]);
    session.report([], [], []);
    assert_eq!(owed(&session), [3]);
    session.report([3, 2], [2, 7], [3]);
    assert_eq!(owed(&session), [2]);
    session.report([], [2, 1], []);
    assert_eq!(owed(&session), [2, 1], "what is owed keeps its turn");
    session.forget(&2);
    session.report([2], [2], []);
    assert_eq!(owed(&session), [1]);
}

#[test]
fn the_member_holds_what_it_has_leased_of_partitions_that_are_still_here() {
    let mut before = session(&[1, 2]);
    before.touch(1);
    before.touch(2);
    before.forget(&2);
    assert_eq!(before.held().collect::<Vec<_>>(), [1]);
    let mut session = session(&[2]);
    session.replace(&before);
    assert_eq!(session.held().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_walk_goes_round_from_where_it_begins() {
    let mut session = ready();
    assert_eq!(looked_at(&session, 0), "0123456789");
    assert_eq!(looked_at(&session, 7), "7890123456");
    assert_eq!(looked_at(&session, 99), "0123456789");
    assert_eq!(session.take_out(&7), Some('7'));
    assert_eq!(session.take_out(&7), None);
    assert_eq!(session.forget(&0), Some('0'));
    assert_eq!(looked_at(&session, 7), "89123456");
    session.report([], [], []);
    session.report([8], [], [8]);
    assert_eq!(looked_at(&session, 7), "98123456");
}

#[test]
fn a_walk_bears_what_comes_and_goes_meanwhile() {
    let mut session = ready();
    let mut walk = session.walk(8);
    let mut seen = String::new();
    while let Some(leader) = session.step(&mut walk).copied() {
        seen.push(leader);
        session.take_out(&(leader as u8 - b'0'));
        if leader == '9' {
            session.take_out(&1);
            assert!(
                session.put(&8, 'x'),
                "what comes behind it waits for another"
            );
        }
    }
    assert_eq!(seen, "890234567");
    assert_eq!(looked_at(&session, 0), "x");
}

#[test]
fn partitions_are_unknown_until_their_leader_is_there_and_once_it_is_gone() {
    let mut session = session(&[1, 2]);
    assert!(!session.is_known());
    assert!(session.put(&1, 'a'));
    assert!(session.put(&2, 'b'));
    assert!(!session.put(&3, 'c'), "the session does not have it");
    assert!(session.is_known());
    assert!(session.put(&1, 'z'));
    assert_eq!(looked_at(&session, 0), "ab", "who is there already stays");
    assert!(session.lose(&1));
    assert!(!session.lose(&3));
    assert_eq!(session.unknown().collect::<Vec<_>>(), [1]);
    assert_eq!(looked_at(&session, 0), "b");
    session.forget(&1);
    assert!(session.is_known());
}
