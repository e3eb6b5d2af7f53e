//! Writes in the local journal that wait for the bucket (durability `bucket`): they take effect in frame order, once
//! they and all earlier ones are known to be in the bucket.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use sharecore_bucket::mistakes::{Mistake, planted};

use crate::{
    checkpoint::{self, Since},
    journal::Written,
    maintain::Seal,
    pending::Pending,
    state::{Group, State},
    store::{Shared, Store},
};

enum Waiting {
    /// Being written by the committing thread.
    Writing(Arc<Group>),
    /// Written as the frame with this number.
    Written(Arc<Group>, Written, u64),
    /// Failed on the local disk.
    Failed(Arc<Group>, String),
    /// A full segment, followed by another.
    Full(Full),
}

/// A full journal segment.
pub(crate) struct Full {
    pub(crate) segment: u64,
    /// The end of its frames.
    pub(crate) position: u64,
    pub(crate) since: Since,
}

/// Writes waiting for the bucket; see the module.
pub(crate) struct Shipping {
    waiting: VecDeque<Waiting>,
    /// All frames below are in the bucket.
    confirmed: u64,
}

impl Shipping {
    /// All frames below this one existed when the store was opened.
    pub(crate) fn new(frame: u64) -> Self {
        Self {
            waiting: VecDeque::new(),
            confirmed: frame,
        }
    }

    /// Whether writing is blocked by a failure that was not rolled back yet.
    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self.waiting.back(), Some(Waiting::Failed(..)))
    }

    /// Waiting groups, oldest first.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Pending> {
        let shown = if planted(Mistake::CheckpointUnshipped) {
            0
        } else {
            self.waiting.len()
        };
        let group = |waiting| match waiting {
            &Waiting::Writing(ref group)
            | &Waiting::Written(ref group, ..)
            | &Waiting::Failed(ref group, _) => Some(group),
            &Waiting::Full(_) => None,
        };
        let groups = self.waiting.iter().take(shown).filter_map(group);
        groups.flat_map(|group| &group.pending)
    }

    /// Adds a group that is about to be written.
    pub(crate) fn begin(&mut self, group: &Arc<Group>) {
        assert!(!self.is_blocked(), "nothing is written after a failure");
        self.waiting.push_back(Waiting::Writing(Arc::clone(group)));
    }

    /// The group of the last `begin` was written, or failed.
    pub(crate) fn written(&mut self, written: Result<(Written, u64), String>) {
        let Some(Waiting::Writing(group)) = self.waiting.pop_back() else {
            unreachable!("one group is written at a time, and nothing follows it");
        };
        self.waiting.push_back(match written {
            Ok((written, frame)) => Waiting::Written(group, written, frame),
            Err(why) => Waiting::Failed(group, why),
        });
    }

    /// The next frame goes to another segment: that of the group being written, if any.
    pub(crate) fn full(&mut self, full: Full) {
        let is_writing = matches!(self.waiting.back(), Some(Waiting::Writing(_)));
        let at = self.waiting.len() - usize::from(is_writing);
        self.waiting.insert(at, Waiting::Full(full));
    }

    /// Removes the oldest entry that is in the bucket, or need not be.
    fn next(&mut self) -> Option<Waiting> {
        let is_done = match self.waiting.front()? {
            Waiting::Writing(_) => false,
            Waiting::Written(_, _, frame) => *frame < self.confirmed,
            Waiting::Failed(..) => true,
            Waiting::Full(full) => full.since.frame <= self.confirmed,
        };
        if is_done {
            self.waiting.pop_front()
        } else {
            None
        }
    }
}

impl State {
    /// All frames below this one are in the bucket; with 0, the last known position is used.
    pub(crate) fn confirmed(&mut self, shared: &Shared, frame: u64) {
        let (mut is_garbage, mut has_ended) = (false, false);
        if let Some(shipping) = &mut self.shipping {
            shipping.confirmed = shipping.confirmed.max(frame);
        }
        while let Some(done) = self.shipping.as_mut().and_then(Shipping::next) {
            let whole = |group| Arc::into_inner(group).expect("its writer has let go of it");
            match done {
                Waiting::Written(group, written, _) => {
                    is_garbage |= self.committed(whole(group), &written);
                    has_ended = true;
                }
                Waiting::Failed(group, why) => {
                    self.failed(whole(group), &why);
                    has_ended = true;
                }
                Waiting::Full(full) => {
                    let checkpoint = checkpoint::encode(self, None, full.since);
                    self.seals.push_back(Seal {
                        segment: full.segment,
                        position: full.position,
                        next: full.since.segment,
                        checkpoint: Arc::new(checkpoint),
                        indexed: None,
                    });
                    is_garbage = true;
                }
                Waiting::Writing(_) => unreachable!("it is not written"),
            }
        }
        if is_garbage {
            shared.maintenance.notify_all();
        }
        if has_ended {
            shared.signal.raise();
            if self.waiters > 0 {
                shared.settled.notify_all();
            }
        }
    }

    /// Fails everything that waits, and blocks further writes.
    pub(crate) fn end(&mut self, shared: &Shared, why: &str) {
        self.ended.get_or_insert_with(|| why.into());
        shared.settled.notify_all();
        shared.maintenance.notify_all();
    }
}

impl Store {
    /// With durability `bucket`, waits a while for writes to reach the bucket.
    pub(crate) fn await_bucket(&self) {
        let Some(backup) = self.shared.backup.as_ref().filter(|it| it.is_home) else {
            return;
        };
        let until = Instant::now() + Duration::from_millis(backup.options.close_ms);
        let mut state = self.shared.lock();
        while state.ended.is_none() && state.is_unsettled() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = "the store was closed before the write reached the bucket";
                state.end(&self.shared, why);
                return;
            }
            drop(state);
            let stepped = self.shared.step() || self.shared.pump();
            state = self.shared.lock();
            if !stepped && state.is_unsettled() {
                state.waiters += 1;
                let woken = self.shared.settled.wait_timeout(state, left);
                state = woken.expect("no panic under the lock").0;
                state.waiters -= 1;
            }
        }
    }
}
