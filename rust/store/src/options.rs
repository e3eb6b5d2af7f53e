//! Options of a store.

use std::time::Duration;

use crate::bucket::BackupOptions;

/// When a write is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// After fdatasync.
    #[default]
    Fsync,
    /// After the operating system has it: survives a killed process, but not a power loss.
    Os,
    /// After the bucket has it ([`Options::bucket`]): survives the loss of the machine. The directory is a cache, which
    /// [`crate::prepare_home`] synchronizes with the bucket before it is opened.
    Bucket,
}

/// When a caller commits in its own turn ([`Store::begin_turn`](crate::Store::begin_turn)) instead of waking the committing
/// thread. With `Bucket` it never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnCommits {
    /// Clients that the turn serves, at most; with `Fsync` at most one, since a thread can sync while others are served. 0: never.
    pub clients_max: usize,
    /// How long commits usually take, at most: meanwhile the caller serves nobody.
    pub time_max: Duration,
}

impl Default for OwnCommits {
    fn default() -> Self {
        Self {
            clients_max: 16,
            time_max: Duration::from_micros(300),
        }
    }
}

/// Options of a store; all sizes in bytes.
#[derive(Debug, Clone)]
pub struct Options {
    /// When a write is confirmed.
    pub durability: Durability,
    /// Size at which a journal segment is full.
    pub segment_bytes: u64,
    /// Memory for recent batches.
    pub cache_bytes: usize,
    /// Staged bytes above which appends are refused.
    pub staging_bytes: usize,
    /// Memory for the producers of all logs. Beyond it, the longest idle producers of the largest log are forgotten.
    pub producer_bytes: usize,
    /// The most space that a journal writes ahead of small frames, so that syncing them does not change its size. Now
    /// and then the sync of a frame includes this; a larger value makes that rarer, but slower.
    pub ahead_bytes: u64,
    /// The most threads of `Store::read_apart`.
    pub read_threads: usize,
    /// When a caller commits in its own turn.
    pub own_commits: OwnCommits,
    /// The copy in a bucket, if any.
    pub bucket: Option<BackupOptions>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Fsync,
            segment_bytes: 64 << 20,
            cache_bytes: 16 << 20,
            staging_bytes: 32 << 20,
            producer_bytes: 512 << 20,
            ahead_bytes: 256 << 10,
            read_threads: 4,
            own_commits: OwnCommits::default(),
            bucket: None,
        }
    }
}
