//! Reading the bucket at startup: whose copy it is, where the journal ends, whether this directory can continue it, and
//! the claim.

mod ahead;
mod base;

use std::{collections::BTreeMap, sync::Arc};

use sharecore_bucket::{
    Answer, Call, Checkpoint, Claimant, Claimed, Claiming, FOREIGN_HOME, Frames, PAGE_MIN, Retried,
    What, counted, home, names, read_home,
};

use ahead::{Ahead, get};

use super::{
    copy::Copied,
    frames::{Cursor, is_same, locate},
    home,
    journal_end::JournalEnd,
    own,
    read_ahead::ReadAhead,
    shared::{Backup, Sealed},
};
use crate::{
    FORMAT,
    checkpoint::{self, Since},
    error::StoreError,
    segment::SEGMENT_HEADER,
    store::Shared,
};

/// The state of attaching.
pub(super) enum Attached {
    /// In progress.
    Not,
    /// This store writes the journal.
    Leads(Box<Start>),
    /// The copy must not continue.
    Refused(String),
}

/// The start of a store that writes the journal.
pub(super) struct Start {
    pub(super) copied: Copied,
    /// Bytes of committed frames missing from the bucket.
    pub(super) behind: u64,
    /// The first checkpoint, if the copy restarts.
    pub(super) base: Option<Sealed>,
}

enum Phase {
    /// Reading whose copy the bucket holds.
    Home,
    /// Creating the object `format` in a new bucket.
    MakeHome(Vec<u8>),
    /// Listing checkpoints: place and epoch, ascending. With the damage found in the journal, if any.
    List(Vec<(u64, u32)>, Option<String>),
    /// Reading the newest of these checkpoints.
    Checkpoint(Vec<(u64, u32)>),
    Walk,
    /// Listing, and then reading, objects after the end, which would prove that it is not the end.
    ListBeyond,
    Beyond,
    /// Waiting for the checkpoint at the start of a segment after this one.
    Base(u64),
    Claim(Claiming, Option<Sealed>),
}

pub(super) struct Attach {
    phase: Phase,
    slot: Retried,
    ahead: BTreeMap<u64, Ahead>,
    read_ahead: ReadAhead,
    /// What a restore has read just before, until it is used.
    restored: Option<JournalEnd>,
    copied: Copied,
    /// The place of the checkpoint that the walk started from.
    begun: u64,
    /// The absent place that seems lost, since later objects show that it was written.
    gap: u64,
    next: Cursor,
    behind: u64,
}

impl Attach {
    /// Begin; the journal is read on from where a restore has read it.
    pub(super) fn new(restored: Option<JournalEnd>) -> Self {
        Self {
            phase: Phase::Home,
            slot: Retried::default(),
            ahead: BTreeMap::new(),
            read_ahead: ReadAhead::default(),
            restored,
            copied: Copied::default(),
            begun: 0,
            gap: 0,
            next: Cursor::default(),
            behind: 0,
        }
    }

    pub(super) fn error(&self) -> Option<&str> {
        let mut slots = self.ahead.values().map(|ahead| &ahead.slot);
        self.slot.error().or_else(|| slots.find_map(Retried::error))
    }

    pub(super) fn due_ms(&self) -> Option<u64> {
        let slots = self.ahead.values().map(|ahead| &ahead.slot);
        slots.chain([&self.slot]).filter_map(Retried::due_ms).min()
    }

    /// Append the calls that are due.
    pub(super) fn calls(&mut self, now_ms: u64, id: &mut u64, calls: &mut Vec<Call>) {
        if let Phase::Walk = self.phase {
            let place = self.copied.walk.place;
            for at in place..place + self.read_ahead.objects() {
                let begun = || Ahead::begun(names::journal(at), at == place);
                self.ahead.entry(at).or_insert_with(begun);
            }
        }
        if let Phase::Walk | Phase::Beyond = self.phase {
            // also those that were begun when more were read at a time
            for ahead in self.ahead.values_mut() {
                ahead.slot.calls(now_ms, id, calls);
            }
            return;
        }
        if self.slot.is_idle()
            && let Some(what) = self.what()
        {
            self.slot.begin(what);
        }
        self.slot.calls(now_ms, id, calls);
    }

    fn what(&self) -> Option<What> {
        Some(match &self.phase {
            Phase::Walk | Phase::Beyond | Phase::Base(_) => return None,
            Phase::Home => get(names::FORMAT.into()),
            Phase::MakeHome(body) => What::Create {
                name: names::FORMAT.into(),
                body: Arc::new(body.clone()),
            },
            Phase::List(found, _) => What::List {
                prefix: names::CHECKPOINTS.into(),
                after: found.last().map(|it| names::checkpoint(it.0, it.1)),
            },
            Phase::Checkpoint(left) => {
                let (place, epoch) = left.last()?;
                get(names::checkpoint(*place, *epoch))
            }
            Phase::ListBeyond => self.copied.walk.list_beyond(),
            Phase::Claim(claiming, _) => claiming.call(),
        })
    }

    /// Handle an answer.
    pub(super) fn answer(
        &mut self,
        backup: &Backup,
        shared: &Shared,
        (id, answer): (u64, Answer),
        (now_ms, wall_ms): (u64, i64),
    ) -> Result<Attached, StoreError> {
        if let Phase::Walk | Phase::Beyond = self.phase {
            let mut slots = self.ahead.values_mut();
            if let Some(ahead) = slots.find(|ahead| ahead.slot.waits_for(id)) {
                let found = ahead.slot.answer(id, answer, now_ms);
                ahead.found = found.map(|(_, answer)| answer);
            }
            if let Phase::Walk = self.phase {
                self.walk_on();
                return Ok(Attached::Not);
            }
            return self.look_beyond(backup, shared, wall_ms);
        }
        let Some((_, answer)) = self.slot.answer(id, answer, now_ms) else {
            return Ok(Attached::Not);
        };
        let phase = std::mem::replace(&mut self.phase, Phase::Home);
        match (phase, answer) {
            (Phase::Home, Answer::Bytes(bytes)) => return Ok(self.home(backup, &bytes)),
            (Phase::Home, _) => {
                // whatever was read before is gone
                self.restored = None;
                self.phase = Phase::MakeHome(home(&backup.options.cluster_id));
            }
            (Phase::MakeHome(_), Answer::Done) => self.phase = Phase::List(Vec::new(), None),
            (Phase::List(found, damage), Answer::Names(page)) => {
                return Ok(self.list(found, damage, &page));
            }
            (Phase::Checkpoint(mut left), answer) => {
                let read = match &answer {
                    Answer::Bytes(bytes) => Checkpoint::decode(bytes),
                    _ => None,
                };
                let is_known = |it: &Checkpoint| checkpoint::parts(&it.store).is_some();
                if let Some(checkpoint) = read.filter(is_known) {
                    self.begun = checkpoint.place;
                    self.copied = Copied::from(&checkpoint);
                    self.phase = Phase::Walk;
                    return Ok(Attached::Not);
                }
                left.pop();
                if left.is_empty() {
                    let what = "no checkpoint in the bucket can be read. Use another prefix";
                    return Ok(Attached::Refused(what.into()));
                }
                self.phase = Phase::Checkpoint(left);
            }
            (Phase::ListBeyond, Answer::Names(page)) => {
                if let Some(gap) = self.copied.walk.proves_gap(&page) {
                    self.look_again(gap);
                    return Ok(Attached::Not);
                }
                let names = (1..).zip(self.copied.walk.beyond());
                let begun = |(n, name)| (self.copied.walk.place + n, Ahead::begun(name, false));
                self.ahead = names.map(begun).collect();
                self.phase = Phase::Beyond;
                return self.look_beyond(backup, shared, wall_ms);
            }
            (Phase::Claim(mut claiming, base), answer) => match claiming.answer(&answer) {
                Claimed::Unknown => self.phase = Phase::Claim(claiming, base),
                Claimed::Taken(walk) => {
                    self.copied.walk = walk;
                    self.phase = Phase::Walk;
                }
                Claimed::Stale => *self = Self::new(None),
                Claimed::Ours(walk) => {
                    let mut copied = std::mem::take(&mut self.copied);
                    if base.is_some() {
                        copied = Copied::default();
                    }
                    copied.walk = walk;
                    copied.goes_on(self.next, SEGMENT_HEADER);
                    return Ok(Attached::Leads(Box::new(Start {
                        copied,
                        behind: self.behind,
                        base,
                    })));
                }
            },
            // an unexpected answer: restart
            _ => *self = Self::new(None),
        }
        Ok(Attached::Not)
    }

    fn home(&mut self, backup: &Backup, bytes: &[u8]) -> Attached {
        let own = &backup.options.cluster_id;
        match read_home(bytes) {
            Some(id) if id == *own => {
                self.phase = Phase::List(Vec::new(), None);
                Attached::Not
            }
            Some(id) => Attached::Refused(format!(
                "the bucket holds the copy of cluster {id}; this is cluster {own}. Use another prefix"
            )),
            None => Attached::Refused(format!("{FOREIGN_HOME}. Use another prefix")),
        }
    }

    fn list(
        &mut self,
        mut found: Vec<(u64, u32)>,
        damage: Option<String>,
        page: &[(String, u64)],
    ) -> Attached {
        let before = found.len();
        let pairs = page.iter().map(|(name, _)| names::parse_checkpoint(name));
        found.extend(pairs.flatten());
        if found.len() < before + page.len() {
            let what = "objects in checkpoints/ are from another program. Use another prefix";
            return Attached::Refused(what.into());
        }
        if page.len() >= PAGE_MIN {
            self.phase = Phase::List(found, damage);
            return Attached::Not;
        }
        found = counted(found);
        let newest = found.last().map_or(0, |(place, _)| *place);
        match damage {
            // the objects after an older checkpoint may have been deleted meanwhile
            Some(damage) if newest <= self.begun => return Attached::Refused(damage),
            _ => {}
        }
        let restored = self.restored.take();
        if let Some(end) = restored.filter(|end| end.checkpoint == found.last().copied()) {
            (self.begun, self.copied) = (newest, *end.copied);
            self.phase = Phase::Walk;
            return Attached::Not;
        }
        (self.begun, self.copied) = (0, Copied::default());
        self.phase = if found.is_empty() {
            Phase::Walk
        } else {
            Phase::Checkpoint(found)
        };
        Attached::Not
    }

    /// The object at the end of the walk seems lost: read it again, since it may have been written since it was read.
    fn look_again(&mut self, lost: String) {
        let place = self.copied.walk.place;
        let is_known = std::mem::replace(&mut self.gap, place) == place;
        self.phase = if is_known {
            Phase::List(Vec::new(), Some(lost))
        } else {
            Phase::Walk
        };
    }

    /// Pass the objects of the journal that were read.
    fn walk_on(&mut self) {
        loop {
            let place = self.copied.walk.place;
            let Some(Ahead {
                was_next,
                found: Some(answer),
                ..
            }) = self.ahead.get(&place)
            else {
                return;
            };
            match answer {
                Answer::Bytes(bytes) => {
                    self.read_ahead.note(bytes.len());
                    if let Err(damage) = self.copied.pass(bytes) {
                        self.ahead.clear();
                        self.phase = Phase::List(Vec::new(), Some(damage));
                        return;
                    }
                    let place = self.copied.walk.place;
                    self.ahead.retain(|at, _| *at >= place);
                }
                // it may have been written since
                _ if !was_next => {
                    self.ahead.remove(&place);
                    return;
                }
                _ => {
                    self.ahead.clear();
                    self.phase = Phase::ListBeyond;
                    return;
                }
            }
        }
    }

    /// The objects after the end are being read: look at them once all are there.
    fn look_beyond(
        &mut self,
        backup: &Backup,
        shared: &Shared,
        wall_ms: i64,
    ) -> Result<Attached, StoreError> {
        if self.ahead.values().any(|ahead| ahead.found.is_none()) {
            return Ok(Attached::Not);
        }
        let read = std::mem::take(&mut self.ahead);
        let lost = read.values().find_map(|ahead| match &ahead.found {
            Some(Answer::Bytes(bytes)) => self.copied.walk.proves_loss(bytes),
            _ => None,
        });
        if let Some(lost) = lost {
            self.look_again(lost);
            return Ok(Attached::Not);
        }
        self.judge(backup, shared, wall_ms)
    }

    /// At the end of the journal: decide whether and how this directory continues it.
    fn judge(
        &mut self,
        backup: &Backup,
        shared: &Shared,
        wall_ms: i64,
    ) -> Result<Attached, StoreError> {
        let walk = &self.copied.walk;
        if let Some(why) = backup.options.taken(walk) {
            return Ok(Attached::Refused(why));
        }
        let tail = backup.tail();
        if walk.epoch > 0 && !own::read(&backup.dir)?.contains(&walk.writer) {
            let claim = walk.claims.last().copied().unwrap_or(0);
            if backup.is_home && home::is_home(&backup.dir) {
                return Ok(Attached::Refused(format!(
                    "another broker has claimed {} since this one was started",
                    names::journal(claim)
                )));
            }
            return Ok(Attached::Refused(format!(
                "the bucket holds the copy of another directory, which claimed {}. Use another prefix, or restore \
                 that copy to a directory and serve it",
                names::journal(claim)
            )));
        }
        // local writes since the start may contradict later writes of the previous leader
        if backup.is_home && walk.frame > backup.opened {
            return Ok(Attached::Refused(format!(
                "the bucket has advanced since this broker started, to frame {}: restart it",
                walk.frame - 1
            )));
        }
        if walk.frame > tail.frame {
            return Ok(Attached::Refused(format!(
                "the bucket holds frames up to {}, but this directory only up to {}: it has lost some, or was restored to an earlier time. Restore the latest state, or use another prefix",
                walk.frame - 1,
                tail.frame - 1
            )));
        }
        if let Some((frames, body)) = &self.copied.newest
            && is_same(&backup.dir, frames, body)? == Some(false)
        {
            let place = names::journal(self.copied.folded.last().map_or(0, |it| it.place));
            return Ok(Attached::Refused(format!(
                "{place} differs from this directory's journal: they have diverged. Use another prefix"
            )));
        }
        let found = if self.copied.is_baseless || backup.is_broken() {
            None
        } else {
            locate(&backup.dir, walk.frame, backup.take_committed().0)?
        };
        if let Some((cursor, behind)) = found {
            (self.next, self.behind) = (cursor, behind);
            self.claim(backup, None, wall_ms)?;
            return Ok(Attached::Not);
        }
        if backup.is_home {
            return self.base_of_home(backup, wall_ms);
        }
        // from now on keep every file that the checkpoint will name
        backup.hold();
        let tail = backup.tail();
        if tail.at > SEGMENT_HEADER {
            request_roll(shared);
            self.phase = Phase::Base(tail.segment);
            return Ok(Attached::Not);
        }
        match checkpoint::bytes(&backup.dir, tail.segment) {
            Ok(bytes) => {
                let since = Since {
                    segment: tail.segment,
                    frame: tail.frame,
                };
                let base = Sealed {
                    since,
                    frame: tail.frame,
                    checkpoint: Arc::new(bytes),
                };
                // committed meanwhile
                self.next = tail;
                self.behind = self.from(backup)?;
                self.claim(backup, Some(base), wall_ms)?;
            }
            // it is being written
            Err(_) => self.phase = Phase::Base(tail.segment - 1),
        }
        Ok(Attached::Not)
    }

    fn claim(
        &mut self,
        backup: &Backup,
        base: Option<Sealed>,
        wall_ms: i64,
    ) -> Result<(), StoreError> {
        let walk = self.copied.walk.clone();
        let options = &backup.options;
        own::write(&backup.dir, &[walk.writer, options.writer])?;
        let claimant = Claimant {
            writer: options.writer,
            node: options.node,
            window: options.window,
            next: Frames {
                segment: self.next.segment,
                at: self.next.at,
                first: self.next.frame,
                count: 0,
            },
            is_base: base.is_some(),
            format: FORMAT,
            about: options.about.clone(),
            ms: wall_ms,
        };
        self.phase = Phase::Claim(Claiming::new(walk, &claimant), base);
        Ok(())
    }
}

/// Request that the journal continues in a new segment.
pub(super) fn request_roll(shared: &Shared) {
    let mut state = shared.lock();
    state.roll = true;
    shared.hurry(state);
}
