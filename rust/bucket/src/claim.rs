//! Claiming: how a process becomes the writer.
//!
//! A free place may have been swept: a process that walks from an old checkpoint, while the writer makes newer ones,
//! takes it for the end. So a claim counts only after a list has shown no checkpoint beyond it. A checkpoint exists
//! before the places that it covers are swept; at the real end, none can be beyond.

use crate::{
    call::{Answer, Body, What},
    mistakes::{Mistake, planted},
    names,
    object::{self, Claim, Frames, Header, Kind, Writer},
    walk::Walk,
};

/// The claiming process, and the position of its next frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claimant {
    /// This run of this process.
    pub writer: Writer,
    /// Its node ID.
    pub node: i32,
    /// The most places it will write at once.
    pub window: u32,
    /// The position of its next frame: segment, position in it, frame number.
    pub next: Frames,
    /// See [`Claim::is_base`].
    pub is_base: bool,
    /// The format of the store's files.
    pub format: u32,
    /// Release and listeners, for humans.
    pub about: Vec<u8>,
    /// The time, in milliseconds since 1970.
    pub ms: i64,
}

/// A claim in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claiming {
    walk: Walk,
    writer: Writer,
    body: Body,
    claim: Claim,
    doing: Doing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Doing {
    Creating,
    /// Reading the place, to learn whose it is.
    Reading,
    /// Checking for checkpoints beyond the claim.
    Confirming,
}

/// The state of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Claimed {
    /// Undecided: make the next call.
    Unknown,
    /// The process leads; the walk is past its claim.
    Ours(Walk),
    /// Another object took the place: continue the walk from there.
    Taken(Walk),
    /// The place was not the end: restart the walk from the newest checkpoint. The created object has no effect.
    Stale,
}

impl Claiming {
    /// Start a claim at the end of the journal that a walk has found.
    pub fn new(walk: Walk, claimant: &Claimant) -> Self {
        let mut resume = walk.place + u64::from(walk.window);
        if planted(Mistake::ResumeAtOnce) {
            resume = walk.place + 1;
        }
        let claim = Claim {
            resume,
            window: claimant.window,
            node: claimant.node,
            previous: walk.claims.last().copied().unwrap_or(0),
            segment: claimant.next.segment,
            format: claimant.format,
            is_base: claimant.is_base,
            about: claimant.about.clone(),
        };
        let header = Header {
            kind: Kind::Claim,
            epoch: walk.epoch + 1,
            writer: claimant.writer,
            place: walk.place,
            answered: walk.place,
            ms: claimant.ms.max(walk.ms),
            frames: Frames {
                count: 0,
                ..claimant.next
            },
            before: walk.before,
        };
        let (body, _) = header.object(&claim.encode());
        Self {
            walk,
            writer: claimant.writer,
            body: body.into(),
            claim,
            doing: Doing::Creating,
        }
    }

    /// Return the next call.
    pub fn call(&self) -> What {
        let name = names::journal(self.walk.place);
        match self.doing {
            Doing::Creating => What::Create {
                name,
                body: self.body.clone(),
            },
            Doing::Reading => What::Get { name, range: None },
            Doing::Confirming => What::List {
                prefix: names::CHECKPOINTS.into(),
                after: Some(names::checkpoint(self.walk.place, u32::MAX)),
            },
        }
    }

    /// Handle the answer to the call.
    pub fn answer(&mut self, answer: &Answer) -> Claimed {
        match (self.doing, answer) {
            (Doing::Creating, Answer::Done) => self.doing = Doing::Confirming,
            (Doing::Creating, Answer::Exists) if planted(Mistake::ExistsIsOurs) => {
                self.doing = Doing::Confirming;
            }
            // in any case, reading the place settles it
            (Doing::Creating, _) => self.doing = Doing::Reading,
            (Doing::Reading, Answer::Bytes(bytes)) => {
                let found = object::read(bytes);
                if found.is_ok_and(|found| found.header.writer == self.writer) {
                    self.doing = Doing::Confirming;
                } else {
                    return Claimed::Taken(self.walk.clone());
                }
            }
            // the place is free: create with the same bytes again
            (Doing::Reading, Answer::Absent) => self.doing = Doing::Creating,
            (Doing::Confirming, Answer::Names(names)) => {
                return if names.is_empty() {
                    Claimed::Ours(self.ours())
                } else {
                    Claimed::Stale
                };
            }
            (Doing::Reading | Doing::Confirming, _) => {}
        }
        if self.doing == Doing::Confirming && planted(Mistake::ClaimUnconfirmed) {
            return Claimed::Ours(self.ours());
        }
        Claimed::Unknown
    }

    fn ours(&self) -> Walk {
        let mut walk = self.walk.clone();
        let taken = walk.take(&self.body).map(|_| ());
        assert_eq!(taken, Ok(()), "a claim that no walk would pass");
        assert_eq!(walk.place, self.claim.resume, "it writes behind the void");
        walk
    }
}
