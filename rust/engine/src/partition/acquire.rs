//! Acquire: which of the offsets read from the log a member gets (KIP-932, "Fetching and acknowledging records").

use super::Partition;
use super::lease::Leases;
use super::member::MemberId;
use super::pace::{Pace, is_last_attempt, share, slow_from};
use crate::inflight::{Cell, Cursor, LeaseId, Run};
use crate::offset::{OFFSET_MAX, Offset, OffsetRange, after, before};

/// Limits of a fetch.
#[derive(Clone, Copy, Debug)]
pub struct AcquireOptions {
    /// The offset of the read.
    pub fetch_offset: Offset,
    /// How many records the member wants; whole record batches are returned, so it may get more unless `record_limit`.
    pub max_fetch_records: i64,
    /// Newly acquired records start another batch after this many offsets, at the next record-batch boundary.
    pub batch_size: i64,
    /// Whether `max_fetch_records` is strict (`share.acquire.mode=record_limit`).
    pub record_limit: bool,
}

/// Offsets acquired by a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acquired {
    /// First offset.
    pub first: Offset,
    /// Last offset, included.
    pub last: Offset,
    /// How often they have been delivered, including this time.
    pub delivery_count: u16,
}

/// The protocol's delivery count is a signed 16-bit number.
const COUNT_MAX: u16 = i16::MAX as u16;

/// The most offsets of one acquire; fetches stay far below.
const SPAN_MAX: i64 = 1 << 40;

/// The number of offsets in `out`.
fn given(out: &[Acquired]) -> i64 {
    let ranges = out.iter();
    let ranges = ranges.map(|each| OffsetRange::new(each.first, each.last));
    ranges.map(OffsetRange::length).sum()
}

/// An acquire in progress.
pub(super) struct Request<'a> {
    pub(super) now_ms: i64,
    pub(super) deadline_ms: i64,
    pub(super) member: MemberId,
    /// The record batches read from the log.
    pub(super) batches: &'a [OffsetRange],
    pub(super) out: &'a mut Vec<Acquired>,
    pub(super) budget: i64,
    pub(super) taken: i64,
    pub(super) batch_size: i64,
    pub(super) record_limit: bool,
}

impl Request<'_> {
    /// The most records of a batch to acquire.
    fn limit(&self) -> i64 {
        if self.record_limit {
            self.budget
        } else {
            i64::MAX
        }
    }

    /// Leases available records again. Returns their cell.
    fn lease_again(&mut self, leases: &mut Leases, piece: OffsetRange, cell: Cell) -> Cell {
        debug_assert_eq!(
            cell.lease(),
            LeaseId::NONE,
            "available records have no owner"
        );
        debug_assert!(cell.is_available(), "what cannot be acquired");
        debug_assert!(
            cell.delivery_count() <= COUNT_MAX,
            "more than a delivery count holds"
        );
        let delivery_count = (cell.delivery_count() + 1).min(COUNT_MAX);
        let lease = leases.open(self.member, piece, self.now_ms, self.deadline_ms);
        self.out.push(Acquired {
            first: piece.first,
            last: piece.last,
            delivery_count,
        });
        Cell::acquired(delivery_count, lease)
    }
}

impl Partition {
    /// Acquires the available offsets of the record batches read from the log; pushes them to `out` in order. Returns
    /// how many there are.
    ///
    /// `batches` must be ascending and must not overlap. A batch of `out` never crosses the boundary of the batch in
    /// which its records were first acquired.
    pub fn acquire(
        &mut self,
        now_ms: i64,
        member: &str,
        batches: &[OffsetRange],
        options: AcquireOptions,
        out: &mut Vec<Acquired>,
    ) -> i64 {
        let (Some(_), Some(tail)) = (batches.first(), batches.last()) else {
            return 0;
        };
        match self.cap(options.fetch_offset, options.max_fetch_records, tail.last) {
            Some(cap) => self.acquire_within(now_ms, member, batches, options, cap, out),
            None => 0,
        }
    }

    /// As [`acquire`](Self::acquire), up to the last offset and record count of `cap`.
    #[allow(
        clippy::inline_always,
        reason = "passing this many arguments costs the hottest call 30 instructions"
    )]
    #[inline(always)]
    pub(crate) fn acquire_within(
        &mut self,
        now_ms: i64,
        member: &str,
        batches: &[OffsetRange],
        options: AcquireOptions,
        (last, budget): (Offset, i64),
        out: &mut Vec<Acquired>,
    ) -> i64 {
        let (Some(head), Some(tail)) = (batches.first(), batches.last()) else {
            return 0;
        };
        if tail.last < self.start || head.first < 0 || tail.last > OFFSET_MAX {
            return 0;
        }
        let last = last.min(head.first.saturating_add(SPAN_MAX));
        if options.fetch_offset < head.first {
            // compaction: offsets between the two are gone from the log and will never be delivered
            self.archive_available(OffsetRange::new(options.fetch_offset, head.first - 1));
        }
        if last < head.first.max(self.start) {
            return 0;
        }
        let before = out.len();
        let mut request = Request {
            now_ms,
            deadline_ms: now_ms.saturating_add(self.config.lock_ms),
            member: self.leases.intern(member),
            batches,
            out,
            budget,
            taken: 0,
            batch_size: options.batch_size,
            record_limit: options.record_limit,
        };
        let range = OffsetRange::new(head.first, last);
        if self.unread_from().is_some() {
            let range = OffsetRange::new(head.first.max(self.start), last);
            self.acquire_unread(&mut request, range);
        } else {
            self.acquire_known(&mut request, range);
        }
        debug_assert_eq!(
            request.taken,
            given(&request.out[before..]),
            "other offsets are leased than are returned"
        );
        debug_assert!(
            request.out[before..].is_sorted_by(|a, b| a.last < b.first),
            "what is given is in order"
        );
        debug_assert!(
            !request.record_limit || request.taken <= budget.max(0),
            "more than an exact number of records"
        );
        self.assert_window();
        request.taken
    }

    /// The last offset and the number of records that a fetch may acquire: at the in-flight limit, only offsets already
    /// in flight.
    fn cap(&self, fetch_offset: Offset, wanted: i64, last: Offset) -> Option<(Offset, i64)> {
        if wanted <= 0 {
            return None;
        }
        let room = self.config.max_inflight - self.in_flight();
        if room > 0 {
            debug_assert!(wanted.min(room) > 0);
            return Some((last, wanted.min(room)));
        }
        (fetch_offset <= self.end).then(|| {
            (
                self.end.min(last),
                wanted.min(self.end.saturating_sub(fetch_offset).saturating_add(1)),
            )
        })
    }

    /// As [`acquire_within`](Self::acquire_within), but only offsets already in flight.
    pub(super) fn acquire_known_within(
        &mut self,
        now_ms: i64,
        member: &str,
        batches: &[OffsetRange],
        options: AcquireOptions,
        (last, budget): (Offset, i64),
        out: &mut Vec<Acquired>,
    ) -> i64 {
        let (Some(head), Some(tail)) = (batches.first(), batches.last()) else {
            return 0;
        };
        if tail.last < self.start || head.first < 0 || budget <= 0 {
            return 0;
        }
        if options.fetch_offset < head.first {
            self.archive_available(OffsetRange::new(options.fetch_offset, head.first - 1));
        }
        let range = OffsetRange::new(head.first.max(self.start), last);
        if range.is_empty() {
            return 0;
        }
        let (before, end) = (out.len(), self.end);
        let mut request = Request {
            now_ms,
            deadline_ms: now_ms.saturating_add(self.config.lock_ms),
            member: self.leases.intern(member),
            batches,
            out,
            budget,
            taken: 0,
            batch_size: options.batch_size,
            record_limit: options.record_limit,
        };
        self.acquire_available(&mut request, range);
        debug_assert_eq!(
            request.taken,
            given(&request.out[before..]),
            "other offsets are leased than are returned"
        );
        debug_assert_eq!(self.end, end, "nothing new comes into the window");
        request.taken
    }

    /// Acquires the available offsets in `range`, then those after everything in flight.
    fn acquire_known(&mut self, request: &mut Request<'_>, range: OffsetRange) {
        self.acquire_available(request, range);
        if request.budget > 0 {
            let known = self.last_known(range).unwrap_or(range.first - 1);
            if known < range.last {
                self.acquire_new(request, OffsetRange::new(known + 1, range.last));
            }
        }
    }

    /// Acquires the available offsets in `range`.
    #[allow(clippy::inline_always, reason = "the hottest call runs through it")]
    #[inline(always)]
    fn acquire_available(&mut self, request: &mut Request<'_>, range: OffsetRange) {
        // a fetch begins at an available offset, usually the first
        let mut next = self.map.first_available();
        if let Some(run) = next.and_then(|at| self.map.get(at))
            && run.last < range.first
        {
            next = self.map.next_available(self.map.seek(range.first));
        }
        while let Some(at) = next
            && let Some(run) = self.map.get(at)
            && run.first <= range.last
        {
            let first = run.first.max(range.first);
            let range = OffsetRange::new(first, range.last);
            let last = self.acquire_again(request, at, run, range);
            if request.budget <= 0 || last == range.last {
                break;
            }
            next = self.map.next_available(self.map.seek_near(last + 1));
        }
    }

    /// The last offset in `range` that is in flight.
    fn last_known(&self, range: OffsetRange) -> Option<Offset> {
        let last = self.map.last_offset()?;
        if last <= range.last {
            return (last >= range.first).then_some(last);
        }
        let at = self.map.seek(range.last);
        if self.map.get(at).is_some_and(|run| run.first <= range.last) {
            return Some(range.last);
        }
        let before = self.map.get(self.map.prev(at)?)?;
        (before.last >= range.first).then_some(before.last)
    }

    /// As [`acquire_known`](Self::acquire_known), but gaps in the loaded state may hold records: they are acquired too.
    fn acquire_unread(&mut self, request: &mut Request<'_>, range: OffsetRange) {
        if self.last_known(range).is_none() {
            self.acquire_new(request, range);
            return;
        }
        let mut unread = range.first;
        let mut at = self.map.seek(unread);
        while request.budget > 0
            && let Some(mut run) = self.map.get(at)
            && run.first <= range.last
        {
            let batch = self.map.batch(at);
            if self.unread_from().is_some() && unread < batch.first {
                self.acquire_new(request, OffsetRange::new(unread, batch.first - 1));
                at = self.map.seek(batch.first.max(range.first));
                run = self.map.get(at).expect("what was in flight still is");
            }
            if request.budget > 0 {
                self.acquire_again(request, at, run, batch.clip(range));
            }
            unread = batch.last + 1;
            at = self.map.seek(unread);
        }
        if request.budget > 0 && unread <= range.last {
            self.acquire_new(request, OffsetRange::new(unread, range.last));
        }
        if request.taken > 0 {
            let last = request
                .out
                .last()
                .map_or(range.last, |acquired| acquired.last);
            self.read_up_to(last + 1);
        }
    }

    /// Acquires the available offsets in `range` of the batch of `run`, which is at `at`. Returns the last offset
    /// examined.
    fn acquire_again(
        &mut self,
        request: &mut Request<'_>,
        at: Cursor,
        run: Run,
        range: OffsetRange,
    ) -> Offset {
        if request.taken == 0 && self.acquire_slow(request, at, run, range) {
            return range.last;
        }
        let (range, batch_last, slow) = self.survey(at, range);
        if slow && request.taken > 0 {
            request.budget = 0;
            return range.last;
        }
        let mut limit = request.limit();
        let mut pace = slow.then(|| {
            let batch = OffsetRange::new(self.map.batch_first(at), batch_last);
            Pace::new(self.config.max_delivery_count, batch.count())
        });
        let mut taken = 0;
        let Self { map, leases, .. } = self;
        let stopped = map.rewrite_from(at, range, |piece, cell| {
            if !cell.is_available() {
                return Ok(cell);
            }
            if let Some(pace) = &mut pace {
                limit = limit.min(pace.limit(cell.delivery_count(), taken));
            }
            if taken >= limit {
                return Err(());
            }
            piece.last = piece
                .last
                .min(piece.first.saturating_add(limit - taken - 1));
            taken += piece.length();
            Ok(request.lease_again(leases, *piece, cell))
        });
        debug_assert!(stopped.is_ok() || taken >= limit);
        debug_assert!(
            0 <= taken && taken <= limit.max(0),
            "more than may be given"
        );
        request.taken += taken;
        request.budget = if slow { 0 } else { request.budget - taken };
        range.last
    }

    /// Acquires the first records of `range` if they are near their delivery limit and `run`, at `at`, has as many as a
    /// fetch then gets: the rest of their batch need not be examined. Returns whether this applied.
    fn acquire_slow(
        &mut self,
        request: &mut Request<'_>,
        at: Cursor,
        run: Run,
        range: OffsetRange,
    ) -> bool {
        let max_delivery_count = self.config.max_delivery_count;
        let count = run.cell().delivery_count();
        if !run.cell().is_available() | (count < slow_from(max_delivery_count)) {
            return false;
        }
        let share = if is_last_attempt(max_delivery_count, count) {
            1
        } else {
            share(max_delivery_count, count, self.map.batch(at).count())
        };
        let piece = OffsetRange::new(
            range.first,
            before(range.first.saturating_add(share.min(request.limit()))),
        );
        if run.range().clip(range).last < piece.last {
            return false;
        }
        debug_assert_eq!(request.taken, 0, "a slow record comes first, or not");
        let cell = request.lease_again(&mut self.leases, piece, run.cell());
        self.map.set_apart(at, piece, cell);
        request.taken = piece.length();
        request.budget = 0;
        true
    }

    /// Whether the next records of a fetch from `offset` are near their delivery limit, or share a batch with such
    /// records: a fetch that already has records leaves them, and one that begins with them goes no further.
    pub fn is_slow(&self, offset: Offset) -> bool {
        let at = self.map.seek(offset);
        self.map.get(at).is_some_and(|run| {
            run.first <= offset && self.survey(at, OffsetRange::new(offset, Offset::MAX - 1)).2
        })
    }

    /// How much of `range` belongs to the batch of the run at `at`, where that batch ends, and whether an available
    /// record of it in `range` is near its delivery limit. The end of a batch that extends beyond `range` is computed
    /// only in that case.
    fn survey(&self, at: Cursor, range: OffsetRange) -> (OffsetRange, Offset, bool) {
        let slow_from = slow_from(self.config.max_delivery_count);
        let mut slow = false;
        let mut last = before(range.first);
        self.map.walk(at, |run| {
            let begins = last < range.first;
            let past = run.first > range.last;
            if !begins && (run.opens_batch() || run.first != after(last)) || past && !slow {
                return false;
            }
            let cell = run.cell();
            slow |= !past & (cell.delivery_count() >= slow_from) & cell.is_available();
            last = run.last;
            true
        });
        (
            OffsetRange::new(range.first, last.min(range.last)),
            last,
            slow,
        )
    }
}
