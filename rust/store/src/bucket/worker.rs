//! The thread that copies: it attaches, then ships what is committed and has the keeper upload what is sealed.

use std::{
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use sharecore_bucket::{
    Answer, Call, Kind, Shipped, Shipper,
    mistakes::{Mistake, planted},
    names,
};

use super::{
    attach::{Attach, Attached, Start, request_roll},
    budget::Budget,
    copy::Copied,
    frames::{self, Cursor, following},
    home,
    keeper::Keeper,
    shared::{Backup, BackupState},
    waiting::Waiting,
};
use crate::{
    error::StoreError,
    files::File,
    index,
    segment::{self, SEGMENT_HEADER},
    store::Shared,
};

/// How long to wait after the local disk has failed.
const PAUSE_MS: u64 = 1000;

/// Run the thread of a store until it is closed.
pub(crate) fn run(shared: &Shared, backup: &Backup) {
    let begun = Instant::now();
    let mut worker = Worker::new();
    let mut closes_at = None;
    loop {
        let now_ms = begun.elapsed().as_millis() as u64;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall_ms = wall.map_or(0, |since| since.as_millis() as i64);
        let due = worker.step(shared, backup, now_ms, wall_ms);
        let mut wait = due.map(|due| Duration::from_millis(due.saturating_sub(now_ms)));
        if backup.is_closing() {
            let closes_at = *closes_at.get_or_insert_with(|| {
                Instant::now() + Duration::from_millis(backup.options.close_ms)
            });
            let left = closes_at.saturating_duration_since(Instant::now());
            if left.is_zero() || worker.is_done(backup) {
                break;
            }
            wait = Some(wait.map_or(left, |wait| wait.min(left)));
        }
        if wait.is_none_or(|wait| !wait.is_zero()) {
            backup.line.wait(wait);
        }
    }
}

enum Mode {
    Attaching(Box<Attach>),
    Leading(Box<Lead>),
    Stopped,
}

struct Lead {
    shipper: Shipper,
    copied: Copied,
    keeper: Keeper,
    /// Bytes of committed frames that were not cut, and since when the first of them has waited.
    uncut: u64,
    since_ms: Option<u64>,
    /// Bytes of frames that are under way.
    under_way: u64,
    /// All frames below are in the bucket.
    frame: u64,
    /// The store knows that of all frames below.
    confirmed: u64,
    /// The place of the journal at which another segment was last asked for.
    rolled: u64,
    /// The next frame waits for a segment's upload.
    needs: Option<u64>,
    /// When an object was last cut.
    cut_ms: u64,
    budget: Budget,
    /// The state in the bucket begins with a checkpoint that is not there yet.
    is_baseless: bool,
}

/// Decides what is asked of the bucket; takes answers and the time.
pub(crate) struct Worker {
    mode: Mode,
    id: u64,
    /// No look at the local disk before this.
    paused_until_ms: u64,
    error: Option<String>,
    waiting: Waiting,
}

impl Worker {
    pub(crate) fn new() -> Self {
        Self {
            mode: Mode::Attaching(Box::new(Attach::new())),
            id: 0,
            paused_until_ms: 0,
            error: None,
            waiting: Waiting::default(),
        }
    }

    /// Whether there is nothing to wait for when the store is closed.
    fn is_done(&self, backup: &Backup) -> bool {
        match &self.mode {
            Mode::Attaching(_) | Mode::Stopped => true,
            Mode::Leading(lead) => {
                lead.copied.cursor.frame == backup.tail().frame && lead.shipper.under_way() == 0
            }
        }
    }

    /// Do what there is to do; return when to look again by itself.
    pub(crate) fn step(
        &mut self,
        shared: &Shared,
        backup: &Backup,
        now_ms: u64,
        wall_ms: i64,
    ) -> Option<u64> {
        let times = (now_ms, wall_ms);
        if let Err(error) = self.take(shared, backup, times) {
            self.failed(&error, now_ms);
        }
        if now_ms >= self.paused_until_ms
            && let Err(error) = self.act(shared, backup, times)
        {
            self.failed(&error, now_ms);
        }
        self.report(backup, now_ms);
        self.due_ms(backup, now_ms)
    }

    /// The local disk has failed.
    fn failed(&mut self, error: &StoreError, now_ms: u64) {
        self.error = Some(error.to_string());
        self.paused_until_ms = now_ms + PAUSE_MS;
        if let Mode::Attaching(_) = self.mode {
            self.mode = Mode::Attaching(Box::new(Attach::new()));
        }
    }

    fn take(
        &mut self,
        shared: &Shared,
        backup: &Backup,
        times: (u64, i64),
    ) -> Result<(), StoreError> {
        for answer in backup.line.take_answers() {
            match &mut self.mode {
                Mode::Stopped => {}
                Mode::Attaching(attach) => match attach.answer(backup, shared, answer, times)? {
                    Attached::Not => {}
                    Attached::Leads(start) => {
                        self.mode = Mode::Leading(Box::new(Lead::new(backup, *start, times.0)?));
                    }
                    Attached::Refused(why) => self.stop(shared, backup, BackupState::Refused, why),
                },
                Mode::Leading(lead) => {
                    lead.answer(backup, answer, times);
                    if let Some(fenced) = lead.shipper.fenced() {
                        let then = if backup.is_home {
                            "it leads, and nothing more is answered here"
                        } else {
                            "this directory is not copied any more. If both serve the same data, stop one; else give \
                             one another prefix"
                        };
                        let place = names::journal(fenced.place);
                        let why = format!("another broker has claimed {place}: {then}");
                        self.stop(shared, backup, BackupState::Fenced, why);
                    }
                }
            }
        }
        Ok(())
    }

    fn stop(&mut self, shared: &Shared, backup: &Backup, state: BackupState, why: String) {
        self.mode = Mode::Stopped;
        if backup.is_home {
            shared.lock().end(shared, &why);
        }
        backup.wake_at(u64::MAX);
        backup.hold_no_more();
        backup.update(|status| {
            status.state = state;
            status.stopped = Some(why);
            status.error = None;
        });
    }

    fn act(
        &mut self,
        shared: &Shared,
        backup: &Backup,
        times: (u64, i64),
    ) -> Result<(), StoreError> {
        let mut calls: Vec<Call> = Vec::new();
        if let Mode::Leading(lead) = &mut self.mode {
            if backup.is_broken() {
                // a journal with a hole cannot be gone on with
                self.mode = Mode::Attaching(Box::new(Attach::new()));
            } else {
                lead.act(shared, backup, times, &mut self.id, &mut calls)?;
            }
        }
        if let Mode::Attaching(attach) = &mut self.mode {
            attach.look(backup, times.1)?;
            attach.calls(times.0, &mut self.id, &mut calls);
        }
        self.error = None;
        backup.line.push(calls);
        Ok(())
    }

    fn report(&mut self, backup: &Backup, now_ms: u64) {
        let confirmed = match &self.mode {
            Mode::Leading(lead) => lead.frame,
            // it is not known what the bucket has
            Mode::Attaching(_) | Mode::Stopped => 0,
        };
        self.waiting.note(backup.tail().frame, confirmed, now_ms);
        let since = self.waiting.since_ms();
        let behind_ms = since.map_or(0, |since| now_ms.saturating_sub(since));
        let error = self.error.as_deref();
        match &self.mode {
            Mode::Stopped => {}
            Mode::Attaching(attach) => backup.update(|status| {
                status.state = BackupState::Attaching;
                status.behind_ms = behind_ms;
                status.error = error.or(attach.error()).map(String::from);
            }),
            Mode::Leading(lead) => backup.update(|status| {
                let error = error.or(lead.shipper.error()).or(lead.keeper.error());
                status.state = BackupState::Leading;
                status.error = error.map(String::from);
                status.epoch = lead.shipper.epoch();
                status.place = lead.shipper.answered();
                status.frame = lead.frame;
                status.behind_bytes = lead.uncut + lead.under_way;
                status.behind_ms = behind_ms;
                status.segments_waiting = lead.keeper.waiting() as u64;
            }),
        }
    }

    fn due_ms(&self, backup: &Backup, now_ms: u64) -> Option<u64> {
        let due = match &self.mode {
            Mode::Stopped => None,
            Mode::Attaching(attach) => attach.due_ms(),
            Mode::Leading(lead) => {
                let can_cut = lead.since_ms.filter(|_| lead.shipper.has_room());
                // what waits for an upload waits for its answer
                let ships = can_cut.map(|since| {
                    let due = lead.cut_due_ms(backup, since);
                    due.max(now_ms + u64::from(lead.needs.is_some()) * PAUSE_MS)
                });
                let others = [lead.shipper.due_ms(), lead.keeper.due_ms(), ships];
                others.into_iter().flatten().min()
            }
        };
        match self.error {
            None => due,
            Some(_) => Some(due.map_or(self.paused_until_ms, |due| due.max(self.paused_until_ms))),
        }
    }
}

impl Lead {
    fn new(backup: &Backup, start: Start, now_ms: u64) -> Result<Self, StoreError> {
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
            confirmed: 0,
            cut_ms: 0,
            budget: Budget::new(options.puts_per_second, now_ms),
            is_baseless,
        })
    }

    fn answer(&mut self, backup: &Backup, (id, answer): (u64, Answer), times: (u64, i64)) {
        let mut done: Vec<Shipped> = Vec::new();
        if !self.shipper.answer(id, &answer, times.0, &mut done) {
            self.keeper
                .answer(backup, &mut self.copied, (id, answer), times);
            self.is_baseless &= self.copied.checkpoint == 0;
            return;
        }
        for shipped in done {
            let header = shipped.header;
            let bytes = shipped.bytes - sharecore_bucket::HEADER as u64;
            self.under_way -= bytes;
            self.frame = header.frames.first + u64::from(header.frames.count);
            backup.update(|status| {
                status.objects += 1;
                status.bytes += shipped.bytes;
            });
        }
    }

    /// Where answers wait for the bucket: give those whose frames it has.
    fn confirm(&mut self, shared: &Shared, backup: &Backup) -> Result<(), StoreError> {
        // before the first frame there is nothing in the bucket to go by
        let is_due = self.frame > self.confirmed.max(1) && self.frame >= backup.opened;
        if !backup.is_home || self.is_baseless || !is_due {
            return Ok(());
        }
        // what was there before is in the bucket, and what follows counts once it is
        if !backup.is_marked() {
            home::mark(&backup.dir)?;
            backup.marked();
        }
        shared.lock().confirmed(shared, self.frame);
        self.confirmed = self.frame;
        Ok(())
    }

    /// When the next object is due, if nothing but time is missing; `since` is when its oldest frame was committed.
    fn cut_due_ms(&self, backup: &Backup, since: u64) -> u64 {
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

    fn act(
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
        self.cut(backup, tail, (now_ms, wall_ms))?;
        let objects_max = backup.options.objects_max;
        if self.copied.folded.len() >= objects_max
            && self.shipper.next() >= self.rolled + objects_max as u64
            && tail.at > SEGMENT_HEADER
        {
            self.rolled = self.shipper.next();
            request_roll(shared);
        }
        self.shipper.calls(now_ms, id, calls);
        let copied = (backup, &self.copied, self.shipper.answered());
        self.keeper.calls(copied, now_ms, id, calls)?;
        let keeper = &self.keeper;
        backup.release(self.frame, |id| keeper.needs(id));
        // after the first it looks by itself
        let object = backup.options.object_bytes as u64;
        backup.wake_at(match self.since_ms {
            None => 1,
            Some(_) => object.saturating_sub(self.uncut).max(1),
        });
        Ok(())
    }

    /// Cut objects as long as there is room and reason for one.
    fn cut(
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

    fn ship(&mut self, cut: frames::Cut, (now_ms, wall_ms): (u64, i64)) {
        let bytes = (cut.object.len() - sharecore_bucket::HEADER) as u64;
        let since = self.since_ms.unwrap_or(now_ms);
        let walk = &mut self.copied.walk;
        debug_assert_eq!(walk.place, self.shipper.next(), "they count alike");
        let count = u64::from(cut.frames.count);
        self.copied.carried.extend(cut.added);
        let place = self
            .shipper
            .cut(Kind::Frames, cut.frames, cut.object, wall_ms, since);
        walk.place = place + 1;
        walk.frame += count;
        walk.before = self.shipper.before();
        walk.ms = self.shipper.ms();
        self.copied.folded.push(sharecore_bucket::Folded {
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
