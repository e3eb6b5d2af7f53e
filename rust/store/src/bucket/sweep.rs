//! Deletes objects that no restore needs any more: after each checkpoint, those that kept checkpoints do not name.
//!
//! Names are never reused, so a late delete only removes objects that were useless already.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
};

use sharecore_bucket::{
    Answer, Checkpoint, PAGE_MIN, Segment, What, counted, kept, may_be_swept,
    mistakes::{Mistake, planted},
    names,
};

/// A restore may take this part of the history, and the objects that it has not read yet stay.
const GOES_ON: i64 = 12;

/// A checkpoint in the bucket.
#[derive(Clone)]
struct Known {
    ms: i64,
    claims: Vec<u64>,
    named: Vec<Segment>,
    frame: u64,
    /// Whether it lists the objects since the checkpoint before it, and when each was created.
    has_folded: bool,
}

impl Known {
    /// Whether it restarts the journal, and says nothing about what was written since the checkpoint before it.
    fn restarts(&self, before: &Self) -> bool {
        !self.has_folded && self.frame != before.frame
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    Checkpoints,
    Pins,
    Segments,
    Journal,
}

/// Deletes objects, one call at a time.
pub(super) struct Sweep {
    phase: Phase,
    /// The last name of the last page of a list.
    after: Option<String>,
    /// Pins found by listing.
    pins: Vec<String>,
    /// Checkpoints or pins to read.
    unread: VecDeque<String>,
    deletes: VecDeque<String>,
    found: BTreeSet<(u64, u32)>,
    known: BTreeMap<(u64, u32), Known>,
    /// Segments that checkpoints and pins name.
    named: BTreeSet<Segment>,
    /// The place before which no object is needed, and the claims before it.
    floor: (u64, Vec<u64>),
    /// The newest checkpoint, and its epoch, which is ours.
    newest: (u64, u32),
    now_ms: i64,
    history_ms: i64,
}

impl Sweep {
    pub(super) fn new(history_ms: i64) -> Self {
        Self {
            phase: Phase::Idle,
            after: None,
            pins: Vec::new(),
            unread: VecDeque::new(),
            deletes: VecDeque::new(),
            found: BTreeSet::new(),
            known: BTreeMap::new(),
            named: BTreeSet::new(),
            floor: (0, Vec::new()),
            newest: (0, 0),
            now_ms: 0,
            history_ms,
        }
    }

    /// Begin after a checkpoint was written.
    pub(super) fn begin(&mut self, newest: (u64, u32), now_ms: i64) {
        (self.newest, self.now_ms) = (newest, now_ms);
        // pending deletes stay; everything else is learned again
        self.found.clear();
        self.unread.clear();
        self.pins.clear();
        self.named.clear();
        self.enter(Phase::Checkpoints);
    }

    /// Keep a segment that is being uploaded.
    pub(super) fn spare(&mut self, segment: Segment) {
        if !planted(Mistake::SegmentSwept) {
            self.named.insert(segment);
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.after = None;
    }

    /// Return the next call; None if there is nothing to do.
    pub(super) fn next(&mut self) -> Option<What> {
        if let Some(name) = self.deletes.pop_front() {
            return Some(What::Delete { name });
        }
        if let Some(name) = self.unread.front() {
            let name = name.clone();
            return Some(What::Get { name, range: None });
        }
        let prefix = match self.phase {
            Phase::Idle => return None,
            Phase::Checkpoints => names::CHECKPOINTS,
            Phase::Pins => names::PINS,
            Phase::Segments => names::SEGMENTS,
            Phase::Journal => names::JOURNAL,
        };
        Some(What::List {
            prefix: prefix.into(),
            after: self.after.clone(),
        })
    }

    /// Handle the answer to the last call. The error says why the sweep ended early.
    pub(super) fn answer(&mut self, answer: &Answer) -> Result<(), String> {
        match answer {
            Answer::Names(page) => {
                for (name, _) in page {
                    self.listed(name);
                }
                self.after = page.last().map(|(name, _)| name.clone());
                let floor = names::journal(self.floor.0);
                if self.phase == Phase::Journal && self.after.as_ref() >= Some(&floor) {
                    self.phase = Phase::Idle;
                } else if page.len() < PAGE_MIN {
                    self.end_of_list();
                }
            }
            Answer::Bytes(bytes) => {
                let name = self.unread.pop_front().unwrap_or_default();
                let Some(checkpoint) = Checkpoint::decode(bytes) else {
                    self.phase = Phase::Idle;
                    self.unread.clear();
                    return Err(format!("{name} is damaged: nothing is deleted"));
                };
                if let Some(key) = names::parse_checkpoint(&name) {
                    let known = Known {
                        ms: checkpoint.usable_ms,
                        named: checkpoint.named().collect(),
                        frame: checkpoint.frame,
                        has_folded: !checkpoint.folded.is_empty(),
                        claims: checkpoint.claims,
                    };
                    self.known.insert(key, known);
                } else {
                    self.named.extend(checkpoint.named());
                }
                if self.unread.is_empty() {
                    self.end_of_reading();
                }
            }
            // a pin that was removed meanwhile
            Answer::Absent => {
                self.unread.pop_front();
                if self.unread.is_empty() {
                    self.end_of_reading();
                }
            }
            Answer::Done | Answer::Exists | Answer::Unknown(_) => {}
        }
        Ok(())
    }

    fn listed(&mut self, name: &str) {
        match self.phase {
            Phase::Idle => {}
            Phase::Checkpoints => self.found.extend(names::parse_checkpoint(name)),
            Phase::Pins => self.pins.push(name.into()),
            Phase::Segments => {
                let segment = names::parse_segment(name).map(|(segment, _)| segment);
                if segment.is_some_and(|it| it.epoch <= self.newest.1 && !self.named.contains(&it))
                {
                    self.deletes.push_back(name.into());
                }
            }
            Phase::Journal => {
                let (place, claims) = &self.floor;
                if names::parse_journal(name).is_some_and(|at| may_be_swept(at, *place, claims)) {
                    self.deletes.push_back(name.into());
                }
            }
        }
    }

    fn end_of_list(&mut self) {
        match self.phase {
            Phase::Checkpoints => {
                let counted: BTreeSet<_> = counted(self.found.iter().copied().collect())
                    .into_iter()
                    .collect();
                // first, as segments they name may be gone
                let void = self.found.difference(&counted);
                self.deletes
                    .extend(void.map(|it| names::checkpoint(it.0, it.1)));
                self.found = counted;
                self.known.retain(|key, _| self.found.contains(key));
                let unread = self
                    .found
                    .iter()
                    .filter(|key| !self.known.contains_key(*key));
                self.unread = unread.map(|it| names::checkpoint(it.0, it.1)).collect();
                if self.unread.is_empty() {
                    self.end_of_reading();
                }
            }
            Phase::Pins => {
                self.unread = mem::take(&mut self.pins).into();
                if self.unread.is_empty() {
                    self.end_of_reading();
                }
            }
            Phase::Segments => self.enter(Phase::Journal),
            Phase::Journal | Phase::Idle => self.phase = Phase::Idle,
        }
    }

    /// The place before which no restore reads objects. It begins at the newest checkpoint, or at the one before, as the
    /// newest may be damaged; a running restore needs some time to finish. Earlier states are restored from segments and
    /// the lists in checkpoints, except before a restart of the journal.
    fn unneeded(&self) -> (u64, Vec<u64>) {
        let kept: Vec<_> = self.known.iter().collect();
        let horizon = self.now_ms.saturating_sub(self.history_ms / GOES_ON);
        let before = kept.iter().rev().skip(1);
        let is_old = |(_, known): &&(_, &Known)| known.ms <= horizon;
        let mut place = before.take_while(|it| !is_old(it)).count() + 2;
        let mut pairs = kept.iter().zip(kept.iter().skip(1));
        if let Some(restart) = pairs.position(|((_, one), (_, next))| next.restarts(one)) {
            place = place.max(kept.len() - restart);
        }
        let floor = kept.get(kept.len().saturating_sub(place));
        floor.map_or_else(<_>::default, |(key, known)| (key.0, known.claims.clone()))
    }

    fn end_of_reading(&mut self) {
        match self.phase {
            // an outdated list: checkpoints missing from it may name segments that seem useless
            Phase::Checkpoints if !self.known.contains_key(&self.newest) => {
                self.phase = Phase::Idle;
            }
            Phase::Checkpoints => {
                let all = self.known.iter().map(|(key, it)| (key.0, key.1, it.ms));
                let stays = kept(&all.collect::<Vec<_>>(), self.now_ms, self.history_ms);
                let known = mem::take(&mut self.known);
                for (key, known) in known {
                    if stays.contains(&key) {
                        self.named.extend(known.named.iter().copied());
                        self.known.insert(key, known);
                    } else {
                        // first, so that no checkpoint names a missing segment
                        self.deletes.push_back(names::checkpoint(key.0, key.1));
                    }
                }
                self.floor = self.unneeded();
                self.enter(Phase::Pins);
            }
            Phase::Pins => self.enter(Phase::Segments),
            Phase::Idle | Phase::Segments | Phase::Journal => {}
        }
    }
}
