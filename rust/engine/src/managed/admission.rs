//! Admission: records whose headers or age decide when they may be delivered are examined before they can be acquired.
//!
//! The log is read forward; records that were examined are available or wait. Nothing beyond can be acquired. A loaded
//! partition examines its window again: delivery times and expiry are in the records and are not persisted.

use std::collections::BTreeMap;

use super::held::Held;
use super::overlaps::take_overlaps;
use super::rules::Spec;
use super::times::Times;
use super::{Bug, Managed, is_planted};
use crate::offset::{Offset, OffsetRange};

/// Expiry times kept before ranges of finished records are dropped from them.
const EXPIRIES_MIN: usize = 1024;

/// When a record may be delivered. Applies to the offsets up to the next entry too, as these hold no records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The record's offset.
    pub offset: Offset,
    /// Earliest delivery, in milliseconds since the epoch; [`Entry::AT_ONCE`] without a delivery time.
    pub not_before_ms: i64,
    /// Expiry, in milliseconds since the epoch; [`Entry::NEVER`] if the record does not expire.
    pub expires_ms: i64,
    /// Digest of its key; 0 without a key, and so without an order.
    pub digest: u64,
}

impl Entry {
    /// A record without a delivery time.
    pub const AT_ONCE: i64 = i64::MIN;
    /// A record that does not expire.
    pub const NEVER: i64 = i64::MAX;

    /// Whether both records have the same times and key.
    pub fn is_alike(&self, other: &Self) -> bool {
        let said = |entry: &Self| (entry.not_before_ms, entry.expires_ms, entry.digest);
        said(self) == said(other)
    }
}

/// The examined part of the log, and its pending deliveries and expiries.
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// Everything before it has been examined.
    scanned: Offset,
    /// Last offset and end of back-off, by first offset, of records not examined yet or waiting for their delivery
    /// time.
    carried: BTreeMap<Offset, (Offset, i64)>,
    deliveries: Times,
    held: Held,
    expiries: Times,
    /// If `expiries` has more ranges, those of finished records are dropped: a long time to live would keep them all.
    expiries_max: usize,
    /// Last offsets, by first offset, of records that expired while acquired.
    late: BTreeMap<Offset, Offset>,
    /// Expired records that the next `advance` archives; they cannot be acquired.
    expired: Vec<OffsetRange>,
}

impl Admission {
    pub(super) fn scanned(&self) -> Offset {
        self.scanned
    }

    pub(super) fn carry(&mut self, range: OffsetRange, due_ms: i64) {
        debug_assert!(!range.is_empty(), "nothing waits");
        self.carried.insert(range.first, (range.last, due_ms));
    }

    /// Lets returned records wait for their delivery time, and for the end of their back-off. Returns the ranges that
    /// have a delivery time to wait for.
    fn delay(&mut self, range: OffsetRange, due_ms: Option<i64>) -> Vec<OffsetRange> {
        let delayed = self.held.take(range);
        for (piece, at_ms) in &delayed {
            self.deliveries.push(*at_ms, *piece);
            if let Some(due_ms) = due_ms {
                self.carry(*piece, due_ms);
            }
        }
        delayed.into_iter().map(|(piece, _)| piece).collect()
    }

    /// Lets returned records wait until `due_ms`; those with a delivery time wait for that first. Returns the others.
    pub(super) fn back_off(&mut self, range: OffsetRange, due_ms: i64) -> Vec<OffsetRange> {
        let (mut rest, mut first) = (Vec::new(), range.first);
        for delayed in self.delay(range, Some(due_ms)) {
            rest.push(OffsetRange::new(first, delayed.first - 1));
            first = delayed.last + 1;
        }
        rest.push(OffsetRange::new(first, range.last));
        rest.retain(|piece| !piece.is_empty());
        rest
    }

    pub(super) fn take_carried(&mut self) -> BTreeMap<Offset, (Offset, i64)> {
        std::mem::take(&mut self.carried)
    }

    pub(super) fn take_expired(&mut self) -> Vec<OffsetRange> {
        std::mem::take(&mut self.expired)
    }

    pub(super) fn next_wall_ms(&self) -> Option<i64> {
        if self.expired.is_empty() {
            let times = [self.deliveries.next_ms(), self.expiries.next_ms()];
            times.into_iter().flatten().min()
        } else {
            Some(i64::MIN)
        }
    }

    /// How many records wait for their delivery time.
    pub(super) fn next_delivery_ms(&self) -> Option<i64> {
        self.deliveries.next_ms()
    }

    pub(super) fn delayed_records(&self) -> i64 {
        self.deliveries.records()
    }

    /// The next delivery times of examined records.
    pub(super) fn delayed(&self) -> impl Iterator<Item = OffsetRange> + '_ {
        self.deliveries.iter().chain(self.expired.iter().copied())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let mapped = self.carried.len() * size_of::<(Offset, (Offset, i64))>()
            + self.held.memory_bytes()
            + self.late.len() * size_of::<(Offset, Offset)>();
        size_of::<Self>()
            + mapped
            + self.deliveries.memory_bytes()
            + self.expiries.memory_bytes()
            + self.expired.capacity() * size_of::<OffsetRange>()
    }
}

/// Neighbors taken in whose changes to the map are still to be made: one change is for all of them.
#[derive(Default)]
struct Taken {
    /// Records with a key: they wait for earlier ones.
    behind: Option<OffsetRange>,
    /// Records whose time has come.
    coming: Option<OffsetRange>,
}

/// Extends a range by `piece`; if they are not neighbors, `piece` replaces it, and it is returned.
pub(super) fn extended(range: &mut Option<OffsetRange>, piece: OffsetRange) -> Option<OffsetRange> {
    debug_assert!(!piece.is_empty(), "no record is taken in");
    match range {
        Some(before) if before.last + 1 == piece.first => {
            before.last = piece.last;
            None
        }
        _ => range.replace(piece),
    }
}

impl Managed {
    /// Restarts the examination of the window: no record can be acquired before it is examined.
    pub(super) fn begin_admission(&mut self) {
        let start = self.inner.start_offset();
        let mut admission = Admission {
            scanned: start,
            ..Admission::default()
        };
        if let Some(before) = &mut self.admission {
            admission.carried = before.take_carried();
        }
        for (due_ms, range) in self.times.drain() {
            admission.carry(range, due_ms);
        }
        let window = OffsetRange::new(start, self.inner.end_offset());
        if !is_planted(Bug::LoadedReady) {
            self.inner.wait(window);
        }
        admission.scanned = self.inner.unsettled_from(start);
        assert!(
            admission.scanned >= start,
            "offsets below are not looked at"
        );
        debug_assert!(
            self.inner.first_ready().is_none() || is_planted(Bug::LoadedReady),
            "all is looked at anew"
        );
        self.admission = Some(Box::new(admission));
        self.lateness.follow_none();
        self.begin_keys();
    }

    /// Ends examination: from now on records wait only for back-offs.
    pub(super) fn end_admission(&mut self) {
        let Some(mut admission) = self.admission.take() else {
            return;
        };
        self.end_keys();
        let waiting: Vec<_> = self.inner.waiting().collect();
        for range in waiting {
            self.inner.ready(range);
        }
        let carried = admission.take_carried().into_iter();
        let carried = carried.map(|(first, (last, due))| (due, OffsetRange::new(first, last)));
        let backoffs: Vec<_> = self.times.drain().chain(carried).collect();
        for (due_ms, range) in backoffs {
            self.inner.wait(range);
            self.times.push(due_ms, range);
        }
        assert!(self.keys.is_none(), "keys are known of what is looked at");
    }

    /// Where to read the log for records to examine, and how many offsets fit.
    pub(super) fn next_admission(&self) -> Option<(Offset, i64)> {
        let admission = self.admission.as_ref()?;
        let next = admission.scanned.max(self.inner.start_offset());
        let leased = self.inner.leased();
        if self.is_settling(leased) {
            return None;
        }
        let room = (self.rules.max_waiting - self.units(leased)).max(1);
        // offsets already in the window take no more room
        let known = (self.inner.end_offset() - next + 1).max(0);
        let is_known = known > 0 && self.inner.runs() > 0;
        (is_known || self.may_admit(leased)).then(|| (next, room.max(known)))
    }

    /// Admits record batches read from the log from `from`, with the times from their headers and ages. Returns false
    /// if they do not continue the examined part, or if `spec` has changed.
    pub(super) fn admit(
        &mut self,
        (now_ms, wall_ms): (i64, i64),
        spec: &Spec,
        from: Offset,
        batches: &[OffsetRange],
        entries: &[Entry],
        batch_size: i64,
    ) -> bool {
        let (Some(head), Some(tail)) = (batches.first(), batches.last()) else {
            return false;
        };
        let next = self.next_admission().map(|(next, _)| next);
        let follows = next.is_some_and(|next| from <= next && next <= tail.last);
        if !follows || self.rules.spec.as_deref() != Some(spec) || head.first < 0 {
            return false;
        }
        self.keys_are_settled();
        if from < head.first {
            self.inner.pass_hole(from, head.first - 1);
            self.key_lost(OffsetRange::new(from, head.first - 1));
        }
        let is_new = self.inner.end_offset() < head.first || self.inner.runs() == 0;
        self.inner.admit(batches, batch_size);
        let range = OffsetRange::new(
            head.first
                .max(next.unwrap_or(0))
                .max(self.inner.start_offset()),
            tail.last,
        );
        let mut at = entries;
        let mut touched = Vec::new();
        let mut taken = Taken::default();
        let mut first = range.first;
        while first <= range.last {
            let alike = at.split_first().map_or(0, |(entry, rest)| {
                1 + rest
                    .iter()
                    .take_while(|other| entry.is_alike(other))
                    .count()
            });
            let (these, rest) = at.split_at(alike);
            let last = rest.first().map_or(range.last, |next| next.offset - 1);
            at = rest;
            let stretch = OffsetRange::new(first, last.min(range.last));
            if stretch.is_empty() {
                continue;
            }
            first = stretch.last + 1;
            debug_assert!(stretch.last <= range.last, "behind what was read");
            let entry = these.first().copied().unwrap_or(Entry {
                offset: stretch.first,
                not_before_ms: Entry::AT_ONCE,
                expires_ms: Entry::NEVER,
                digest: 0,
            });
            let has_others = self.take_in((now_ms, wall_ms), stretch, entry, is_new, &mut taken);
            // whoever is behind others of its key waits for them
            if entry.digest != 0 && (!has_others || !is_new) {
                touched.push(entry.digest);
            }
        }
        self.take_in_rest(&taken, now_ms);
        let scanned = self.inner.unsettled_from(range.last + 1);
        if let Some(admission) = &mut self.admission {
            debug_assert!(admission.scanned <= scanned, "it goes forward");
            admission.scanned = scanned;
            if admission.expiries.len() > admission.expiries_max {
                let inner = &self.inner;
                admission.expiries.retain(|range| !inner.is_settled(range));
                admission.expiries_max = (2 * admission.expiries.len()).max(EXPIRIES_MIN);
            }
        }
        self.keys_touched(touched);
        true
    }

    /// Admits neighboring records with the same times: available, or waiting. Returns whether they are behind others of
    /// their key.
    fn take_in(
        &mut self,
        times: (i64, i64),
        stretch: OffsetRange,
        entry: Entry,
        is_new: bool,
        taken: &mut Taken,
    ) -> bool {
        if is_new {
            return self.take_in_piece(times, (stretch, false), entry, taken);
        }
        let mut has_others = false;
        for piece in self.inner.unsettled_in(stretch) {
            has_others |= self.take_in_piece(times, piece, entry, taken);
        }
        has_others
    }

    fn take_in_piece(
        &mut self,
        (now_ms, wall_ms): (i64, i64),
        (piece, is_leased): (OffsetRange, bool),
        entry: Entry,
        taken: &mut Taken,
    ) -> bool {
        let has_key = entry.digest != 0 && self.keys.is_some();
        let has_others = has_key && self.key_known(entry.digest, piece);
        if has_key && let Some(before) = extended(&mut taken.behind, piece) {
            self.inner.put_behind(before);
        }
        let Some(admission) = &mut self.admission else {
            return has_others;
        };
        if entry.expires_ms <= wall_ms {
            self.expire(piece);
            return has_others;
        }
        if entry.expires_ms < Entry::NEVER {
            admission.expiries.push(entry.expires_ms, piece);
        }
        if is_leased {
            if entry.not_before_ms > wall_ms {
                admission.held.insert(piece, entry.not_before_ms);
            }
            return has_others;
        }
        if entry.not_before_ms > wall_ms {
            admission.deliveries.push(entry.not_before_ms, piece);
        } else if let Some(before) = extended(&mut taken.coming, piece) {
            self.let_come(before, now_ms);
        }
        has_others
    }

    /// Updates the map for the last records that were taken in.
    fn take_in_rest(&mut self, taken: &Taken, now_ms: i64) {
        if let Some(range) = taken.behind {
            self.inner.put_behind(range);
        }
        if let Some(range) = taken.coming {
            self.let_come(range, now_ms);
        }
    }

    /// Makes examined records acquirable, once their back-off is over.
    fn let_come(&mut self, range: OffsetRange, now_ms: i64) {
        let Some(admission) = &mut self.admission else {
            return;
        };
        let mut first = range.first;
        if !admission.carried.is_empty() {
            let overlaps = take_overlaps(
                &mut admission.carried,
                range,
                |(last, _)| *last,
                |(_, due), last| (last, *due),
            );
            for (piece, (_, due_ms)) in overlaps {
                if due_ms > now_ms {
                    self.inner.ready(OffsetRange::new(first, piece.first - 1));
                    self.times.push(due_ms, piece);
                    first = piece.last + 1;
                }
            }
        }
        self.inner.ready(OffsetRange::new(first, range.last));
    }

    /// Expires records: they wait for the next `advance`, or for the member that holds them.
    fn expire(&mut self, range: OffsetRange) {
        let unsettled = self.inner.unsettled_in(range);
        let Some(admission) = &mut self.admission else {
            return;
        };
        for (piece, is_leased) in unsettled {
            if is_leased {
                admission.late.insert(piece.first, piece.last);
            } else {
                self.inner.wait(piece);
                admission.expired.push(piece);
            }
        }
    }

    /// Lets returned records wait for their delivery time, if members acquired them before it was known.
    pub(super) fn delay_again(&mut self, range: OffsetRange) {
        if self
            .admission
            .as_ref()
            .is_none_or(|admission| admission.held.is_empty())
        {
            return;
        }
        for (piece, _) in self.inner.available_in(range) {
            let admission = self.admission.as_mut();
            for delayed in admission.map_or_else(Vec::new, |admission| admission.delay(piece, None))
            {
                self.inner.wait(delayed);
            }
        }
    }

    /// Expires returned records whose time to live ended while a member held them.
    pub(super) fn expire_late(&mut self, range: OffsetRange) {
        let Some(admission) = &mut self.admission else {
            return;
        };
        if admission.late.is_empty() {
            return;
        }
        let start = self.inner.start_offset();
        while let Some(first) = admission.late.first_entry()
            && *first.get() < start
        {
            first.remove();
        }
        let late = take_overlaps(&mut admission.late, range, |last| *last, |_, last| last);
        for (piece, _) in late {
            self.expire(piece);
        }
    }

    /// Drops finished records from those that expired while acquired, or have a delivery time.
    pub(super) fn forget_late(&mut self, settled: &[OffsetRange]) {
        let Some(admission) = &mut self.admission else {
            return;
        };
        for range in settled {
            take_overlaps(&mut admission.late, *range, |last| *last, |_, last| last);
            admission.held.take(*range);
        }
    }

    /// Applies the delivery times and expiries that are due.
    pub(super) fn come_up(&mut self, now_ms: i64, wall_ms: i64) {
        if let Some(admission) = &mut self.admission {
            admission.held.come_up(wall_ms);
        }
        while let Some(admission) = &mut self.admission
            && let Some((due_ms, range)) = admission.deliveries.pop(wall_ms)
        {
            self.let_come(range, now_ms);
            if is_planted(Bug::TimePasses) {
                self.misplace(&[range], false);
                self.inner.put_in_front(range);
                continue;
            }
            self.key_changed(&[range]);
            let late_ms = wall_ms.saturating_sub(due_ms);
            self.came_up(range, now_ms.saturating_sub(late_ms));
        }
        while let Some(admission) = &mut self.admission
            && let Some((_, range)) = admission.expiries.pop(wall_ms)
        {
            self.expire(range);
            self.key_changed(&[range]);
        }
        let Some(admission) = &self.admission else {
            return;
        };
        for range in &admission.expired {
            self.inner.wait(*range);
        }
        if self.keys.is_some() && !admission.expired.is_empty() {
            let expired = admission.expired.clone();
            self.key_changed(&expired);
        }
    }
}
