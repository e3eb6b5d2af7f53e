//! A cache of record batches that are delivered in parts: with few keys and many records per key, each batch is delivered
//! in many small parts, and reading, checking and expanding it each time would dominate the cost of a response.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use sharecore_engine::{Bug, OffsetRange, is_planted};
use sharecore_records::{Batches, layout::checksum};

use crate::indexed::IndexedBatch;

/// Overhead of an entry in bytes.
const ENTRY_BYTES: usize = 200;

/// Topic ID and partition.
pub type LogId = ([u8; 16], i32);

/// A log, and the last offset of a batch in it.
type Place = (LogId, i64);

/// Batches of all logs; the least recently used are evicted first.
#[derive(Debug)]
pub struct ExpandedCache {
    bytes_max: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    bytes: usize,
    /// A counter of uses.
    now: u64,
    by_place: BTreeMap<Place, Entry>,
    by_use: BTreeMap<u64, Place>,
}

#[derive(Debug)]
struct Entry {
    /// The batch's checksum: compaction may have rewritten it.
    checksum: u32,
    batch: Arc<IndexedBatch>,
    /// Offsets that were neither finished nor delivered from here.
    left: i64,
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
        self.with(|entries| entries.bytes)
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
    /// `room` shrinks by what is expanded. `unfinished` returns how many offsets of the batch are not finished.
    pub(crate) fn indexed(
        &self,
        bytes: &[u8],
        offsets: OffsetRange,
        room: &mut usize,
        unfinished: impl FnOnce(OffsetRange) -> i64,
    ) -> Option<Arc<IndexedBatch>> {
        let batch = Batches::new(bytes).next()?;
        let (place, checksum) = (self.place(offsets.last), checksum(bytes));
        if let Some(found) = self.cache.with(|entries| entries.find(place, checksum)) {
            return Some(found);
        }
        let batch = Arc::new(IndexedBatch::new(&batch, offsets)?);
        *room = room.saturating_sub(batch.expanded_bytes());
        let (kept, most) = (batch.clone(), self.cache.bytes_max);
        let left = unfinished(offsets);
        self.cache
            .with(|entries| entries.keep(place, (checksum, left), kept, most));
        Some(batch)
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

    /// Notes the use of an entry that exists.
    fn used(&mut self, place: Place) -> Arc<IndexedBatch> {
        let entry = self.by_place.get_mut(&place).expect("what is used");
        self.by_use.remove(&entry.used);
        self.now += 1;
        entry.used = self.now;
        self.by_use.insert(self.now, place);
        entry.batch.clone()
    }

    fn keep(
        &mut self,
        place: Place,
        (checksum, left): (u32, i64),
        batch: Arc<IndexedBatch>,
        most: usize,
    ) {
        self.forget(place);
        let size = ENTRY_BYTES + batch.memory_bytes();
        if size > most {
            return;
        }
        self.now += 1;
        self.bytes += size;
        let used = self.now;
        self.by_use.insert(used, place);
        let entry = Entry {
            checksum,
            batch,
            left,
            used,
        };
        self.by_place.insert(place, entry);
        while self.bytes > most {
            let (_, oldest) = self.by_use.first_key_value().expect("what takes bytes");
            self.forget(*oldest);
        }
        debug_assert_eq!(self.by_use.len(), self.by_place.len(), "one use each");
    }

    /// Forgets the batches of a log that end before an offset.
    fn forget_before(&mut self, first: Place, offset: i64) {
        while let Some((&place, _)) = self.by_place.range(first..(first.0, offset)).next() {
            self.forget(place);
        }
    }

    fn forget(&mut self, place: Place) {
        if let Some(entry) = self.by_place.remove(&place) {
            self.by_use.remove(&entry.used);
            self.bytes -= ENTRY_BYTES + entry.batch.memory_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use sharecore_records::{
        Compression, Header, LocalRecord, Producer, compress,
        layout::{HEADER, seal},
        local_batch,
    };

    use super::*;

    const LOG: LogId = ([1; 16], 0);

    /// A compressed batch of one record at an offset.
    fn batch(offset: i64, value: &[u8]) -> Vec<u8> {
        let record: LocalRecord<'_> = (None, Some(value));
        let (whole, header) = local_batch(&[record], Producer::NONE, 0);
        let payload = compress(Compression::Lz4, &whole[HEADER..]).unwrap();
        let header = Header {
            base_offset: offset,
            size: HEADER + payload.len(),
            attributes: Compression::Lz4.id(),
            ..header
        };
        let mut bytes = vec![0; HEADER];
        header.write(&mut bytes);
        bytes.extend_from_slice(&payload);
        seal(&mut bytes);
        bytes
    }

    fn indexed(cache: &ExpandedCache, log: LogId, bytes: &[u8]) -> Arc<IndexedBatch> {
        let header = Header::read(bytes).unwrap();
        let offsets = OffsetRange::new(header.base_offset, header.last_offset());
        of(cache, log)
            .indexed(bytes, offsets, &mut { 1 << 20 }, OffsetRange::count)
            .unwrap()
    }

    fn of(cache: &ExpandedCache, log: LogId) -> LogCache<'_> {
        LogCache {
            cache,
            log,
            is_read: true,
        }
    }

    fn offsets(cache: &ExpandedCache) -> Vec<i64> {
        cache.with(|entries| entries.by_place.keys().map(|place| place.1).collect())
    }

    #[test]
    fn batches_of_each_log_and_offset_are_kept_apart_and_those_written_anew_are_expanded_anew() {
        let cache = ExpandedCache::new(1 << 20);
        for log in [([1; 16], 0), ([1; 16], 1), ([2; 16], 0)] {
            for offset in [0, 5] {
                let text = format!("{log:?} {offset}");
                let bytes = batch(offset, text.as_bytes());
                let first = indexed(&cache, log, &bytes);
                assert_eq!(first.bytes(), bytes);
                assert!(
                    Arc::ptr_eq(&first, &indexed(&cache, log, &bytes)),
                    "it is kept"
                );
            }
        }
        assert_eq!(offsets(&cache).len(), 6);
        let anew = batch(0, b"anew");
        assert_eq!(indexed(&cache, LOG, &anew).bytes(), anew);
        assert_eq!(indexed(&cache, LOG, &anew).bytes(), anew);
        assert_eq!(offsets(&cache).len(), 6);
    }

    #[test]
    fn it_takes_no_more_bytes_than_it_may_and_forgets_what_was_not_wanted_for_longest() {
        let first = batch(0, &[7; 1000]);
        let one = ExpandedCache::new(1 << 20);
        indexed(&one, LOG, &first);
        let most = 3 * one.bytes() + 100;
        let cache = ExpandedCache::new(most);
        for offset in 0..20 {
            indexed(&cache, LOG, &batch(offset, &[7; 1000]));
            indexed(&cache, LOG, &first);
            assert!(cache.bytes() <= most, "{}", cache.bytes());
        }
        assert_eq!(
            offsets(&cache),
            [0, 18, 19],
            "the first was wanted all along"
        );
        indexed(&cache, LOG, &batch(30, &[7; 8000]));
        let message = "one that is larger than the cache is not kept";
        assert_eq!(offsets(&cache), [0, 18, 19], "{message}");
        let none = ExpandedCache::new(0);
        assert_eq!(indexed(&none, LOG, &first).bytes(), first);
        assert_eq!(none.bytes(), 0);
    }

    #[test]
    fn batches_are_found_by_any_of_their_offsets_as_far_as_they_are_kept() {
        let cache = ExpandedCache::new(1 << 20);
        let many: Vec<LocalRecord<'_>> = vec![(None, Some(b"v")); 10];
        for first in [0, 10, 30] {
            let (whole, header) = local_batch(&many, Producer::NONE, 0);
            let header = Header {
                base_offset: first,
                ..header
            };
            let mut bytes = whole;
            header.write(&mut bytes);
            seal(&mut bytes);
            indexed(&cache, LOG, &bytes);
        }
        let from = |offset: i64, log: LogId| {
            let (all, _) = of(&cache, log).batches((0, offset), |_, batch| {
                (true, Some(batch.offsets().last + 1))
            });
            all.iter()
                .map(|batch| batch.offsets().first)
                .collect::<Vec<_>>()
        };
        assert_eq!(from(0, LOG), [0, 10]);
        assert_eq!(from(15, LOG), [10]);
        assert_eq!(from(39, LOG), [30]);
        for missing in [-1, 20, 29, 40] {
            assert_eq!(from(missing, LOG), [], "{missing}");
        }
        assert_eq!(from(0, ([1; 16], 1)), [], "another log");
        let (passing, misses) = of(&cache, LOG).batches((0, 3), |bytes, batch| {
            (bytes == 0, (batch.offsets().first == 0).then_some(35))
        });
        assert_eq!(
            (passing.len(), misses),
            (1, false),
            "no more than is wanted"
        );
        let (passing, misses) = of(&cache, LOG).batches((0, 3), |_, batch| {
            (true, (batch.offsets().first == 0).then_some(35))
        });
        assert_eq!(
            (passing.len(), misses),
            (2, false),
            "what is not wanted need not be there"
        );
        let others = ([1; 16], 1);
        indexed(&cache, others, &batch(0, b"v"));
        of(&cache, LOG).batches((10, 0), |_, _| (false, None));
        assert_eq!(offsets(&cache), [19, 39, 0], "the log starts at 10");
    }

    #[test]
    fn a_batch_is_dropped_once_all_its_records_are_delivered() {
        let cache = ExpandedCache::new(1 << 20);
        let many: Vec<LocalRecord<'_>> = vec![(None, Some(b"v")); 10];
        let (bytes, _) = local_batch(&many, Producer::NONE, 0);
        let batch = indexed(&cache, LOG, &bytes);
        for (count, is_kept) in [(4, true), (5, true), (1, false), (1, false)] {
            of(&cache, LOG).delivered(&batch, count);
            assert_eq!(offsets(&cache).len(), usize::from(is_kept));
        }
        assert_eq!(cache.bytes(), 0);
    }
}
