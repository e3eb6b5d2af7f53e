//! Bugs that tests plant to prove that they would be found. Compiled in by the feature `planted`; in released builds
//! [`is_planted`] is constant false.

use super::Managed;
use crate::offset::OffsetRange;
use crate::record_state::RecordState;

/// A bug in the order or timing of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A released record moves behind the others of its key.
    ReleasedLast = 1,
    /// Records of a loaded window can be acquired before they are examined.
    LoadedReady,
    /// A failed write of an acknowledgement lets the key's next record through.
    RollbackFrees,
    /// A missing key is treated as the empty key.
    NullIsEmpty,
    /// The rest of a run is delivered while a member still holds part of it.
    RunGoesOn,
    /// Records that the log lost still block the others of their key.
    LostHoldBack,
    /// A record whose time has come ignores earlier ones of its key.
    TimePasses,
    /// Records of a loaded window that were delivered before do not back off.
    LoadForgetsBackoff,
    /// Records waiting for dead letters do not count toward the window.
    ArchivingUncounted,
    /// A batch rewritten for a member lacks the last of its acquired records.
    ThinnedShort,
    /// Expanded batches are identified by first offset alone.
    ExpandedByOffset,
}

impl Bug {
    /// Names, for tests.
    pub const ALL: [(&'static str, Self); 11] = [
        ("released last", Self::ReleasedLast),
        ("loaded ready", Self::LoadedReady),
        ("rollback frees", Self::RollbackFrees),
        ("null is empty", Self::NullIsEmpty),
        ("run goes on", Self::RunGoesOn),
        ("lost hold back", Self::LostHoldBack),
        ("time passes", Self::TimePasses),
        ("load forgets back-off", Self::LoadForgetsBackoff),
        ("archiving uncounted", Self::ArchivingUncounted),
        ("thinned short", Self::ThinnedShort),
        ("expanded by offset", Self::ExpandedByOffset),
    ];
}

#[cfg(feature = "planted")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Bug;

    static PLANTED: AtomicU8 = AtomicU8::new(0);

    /// Plants a bug in all share partitions of this process, for good.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::Relaxed);
    }

    /// Whether this bug is planted.
    pub fn is_planted(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(not(feature = "planted"))]
mod switch {
    use super::Bug;

    /// Always false.
    #[inline]
    pub const fn is_planted(_: Bug) -> bool {
        false
    }
}

pub use switch::is_planted;
#[cfg(feature = "planted")]
pub use switch::plant;

impl Managed {
    /// How many records of the window wait for their dead letters.
    pub(super) fn archiving(&self) -> i64 {
        let runs = self.inner.inflight().into_iter();
        let runs = runs.filter(|run| run.state == RecordState::Archiving);
        runs.map(|run| run.last - run.first + 1).sum()
    }

    /// Removes unfinished records from their keys' order; appends them again if they will be redelivered.
    pub(super) fn misplace(&mut self, ranges: &[OffsetRange], is_last: bool) {
        let mut touched = Vec::new();
        for range in ranges {
            let Some(keys) = &mut self.keys else {
                return;
            };
            let mut digests = Vec::new();
            keys.chains.digests_in(*range, &mut digests);
            for digest in digests {
                let (mut at, mut kept, mut moved) = (None, Vec::new(), Vec::new());
                while let Some(unit) = keys.chains.next(digest, at) {
                    at = Some(unit.first);
                    let before = OffsetRange::new(unit.first, unit.last.min(range.first - 1));
                    let behind = OffsetRange::new(unit.first.max(range.last + 1), unit.last);
                    kept.extend([before, behind].into_iter().filter(|each| !each.is_empty()));
                    moved.extend(Some(unit.clip(*range)).filter(|each| !each.is_empty()));
                }
                if let Some(at) = at {
                    keys.chains.replace(digest, at, &kept);
                }
                for piece in moved.into_iter().filter(|_| is_last) {
                    keys.chains.append(digest, piece);
                }
                touched.push(digest);
            }
        }
        self.refresh(&touched, i64::MAX);
    }
}
