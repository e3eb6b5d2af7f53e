//! A copy of the store in a bucket (backup mode): commits are shipped within about a second, sealed segments and
//! checkpoints are uploaded, and a directory can be restored from it at any object of its journal.
//!
//! Commits never wait for the bucket. Frames to ship are read from the segment files, so memory is bounded by the
//! objects in progress. A thread of the store decides; a transport makes its calls.

mod attach;
mod budget;
mod confirmed;
mod copy;
mod fetch;
mod follower;
mod frames;
pub(crate) mod home;
mod journal_cache;
mod journal_end;
mod keeper;
mod lead;
mod line;
mod local;
mod own;
mod promote;
mod read_ahead;
mod restore;
mod shared;
mod standby;
mod sweep;
mod waiting;
mod worker;

pub use follower::Changed;
pub use home::{Prepared, has_own_data, prepare_home};
pub use journal_cache::JournalCache;
pub use journal_end::JournalEnd;
pub use line::BucketLine;
pub use restore::{BucketError, Moment, Restored, Restoring, restore};
pub use shared::{BackupOptions, BackupState, BackupStatus};
pub use standby::{FreePlace, Led, Standby};

use std::sync::Arc;

use crate::{evicted::EvictedFigures, store::Store};

pub(crate) use shared::Backup;
pub(crate) use worker::{Worker, run};

impl Store {
    /// What is on the local disk and what was fetched, with a bound ([`crate::CacheOptions`]).
    pub fn evicted_figures(&self) -> Option<EvictedFigures> {
        let evicted = self.shared.backup.as_ref()?.evicted.as_ref()?;
        let figures = evicted.figures();
        let sealed = self.shared.lock().segments.sealed_bytes();
        Some(EvictedFigures {
            local_bytes: figures.local_bytes + sealed.local,
            internal_bytes: sealed.kept,
            remote_bytes: sealed.remote,
            ..figures
        })
    }

    /// How many segments are evicted, and the bytes of their batches that only the bucket has.
    pub fn evicted_segments(&self) -> (usize, u64) {
        let state = self.shared.lock();
        let evicted = state.segments.iter().filter(|(_, it)| it.is_evicted());
        (evicted.count(), state.segments.sealed_bytes().remote)
    }

    /// The calls for a transport to make, for the copy in a bucket; `None` without one.
    pub fn bucket_line(&self) -> Option<Arc<BucketLine>> {
        self.shared.backup.as_ref().map(|backup| backup.line())
    }

    /// Whether nobody else can lead who waits longer than `lease_ms` before a claim; always true without durability
    /// `bucket`.
    pub fn is_proven(&self, lease_ms: u64) -> bool {
        self.is_proven_at(shared::steady_ms(), lease_ms)
    }

    /// As `is_proven`, at a time of the clock that `step_bucket` gets.
    pub fn is_proven_at(&self, now_ms: u64, lease_ms: u64) -> bool {
        let home = self.shared.backup.as_ref().filter(|backup| backup.is_home);
        home.is_none_or(|backup| backup.is_proven(now_ms, lease_ms))
    }

    /// The state of the copy in a bucket; `None` without one.
    pub fn bucket_status(&self) -> Option<BackupStatus> {
        self.shared.backup.as_ref().map(|backup| backup.status())
    }
}
