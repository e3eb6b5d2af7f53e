//! Claiming the copy of a lost broker for another node.
//!
//! The lost broker is fenced: should it come back, its copy ends, and it keeps its directory. The claim appends nothing;
//! the new node continues after it, as it would after a claim of its own.

use sharecore_bucket::{Answer, Bucket, Claimant, Claimed, Claiming, Frames, Walk, What, Writer};

use crate::FORMAT;

/// How many answers may be indefinite.
const ATTEMPTS: u32 = 6;
const IS_RUNNING: &str = "another broker has written meanwhile: it is running";

/// Check that nothing lies behind the end of a walk: a claim would make the gap final.
fn prove_end(bucket: &mut dyn Bucket, walk: &Walk) -> Result<(), String> {
    let unknown = |what: &What, answer| match answer {
        Answer::Unknown(why) => format!("{} {}: {why}", what.kind(), what.name()),
        other => format!("{} {}: {other:?}", what.kind(), what.name()),
    };
    let what = walk.list_beyond();
    let mut lost = match bucket.ask(what.clone()) {
        Answer::Names(page) => walk.proves_gap(&page),
        other => return Err(unknown(&what, other)),
    };
    let get = |name| What::Get { name, range: None };
    for what in walk.beyond().map(get) {
        match bucket.ask(what.clone()) {
            Answer::Bytes(bytes) => lost = lost.or_else(|| walk.proves_loss(&bytes)),
            Answer::Absent => {}
            other => return Err(unknown(&what, other)),
        }
    }
    let Some(lost) = lost else {
        return Ok(());
    };
    // it may have been written since the walk
    match bucket.ask(get(walk.name())) {
        Answer::Absent => Err(lost),
        Answer::Bytes(_) => Err(IS_RUNNING.into()),
        other => Err(unknown(&get(walk.name()), other)),
    }
}

/// Claim the journal at the end of a walk. `ms`: the time since 1970.
pub(super) fn claim(
    bucket: &mut dyn Bucket,
    walk: &Walk,
    (node, writer, ms): (i32, Writer, i64),
) -> Result<(), String> {
    prove_end(bucket, walk)?;
    let claimant = Claimant {
        writer,
        node,
        window: walk.window,
        next: Frames {
            segment: 0,
            at: 0,
            first: walk.frame,
            count: 0,
        },
        is_base: false,
        format: FORMAT,
        about: Vec::new(),
        ms,
    };
    let mut claiming = Claiming::new(walk.clone(), &claimant);
    let mut attempt = 0;
    loop {
        let what = claiming.call();
        let name = what.name().to_owned();
        let answer = bucket.ask(what);
        match claiming.answer(&answer) {
            Claimed::Ours(_) => return Ok(()),
            Claimed::Taken(_) | Claimed::Stale => {
                return Err(IS_RUNNING.into());
            }
            Claimed::Unknown => {}
        }
        if let Answer::Unknown(why) = answer {
            attempt += 1;
            if attempt == ATTEMPTS {
                return Err(format!("{name}: {why}. The claim may exist: try again"));
            }
        }
    }
}
