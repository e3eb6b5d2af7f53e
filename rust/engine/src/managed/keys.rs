//! Order by key: only the first unfinished records of a key can be acquired, by one member.
//!
//! Records are read in log order before any is delivered: [`Managed::admit`] learns their keys. A record that waits for
//! an earlier one of its key is `behind` in the map.

use std::collections::HashMap;

use super::chains::{Chains, Digest, Digests};
use super::{Bug, Managed, is_planted};
use crate::offset::{Offset, OffsetRange};
use crate::partition::{Acquired, waits::Open};

/// Records and keys in an order by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDetails {
    /// Records that wait only for earlier ones of their key.
    pub behind: i64,
    /// Keys with unfinished records.
    pub keys: usize,
    /// The keys with the most records: digest, record count, first offset.
    pub largest: Vec<(u64, i64, Offset)>,
}

/// The keys of a share partition.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) chains: Chains,
    /// The longest run that may have been acquired.
    reach: i64,
    /// By key, the last record that may be acquired or acquirable, if there are any besides its first.
    pub(super) lined_up: HashMap<Digest, Offset, Digests>,
    /// Members may hold records acquired before the order began.
    is_settling: bool,
    /// Unfinished records of the key being refreshed; kept for its memory.
    open: Vec<Open>,
}

/// How many unfinished records of a key the buffer for them keeps room for.
const OPEN_KEPT: usize = 1024;
/// Look at no more of a key than its first records and those that are lined up.
const HEAD: Offset = -1;

impl Managed {
    /// Starts the order by key if the rules ask for it; no record has been read yet.
    pub(super) fn begin_keys(&mut self) {
        self.end_keys();
        let spec = self.rules.spec.as_ref();
        if spec.is_some_and(|spec| spec.key.is_some()) {
            self.keys = Some(Box::new(Keys {
                chains: Chains::default(),
                reach: self.rules.run_max,
                lined_up: HashMap::default(),
                is_settling: self.inner.leased() > 0,
                open: Vec::new(),
            }));
            assert!(
                self.admission.is_some(),
                "keys are learned as records are read"
            );
        }
    }

    /// Ends the order by key: no record waits for others.
    pub(super) fn end_keys(&mut self) {
        if self.keys.take().is_some() {
            let everything = OffsetRange::new(0, self.inner.end_offset());
            self.inner.put_in_front(everything);
        }
    }

    /// The rules changed, but the key is the same.
    pub(super) fn keep_keys(&mut self) {
        let Some(keys) = &mut self.keys else {
            return;
        };
        keys.reach = keys.reach.max(self.rules.run_max);
        let digests = keys.chains.digests();
        self.inner.forget_lined_up();
        self.refresh(&digests, HEAD);
    }

    /// Units that are not acquired: neighbors with one key, and records without a key.
    pub(super) fn key_units(&self, leased: i64) -> Option<i64> {
        let chains = &self.keys.as_ref()?.chains;
        let without = self.inner.open_units(leased) + leased - chains.records();
        Some(chains.units() + without.max(0) - leased)
    }

    /// Whether members still hold records acquired before the order began.
    pub(super) fn is_settling(&self, leased: i64) -> bool {
        leased > 0 && self.keys.as_ref().is_some_and(|keys| keys.is_settling)
    }

    /// Records whether such records have all been returned.
    pub(super) fn keys_are_settled(&mut self) {
        if let Some(keys) = &mut self.keys {
            keys.is_settling = false;
        }
    }

    /// Adds unfinished records at the end of their key's chain; returns whether others of the key are before them.
    pub(super) fn key_known(&mut self, digest: Digest, range: OffsetRange) -> bool {
        debug_assert!(!range.is_empty() && digest != 0, "no record has a key");
        let keys = self.keys.as_mut();
        keys.is_some_and(|keys| !keys.chains.append(digest, range))
    }

    /// Updates the keys of records just read.
    pub(super) fn keys_touched(&mut self, mut digests: Vec<Digest>) {
        digests.sort_unstable();
        digests.dedup();
        self.refresh(&digests, HEAD);
    }

    /// Whether a fetch reading from `from` could get the second record of a run without the first.
    pub(super) fn passes_over(&self, from: Offset) -> bool {
        let has_runs = self.keys.as_ref().is_some_and(|keys| keys.reach > 1);
        has_runs && self.inner.first_ready().is_none_or(|first| first < from)
    }

    /// A member acquired these: the others of a partly acquired run wait.
    pub(super) fn key_acquired(&mut self, from: Offset, batches: &[OffsetRange], new: &[Acquired]) {
        let Some(keys) = &self.keys else {
            return;
        };
        let has_runs = keys.reach > 1;
        if let Some(head) = batches.first().filter(|head| from < head.first) {
            self.key_lost(OffsetRange::new(from, head.first - 1));
        }
        if has_runs {
            let new = new.iter();
            let new: Vec<_> = new
                .map(|each| OffsetRange::new(each.first, each.last))
                .collect();
            self.key_changed(&new);
        }
    }

    /// The state of records in `ranges` changed: update which others of their keys may be acquired.
    pub(super) fn key_changed(&mut self, ranges: &[OffsetRange]) {
        self.changed(ranges, HEAD);
    }

    /// Drops records in `range` whatever precedes them in their keys' chains.
    pub(super) fn key_lost(&mut self, range: OffsetRange) {
        self.changed(&[range], range.last);
    }

    fn changed(&mut self, ranges: &[OffsetRange], through: Offset) {
        let Some(keys) = &self.keys else {
            return;
        };
        let mut digests = Vec::new();
        for range in ranges {
            keys.chains.digests_in(*range, &mut digests);
        }
        digests.sort_unstable();
        digests.dedup();
        self.refresh(&digests, through);
    }

    pub(super) fn refresh(&mut self, digests: &[Digest], through: Offset) {
        for digest in digests {
            self.refresh_key(*digest, through);
        }
    }

    /// Drops finished records of a key up to `through`, and makes its first unfinished one acquirable. The others of a
    /// run follow when a fetch wants them.
    fn refresh_key(&mut self, digest: Digest, through: Offset) {
        let Some(keys) = &mut self.keys else {
            return;
        };
        let through = keys
            .lined_up
            .get(&digest)
            .map_or(through, |last| through.max(*last));
        let mut open = std::mem::take(&mut keys.open);
        open.clear();
        let (mut last, mut gone, mut has_changed) = (None, None, false);
        let mut seen_to = through;
        let mut next = keys.chains.first(digest);
        while let Some(link) = next
            && (open.is_empty() || link.unit.first <= through)
        {
            let (unit, from) = (link.unit, open.len());
            seen_to = unit.last.min(through).max(unit.first - 1);
            if seen_to >= unit.first {
                let range = OffsetRange::new(unit.first, seen_to);
                self.inner.open_in(range, i64::MAX, &mut open);
            }
            if open.is_empty() && seen_to < unit.last {
                let rest = OffsetRange::new(seen_to + 1, unit.last);
                self.inner.open_in(rest, 1, &mut open);
                seen_to = open.last().map_or(unit.last, |piece| piece.range.last);
            }
            if open.is_empty() {
                gone = next;
            } else {
                has_changed |= !covers(&open[from..], OffsetRange::new(unit.first, seen_to));
            }
            (last, next) = (next, keys.chains.after(link));
        }
        debug_assert!(
            open.is_sorted_by(|a, b| a.range.last < b.range.first),
            "records of a key are in order"
        );
        if has_changed && let Some(last) = last {
            let kept = keys.chains.kept(digest, last, &open, seen_to);
            keys.chains.replace(digest, last, &kept);
        } else if let Some(gone) = gone {
            keys.chains.drop_through(digest, gone);
        }
        self.let_first_come(digest, &open);
        if let Some(keys) = &mut self.keys {
            // one key may have had very many
            open.shrink_to(OPEN_KEPT);
            keys.open = open;
        }
    }

    /// Makes the first of a key's unfinished records acquirable, unless a member holds some.
    fn let_first_come(&mut self, digest: Digest, open: &[Open]) {
        let held = open.iter().filter(|piece| piece.is_held);
        let last_held = held.clone().next_back().map(|piece| piece.range.last);
        let mut may_come = last_held.is_none();
        if is_planted(Bug::RunGoesOn) {
            may_come |= held.map(|piece| piece.range.count()).sum::<i64>() < self.rules.run_max;
        }
        for piece in open.iter().filter(|piece| !piece.is_held) {
            let OffsetRange { first, last } = piece.range;
            let is_front = may_come && !piece.is_waiting;
            let front = OffsetRange::new(first, if is_front { first } else { first - 1 });
            may_come = false;
            if piece.is_behind && !front.is_empty() {
                self.inner.put_in_front(front);
            }
            let behind = OffsetRange::new(front.last + 1, last);
            if !piece.is_behind && !behind.is_empty() {
                self.inner.put_behind(behind);
            }
        }
        let Some(keys) = &mut self.keys else {
            return;
        };
        match (last_held, open.first()) {
            (Some(last), Some(first)) if first.range.first < last => {
                keys.lined_up.insert(digest, last);
            }
            _ if keys.lined_up.is_empty() => {}
            _ => {
                keys.lined_up.remove(&digest);
            }
        }
    }

    pub(super) fn keys_memory_bytes(&self) -> usize {
        let keys = self.keys.as_ref();
        keys.map_or(0, |keys| {
            let lined_up = keys.lined_up.capacity() * (size_of::<(Digest, Offset)>() + 1);
            size_of::<Keys>() + keys.chains.memory_bytes() + lined_up
        })
    }

    pub(super) fn key_details(&self, limit: usize) -> Option<KeyDetails> {
        let keys = self.keys.as_ref()?;
        let window = OffsetRange::new(self.inner.start_offset(), self.inner.end_offset());
        let open = self.inner.all_open_in(window).into_iter();
        let behind = open.filter(|piece| piece.is_behind && !piece.is_waiting);
        let digests = keys.chains.digests().into_iter();
        let in_runs = digests.flat_map(|digest| self.run_of(digest));
        let in_runs = in_runs.filter(|piece| piece.is_behind);
        let count = |piece: Open| piece.range.count();
        Some(KeyDetails {
            behind: behind.map(count).sum::<i64>() - in_runs.map(count).sum::<i64>(),
            keys: keys.chains.keys(),
            largest: keys.chains.largest(limit),
        })
    }

    /// Checks that exactly the right records are acquirable.
    pub(super) fn check_keys(&self) -> Result<(), String> {
        let Some(keys) = &self.keys else {
            let window = OffsetRange::new(0, self.inner.end_offset());
            let open = self.inner.all_open_in(window);
            return match open.iter().find(|piece| piece.is_behind) {
                Some(piece) => Err(format!("{:?} comes after others, of no key", piece.range)),
                None => Ok(()),
            };
        };
        keys.chains.check()?;
        for digest in keys.chains.digests() {
            let (mut left, mut is_held) = (self.rules.run_max, false);
            let mut open = Vec::new();
            let mut next = keys.chains.first(digest);
            while let Some(link) = next {
                let unit = link.unit;
                if self.inner.open_in(unit, i64::MAX, &mut open) != unit.count() {
                    return Err(format!("{unit:?} has records that are settled"));
                }
                next = keys.chains.after(link);
            }
            is_held |= open.iter().any(|piece| piece.is_held);
            let lined_up = keys.lined_up.get(&digest).copied().unwrap_or(HEAD);
            let out = open
                .iter()
                .filter(|piece| piece.is_held || !piece.is_behind);
            let last = out.map(|piece| {
                if piece.is_held {
                    piece.range.last
                } else {
                    piece.range.first
                }
            });
            if let (Some(head), Some(last)) = (open.first(), last.max())
                && last > head.range.first.max(lined_up)
            {
                return Err(format!(
                    "{last} may be acquired with others, and is not lined up"
                ));
            }
            let mut is_first = true;
            for piece in open {
                if piece.is_waiting || is_held {
                    left = 0;
                }
                if piece.is_held {
                    continue;
                }
                if !piece.is_behind && piece.range.count() > left {
                    return Err(format!("{:?} may come before others", piece.range));
                }
                if piece.is_behind && left > 0 && is_first {
                    return Err(format!("{:?} may not come, and should", piece.range));
                }
                is_first = false;
                left -= if piece.is_behind {
                    left
                } else {
                    piece.range.count()
                };
            }
        }
        Ok(())
    }
}

/// Whether these records are all of `range`.
fn covers(open: &[Open], range: OffsetRange) -> bool {
    let mut next = range.first;
    for piece in open {
        if piece.range.first != next {
            return false;
        }
        next = piece.range.last + 1;
    }
    next > range.last
}
