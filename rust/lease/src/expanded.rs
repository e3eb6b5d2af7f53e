//! A cache of record batches that are delivered in parts: with few keys and many records per key, each batch is delivered
//! in many small parts, and reading, checking and expanding it each time would dominate the cost of a response.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use sharecore_engine::{Bug, OffsetRange, is_planted};
use sharecore_records::{Batch, Batches, Compression, layout::checksum};

use crate::indexed::IndexedBatch;

/// Overhead of an entry in bytes.
const ENTRY_BYTES: usize = 200;
/// Batches that are cheap to read again get at most this part of the cache.
const CHEAP_PART: usize = 8;

/// Topic ID and partition.
pub type LogId = ([u8; 16], i32);

/// A log, and the last offset of a batch in it.
type Place = (LogId, i64);

/// Offsets of a batch that are left to deliver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// How many are not finished.
    pub(crate) unfinished: i64,
    /// Whether they are delivered in an order, a few at a time: soon, and often.
    pub(crate) in_order: bool,
    /// Whether some can be acquired now.
    pub(crate) has_ready: bool,
}

/// A batch of which a part is delivered.
pub(crate) enum Found<'a> {
    /// It is cached.
    Kept(Arc<IndexedBatch>),
    /// It is not worth a place in the cache.
    Once(Batch<'a>),
}

impl Rest {
    /// Nothing.
    pub(crate) const NONE: Self = Self {
        unfinished: 0,
        in_order: false,
        has_ready: false,
    };

    /// All offsets, in an order.
    #[cfg(test)]
    pub(crate) fn all_in_order(offsets: OffsetRange) -> Self {
        Self {
            unfinished: offsets.count(),
            in_order: true,
            has_ready: true,
        }
    }
}

/// Batches of all logs; the least recently used are evicted first.
///
/// An uncompressed batch of a group without an order is cheap: with delivery times, its records are delivered whenever
/// they are due, so the cache would fill with batches that save little.
#[derive(Debug)]
pub struct ExpandedCache {
    bytes_max: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_place: BTreeMap<Place, Entry>,
    /// A counter of uses.
    now: u64,
    cheap: Used,
    others: Used,
}

/// Entries by their last use.
#[derive(Debug, Default)]
struct Used {
    bytes: usize,
    by_use: BTreeMap<u64, Place>,
}

#[derive(Debug)]
struct Entry {
    /// The batch's checksum: compaction may have rewritten it.
    checksum: u32,
    batch: Arc<IndexedBatch>,
    /// Offsets that were neither finished nor delivered from here.
    left: i64,
    is_cheap: bool,
    used: u64,
}

/// The cache, and the log whose batches are looked up.
#[derive(Clone, Copy, Debug)]
pub struct LogCache<'a> {
    /// The cache.
    pub cache: &'a ExpandedCache,
    /// The log.
    pub log: LogId,
    /// Whether cached batches are used without reading the log: false if the log may lose records and put others in
    /// their place. Records that compaction has removed since a batch was cached are delivered, as to a consumer that
    /// read them before.
    pub is_read: bool,
}

impl ExpandedCache {
    /// Creates a cache of at most this many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            entries: Mutex::default(),
        }
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.with(|entries| entries.bytes())
    }

    fn with<R>(&self, work: impl FnOnce(&mut Entries) -> R) -> R {
        // no call in here can panic midway
        work(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LogCache<'_> {
    fn place(&self, last: i64) -> Place {
        if is_planted(Bug::ExpandedByOffset) {
            (([0; 16], 0), last)
        } else {
            (self.log, last)
        }
    }

    /// A batch with an index of its records, which is cached; `None` if it cannot be read, or contradicts its header.
    /// One that is cheap to read again is left alone if nothing else of it can be acquired now. `room` shrinks by what is
    /// expanded.
    pub(crate) fn indexed<'b>(
        &self,
        bytes: &'b [u8],
        offsets: OffsetRange,
        room: &mut usize,
        rest: impl FnOnce(OffsetRange) -> Rest,
    ) -> Option<Found<'b>> {
        let batch = Batches::new(bytes).next()?;
        let (place, checksum) = (self.place(offsets.last), checksum(bytes));
        if let Some(found) = self.cache.with(|entries| entries.find(place, checksum)) {
            return Some(Found::Kept(found));
        }
        let rest = rest(offsets);
        let is_cheap = !rest.in_order && batch.header.compression() == Ok(Compression::None);
        if is_cheap && !rest.has_ready {
            return Some(Found::Once(batch));
        }
        let batch = Arc::new(IndexedBatch::new(&batch, offsets)?);
        *room = room.saturating_sub(batch.expanded_bytes());
        let entry = Entry {
            checksum,
            left: rest.unfinished,
            is_cheap,
            batch: batch.clone(),
            used: 0,
        };
        let most = self.cache.bytes_max;
        self.cache.with(|entries| entries.keep(place, entry, most));
        Some(Found::Kept(batch))
    }

    /// Whether a cached batch has this offset.
    pub(crate) fn holds(&self, offset: i64) -> bool {
        let place = self.place(offset);
        self.cache
            .with(|entries| entries.holding(place, offset).is_some())
    }

    /// The cached batches from the one with `offset` on. `wanted` is called with the bytes so far and the next batch, and
    /// returns whether to take it, and the next wanted offset behind it. Also returns whether a wanted offset is in no
    /// cached batch. Batches before `log_start` are dropped.
    pub(crate) fn batches(
        &self,
        (log_start, offset): (i64, i64),
        mut wanted: impl FnMut(i64, &IndexedBatch) -> (bool, Option<i64>),
    ) -> (Vec<Arc<IndexedBatch>>, bool) {
        let mut found = Vec::new();
        let misses = self.cache.with(|entries| {
            entries.forget_before(self.place(i64::MIN), log_start);
            let (mut next, mut bytes) = (Some(offset), 0);
            while let Some(offset) = next {
                let Some(batch) = entries.holding(self.place(offset), offset) else {
                    return true;
                };
                let (is_wanted, behind) = wanted(bytes, &batch);
                if !is_wanted {
                    break;
                }
                bytes += batch.bytes().len() as i64;
                next = behind;
                found.push(batch);
            }
            false
        });
        (found, misses)
    }

    /// Offsets of a batch are delivered; once all are, it is dropped.
    pub(crate) fn delivered(&self, batch: &IndexedBatch, count: i64) {
        let place = self.place(batch.offsets().last);
        self.cache.with(|entries| {
            if let Some(entry) = entries.by_place.get_mut(&place) {
                entry.left -= count;
                if entry.left <= 0 {
                    entries.forget(place);
                }
            }
        });
    }
}

impl Entries {
    fn find(&mut self, place: Place, checksum: u32) -> Option<Arc<IndexedBatch>> {
        let entry = self.by_place.get(&place)?;
        if entry.checksum != checksum && !is_planted(Bug::ExpandedByOffset) {
            return None;
        }
        Some(self.used(place))
    }

    /// The batch of a log with an offset.
    fn holding(&mut self, place: Place, offset: i64) -> Option<Arc<IndexedBatch>> {
        let mut from = self
            .by_place
            .range((Bound::Included(place), Bound::Unbounded));
        let (&found, entry) = from.next()?;
        let is_here = found.0 == place.0 && entry.batch.offsets().first <= offset;
        is_here.then(|| self.used(found))
    }

    fn bytes(&self) -> usize {
        self.cheap.bytes + self.others.bytes
    }

    fn used_as(&mut self, is_cheap: bool) -> &mut Used {
        if is_cheap {
            &mut self.cheap
        } else {
            &mut self.others
        }
    }

    /// Notes the use of an entry that exists.
    fn used(&mut self, place: Place) -> Arc<IndexedBatch> {
        self.now += 1;
        let now = self.now;
        let entry = self.by_place.get_mut(&place).expect("what is used");
        let before = std::mem::replace(&mut entry.used, now);
        let (batch, is_cheap) = (entry.batch.clone(), entry.is_cheap);
        let used = self.used_as(is_cheap);
        used.by_use.remove(&before);
        used.by_use.insert(now, place);
        batch
    }

    fn keep(&mut self, place: Place, entry: Entry, most: usize) {
        self.forget(place);
        let (size, is_cheap) = (entry.bytes(), entry.is_cheap);
        if size > most {
            return;
        }
        self.now += 1;
        let now = self.now;
        self.by_place.insert(place, Entry { used: now, ..entry });
        let used = self.used_as(is_cheap);
        used.bytes += size;
        used.by_use.insert(now, place);
        // the last one stays, so that a large batch may be delivered in parts at all
        while self.cheap.bytes > most / CHEAP_PART && self.cheap.by_use.len() > 1 {
            self.forget_oldest(true);
        }
        while self.bytes() > most {
            let oldest = |used: &Used| used.by_use.keys().next().copied().unwrap_or(u64::MAX);
            self.forget_oldest(oldest(&self.cheap) < oldest(&self.others));
        }
        debug_assert_eq!(
            self.cheap.by_use.len() + self.others.by_use.len(),
            self.by_place.len(),
            "one use each"
        );
    }

    fn forget_oldest(&mut self, is_cheap: bool) {
        let oldest = self.used_as(is_cheap).by_use.first_key_value();
        let (_, &place) = oldest.expect("what takes bytes");
        self.forget(place);
    }

    /// Forgets the batches of a log that end before an offset.
    fn forget_before(&mut self, first: Place, offset: i64) {
        while let Some((&place, _)) = self.by_place.range(first..(first.0, offset)).next() {
            self.forget(place);
        }
    }

    fn forget(&mut self, place: Place) {
        if let Some(entry) = self.by_place.remove(&place) {
            let used = self.used_as(entry.is_cheap);
            used.by_use.remove(&entry.used);
            used.bytes -= entry.bytes();
        }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.batch.memory_bytes()
    }
}

#[cfg(test)]
mod tests;
