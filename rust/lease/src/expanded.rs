//! A cache of expanded record batches: with few keys and many records per key, each batch is delivered in many small
//! parts, and expanding it each time would dominate the cost of a response.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use sharecore_engine::{Bug, is_planted};
use sharecore_records::{Batch, Fault, layout::checksum};

use crate::EXPANDED_BYTES_MAX;

/// Overhead of an entry in bytes.
const ENTRY_BYTES: usize = 200;

/// Topic ID and partition.
pub type LogId = ([u8; 16], i32);

/// Expanded batches of all logs; the least recently used are evicted first.
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
    by_place: HashMap<(LogId, i64), Entry>,
    by_use: BTreeMap<u64, (LogId, i64)>,
}

#[derive(Debug)]
struct Entry {
    /// The batch's checksum: compaction may have rewritten it.
    checksum: u32,
    expanded: Arc<Vec<u8>>,
    used: u64,
}

/// The cache, and the log whose batches are looked up.
#[derive(Clone, Copy, Debug)]
pub struct LogCache<'a> {
    /// The cache.
    pub cache: &'a ExpandedCache,
    /// The log.
    pub log: LogId,
}

/// The records of a batch.
pub(crate) enum Expanded<'a> {
    InBatch(&'a [u8]),
    Apart(Arc<Vec<u8>>),
}

impl Deref for Expanded<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::InBatch(bytes) => bytes,
            Self::Apart(bytes) => bytes,
        }
    }
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
    /// Expands a batch, and caches the result unless the batch was not compressed.
    ///
    /// # Errors
    ///
    /// Fails if the batch is damaged, or expands too far.
    pub(crate) fn expand<'b>(&self, batch: &Batch<'b>) -> Result<Expanded<'b>, Fault> {
        let log = if is_planted(Bug::ExpandedByOffset) {
            ([0; 16], 0)
        } else {
            self.log
        };
        let place = (log, batch.header.base_offset);
        let checksum = checksum(batch.bytes());
        if let Some(found) = self.cache.with(|entries| entries.find(place, checksum)) {
            return Ok(Expanded::Apart(found));
        }
        match batch.expand(EXPANDED_BYTES_MAX)? {
            std::borrow::Cow::Borrowed(bytes) => Ok(Expanded::InBatch(bytes)),
            std::borrow::Cow::Owned(bytes) => {
                let expanded = Arc::new(bytes);
                let (kept, most) = (expanded.clone(), self.cache.bytes_max);
                self.cache
                    .with(|entries| entries.keep(place, checksum, kept, most));
                Ok(Expanded::Apart(expanded))
            }
        }
    }
}

impl Entries {
    fn find(&mut self, place: (LogId, i64), checksum: u32) -> Option<Arc<Vec<u8>>> {
        let entry = self.by_place.get_mut(&place)?;
        if entry.checksum != checksum && !is_planted(Bug::ExpandedByOffset) {
            return None;
        }
        self.by_use.remove(&entry.used);
        self.now += 1;
        entry.used = self.now;
        self.by_use.insert(self.now, place);
        Some(entry.expanded.clone())
    }

    fn keep(&mut self, place: (LogId, i64), checksum: u32, expanded: Arc<Vec<u8>>, most: usize) {
        self.forget(place);
        let size = ENTRY_BYTES + expanded.capacity();
        if size > most {
            return;
        }
        self.now += 1;
        self.bytes += size;
        let used = self.now;
        self.by_use.insert(used, place);
        let entry = Entry {
            checksum,
            expanded,
            used,
        };
        self.by_place.insert(place, entry);
        while self.bytes > most {
            let (_, oldest) = self.by_use.first_key_value().expect("what takes bytes");
            self.forget(*oldest);
        }
        debug_assert_eq!(self.by_use.len(), self.by_place.len(), "one use each");
    }

    fn forget(&mut self, place: (LogId, i64)) {
        if let Some(entry) = self.by_place.remove(&place) {
            self.by_use.remove(&entry.used);
            self.bytes -= ENTRY_BYTES + entry.expanded.capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use sharecore_records::{
        Batches, Compression, Header, LocalRecord, Producer, compress,
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

    /// The value of the record from the cache.
    fn value(cache: &ExpandedCache, log: LogId, bytes: &[u8]) -> Vec<u8> {
        let batch = Batches::new(bytes).next().unwrap();
        let expanded = LogCache { cache, log }.expand(&batch).unwrap();
        let record = batch.records(&expanded).next().unwrap().unwrap();
        record.value.unwrap().to_vec()
    }

    #[test]
    fn batches_of_each_log_and_offset_are_kept_apart_and_those_written_anew_are_expanded_anew() {
        let cache = ExpandedCache::new(1 << 20);
        for log in [([1; 16], 0), ([1; 16], 1), ([2; 16], 0)] {
            for offset in [0, 5] {
                let text = format!("{log:?} {offset}");
                let bytes = batch(offset, text.as_bytes());
                for _ in 0..2 {
                    assert_eq!(value(&cache, log, &bytes), text.as_bytes());
                }
            }
        }
        assert_eq!(cache.with(|entries| entries.by_place.len()), 6);
        assert_eq!(value(&cache, LOG, &batch(0, b"anew")), b"anew");
        assert_eq!(value(&cache, LOG, &batch(0, b"anew")), b"anew");
        assert_eq!(cache.with(|entries| entries.by_place.len()), 6);
    }

    #[test]
    fn it_takes_no_more_bytes_than_it_may_and_forgets_what_was_not_wanted_for_longest() {
        let size = 1000 + ENTRY_BYTES + 200;
        let cache = ExpandedCache::new(3 * size);
        let first = batch(0, &[7; 1000]);
        for offset in 0..20 {
            value(&cache, LOG, &batch(offset, &[7; 1000]));
            value(&cache, LOG, &first);
            assert!(cache.bytes() <= 3 * size, "{}", cache.bytes());
        }
        let kept = cache.with(|entries| entries.by_place.keys().map(|place| place.1).max());
        assert_eq!(kept, Some(19));
        let has_first = cache.with(|entries| entries.by_place.contains_key(&(LOG, 0)));
        assert!(has_first, "it was wanted all along");
        value(&cache, LOG, &batch(30, &[7; 5000]));
        let large = cache.with(|entries| entries.by_place.contains_key(&(LOG, 30)));
        assert!(!large, "one that is larger than the cache is not kept");
        let none = ExpandedCache::new(0);
        assert_eq!(value(&none, LOG, &first).len(), 1000);
        assert_eq!(none.bytes(), 0);
    }
}
