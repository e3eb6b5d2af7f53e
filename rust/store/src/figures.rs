//! Statistics of the store since it was opened, for monitoring.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::store::Store;

/// Bucket limits double from one microsecond; the last bucket holds everything slower.
pub const BUCKETS: usize = 26;

/// Counters of the committing thread; read by others without a lock.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
    bytes: AtomicU64,
    failed: AtomicU64,
}

/// A snapshot of the store's statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// Commits by their time for writing and syncing: bucket `i` holds those from 2^(i-1) up to 2^i microseconds.
    pub commits: [u64; BUCKETS],
    /// Total time of all commits.
    pub commit_time: Duration,
    /// Bytes written by commits.
    pub written_bytes: u64,
    /// Commits that failed.
    pub failed_commits: u64,
    /// Segments, including the active one.
    pub segments: u64,
    /// Bytes of batches in segments, and how many of them are live.
    pub segment_bytes: u64,
    /// See `segment_bytes`.
    pub live_bytes: u64,
    /// Bytes waiting to be written.
    pub staged_bytes: u64,
}

impl Counts {
    pub(crate) fn committed(&self, took: Duration, bytes: u64) {
        let bits = u128::BITS - took.as_micros().leading_zeros();
        self.buckets[(bits as usize).min(BUCKETS - 1)].fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(took.as_nanos() as u64, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            commits: std::array::from_fn(|i| self.buckets[i].load(Relaxed)),
            commit_time: Duration::from_nanos(self.nanoseconds.load(Relaxed)),
            written_bytes: self.bytes.load(Relaxed),
            failed_commits: self.failed.load(Relaxed),
            segments: 0,
            segment_bytes: 0,
            live_bytes: 0,
            staged_bytes: 0,
        }
    }
}

impl Store {
    /// Returns the store's statistics.
    pub fn figures(&self) -> Figures {
        let mut figures = self.shared.counts.figures();
        let state = self.shared.lock();
        for (_, segment) in state.segments.iter() {
            figures.segments += 1;
            figures.segment_bytes += segment.bytes;
            figures.live_bytes += segment.live;
        }
        figures.staged_bytes = state.staged_bytes as u64;
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_falls_into_the_bucket_of_its_time() {
        let counts = Counts::default();
        for micros in [0, 1, 2, 3, 1000, u64::MAX / 1000] {
            counts.committed(Duration::from_micros(micros), 10);
        }
        let figures = counts.figures();
        assert_eq!(figures.commits[..3], [1, 1, 2]);
        assert_eq!((figures.commits[10], figures.commits[BUCKETS - 1]), (1, 1));
        assert_eq!(figures.written_bytes, 60);
    }
}
