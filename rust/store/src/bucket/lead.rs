//! A store that writes the journal of its bucket: when objects are cut, and what follows once they are uploaded.

use std::{path::Path, sync::Arc};

use sharecore_bucket::{
    Answer, Call, Folded, Frames, HEADER, Kind, Segment, Shipped, Shipper,
    mistakes::{Mistake, planted},
};

use super::{
    attach::{Start, request_roll},
    budget::Budget,
    confirmed::ConfirmedFile,
    copy::Copied,
    frames::{self, Cursor, following},
    home,
    keeper::Keeper,
    shared::{Backup, Sealed},
};
use crate::{
    checkpoint,
    error::StoreError,
    files::File,
    index,
    segment::{self, SEGMENT_HEADER},
    store::Shared,
};

/// A store that writes the journal of its bucket.
pub(super) struct Lead {
    pub(super) shipper: Shipper,
    pub(super) copied: Copied,
    pub(super) keeper: Keeper,
    /// Bytes of committed frames not cut yet, and since when the first of them has waited.
    pub(super) uncut: u64,
    pub(super) since_ms: Option<u64>,
    /// Bytes of frames in progress.
    pub(super) under_way: u64,
    /// All frames below are in the bucket.
    pub(super) frame: u64,
    /// All frames below are confirmed to the store.
    pub(super) confirmed: u64,
    /// The place of the journal at the last request for a new segment.
    pub(super) rolled: u64,
    /// The segment whose upload the next frame waits for.
    pub(super) needs: Option<u64>,
    /// Heartbeats since the newest checkpoint.
    pub(super) marks: usize,
    /// When the last object was cut.
    pub(super) cut_ms: u64,
    pub(super) budget: Budget,
    /// The bucket's state begins with a checkpoint that is not uploaded yet.
    pub(super) is_baseless: bool,
    /// The next broker may claim at once: nothing follows.
    pub(super) is_released: bool,
    /// The store knows what this checkpoint names.
    named: u64,
    confirmed_file: ConfirmedFile,
}

impl Lead {
    pub(super) fn new(backup: &Backup, start: Start, now_ms: u64) -> Result<Self, StoreError> {
        let shipper = Shipper::new(&start.copied.walk);
        let options = &backup.options;
        let is_baseless = start.base.is_some();
        let mut keeper = Keeper::new(shipper.epoch(), start.base, options.history_ms);
        // sealed before the store was opened, and not uploaded
        let tail = backup.tail();
        for id in segment::list(&backup.dir, segment::Kind::Journal.suffix())? {
            if id >= start.copied.checkpoint && id < tail.segment && is_sealed(&backup.dir, id) {
                keeper.sealed(id);
            }
        }
        Ok(Self {
            keeper,
            shipper,
            frame: start.copied.walk.frame,
            copied: start.copied,
            uncut: start.behind,
            since_ms: (start.behind > 0).then_some(now_ms),
            under_way: 0,
            rolled: 0,
            needs: None,
            marks: 0,
            confirmed: 0,
            cut_ms: now_ms,
            budget: Budget::new(options.puts_per_second, now_ms),
            is_baseless,
            is_released: false,
            named: 0,
            confirmed_file: ConfirmedFile::default(),
        })
    }

    pub(super) fn answer(
        &mut self,
        backup: &Backup,
        (id, answer): (u64, Answer),
        times: (u64, i64),
    ) {
        let mut done: Vec<Shipped> = Vec::new();
        if !self.shipper.answer(id, &answer, times.0, &mut done) {
            self.keeper
                .answer(backup, &mut self.copied, (id, answer), times);
            self.is_baseless &= self.copied.checkpoint == 0;
            return;
        }
        for shipped in done {
            let header = shipped.header;
            backup.proven(if planted(Mistake::LeaseFromAnswer) {
                times.0
            } else {
                shipped.sent_ms
            });
            self.confirmed_file.note(&shipped);
            let bytes = shipped.bytes - HEADER as u64;
            self.under_way -= bytes;
            self.frame = header.frames.end();
            backup.update(|status| {
                status.objects += 1;
                status.bytes += shipped.bytes;
            });
        }
    }

    /// With durability `bucket`: confirm frames that are in the bucket.
    pub(super) fn confirm(&mut self, shared: &Shared, backup: &Backup) -> Result<(), StoreError> {
        // before the first frame the bucket is empty
        let is_due = self.frame > self.confirmed.max(1) && self.frame >= backup.opened;
        if !backup.is_home || self.is_baseless || !is_due {
            return Ok(());
        }
        // earlier contents are in the bucket, and later ones count once they are
        if !backup.is_marked() {
            home::mark(&backup.dir)?;
            backup.marked();
        }
        shared.lock().confirmed(shared, self.frame);
        self.confirmed = self.frame;
        Ok(())
    }

    /// When the next object is due, if only time is missing; `since`: when its oldest frame was committed.
    pub(super) fn cut_due_ms(&self, backup: &Backup, since: u64) -> u64 {
        let options = &backup.options;
        if !backup.is_home {
            return since + options.interval_ms;
        }
        if self.uncut >= options.object_bytes as u64 {
            return since;
        }
        let lingers_until = if self.shipper.under_way() == 0 {
            since
        } else {
            self.cut_ms + options.linger_ms
        };
        lingers_until.max(self.budget.due_ms())
    }

    pub(super) fn act(
        &mut self,
        shared: &Shared,
        backup: &Backup,
        (now_ms, wall_ms): (u64, i64),
        id: &mut u64,
        calls: &mut Vec<Call>,
    ) -> Result<(), StoreError> {
        self.confirm(shared, backup)?;
        for segment in backup.take_sealed() {
            self.keeper.sealed(segment);
        }
        let (tail, bytes) = backup.take_committed();
        self.uncut += bytes;
        if self.copied.cursor.frame < tail.frame && self.since_ms.is_none() {
            self.since_ms = Some(now_ms);
        }
        if !self.is_released {
            self.cut(backup, tail, (now_ms, wall_ms))?;
            self.mark(backup, (now_ms, wall_ms));
        }
        let objects_max = backup.options.objects_max;
        if self.copied.folded.len() + self.marks >= objects_max
            && self.shipper.next() >= self.rolled + objects_max as u64
            && tail.at > SEGMENT_HEADER
        {
            self.rolled = self.shipper.next();
            request_roll(shared);
        }
        if self.marks >= objects_max && tail.at == SEGMENT_HEADER && self.is_drained(backup) {
            self.begin_later(backup)?;
        }
        self.shipper.calls(now_ms, id, calls);
        let copied = (backup, &self.copied, self.shipper.answered());
        self.keeper.calls(copied, now_ms, id, calls)?;
        self.name(shared, backup);
        let keeper = &self.keeper;
        backup.release(self.frame, |id| keeper.needs(id));
        if backup.is_marked() {
            let is_closing = backup.is_closing();
            self.confirmed_file.write(&backup.dir, now_ms, is_closing);
        }
        // after the first it looks by itself
        let object = backup.options.object_bytes as u64;
        backup.wake_at(match self.since_ms {
            None => 1,
            Some(_) => object.saturating_sub(self.uncut).max(1),
        });
        Ok(())
    }

    /// Pass to the store the segments that the newest checkpoint in the bucket names: these need not stay.
    fn name(&mut self, shared: &Shared, backup: &Backup) {
        let copied = &self.copied;
        let is_known = self.named == copied.checkpoint && !planted(Mistake::EvictedUnshipped);
        if backup.evicted.is_none() || is_known {
            return;
        }
        self.named = copied.checkpoint;
        let mut state = shared.lock();
        if planted(Mistake::EvictedUnshipped) {
            let sealed = state.segments.iter().filter(|(_, it)| it.sealed);
            let sealed: Vec<_> = sealed.map(|(id, it)| (id, it.kind)).collect();
            for (id, kind) in sealed {
                state.segments.named(Segment {
                    id,
                    epoch: self.shipper.epoch(),
                    is_compact: kind == segment::Kind::Compact,
                });
            }
        }
        for segment in copied.uploaded.values() {
            if !copied.fresh.contains(segment) {
                state.segments.named(*segment);
            }
        }
        drop(state);
        shared.maintenance.notify_all();
    }

    /// Cut objects while there is room and reason.
    pub(super) fn cut(
        &mut self,
        backup: &Backup,
        tail: Cursor,
        (now_ms, wall_ms): (u64, i64),
    ) -> Result<(), StoreError> {
        let options = &backup.options;
        self.needs = None;
        loop {
            let cursor = self.copied.cursor;
            let mut until = tail.frame;
            if cursor.segment < tail.segment
                && let Some((next, first)) = following(&backup.dir, cursor.segment)?
            {
                if cursor.frame == first {
                    let begin = Cursor {
                        segment: next,
                        at: SEGMENT_HEADER,
                        frame: first,
                    };
                    self.copied.goes_on(begin, SEGMENT_HEADER);
                    self.marks = 0;
                    continue;
                }
                until = first;
            }
            let waited = self
                .since_ms
                .is_some_and(|since| now_ms >= self.cut_due_ms(backup, since));
            let is_due = waited
                || self.uncut >= options.object_bytes as u64
                || cursor.segment < tail.segment
                || backup.is_closing();
            if cursor.frame >= until || !is_due || !self.shipper.has_room() {
                return Ok(());
            }
            let uploaded = &self.copied.uploaded;
            let is_there = |id| uploaded.contains_key(&id) || planted(Mistake::FrameBeforeUpload);
            let cut = frames::read(&backup.dir, cursor, until, options.object_bytes, is_there)?;
            if let Some(id) = cut.needs {
                self.keeper.hurry(id);
                self.needs = Some(id);
            }
            if cut.frames.count == 0 {
                return Ok(());
            }
            self.cut_ms = now_ms;
            self.budget.take(now_ms);
            self.ship(cut, (now_ms, wall_ms));
        }
    }

    /// Whether all committed frames are in the bucket.
    pub(super) fn is_drained(&self, backup: &Backup) -> bool {
        self.copied.cursor.frame == backup.tail().frame && self.shipper.under_way() == 0
    }

    /// When a heartbeat is due; None if another object is in progress, or heartbeats are off.
    pub(super) fn beat_due_ms(&self, backup: &Backup) -> Option<u64> {
        let beats = backup.is_home && !self.is_released && self.shipper.under_way() == 0;
        (beats && backup.options.beat_ms > 0).then(|| self.cut_ms + backup.options.beat_ms)
    }

    /// With durability `bucket`: write a heartbeat, or a release.
    pub(super) fn mark(&mut self, backup: &Backup, (now_ms, wall_ms): (u64, i64)) {
        let ends = backup.is_home && backup.is_closing() && self.is_drained(backup);
        let kind = match self.beat_due_ms(backup) {
            _ if ends => Kind::Release,
            Some(due) if due <= now_ms => Kind::Beat,
            _ => return,
        };
        let walk = &self.copied.walk;
        let frames = Frames {
            segment: self.copied.cursor.segment,
            at: self.copied.cursor.at,
            first: walk.frame,
            count: 0,
        };
        let object = vec![0; HEADER];
        self.shipper.cut(kind, frames, object, wall_ms, now_ms);
        self.cut_ms = now_ms;
        self.budget.take(now_ms);
        self.is_released = ends;
        self.went_on();
        self.marks += 1;
    }

    /// Upload a checkpoint that drops the heartbeats before the segment's first frame.
    fn begin_later(&mut self, backup: &Backup) -> Result<(), StoreError> {
        self.marks = 0;
        let segment = self.copied.cursor.segment;
        let Some((_, walk)) = self.copied.begins.iter_mut().find(|(id, _)| *id == segment) else {
            return Ok(());
        };
        let bytes = checkpoint::bytes(&backup.dir, segment)?;
        let Some((since, _)) = checkpoint::parts(&bytes) else {
            return Ok(());
        };
        *walk = self.copied.walk.clone();
        self.keeper.again(Sealed {
            since,
            frame: since.frame,
            checkpoint: Arc::new(bytes),
        });
        Ok(())
    }

    /// The walk is past the object that was cut.
    pub(super) fn went_on(&mut self) {
        let walk = &mut self.copied.walk;
        walk.place = self.shipper.next();
        walk.before = self.shipper.before();
        walk.ms = self.shipper.ms();
    }

    pub(super) fn ship(&mut self, cut: frames::Cut, (now_ms, wall_ms): (u64, i64)) {
        let bytes = (cut.object.len() - HEADER) as u64;
        let since = self.since_ms.unwrap_or(now_ms);
        debug_assert_eq!(
            self.copied.walk.place,
            self.shipper.next(),
            "frame counts differ"
        );
        self.copied.walk.frame += u64::from(cut.frames.count);
        self.copied.carried.extend(cut.added);
        let place = self
            .shipper
            .cut(Kind::Frames, cut.frames, cut.object, wall_ms, since);
        self.went_on();
        let walk = &self.copied.walk;
        self.copied.folded.push(Folded {
            place,
            frame: walk.frame,
            ms: walk.ms,
        });
        self.copied.cursor = cut.end;
        self.uncut = self.uncut.saturating_sub(bytes);
        self.under_way += bytes;
        self.since_ms = (self.uncut > 0).then_some(now_ms);
    }
}

/// Whether a segment has its index.
fn is_sealed(dir: &Path, id: u64) -> bool {
    let path = segment::Kind::Journal.path(dir, id);
    File::open(&path).is_ok_and(|file| index::read(&path, id, &file).is_ok())
}
