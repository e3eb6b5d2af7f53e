//! Bugs that a test may plant, to show that it would find them. The feature `planted` compiles them in; released builds are
//! made without, where [`is_planted`] is false for the compiler.

use super::Managed;
use crate::offset::OffsetRange;
use crate::record_state::RecordState;

/// A bug in the order of records or in when they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A record that is released comes after the others of its key.
    ReleasedLast = 1,
    /// The records of a loaded window can be acquired before they have been looked at.
    LoadedReady,
    /// An acknowledgement that could not be written lets the next record of the key come.
    RollbackFrees,
    /// A record without a key is one with the empty key.
    NullIsEmpty,
    /// What is left of a run comes while a member still holds the rest of it.
    RunGoesOn,
    /// Records that the log has lost still hold back the others of their key.
    LostHoldBack,
    /// A record whose time has come no longer waits for others of its key.
    TimePasses,
    /// Records of a loaded window that were delivered before do not wait.
    LoadForgetsBackoff,
    /// Records whose dead letters are due leave room for others in the window.
    ArchivingUncounted,
    /// A batch that is written anew for a member is without the last of its acquired records.
    ThinnedShort,
    /// Expanded batches are known by their first offset alone.
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

    /// Plants a bug in all share partitions of this process; none takes it away again.
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

    /// Whether this bug is planted: never.
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

    /// Takes records out of the order of their keys although they are not settled; puts them last if they are to come again.
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
