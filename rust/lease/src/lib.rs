//! Reads the log of a share partition and acquires records.
//!
//! Each read starts at the engine's next fetch offset and ends with the requested records and those acquired together
//! with the last of them: redelivering old records does not read everything up to the newest. Records near their
//! delivery limit are delivered without others from further reads: in smaller groups, finally alone.
#![forbid(unsafe_code)]

mod aborted;
mod cached;
mod expanded;
mod holding;
mod indexed;
mod missing;
mod next;
mod survey;
mod thinned;

use std::ops::Range;

use sharecore_engine::{AcquireOptions, Acquired, OffsetRange, Spec};
use sharecore_guard::{Failed, Guarded};
use smallvec::SmallVec;

use crate::{
    aborted::{aborted_ranges, without},
    cached::take_cached,
    expanded::Rest,
    holding::holding,
    missing::missing,
    next::{Next, next},
    thinned::thinned,
};

pub use expanded::{ExpandedCache, LogCache, LogId};
pub use survey::{Survey, survey};

/// The most reads for one acquire.
const READS_MAX: usize = 8;
/// As [`READS_MAX`], if records come up here and there: each of them may need a read of its own.
const SCATTERED_READS_MAX: usize = 512;
/// The most records, and about the most bytes per record, examined in a read of records that are not due.
const ADMITTED_RECORDS: i64 = 10_000;
const ADMITTED_BYTES: i64 = 1 << 20;
/// After expanding this many bytes, other requests are served before more is examined.
const EXPANDED_BYTES: usize = 4 << 20;
/// A batch that would expand further is not read: its records count as having no headers, and it is sent as it is.
const EXPANDED_BYTES_MAX: usize = 16 << 20;

/// Record batches read from a log.
pub struct Part<B> {
    /// The batches, concatenated.
    pub bytes: B,
    /// The offsets of each batch, ascending.
    pub batches: SmallVec<[OffsetRange; 4]>,
}

/// A read of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// The first batch returned holds this offset or follows it.
    pub offset: i64,
    /// About how many bytes to return.
    pub max_bytes: i64,
    /// End with the batch that reaches this many offsets.
    pub max_records: i64,
    /// Whether to return one batch whatever its size.
    pub at_least_one: bool,
}

/// The log of a share partition.
pub trait Log {
    /// Record batches.
    type Bytes: AsRef<[u8]>;
    /// Why the log cannot be read.
    type Error;

    /// Whole batches before the end known to the caller; `None` if they are not in memory.
    fn read(&mut self, want: Want) -> Result<Option<Part<Self::Bytes>>, Self::Error>;

    /// Producer ID and first offset of aborted transactions that overlap these offsets; empty if the group reads
    /// uncommitted records.
    fn aborted(&mut self, offsets: OffsetRange) -> Result<Vec<(i64, i64)>, Self::Error>;

    /// The engine has acquired these records.
    fn leased(&mut self, acquired: &[Acquired]);
}

/// A member's fetch.
#[derive(Debug, Clone, Copy)]
pub struct AcquireRequest<'a> {
    /// The start of the locks.
    pub now_ms: i64,
    /// Milliseconds since the epoch; used only if records have delivery times.
    pub wall_ms: i64,
    /// The member that acquires the records.
    pub member: &'a str,
    /// The log's start offset.
    pub log_start: i64,
    /// Records from this offset are not delivered.
    pub end: i64,
    /// About how many bytes of record batches to return.
    pub max_bytes: i64,
    /// About how many records to acquire; strict with `record_limit`.
    pub max_records: i64,
    /// How many offsets of new records make a batch.
    pub batch_size: i64,
    /// Whether `max_records` is strict.
    pub record_limit: bool,
    /// Whether to return one record batch whatever its size.
    pub at_least_one: bool,
    /// If set, batches of which less than half is acquired (5/6 of the bytes without compression) are sent without the
    /// other records, and are cached here.
    pub log_cache: Option<LogCache<'a>>,
}

/// Why the read ended early.
#[derive(Debug)]
pub enum Stop<E> {
    /// The engine has failed.
    Engine(Failed),
    /// The log cannot be read.
    Log(E),
}

/// The acquired records.
pub struct Leased<B, E> {
    /// The bytes read, and the ranges of the batches that hold acquired records.
    pub parts: SmallVec<[(Source<B>, Ranges); 1]>,
    /// Total bytes of these batches.
    pub size: usize,
    /// Acquired offsets, ascending.
    pub acquired: Vec<Acquired>,
    /// The number of acquired records.
    pub total: i64,
    /// Bytes saved by leaving out records that were not acquired.
    pub thinned: usize,
    /// Whether records of aborted transactions, or offsets without records, were removed.
    pub archived: bool,
    /// The result of examining records before acquiring them, if any were.
    pub admitted: Option<Admitted>,
    /// Why the read ended early; the records above are acquired all the same.
    pub stopped: Option<Stop<E>>,
}

impl<B, E> Leased<B, E> {
    /// Adds acquired records, and the batches that hold them.
    fn put(&mut self, source: Source<B>, ranges: Ranges, acquired: Vec<Acquired>) {
        self.size += ranges.iter().map(Range::len).sum::<usize>();
        self.parts.push((source, ranges));
        let counts = acquired.iter().map(|each| each.last - each.first + 1);
        self.total += counts.sum::<i64>();
        self.acquired.extend(acquired);
    }
}

/// The bytes of a response's batches.
pub enum Source<B> {
    /// As read from the log.
    Read(B),
    /// Rewritten here.
    Anew(Vec<u8>),
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Source<B> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Read(bytes) => bytes.as_ref(),
            Self::Anew(bytes) => bytes,
        }
    }
}

/// The result of examining records before acquiring them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// Headers that are not valid numbers and are ignored.
    pub unreadable_headers: u64,
    /// Batches that cannot be expanded.
    pub unreadable_batches: u64,
    /// Whether more records are left to examine.
    pub goes_on: bool,
}

/// Byte ranges in a part.
pub type Ranges = SmallVec<[Range<usize>; 1]>;

/// Acquires records for a member. Records not in memory are left for another call.
pub fn lease<L: Log>(
    engine: &Guarded,
    log: &mut L,
    request: &AcquireRequest<'_>,
) -> Leased<L::Bytes, L::Error> {
    let mut leased = Leased {
        parts: SmallVec::new(),
        size: 0,
        acquired: Vec::new(),
        total: 0,
        thinned: 0,
        archived: false,
        admitted: None,
        stopped: None,
    };
    let mut place = Place {
        read_to: -1,
        slow: false,
        found_none: false,
        scattered: 0,
        expanded_bytes: 0,
        room: EXPANDED_BYTES,
    };
    let mut reads_left = READS_MAX;
    while reads_left > 0 {
        let before = place.scattered;
        match step(engine, log, request, &mut place, &mut leased) {
            Ok(true) => {
                if place.scattered == before || !place.may_scatter() {
                    reads_left -= 1;
                }
                if let Some(admitted) = &mut leased.admitted {
                    let is_over = reads_left == 0 || place.expanded_bytes >= EXPANDED_BYTES;
                    admitted.goes_on = is_over && place.found_none;
                    if admitted.goes_on {
                        break;
                    }
                }
            }
            Ok(false) => break,
            Err(stop) => {
                leased.stopped = Some(stop);
                break;
            }
        }
    }
    leased
}

/// The position of the next read.
struct Place {
    read_to: i64,
    slow: bool,
    /// Records were examined, and none was due.
    found_none: bool,
    /// How many reads were for examined records.
    scattered: usize,
    /// Bytes of examined records.
    expanded_bytes: usize,
    /// How many bytes may be expanded to leave out records that are not acquired.
    room: usize,
}

impl Place {
    /// Whether more reads for examined records are free.
    fn may_scatter(&self) -> bool {
        self.scattered < SCATTERED_READS_MAX && self.room > 0
    }
}

/// Reads once and adds the result; returns whether another read may add more.
fn step<L: Log>(
    engine: &Guarded,
    log: &mut L,
    request: &AcquireRequest<'_>,
    place: &mut Place,
    leased: &mut Leased<L::Bytes, L::Error>,
) -> Result<bool, Stop<L::Error>> {
    let left = request.max_records - leased.total;
    let size = leased.size as i64;
    if left <= 0 || (!leased.parts.is_empty() && size >= request.max_bytes) {
        return Ok(false);
    }
    let next = engine
        .with(|engine| next(engine, request, left, place.read_to))
        .map_err(Stop::Engine)?;
    let (offset, slow, reach) = match next {
        Next::Nothing => return Ok(false),
        Next::Known(offset, slow, reach) => (offset, slow, reach),
        Next::Examined(offset, slow, reach) => {
            place.scattered += 1;
            (offset, slow, reach)
        }
        Next::Unseen(spec, offset, room) => {
            return admit(engine, log, request, place, leased, (&spec, offset, room));
        }
    };
    let was_slow = std::mem::replace(&mut place.slow, slow);
    if !leased.acquired.is_empty() && (was_slow || slow) {
        return Ok(false);
    }
    let want = Want {
        offset,
        max_bytes: request.max_bytes - size,
        max_records: reach - offset + 1,
        at_least_one: request.at_least_one && leased.parts.is_empty(),
    };
    let options = AcquireOptions {
        fetch_offset: offset,
        max_fetch_records: left,
        batch_size: request.batch_size,
        record_limit: request.record_limit,
    };
    if let Some(read_to) = take_cached(engine, log, request, leased, (want, options))? {
        place.read_to = read_to;
        return Ok(true);
    }
    let part = log.read(want).map_err(Stop::Log)?;
    let Some(part) = part.filter(|part| !part.batches.is_empty()) else {
        return Ok(false);
    };
    let read = OffsetRange::new(part.batches[0].first, last_of(&part.batches));
    let aborted = log.aborted(read).map_err(Stop::Log)?;
    let mut more = Vec::new();
    engine
        .with(|engine| {
            if read.first > offset {
                engine.pass_hole(offset, read.first - 1);
            }
            engine.acquire(
                request.now_ms,
                request.member,
                &part.batches,
                options,
                &mut more,
            );
        })
        .map_err(Stop::Engine)?;
    log.leased(&more);
    place.read_to = read.last;
    keep(engine, request, part, (aborted, more), place, leased)?;
    Ok(true)
}

/// Reads records that have not been examined, and acquires those that are due.
fn admit<L: Log>(
    engine: &Guarded,
    log: &mut L,
    request: &AcquireRequest<'_>,
    place: &mut Place,
    leased: &mut Leased<L::Bytes, L::Error>,
    (spec, offset, room): (&Spec, i64, i64),
) -> Result<bool, Stop<L::Error>> {
    let left = request.max_records - leased.total;
    let size = leased.size as i64;
    // while records are due, only as much as requested: anything examined beyond that is read again
    let (max_records, max_bytes) = if place.found_none {
        (ADMITTED_RECORDS, ADMITTED_BYTES.max(request.max_bytes))
    } else {
        (left, request.max_bytes - size)
    };
    let want = Want {
        offset: offset.max(request.log_start),
        max_bytes,
        max_records: max_records.min(room),
        at_least_one: place.found_none || request.at_least_one && leased.parts.is_empty(),
    };
    let part = log.read(want).map_err(Stop::Log)?;
    let Some(part) = part.filter(|part| !part.batches.is_empty()) else {
        return Ok(false);
    };
    let read = OffsetRange::new(part.batches[0].first, last_of(&part.batches));
    let aborted = log.aborted(read).map_err(Stop::Log)?;
    let bytes = part.bytes.as_ref();
    let mut gone = aborted_ranges(bytes, &part.batches, aborted);
    gone.extend(missing(bytes, &part.batches));
    let survey = survey(bytes, spec, request.wall_ms);
    let options = AcquireOptions {
        fetch_offset: read.first,
        max_fetch_records: left,
        batch_size: request.batch_size,
        record_limit: true,
    };
    let mut more = Vec::new();
    let admitted = engine
        .with(|engine| {
            let times = (request.now_ms, request.wall_ms);
            let (batches, entries) = (&part.batches, &survey.entries);
            if !engine.admit(times, spec, offset, batches, entries, request.batch_size) {
                return false;
            }
            for range in &gone {
                engine.archive(range.first, range.last);
            }
            engine.line_up(left, read.last);
            let next = engine.next_ready_from(read.first);
            let is_slow = next.is_some_and(|next| engine.is_slow(next));
            if leased.acquired.is_empty() || !place.slow && !is_slow {
                engine.acquire(request.now_ms, request.member, batches, options, &mut more);
                place.slow = is_slow;
            }
            true
        })
        .map_err(Stop::Engine)?;
    if !admitted {
        return Ok(false);
    }
    let so_far = leased.admitted.get_or_insert_default();
    so_far.unreadable_headers += survey.unreadable_headers;
    so_far.unreadable_batches += survey.unreadable_batches;
    leased.archived |= !gone.is_empty();
    log.leased(&more);
    place.read_to = read.last;
    place.found_none = more.is_empty();
    place.expanded_bytes += survey.expanded_bytes;
    keep(engine, request, part, (Vec::new(), more), place, leased)?;
    Ok(true)
}

/// Adds the acquired records of a part, except those that turn out not to exist for this group.
fn keep<B: AsRef<[u8]>, E>(
    engine: &Guarded,
    request: &AcquireRequest<'_>,
    part: Part<B>,
    (aborted, mut more): (Vec<(i64, i64)>, Vec<Acquired>),
    place: &mut Place,
    leased: &mut Leased<B, E>,
) -> Result<(), Stop<E>> {
    if !more.is_empty() {
        let bytes = part.bytes.as_ref();
        for gone in [
            aborted_ranges(bytes, &part.batches, aborted),
            missing(bytes, &part.batches),
        ] {
            if !gone.is_empty() {
                more = without(engine, &gone, &more).map_err(Stop::Engine)?;
                leased.archived = true;
            }
        }
    }
    if !more.is_empty() {
        let bytes = part.bytes.as_ref();
        let mut ranges = holding(bytes, &part.batches, &more);
        let mut size = ranges.iter().map(Range::len).sum::<usize>();
        let rest = |offsets: OffsetRange| {
            let rest = engine.with(|engine| Rest {
                unfinished: engine.unfinished_records(offsets),
                in_order: engine.is_ordered(),
                has_ready: engine
                    .next_ready_from(offsets.first)
                    .is_some_and(|next| next <= offsets.last),
            });
            rest.unwrap_or(Rest::NONE)
        };
        let anew = request.log_cache.and_then(|log_cache| {
            thinned(
                bytes,
                &part.batches,
                &more,
                log_cache,
                &mut place.room,
                rest,
            )
        });
        let source = match anew {
            None => Source::Read(part.bytes),
            Some(anew) => {
                debug_assert!(anew.len() < size, "nothing was left out");
                leased.thinned += size - anew.len();
                size = anew.len();
                ranges = std::iter::once(0..size).collect();
                Source::Anew(anew)
            }
        };
        debug_assert_eq!(size, ranges.iter().map(Range::len).sum::<usize>());
        leased.put(source, ranges, more);
    }
    Ok(())
}

fn last_of(batches: &[OffsetRange]) -> i64 {
    batches.last().map_or(-1, |batch| batch.last)
}

#[cfg(test)]
mod tests;
