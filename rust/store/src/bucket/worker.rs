//! The thread that copies: it attaches, then ships commits and lets the keeper upload sealed files.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sharecore_bucket::{Call, names};

use super::{
    attach::{Attach, Attached},
    lead::Lead,
    shared::{Backup, BackupState, steady_ms},
    waiting::Waiting,
};
use crate::{error::StoreError, store::Shared};

/// How long to wait after the local disk has failed.
pub(super) const PAUSE_MS: u64 = 1000;

/// Run the thread of a store until it is closed.
pub(crate) fn run(shared: &Shared, backup: &Backup) {
    let mut worker = Worker::new(backup);
    let mut closes_at = None;
    loop {
        let now_ms = steady_ms();
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

/// Decides the requests to the bucket; takes answers and the time.
pub(crate) struct Worker {
    mode: Mode,
    id: u64,
    /// No access to the local disk before this.
    paused_until_ms: u64,
    error: Option<String>,
    waiting: Waiting,
}

impl Worker {
    pub(crate) fn new(backup: &Backup) -> Self {
        Self {
            mode: Mode::Attaching(Box::new(Attach::new(backup.take_restored()))),
            id: 0,
            paused_until_ms: 0,
            error: None,
            waiting: Waiting::default(),
        }
    }

    /// Whether closing the store need not wait.
    fn is_done(&self, backup: &Backup) -> bool {
        match &self.mode {
            Mode::Attaching(_) | Mode::Stopped => true,
            Mode::Leading(lead) => lead.is_drained(backup) && (lead.is_released || !backup.is_home),
        }
    }

    /// Do what is due; return when to look again.
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
            self.mode = Mode::Attaching(Box::new(Attach::new(None)));
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
                            "it leads, and this broker confirms nothing any more"
                        } else {
                            "this directory is no longer copied. If both serve the same data, stop one; else use another prefix for one"
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
                // a journal with a hole cannot be continued
                self.mode = Mode::Attaching(Box::new(Attach::new(None)));
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
            // the bucket's contents are unknown
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
                // a frame that waits for an upload waits for its answer
                let ships = can_cut.map(|since| {
                    let due = lead.cut_due_ms(backup, since);
                    due.max(now_ms + u64::from(lead.needs.is_some()) * PAUSE_MS)
                });
                let beat = lead.beat_due_ms(backup);
                let others = [lead.shipper.due_ms(), lead.keeper.due_ms(), ships, beat];
                others.into_iter().flatten().min()
            }
        };
        match self.error {
            None => due,
            Some(_) => Some(due.map_or(self.paused_until_ms, |due| due.max(self.paused_until_ms))),
        }
    }
}
