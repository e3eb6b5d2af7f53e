//! Logs of record batches and a small key-value catalog, committed in groups.
//!
//! A commit (batches of any number of logs, catalog entries, moved log starts) is one frame in a journal segment,
//! written and synced at once. The journal segments are the logs' only copy, so a batch is written to disk once. See
//! `docs/decisions/embedded-store.md`.
#![forbid(unsafe_code)]

mod announced;
mod apart;
mod append;
mod batch;
mod bucket;
mod cache;
mod checkpoint;
mod cleaner;
mod damage;
mod decode;
mod directory_lock;
mod disk;
mod drained;
mod entries;
mod error;
mod evicted;
mod fault;
mod figures;
mod files;
mod flush;
mod format;
mod frame;
mod incoming;
mod index;
mod journal;
mod log;
mod lookup;
mod maintain;
mod marker;
mod memory;
mod options;
mod pending;
mod producer;
mod producer_room;
mod read;
mod recover;
mod replay;
mod salvage;
mod segment;
mod segments;
mod shipping;
mod signal;
mod slice;
mod state;
mod stepped;
mod store;
mod survey;
mod synced;
mod turn;
mod varint;

pub use apart::Job;
pub use apart::ReadFrom;
pub use apart::WholeRead;
pub use append::Appended;
pub use batch::check_request;
pub use bucket::{
    BackupOptions, BackupState, BackupStatus, BucketError, BucketLine, Changed, FreePlace,
    JournalCache, JournalEnd, Led, Moment, Prepared, Restored, Restoring, Standby, has_own_data,
    prepare_home, restore,
};
pub use cleaner::{CleanOptions, Cleaned, Dirt};
pub use damage::Damage;
pub use drained::Drained;
pub use error::{RecordFault, Refusal, RefusedRecords, StoreError};
pub use evicted::{CacheOptions, EvictedFigures, EvictedRequests, Reply, Requests};
pub use fault::{Fault, FaultPoint};
pub use figures::{BUCKETS, Figures};
pub use format::FORMAT;
pub use incoming::Incoming;
pub use log::{LogConfig, Offsets};
pub use memory::{MemoryDisk, Operation};
pub use options::{Durability, Options, OwnCommits};
pub use producer::{Aborted, Active};
pub use read::Want;
pub use recover::Torn;
pub use salvage::salvage;
pub use sharecore_records::{LocalRecord, TimestampType};
pub use slice::{Intact, Slice};
pub use store::{Change, Outcome, Store};
pub use survey::{Findings, Kept, Lost, Problem, Progress, survey};

/// Identifies a log within a store; never reused.
pub type LogId = u64;
