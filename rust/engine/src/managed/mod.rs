//! A share partition whose available records may have to wait: a group with rules about redelivery times and order.
//!
//! [`Managed`] wraps a [`Partition`]. A bit marks runs that must not be acquired yet and removes them from the index of
//! acquirable runs: a million of them cost a search nothing. Due times are kept beside the map. The persisted state is
//! the same as without rules; a wait restarts when the partition is loaded.

mod admission;
mod chains;
mod engine;
mod held;
mod in_line;
mod inner;
mod keys;
mod lateness;
mod ordered;
mod overlaps;
mod planted;
mod rules;
mod runs;
mod times;

use std::collections::BTreeMap;

use self::admission::Admission;
pub use self::admission::Entry;
pub use self::engine::{Engine, Waiting};
use self::inner::Inner;
pub use self::keys::KeyDetails;
use self::keys::Keys;
use self::lateness::Lateness;
#[cfg(feature = "planted")]
pub use self::planted::plant;
pub use self::planted::{Bug, is_planted};
pub use self::rules::{Backoff, Key, Order, Rules, Spec};
use self::times::Times;
use crate::error::Refusal;
use crate::offset::{Offset, OffsetRange};
use crate::partition::{AcquireOptions, Acquired, StateBatch, Write};
use crate::record_state::RecordState;

/// The cause of an open write that is not an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// A member's session closed.
    Session,
    /// Locks expired or dead letters were written: the records changed already.
    Done,
}

/// A share partition with rules.
#[derive(Debug)]
pub struct Managed {
    inner: Inner,
    rules: Rules,
    times: Times,
    /// Causes of open writes that are not acknowledgements.
    causes: BTreeMap<u64, Cause>,
    /// Present if the rules need records examined before they are acquired.
    admission: Option<Box<Admission>>,
    /// Present if records are ordered by key.
    keys: Option<Box<Keys>>,
    lateness: Lateness,
    /// Behind the records that were acquired last.
    round: Offset,
}

impl Managed {
    /// Whether more records may enter the window.
    fn may_admit(&self, leased: i64) -> bool {
        let limit = self.rules.max_waiting;
        let runs = limit.saturating_add(self.inner.config().max_inflight);
        self.units(leased) < limit && (self.inner.runs() as i64) < runs.saturating_mul(2)
    }

    /// The number of units in the window that are neither acquired nor finished.
    fn units(&self, leased: i64) -> i64 {
        let by_key = self.key_units(leased);
        let units = by_key.unwrap_or_else(|| self.inner.open_units(leased));
        if is_planted(Bug::ArchivingUncounted) {
            return units - self.archiving();
        }
        units
    }

    fn set_rules(&mut self, rules: Rules) {
        let is_same = self.rules.spec == rules.spec;
        self.rules = rules;
        if is_same {
            return self.keep_keys();
        }
        if self.rules.spec.is_some() {
            self.begin_admission();
        } else {
            self.end_admission();
        }
    }

    fn next_ready(&self) -> Option<Offset> {
        let first = self.inner.first_ready();
        let spec = self.rules.spec.as_deref();
        let has_times = spec.is_some_and(|spec| !spec.deliver_at_header.is_empty());
        if !has_times || self.keys.is_some() || self.rules.order != Order::None {
            return first;
        }
        self.inner.first_ready_from(self.round).or(first)
    }

    fn can_acquire(&self) -> bool {
        let leased = self.inner.leased();
        if self.admission.is_some() {
            let room = leased < self.inner.config().max_inflight;
            let ready = self.inner.first_ready();
            let is_next = ready.is_some_and(|ready| self.in_line(leased, ready).is_some());
            return room
                && (is_next || !self.stands_still(leased) && self.next_admission().is_some());
        }
        leased < self.inner.config().max_inflight
            && self
                .in_line(leased, self.inner.next_fetch_offset())
                .is_some()
            && (self.inner.next_fetch_offset() != self.inner.past_end() || self.may_admit(leased))
    }

    fn acquire(
        &mut self,
        now_ms: i64,
        member: &str,
        batches: &[OffsetRange],
        mut options: AcquireOptions,
        out: &mut Vec<Acquired>,
    ) -> i64 {
        let leased = self.inner.leased();
        let Some(line) = self.in_line(leased, options.fetch_offset) else {
            return 0;
        };
        let room = self.inner.config().max_inflight - leased;
        let Some(tail) = batches.last() else {
            return 0;
        };
        let budget = options.max_fetch_records.min(room).min(line.records);
        options.record_limit |= self.rules.order != Order::None;
        if budget <= 0 {
            return 0;
        }
        if self.admission.is_some() {
            options.max_fetch_records = budget;
            if self.passes_over(options.fetch_offset) {
                return 0;
            }
            let from = options.fetch_offset;
            self.line_up_for(budget, from, tail.last.min(line.last));
            let lined_up = self.inner.lined_up();
            let before = out.len();
            let inner = &mut self.inner;
            let taken = inner.acquire_ready(now_ms, member, batches, options, line.last, out);
            debug_assert!(taken <= budget, "more than there is room for");
            if let Some(taken) = out[before..].last() {
                self.round = taken.last + 1;
            }
            self.key_acquired(from, batches, &out[before..]);
            if batches.first().is_some_and(|head| head.first <= from) {
                // the others of these keys wait, and nothing else has changed
                self.inner.set_lined_up(lined_up);
            }
            self.came_out(&out[before..], now_ms);
            return taken;
        }
        let last = if self.may_admit(leased) {
            tail.last
        } else if options.fetch_offset <= self.inner.end_offset() {
            tail.last.min(self.inner.end_offset())
        } else {
            return 0;
        };
        let cap = (last.min(line.last), budget);
        let before = out.len();
        let inner = &mut self.inner;
        let taken = inner.acquire_within(now_ms, member, batches, options, cap, out);
        self.came_out(&out[before..], now_ms);
        taken
    }

    fn release(&mut self, member: &str) -> Option<Write<'_>> {
        let write = self.inner.release(member)?;
        let before = self.causes.insert(write.id, Cause::Session);
        debug_assert_eq!(before, None, "a write begins once");
        Some(write)
    }

    fn finish_archiving(&mut self, first: Offset, last: Offset) -> Option<Write<'_>> {
        let write = self.inner.finish_archiving(first, last)?;
        let before = self.causes.insert(write.id, Cause::Done);
        debug_assert_eq!(before, None, "a write begins once");
        Some(write)
    }

    fn wait_no_longer(&mut self, now_ms: i64, wall_ms: i64) {
        while let Some((due_ms, range)) = self.times.pop(now_ms) {
            self.inner.ready(range);
            if is_planted(Bug::TimePasses) {
                self.misplace(&[range], false);
                self.inner.put_in_front(range);
                continue;
            }
            self.key_changed(&[range]);
            self.came_up(range, due_ms);
        }
        self.come_up(now_ms, wall_ms);
    }

    fn advance(&mut self, now_ms: i64, wall_ms: i64) -> Option<Write<'_>> {
        self.wait_no_longer(now_ms, wall_ms);
        let admission = self.admission.as_mut();
        let expired = admission.map_or_else(Vec::new, |admission| admission.take_expired());
        let letters = self.rules.expired_letters;
        let write = self.inner.advance_and_expire(now_ms, &expired, letters)?;
        let Write {
            id,
            start_offset,
            delivery_complete_count,
            batches,
        } = write;
        let before = self.causes.insert(id, Cause::Done);
        debug_assert_eq!(before, None, "a write begins once");
        let (admits, has_keys) = (self.admission.is_some(), self.keys.is_some());
        let freed = ranges(batches, |state| state == RecordState::Available);
        let settled = ranges(batches, |state| admits && state != RecordState::Available);
        let changed = ranges(batches, |_| has_keys);
        self.forget_late(&settled);
        self.take_back(&freed, now_ms, self.rules.backoff.on_timeout);
        self.key_changed(&changed);
        for range in expired {
            self.key_lost(range);
        }
        let batches = self.inner.write_batches(id).unwrap_or_default();
        Some(Write {
            id,
            start_offset,
            delivery_complete_count,
            batches,
        })
    }

    fn commit(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        let batches = self.inner.write_batches(write_id)?;
        // expiry is known only of admitted records, and changes matter only to keys
        let (admits, has_keys) = (self.admission.is_some(), self.keys.is_some());
        let freed = ranges(batches, |state| state == RecordState::Available);
        let settled = ranges(batches, |state| admits && state != RecordState::Available);
        let changed = ranges(batches, |_| has_keys);
        self.inner.commit(write_id)?;
        self.forget_late(&settled);
        let waits = match self.causes.remove(&write_id) {
            None => self.rules.backoff.on_release,
            Some(Cause::Session) => false,
            Some(Cause::Done) => return Ok(()),
        };
        self.take_back(&freed, now_ms, waits);
        if is_planted(Bug::ReleasedLast) {
            self.misplace(&freed, true);
        }
        self.key_changed(&changed);
        Ok(())
    }

    fn rollback(&mut self, write_id: u64, now_ms: i64) -> Result<(), Refusal> {
        let begun = ranges(self.inner.write_batches(write_id)?, |_| true);
        self.inner.rollback(write_id, now_ms)?;
        if self.causes.remove(&write_id) != Some(Cause::Done) {
            self.take_back(&begun, now_ms, self.rules.backoff.on_timeout);
        }
        if is_planted(Bug::RollbackFrees) {
            self.misplace(&begun, false);
        }
        self.key_changed(&begun);
        Ok(())
    }

    /// Some records of a member are available again: apply their back-off, and wait for admission if need be.
    fn take_back(&mut self, ranges: &[OffsetRange], now_ms: i64, waits: bool) {
        for range in ranges {
            if let Some(admission) = &self.admission {
                let unseen = OffsetRange::new(range.first.max(admission.scanned()), range.last);
                if waits {
                    self.hold_back(*range, now_ms);
                }
                self.delay_again(*range);
                if !unseen.is_empty() {
                    self.inner.wait(unseen);
                }
                self.expire_late(*range);
            } else if waits {
                self.hold_back(*range, now_ms);
            }
        }
    }

    /// Starts the back-off of released records in `range`.
    fn hold_back(&mut self, range: OffsetRange, now_ms: i64) {
        for (piece, delivery_count) in self.inner.available_in(range) {
            if delivery_count == 0 {
                continue; // loaded, never delivered
            }
            let wait_ms = self.rules.backoff.wait_ms(piece.first, delivery_count);
            if wait_ms == 0 {
                continue;
            }
            self.inner.wait(piece);
            let due_ms = now_ms.saturating_add(wait_ms);
            debug_assert!(!piece.is_empty() && due_ms >= now_ms, "an empty wait");
            let Some(admission) = &mut self.admission else {
                self.times.push(due_ms, piece);
                continue;
            };
            let scanned = admission.scanned();
            let unseen = OffsetRange::new(piece.first.max(scanned), piece.last);
            if !unseen.is_empty() {
                admission.carry(unseen, due_ms);
            }
            let seen = OffsetRange::new(piece.first, piece.last.min(scanned - 1));
            if !seen.is_empty() {
                for rest in admission.back_off(seen, due_ms) {
                    self.times.push(due_ms, rest);
                }
            }
        }
    }

    fn let_all_go(&mut self) {
        self.end_keys();
        let waiting: Vec<_> = self.inner.waiting().collect();
        for range in waiting {
            self.inner.ready(range);
        }
        self.times = Times::default();
        self.admission = None;
        self.lateness.follow_none();
        assert!(self.keys.is_none(), "keys are known of what is looked at");
    }

    fn check(&self) -> Result<(), String> {
        self.check_keys()?;
        let admission = self.admission.as_deref();
        let delayed = admission.into_iter().flat_map(Admission::delayed);
        let mut known: Vec<_> = self.times.iter().chain(delayed).collect();
        if let Some(admission) = admission {
            let scanned = admission.scanned().max(self.inner.start_offset());
            known.push(OffsetRange::new(scanned, Offset::MAX - 1));
            if let Some(ready) = self.inner.first_ready_from(scanned) {
                return Err(format!(
                    "offset {ready} can be acquired and was not looked at"
                ));
            }
        }
        known.sort_by_key(|range| range.first);
        for range in self.inner.waiting() {
            let mut unknown = range.first;
            for each in &known {
                if each.first <= unknown && unknown <= each.last {
                    unknown = each.last + 1;
                }
            }
            if unknown <= range.last {
                return Err(format!("offset {unknown} waits for no time"));
            }
        }
        Ok(())
    }
}

/// The ranges of a write whose new state is `wanted`.
fn ranges(batches: &[StateBatch], wanted: impl Fn(RecordState) -> bool) -> Vec<OffsetRange> {
    let batches = batches.iter().filter(|batch| wanted(batch.state));
    batches
        .map(|batch| OffsetRange::new(batch.first, batch.last))
        .collect()
}
