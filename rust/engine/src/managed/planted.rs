//! Bugs that tests plant to prove that they would be found.

use super::Managed;
use crate::offset::OffsetRange;
use crate::record_state::RecordState;

sharecore_planted::bugs! {
    /// A bug in the order or timing of records.
    enum Bug {
        /// A released record moves behind the others of its key.
        ReleasedLast = "released last",
        /// Records of a loaded window can be acquired before they are examined.
        LoadedReady = "loaded ready",
        /// A failed write of an acknowledgement lets the key's next record through.
        RollbackFrees = "rollback frees",
        /// A missing key is treated as the empty key.
        NullIsEmpty = "null is empty",
        /// The rest of a run is delivered while a member still holds part of it.
        RunGoesOn = "run goes on",
        /// Records that the log lost still block the others of their key.
        LostHoldBack = "lost hold back",
        /// A record whose time has come ignores earlier ones of its key.
        TimePasses = "time passes",
        /// Records of a loaded window that were delivered before do not back off.
        LoadForgetsBackoff = "load forgets back-off",
        /// Records waiting for dead letters do not count toward the window.
        ArchivingUncounted = "archiving uncounted",
        /// A batch rewritten for a member lacks the last of its acquired records.
        ThinnedShort = "thinned short",
        /// Expanded batches are identified by first offset alone.
        ExpandedByOffset = "expanded by offset",
    }
}

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
                let mut next = keys.chains.first(digest);
                while let Some(link) = next {
                    let unit = link.unit;
                    at = next;
                    next = keys.chains.after(link);
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
