//! Written objects are read back, and anything else is refused.

use proptest::prelude::*;
use sharecore_bucket::{
    Checkpoint, Claim, Folded, Frames, Header, Kind, Manifest, Segment, Step, Walk, home, kept,
    read, read_home,
};

fn header(kind: Kind, place: u64) -> Header {
    Header {
        kind,
        epoch: 1,
        writer: [7; 16],
        place,
        answered: place,
        ms: 1000,
        frames: Frames {
            segment: 2,
            at: 32,
            first: 1,
            count: 0,
        },
        before: 0,
    }
}

fn claim(resume: u64) -> Claim {
    Claim {
        resume,
        window: 4,
        node: 1,
        previous: 0,
        segment: 2,
        format: 1,
        is_base: false,
        about: b"0.1".into(),
    }
}

fn checkpoint() -> Checkpoint {
    let segment = |id| Segment {
        id,
        epoch: 3,
        is_compact: id == 2,
    };
    Checkpoint {
        place: 9,
        epoch: 3,
        writer: [9; 16],
        window: 4,
        frame: 77,
        before: 5,
        ms: 1234,
        usable_from: 8,
        usable_ms: 1240,
        claims: vec![1, 6],
        segments: vec![segment(1), segment(2)],
        between: vec![segment(3)],
        folded: vec![Folded {
            place: 8,
            frame: 77,
            ms: 1200,
        }],
        store: b"the store's own".into(),
    }
}

proptest! {
    #[test]
    fn an_object_is_read_back(
        (epoch, writer, place, answered) in (any::<u32>(), any::<[u8; 16]>(), any::<u64>(), any::<u64>()),
        (ms, segment, at, first) in (any::<i64>(), any::<u64>(), any::<u64>(), any::<u64>()),
        (count, before) in (any::<u32>(), any::<u32>()),
        body in proptest::collection::vec(any::<u8>(), 0..200),
        kind in prop::sample::select(vec![Kind::Frames, Kind::Claim, Kind::Beat, Kind::Release]),
    ) {
        let frames = Frames { segment, at, first, count };
        let header = Header { kind, epoch, writer, place, answered, ms, frames, before };
        let (bytes, crc) = header.object(&body);
        let object = read(&bytes).expect("what was written");
        prop_assert_eq!((object.header, object.crc, object.body), (header, crc, &body[..]));
    }

    #[test]
    fn a_flipped_bit_is_found(at in 0..150_usize, bit in 0..8_u32) {
        let (mut bytes, _) = header(Kind::Frames, 1).object(&[3; 38]);
        bytes[at] ^= 1 << bit;
        prop_assert!(read(&bytes).is_err());
        let mut bytes = checkpoint().encode();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(Checkpoint::decode(&bytes), None);
    }

    #[test]
    fn a_cut_is_found(len in 0..150_usize) {
        let (bytes, _) = header(Kind::Frames, 1).object(&[3; 38]);
        prop_assert!(read(&bytes[..len]).is_err());
        let bytes = checkpoint().encode();
        prop_assert_eq!(Checkpoint::decode(&bytes[..len.min(bytes.len() - 1)]), None);
    }
}

#[test]
fn checkpoints_claims_manifests_and_the_home_are_read_back() {
    assert_eq!(
        Checkpoint::decode(&checkpoint().encode()),
        Some(checkpoint())
    );
    assert_eq!(Claim::decode(&claim(5).encode()), Some(claim(5)));
    let manifest = Manifest {
        id: 3,
        size: 25,
        part_bytes: 10,
        parts: vec![1, 2, 3],
    };
    assert_eq!(Manifest::decode(&manifest.encode()), Some(manifest.clone()));
    let short = Manifest {
        parts: vec![1, 2],
        ..manifest
    };
    assert_eq!(Manifest::decode(&short.encode()), None, "a part is missing");
    assert_eq!(read_home(&home("abc")).as_deref(), Some("abc"));
    assert_eq!(read_home(b"sharecore-bucket=2\ncluster.id=abc\n"), None);
}

#[test]
fn the_walk_passes_what_follows_and_nothing_else() {
    let mut walk = Walk::default();
    let (first, crc) = header(Kind::Claim, 1).object(&claim(2).encode());
    assert!(matches!(walk.take(&first), Ok(Step::Claim(..))));
    assert_eq!((walk.place, walk.epoch, walk.window), (2, 1, 4));
    let frames = |first, place, epoch, before| {
        let mut header = header(Kind::Frames, place);
        (header.frames.first, header.frames.count) = (first, 2);
        (header.epoch, header.before) = (epoch, before);
        header.object(b"frames").0
    };
    for (first, place, epoch, before, why) in [
        (1, 3, 1, crc, "holds another place"),
        (1, 2, 2, crc, "is of another writer than the newest claim"),
        (1, 2, 1, crc + 1, "does not follow the object before it"),
        (2, 2, 1, crc, "does not go on with the next frame"),
    ] {
        let found = walk
            .clone()
            .take(&frames(first, place, epoch, before))
            .map(|_| ());
        assert_eq!(found, Err(format!("journal/0000000000000002 {why}")));
    }
    let next = frames(1, 2, 1, crc);
    assert!(matches!(walk.take(&next), Ok(Step::Frames(_, b"frames"))));
    assert_eq!((walk.place, walk.frame), (3, 3));
}

#[test]
fn a_lost_object_differs_from_one_that_was_never_written() {
    let mut walk = Walk::default();
    walk.take(&header(Kind::Claim, 1).object(&claim(2).encode()).0)
        .expect("the first claim");
    assert_eq!(walk.beyond().count(), 3, "the rest of the window");
    let mut later = header(Kind::Beat, 4);
    later.answered = 2;
    assert_eq!(
        walk.proves_loss(&later.object(b"").0),
        None,
        "it was under way, too"
    );
    later.answered = 3;
    let lost = walk
        .proves_loss(&later.object(b"").0)
        .expect("it was known");
    assert!(
        lost.starts_with("journal/0000000000000002 is lost"),
        "{lost}"
    );
    later.epoch = 9;
    assert_eq!(
        walk.proves_loss(&later.object(b"").0),
        None,
        "another writer's"
    );
}

#[test]
fn the_newest_two_checkpoints_stay_and_those_of_the_history() {
    let all = [(10, 1, 100), (20, 1, 200), (30, 1, 300), (40, 2, 400)];
    let places = |now, history| {
        let stays = kept(&all, now, history);
        stays
            .into_iter()
            .map(|(place, _)| place)
            .collect::<Vec<_>>()
    };
    assert_eq!(places(1000, 0), [30, 40]);
    assert_eq!(
        places(410, 150),
        [20, 30, 40],
        "what was 150 ms ago is behind the one at 200"
    );
    assert_eq!(places(410, 310), [10, 20, 30, 40]);
    assert_eq!(places(410, i64::MAX), [10, 20, 30, 40]);
}
