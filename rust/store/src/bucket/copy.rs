//! The state of the bucket, as far as needed to continue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sharecore_bucket::{Checkpoint, Claim, Folded, Frames, Segment, Step, Walk};

use super::frames::{Cursor, added};
use crate::{FORMAT, checkpoint, frame::Frame};

/// The contents of the bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Copied {
    /// After the newest object.
    pub(super) walk: Walk,
    /// After the newest frame.
    pub(super) cursor: Cursor,
    /// The state before the first object of each segment since the newest checkpoint.
    pub(super) begins: VecDeque<(u64, Walk)>,
    /// The objects since the newest checkpoint.
    pub(super) folded: Vec<Folded>,
    /// Segments whose files are in the bucket.
    pub(super) uploaded: BTreeMap<u64, Segment>,
    /// Those needed by frames after the newest checkpoint.
    pub(super) fresh: BTreeSet<Segment>,
    /// The frames that added rewritten segments.
    pub(super) carried: BTreeMap<u64, u64>,
    /// The segment that begins at the newest checkpoint; 0 for none.
    pub(super) checkpoint: u64,
    /// The newest object with frames, to compare with the local files.
    pub(super) newest: Option<(Frames, Vec<u8>)>,
    /// The newest base claim has no checkpoint: nothing after it can be restored.
    pub(super) is_baseless: bool,
}

impl From<&Checkpoint> for Copied {
    fn from(checkpoint: &Checkpoint) -> Self {
        let walk = Walk::from(checkpoint);
        Self {
            walk,
            uploaded: checkpoint.named().map(|it| (it.id, it)).collect(),
            checkpoint: checkpoint::parts(&checkpoint.store).map_or(0, |(since, _)| since.segment),
            ..Self::default()
        }
    }
}

/// Refuse the journal of a release whose files this one cannot read.
pub(super) fn check_format(claim: &Claim, name: &str) -> Result<(), String> {
    if claim.format <= FORMAT {
        return Ok(());
    }
    Err(format!(
        "{name} is from a newer release: format {}, and this release reads up to {FORMAT}. Upgrade this broker",
        claim.format
    ))
}

impl Copied {
    /// Pass the next object of the journal. The error says what is wrong with it.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut walk = self.walk.clone();
        let step = walk.take(bytes)?;
        if let Step::Claim(_, claim) = &step {
            check_format(claim, &self.walk.name())?;
        }
        self.passed(step, walk);
        Ok(())
    }

    /// The next object was passed; `walk` is past it.
    pub(super) fn passed(&mut self, step: Step<'_>, walk: Walk) {
        let before = std::mem::replace(&mut self.walk, walk);
        match step {
            Step::Claim(_, claim) if claim.is_base => {
                let walk = std::mem::take(&mut self.walk);
                *self = Self {
                    walk,
                    is_baseless: true,
                    ..Self::default()
                };
            }
            Step::Claim(..) | Step::Mark(_) => {}
            Step::Frames(header, body) => {
                let frames = header.frames;
                if self
                    .begins
                    .back()
                    .is_none_or(|(id, _)| *id != frames.segment)
                {
                    self.begins.push_back((frames.segment, before));
                }
                for (id, frame) in segments_added(body) {
                    self.carried.insert(id, frame);
                    self.is_there(Segment {
                        id,
                        epoch: header.epoch,
                        is_compact: true,
                    });
                }
                self.newest = Some((frames, body.to_vec()));
                self.folded.push(Folded {
                    place: header.place,
                    frame: self.walk.frame,
                    ms: header.ms,
                });
            }
        }
    }

    /// A segment's file is in the bucket.
    pub(super) fn is_there(&mut self, segment: Segment) {
        // a segment named by a checkpoint may have been uploaded in an earlier epoch than its frame
        let known = self.uploaded.entry(segment.id).or_insert(segment);
        self.fresh.insert(*known);
    }

    /// A checkpoint is in the bucket; `segment` begins after it.
    pub(super) fn covered(&mut self, segment: u64, checkpoint: &Checkpoint) {
        self.checkpoint = segment;
        self.folded.retain(|it| it.place >= checkpoint.place);
        // a later frame may add a segment uploaded before it
        let carried = &self.carried;
        let follows = |it: &Segment| {
            if it.is_compact {
                carried
                    .get(&it.id)
                    .is_none_or(|frame| *frame >= checkpoint.frame)
            } else {
                it.id >= segment
            }
        };
        self.fresh.retain(follows);
        self.uploaded
            .retain(|_, it| checkpoint.segments.contains(it) || self.fresh.contains(it));
        self.carried.retain(|_, frame| *frame >= checkpoint.frame);
        self.begins.retain(|(id, _)| *id >= segment);
        self.is_baseless = false;
    }

    /// The next frame is at a cursor: record the state if that begins a segment.
    pub(super) fn goes_on(&mut self, cursor: Cursor, header: u64) {
        self.cursor = cursor;
        if cursor.at == header
            && self
                .begins
                .back()
                .is_none_or(|(id, _)| *id != cursor.segment)
        {
            self.begins.push_back((cursor.segment, self.walk.clone()));
        }
    }
}

/// Return the segments that the frames of an object add, with the frame numbers.
pub(super) fn segments_added(mut body: &[u8]) -> Vec<(u64, u64)> {
    let mut ids = Vec::new();
    while let Some(frame) = Frame::read(body) {
        ids.extend(added(&frame).map(|id| (id, frame.number)));
        body = &body[frame.size..];
    }
    ids
}
