//! Claiming the copy of a lost broker for another node.
//!
//! The lost broker is fenced: should it come back, its copy ends, and it keeps its directory. The claim appends nothing;
//! the new node continues after it, as it would after a claim of its own.

use sharecore_bucket::{Answer, Bucket, Claimant, Claimed, Claiming, Frames, Walk, Writer};

use crate::FORMAT;

/// How many answers may be indefinite.
const ATTEMPTS: u32 = 6;

/// Claim the journal at the end of a walk. `ms`: the time since 1970.
pub(super) fn claim(
    bucket: &mut dyn Bucket,
    walk: &Walk,
    (node, writer, ms): (i32, Writer, i64),
) -> Result<(), String> {
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
                return Err("another broker has written meanwhile: it is running".into());
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
