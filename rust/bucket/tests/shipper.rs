//! A leader's objects: the order of answers, the window, and the consequences of a lost answer.

use sharecore_bucket::{
    Answer, Bucket, Call, Claimant, Claimed, Claiming, Fenced, Frames, HEADER, Kind, MemoryBucket,
    Retried, Shipper, Walk, What,
};

fn claimant(writer: u8) -> Claimant {
    Claimant {
        writer: [writer; 16],
        node: 1,
        window: 2,
        next: Frames {
            segment: 1,
            at: 32,
            first: 1,
            count: 0,
        },
        is_base: false,
        format: 1,
        about: Vec::new(),
        ms: 0,
    }
}

fn claim(bucket: &mut MemoryBucket, walk: Walk, writer: u8) -> Claimed {
    let mut claiming = Claiming::new(walk, &claimant(writer));
    loop {
        let answer = bucket.ask(claiming.call());
        match claiming.answer(&answer) {
            Claimed::Unknown => {}
            other => return other,
        }
    }
}

fn leader(bucket: &mut MemoryBucket) -> Shipper {
    let Claimed::Ours(walk) = claim(bucket, Walk::default(), 1) else {
        panic!("the place is free");
    };
    Shipper::new(&walk)
}

fn beat(shipper: &mut Shipper) -> u64 {
    let frames = Frames {
        first: 1,
        ..Frames::default()
    };
    shipper.cut(Kind::Beat, frames, vec![0; HEADER], 0, 0)
}

fn calls(shipper: &mut Shipper, now_ms: u64, id: &mut u64) -> Vec<Call> {
    let mut calls = Vec::new();
    shipper.calls(now_ms, id, &mut calls);
    calls
}

#[test]
fn answers_come_in_the_order_of_places() {
    let mut bucket = MemoryBucket::default();
    let mut shipper = leader(&mut bucket);
    let (mut id, mut known) = (0, Vec::new());
    let (first, second) = (beat(&mut shipper), beat(&mut shipper));
    assert!(!shipper.has_room(), "the window is two");
    let sent = calls(&mut shipper, 0, &mut id);
    assert_eq!(sent.len(), 2);
    assert!(shipper.answer(sent[1].id, &Answer::Done, 0, &mut known));
    assert!(known.is_empty(), "the one before is not known");
    assert_eq!(shipper.answered(), first);
    shipper.answer(sent[0].id, &Answer::Done, 0, &mut known);
    let places: Vec<u64> = known.iter().map(|it| it.header.place).collect();
    assert_eq!(places, [first, second]);
    assert!(shipper.has_room());
    assert!(
        !shipper.answer(99, &Answer::Done, 0, &mut known),
        "nobody's call"
    );
}

#[test]
fn a_lost_answer_is_settled_by_reading_the_place() {
    for was_created in [true, false] {
        let mut bucket = MemoryBucket::default();
        let mut shipper = leader(&mut bucket);
        let (mut id, mut known) = (0, Vec::new());
        beat(&mut shipper);
        let sent = calls(&mut shipper, 0, &mut id).remove(0);
        if was_created {
            assert_eq!(bucket.ask(sent.what.clone()), Answer::Done);
        }
        shipper.answer(sent.id, &Answer::Unknown("503".into()), 0, &mut known);
        assert_eq!(shipper.error(), Some("503"));
        assert!(
            calls(&mut shipper, 0, &mut id).is_empty(),
            "it waits before it tries again"
        );
        let due = shipper.due_ms().expect("another attempt");
        let read = calls(&mut shipper, due, &mut id).remove(0);
        assert!(matches!(read.what, What::Get { .. }));
        let answer = bucket.ask(read.what);
        shipper.answer(read.id, &answer, due, &mut known);
        if !was_created {
            let due = shipper.due_ms().expect("another attempt");
            let again = calls(&mut shipper, due, &mut id).remove(0);
            assert_eq!(again.what, sent.what, "the same bytes");
            let answer = bucket.ask(again.what);
            shipper.answer(again.id, &answer, due, &mut known);
        }
        assert_eq!((known.len(), shipper.error()), (1, None));
    }
}

#[test]
fn who_finds_another_claim_writes_nothing_more() {
    let mut bucket = MemoryBucket::default();
    let mut shipper = leader(&mut bucket);
    let mut walk = Walk::default();
    let Answer::Bytes(bytes) = bucket.ask(What::Get {
        name: walk.name(),
        range: None,
    }) else {
        panic!("the claim is there");
    };
    walk.take(&bytes).expect("the first claim");
    assert!(matches!(claim(&mut bucket, walk, 2), Claimed::Ours(_)));
    let (mut id, mut known) = (0, Vec::new());
    let place = beat(&mut shipper);
    for _ in 0..2 {
        for call in calls(&mut shipper, 0, &mut id) {
            let answer = bucket.ask(call.what);
            shipper.answer(call.id, &answer, 0, &mut known);
        }
    }
    let epoch = Some(2);
    assert_eq!(shipper.fenced(), Some(&Fenced { place, epoch }));
    assert!(known.is_empty() && !shipper.has_room() && shipper.due_ms().is_none());
}

#[test]
fn a_claim_on_a_taken_place_walks_on() {
    let mut bucket = MemoryBucket::default();
    leader(&mut bucket);
    assert!(matches!(
        claim(&mut bucket, Walk::default(), 2),
        Claimed::Taken(_)
    ));
    assert!(
        matches!(claim(&mut bucket, Walk::default(), 1), Claimed::Ours(_)),
        "an answer that was lost: the place is read"
    );
}

#[test]
fn a_claim_on_a_swept_place_has_no_effect() {
    let mut bucket = MemoryBucket::default();
    bucket.set("checkpoints/0000000000000005-00000001", Some(Vec::new()));
    assert_eq!(claim(&mut bucket, Walk::default(), 1), Claimed::Stale);
}

#[test]
fn a_call_is_made_again_until_it_is_answered() {
    let mut retried = Retried::default();
    let what = What::Delete { name: "a".into() };
    retried.begin(what.clone());
    let (mut id, mut calls, mut now) = (0, Vec::new(), 0);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        retried.calls(now, &mut id, &mut calls);
        let call = calls.pop().expect("it is due");
        assert_eq!(
            retried.answer(call.id, Answer::Unknown("503".into()), now),
            None
        );
        let due = retried.due_ms().expect("another attempt");
        pauses.push(due - now);
        now = due;
    }
    assert!(
        pauses[0] <= 50 && pauses[11] >= 2500 && pauses[11] <= 5000,
        "{pauses:?}"
    );
    retried.calls(now, &mut id, &mut calls);
    let call = calls.pop().expect("it is due");
    assert_eq!(
        retried.answer(call.id, Answer::Done, now),
        Some((what, Answer::Done))
    );
    assert!(retried.is_idle() && retried.error().is_none());
}
