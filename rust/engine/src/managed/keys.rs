//! Order by key: only the first unfinished records of a key can be acquired, by one member.
//!
//! Records are read in log order before any is delivered: [`Managed::admit`] learns their keys. A record that waits for
//! an earlier one of its key is `behind` in the map.

use super::chains::{Chains, Digest};
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
    /// How many records of a key may be acquired at once or are acquirable.
    reach: i64,
    /// Members may hold records acquired before the order began.
    is_settling: bool,
    /// Unfinished records of the key being refreshed; kept for its memory.
    open: Vec<Open>,
}

/// How many unfinished records of a key the buffer for them keeps room for.
const OPEN_KEPT: usize = 1024;

impl Managed {
    /// Starts the order by key if the rules ask for it; no record has been read yet.
    pub(super) fn begin_keys(&mut self) {
        self.end_keys();
        let spec = self.rules.spec.as_ref();
        if spec.is_some_and(|spec| spec.key.is_some()) {
            self.keys = Some(Box::new(Keys {
                chains: Chains::default(),
                reach: self.rules.run_max,
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
        let (digests, reach) = (keys.chains.digests(), keys.reach);
        self.refresh(&digests, reach);
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

    /// Whether more records may become acquirable when some are added behind others of their key.
    pub(super) fn reaches_behind(&self) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.reach > 1)
    }

    /// Updates the keys of records just read.
    pub(super) fn keys_touched(&mut self, mut digests: Vec<Digest>) {
        let reach = self.keys.as_ref().map_or(0, |keys| keys.reach);
        digests.sort_unstable();
        digests.dedup();
        self.refresh(&digests, reach);
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
        let reach = keys.reach;
        if let Some(head) = batches.first().filter(|head| from < head.first) {
            self.key_lost(OffsetRange::new(from, head.first - 1));
        }
        if reach > 1 {
            let new = new.iter();
            let new: Vec<_> = new
                .map(|each| OffsetRange::new(each.first, each.last))
                .collect();
            self.key_changed(&new);
        }
    }

    /// The state of records in `ranges` changed: update which others of their keys may be acquired.
    pub(super) fn key_changed(&mut self, ranges: &[OffsetRange]) {
        let reach = self.keys.as_ref().map_or(0, |keys| keys.reach);
        self.changed(ranges, reach);
    }

    /// Drops records in `range` whatever precedes them in their keys' chains.
    pub(super) fn key_lost(&mut self, range: OffsetRange) {
        self.changed(&[range], i64::MAX);
    }

    fn changed(&mut self, ranges: &[OffsetRange], reach: i64) {
        let Some(keys) = &self.keys else {
            return;
        };
        let mut digests = Vec::new();
        for range in ranges {
            keys.chains.digests_in(*range, &mut digests);
        }
        digests.sort_unstable();
        digests.dedup();
        self.refresh(&digests, reach);
    }

    pub(super) fn refresh(&mut self, digests: &[Digest], reach: i64) {
        for digest in digests {
            self.refresh_key(*digest, reach);
        }
    }

    /// Drops finished records among the first `reach` of a key, and makes the next ones acquirable.
    fn refresh_key(&mut self, digest: Digest, reach: i64) {
        let Some(keys) = &mut self.keys else {
            return;
        };
        let mut open = std::mem::take(&mut keys.open);
        open.clear();
        let mut seen = 0;
        let (mut last, mut gone, mut has_changed) = (None, None, false);
        let mut next = keys.chains.first(digest);
        while seen < reach
            && let Some(link) = next
        {
            let from = open.len();
            seen += self.inner.open_in(link.unit, reach - seen, &mut open);
            if open.is_empty() {
                gone = next;
            } else {
                has_changed |= !covers(&open[from..], link.unit, seen >= reach);
            }
            (last, next) = (next, keys.chains.after(link));
        }
        debug_assert!(
            open.is_sorted_by(|a, b| a.range.last < b.range.first),
            "records of a key are in order"
        );
        if has_changed && let Some(last) = last {
            let kept = keys.chains.kept(digest, last, &open, seen >= reach);
            keys.chains.replace(digest, last, &kept);
        } else if let Some(gone) = gone {
            keys.chains.drop_through(digest, gone);
        }
        self.let_come_in_order(&open);
        if let Some(keys) = &mut self.keys {
            // one key may have had very many
            open.shrink_to(OPEN_KEPT);
            keys.open = open;
        }
    }

    /// Makes the first of a key's unfinished records acquirable, as far as the rules allow.
    fn let_come_in_order(&mut self, open: &[Open]) {
        let mut left = self.rules.run_max;
        let held = open.iter().filter(|piece| piece.is_held);
        let held: i64 = held.map(|piece| piece.range.count()).sum();
        if held > 0 {
            left = if is_planted(Bug::RunGoesOn) {
                (left - held).max(0)
            } else {
                0
            };
        }
        for piece in open.iter().filter(|piece| !piece.is_held) {
            if piece.is_waiting {
                left = 0;
            }
            let OffsetRange { first, last } = piece.range;
            let front = OffsetRange::new(first, last.min(first.saturating_add(left) - 1));
            left -= front.count();
            debug_assert!(left >= 0, "more may come than was allowed");
            if piece.is_behind && !front.is_empty() {
                self.inner.put_in_front(front);
            }
            let behind = OffsetRange::new(front.last + 1, last);
            if !piece.is_behind && !behind.is_empty() {
                self.inner.put_behind(behind);
            }
        }
    }

    pub(super) fn keys_memory_bytes(&self) -> usize {
        let keys = self.keys.as_ref();
        keys.map_or(0, |keys| size_of::<Keys>() + keys.chains.memory_bytes())
    }

    pub(super) fn key_details(&self, limit: usize) -> Option<KeyDetails> {
        let keys = self.keys.as_ref()?;
        let window = OffsetRange::new(self.inner.start_offset(), self.inner.end_offset());
        let open = self.inner.all_open_in(window);
        let behind = open
            .iter()
            .filter(|piece| piece.is_behind && !piece.is_waiting);
        Some(KeyDetails {
            behind: behind.map(|piece| piece.range.count()).sum(),
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
                if piece.is_behind && left > 0 {
                    return Err(format!("{:?} may not come, and should", piece.range));
                }
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

/// Whether these records of a unit are all of it; if `is_over`, those behind them were not looked at.
fn covers(open: &[Open], unit: OffsetRange, is_over: bool) -> bool {
    let mut next = unit.first;
    for piece in open {
        if piece.range.first != next {
            return false;
        }
        next = piece.range.last + 1;
    }
    next > unit.last || is_over && next > unit.first
}
