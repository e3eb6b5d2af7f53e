//! Inspection of a bucket that a broker writes to.

use sharecore_bucket::inspect::{Amount, inspect};
use sharecore_bucket::{
    Answer, Bucket, Checkpoint, Folded, Frames, Header, Kind, MemoryBucket, What, home, names,
};

fn create(bucket: &mut MemoryBucket, name: String, body: Vec<u8>) {
    let what = What::Create {
        name,
        body: body.into(),
    };
    assert_eq!(bucket.ask(what), Answer::Done);
}

fn object(place: u64, epoch: u32, ms: i64) -> Vec<u8> {
    let header = Header {
        kind: Kind::Frames,
        epoch,
        writer: [epoch as u8; 16],
        place,
        answered: place,
        ms,
        frames: Frames::default(),
        before: 0,
    };
    header.object(&[7; 88]).0
}

fn folded(place: u64, ms: i64) -> Folded {
    Folded {
        place,
        frame: place,
        ms,
    }
}

fn filled() -> MemoryBucket {
    let mut bucket = MemoryBucket::default();
    create(&mut bucket, names::FORMAT.into(), home("AbC"));
    for place in 10..250 {
        create(
            &mut bucket,
            names::journal(place),
            object(place, 2, place as i64 * 1000),
        );
    }
    let checkpoint = Checkpoint {
        place: 10,
        epoch: 2,
        writer: [2; 16],
        window: 4,
        frame: 5,
        before: 0,
        ms: 9_500,
        usable_from: 9,
        usable_ms: 9_500,
        claims: vec![],
        segments: vec![],
        between: vec![],
        folded: vec![folded(7, 7_000), folded(8, 8_000), folded(10, 10_000)],
        store: vec![],
    };
    create(&mut bucket, names::checkpoint(10, 2), checkpoint.encode());
    bucket
}

#[test]
fn a_bucket_is_summed_up() {
    let mut bucket = filled();
    let found = inspect(&mut bucket, 200_000).unwrap();
    assert_eq!(found.cluster_id, "AbC");
    assert_eq!(found.newest, Some((2, 249, 249_000)));
    assert_eq!(found.oldest_ms, Some(9_500));
    assert_eq!(found.recent, 50);
    let journal = Amount {
        objects: 240,
        bytes: 240 * 200,
    };
    assert_eq!(found.amounts["journal"], journal);
    assert_eq!(found.total().objects, 242);
}

#[test]
fn what_a_fenced_writer_left_is_not_the_newest() {
    let mut bucket = filled();
    create(&mut bucket, names::journal(250), object(250, 3, 260_000));
    create(&mut bucket, names::journal(251), object(251, 2, 261_000));
    assert_eq!(
        inspect(&mut bucket, 0).unwrap().newest,
        Some((3, 250, 260_000))
    );
}

#[test]
fn without_a_checkpoint_the_journal_reaches_back_to_its_begin() {
    let mut bucket = filled();
    bucket.set(&names::checkpoint(10, 2), None);
    assert_eq!(inspect(&mut bucket, 0).unwrap().oldest_ms, Some(10_000));
}

#[test]
fn what_is_no_copy_is_said_so() {
    let mut bucket = MemoryBucket::default();
    let error = inspect(&mut bucket, 0).unwrap_err();
    assert!(error.contains("not a copy"), "{error}");
    create(&mut bucket, names::FORMAT.into(), b"another".to_vec());
    assert!(
        inspect(&mut bucket, 0)
            .unwrap_err()
            .contains("newer release")
    );
}

/// Refuses every other request.
struct Flaky(MemoryBucket, bool);

impl Bucket for Flaky {
    fn ask(&mut self, what: What) -> Answer {
        self.1 = !self.1;
        if self.1 {
            return Answer::Unknown("503 SlowDown".into());
        }
        self.0.ask(what)
    }
}

#[test]
fn a_request_without_an_answer_is_made_again() {
    let found = inspect(&mut Flaky(filled(), false), 8_000).unwrap();
    assert_eq!(
        found.recent, 241,
        "one was deleted, and one has not been yet"
    );
}
