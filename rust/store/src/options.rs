//! How a store works.

use crate::bucket::BackupOptions;

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// After fdatasync.
    #[default]
    Fsync,
    /// After the operating system has taken it: safe from a killed process, not from a power loss.
    Os,
    /// After the bucket has it ([`Options::bucket`]): safe from the loss of the machine. The directory is a cache, which
    /// [`crate::prepare_home`] brings in line with the bucket before it is opened.
    Bucket,
}

/// How a store works; all sizes in bytes.
#[derive(Debug, Clone)]
pub struct Options {
    /// When a write counts as done.
    pub durability: Durability,
    /// Size at which a journal segment is followed by the next.
    pub segment_bytes: u64,
    /// Recent batches kept in memory.
    pub cache_bytes: usize,
    /// Staged bytes above which appends are refused.
    pub staging_bytes: usize,
    /// Memory that the producers of all logs may take. Beyond, the longest idle of the log with the most are forgotten.
    pub producer_bytes: usize,
    /// What a journal has written ahead of small frames at most, so that syncing them does not change its size. The sync
    /// of a frame waits for it now and then: more of it is rarer, and takes longer.
    pub ahead_bytes: u64,
    /// Threads that `Store::read_apart` has read at most.
    pub read_threads: usize,
    /// How it is copied to a bucket; `None`: it is not.
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
            bucket: None,
        }
    }
}
