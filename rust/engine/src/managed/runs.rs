//! Runs: several records of a key that one member may acquire together.
//!
//! Between fetches, only the first record of a key is acquirable. Those that follow it in a run are lined up once a fetch
//! wants them, and no further than it wants: with many keys, a fetch takes few records of each, and moving whole runs to
//! the front and back again would cost more than all else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Managed;
use super::admission::extended;
use super::chains::{Digest, Link};
use crate::offset::{OFFSET_MAX, Offset, OffsetRange};
use crate::partition::waits::Open;

/// The next records of a run.
#[derive(Clone, Copy, Debug)]
struct Follower {
    piece: Open,
    digest: Digest,
    link: Link,
    /// How many more records the run may have from here.
    left: i64,
}

/// Followers by offset, the first one on top.
#[derive(Default)]
struct Followers {
    heap: BinaryHeap<Reverse<(Offset, usize)>>,
    all: Vec<Follower>,
}

impl Followers {
    fn next(&self) -> Option<Offset> {
        self.heap.peek().map(|Reverse((first, _))| *first)
    }

    fn push(&mut self, at: Option<usize>, follower: Follower) {
        let at = at.unwrap_or(self.all.len());
        match self.all.get_mut(at) {
            Some(before) => *before = follower,
            None => self.all.push(follower),
        }
        self.heap.push(Reverse((follower.piece.range.first, at)));
    }

    fn pop(&mut self) -> Option<(usize, Follower)> {
        let Reverse((_, at)) = self.heap.pop()?;
        Some((at, self.all[at]))
    }
}

impl Managed {
    /// Makes the first `wanted` records up to `to` acquirable that a fetch may have, those that follow in their runs
    /// included.
    pub(super) fn line_up(&mut self, wanted: i64, to: Offset) {
        let Some(keys) = &self.keys else {
            return;
        };
        if self.rules.run_max <= 1 || self.inner.lined_up() >= to {
            return;
        }
        let (inner, chains) = (&self.inner, &keys.chains);
        let mut followers = Followers::default();
        let mut found: Vec<(Digest, OffsetRange)> = Vec::new();
        let (mut left, mut end) = (wanted, OFFSET_MAX);
        let mut ready = inner.first_ready_piece(inner.start_offset());
        loop {
            let first = ready.map(|piece| piece.first);
            let next = followers.next().into_iter().chain(first).min();
            let Some(offset) = next.filter(|offset| *offset <= end) else {
                break;
            };
            let last = if followers.next() == Some(offset) {
                let Some((at, follower)) = followers.pop() else {
                    break;
                };
                let Follower { piece, digest, .. } = follower;
                if piece.is_behind {
                    found.push((digest, piece.range));
                }
                left -= piece.range.count();
                if let Some(next) = self.follower(follower) {
                    followers.push(Some(at), next);
                }
                piece.range.last
            } else {
                let Some(piece) = ready else {
                    break;
                };
                let last = match chains.unit_at(offset) {
                    None => {
                        let keyed = chains
                            .next_keyed(offset)
                            .map_or(Offset::MAX, |next| next - 1);
                        let last = piece.last.min(keyed);
                        left -= last - offset + 1;
                        last
                    }
                    Some((digest, unit_last)) => {
                        let head = chains.first(digest);
                        // one that is lined up already follows its head
                        if let Some(link) = head.filter(|link| link.unit.first == offset) {
                            left -= 1;
                            let piece = Open::free(OffsetRange::new(offset, offset));
                            let head = Follower {
                                piece,
                                digest,
                                link,
                                left: self.rules.run_max,
                            };
                            if let Some(next) = self.follower(head) {
                                followers.push(None, next);
                            }
                            offset
                        } else {
                            piece.last.min(unit_last)
                        }
                    }
                };
                ready = if last < piece.last {
                    Some(OffsetRange::new(last + 1, piece.last))
                } else {
                    inner.first_ready_piece(last + 1)
                };
                last
            };
            if left <= 0 && end == OFFSET_MAX {
                // whether records of a batch are near their delivery limit is asked of all of its acquirable ones
                end = inner.slow_batch_end(last).unwrap_or(last);
            }
        }
        let mut front: Option<OffsetRange> = None;
        for (_, piece) in &found {
            if let Some(before) = extended(&mut front, *piece) {
                self.inner.put_in_front(before);
            }
        }
        if let Some(rest) = front {
            self.inner.put_in_front(rest);
        }
        for (digest, piece) in &found {
            if let Some(keys) = &mut self.keys {
                let last = keys.lined_up.entry(*digest).or_insert(piece.last);
                *last = piece.last.max(*last);
            }
        }
        self.inner.set_lined_up(end);
    }

    /// As [`line_up`](Self::line_up), for a fetch that reads from `from`, if what is lined up is less than it wants.
    pub(super) fn line_up_for(&mut self, wanted: i64, from: Offset, to: Offset) {
        let known = OffsetRange::new(from, self.inner.lined_up());
        if known.last < to && (known.is_empty() || self.inner.ready_count(known, wanted) < wanted) {
            self.line_up(wanted, to);
        }
    }

    /// The records of a run behind `follower`.
    fn follower(&self, follower: Follower) -> Option<Follower> {
        let Follower {
            piece,
            digest,
            mut link,
            left,
        } = follower;
        let left = left - piece.range.count();
        let mut first = piece.range.last + 1;
        if left <= 0 {
            return None;
        }
        if first > link.unit.last {
            link = self.keys.as_ref()?.chains.after(link)?;
            first = link.unit.first;
        }
        let last = link.unit.last.min(first.saturating_add(left - 1));
        let mut piece = self.inner.first_open(OffsetRange::new(first, last))?;
        debug_assert_eq!(piece.range.first, first, "a unit has settled records");
        piece.range.last = piece.range.last.min(last);
        (!piece.is_waiting && !piece.is_held).then_some(Follower {
            piece,
            digest,
            link,
            left,
        })
    }

    /// The keys of records in `range`, if runs have more than one record.
    pub(super) fn run_keys_in(&self, range: OffsetRange) -> Vec<Digest> {
        let mut digests = Vec::new();
        if let Some(keys) = self.keys.as_ref().filter(|_| self.rules.run_max > 1) {
            keys.chains.digests_in(range, &mut digests);
            digests.sort_unstable();
            digests.dedup();
        }
        digests
    }

    /// The records of a key that one member may acquire together, as it has none yet: whether they are acquirable
    /// already or would be lined up.
    pub(super) fn run_of(&self, digest: Digest) -> Vec<Open> {
        let Some(keys) = &self.keys else {
            return Vec::new();
        };
        let last = keys.lined_up.get(&digest);
        let (mut run, mut left) = (Vec::new(), self.rules.run_max);
        let mut next = keys.chains.first(digest);
        let mut open = Vec::new();
        let mut is_over = false;
        while let Some(link) = next
            && (!is_over || last.is_some_and(|last| link.unit.first <= *last))
        {
            open.clear();
            let wanted = last.map_or(left, |last| left.max(last - link.unit.first + 1));
            self.inner.open_in(link.unit, wanted, &mut open);
            for mut piece in open.iter().copied() {
                if piece.is_held {
                    return Vec::new();
                }
                is_over |= piece.is_waiting;
                if !is_over {
                    piece.range.last = piece
                        .range
                        .last
                        .min(piece.range.first.saturating_add(left - 1));
                    left -= piece.range.count();
                    is_over = left <= 0;
                    run.push(piece);
                }
            }
            next = keys.chains.after(link);
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::managed::{Backoff, Engine, Entry, Key, Order, Rules, Spec};
    use crate::partition::{AcquireOptions, Config, Partition};

    const KEYS: i64 = 250;
    const RUN_MAX: i64 = 64;
    const WANTED: i64 = 500;

    /// Records of the keys in turns, all of them looked at.
    fn loaded(records: i64) -> Box<Managed> {
        let spec = Spec {
            key: Some(Key::Own),
            ..Spec::default()
        };
        let rules = Rules {
            order: Order::None,
            run_max: RUN_MAX,
            backoff: Backoff::NONE,
            max_waiting: 1_000_000,
            spec: Some(Arc::new(spec.clone())),
            expired_letters: false,
        };
        let mut engine = Engine::from(Partition::new(Config::default(), 0, &[]).expect("empty"));
        engine.set_rules(Some(rules));
        let entries: Vec<_> = (0..records)
            .map(|offset| Entry {
                offset,
                not_before_ms: Entry::AT_ONCE,
                expires_ms: Entry::NEVER,
                digest: (offset % KEYS + 1) as u64,
            })
            .collect();
        let batch = OffsetRange::new(0, records - 1);
        assert!(engine.admit((0, 0), &spec, 0, &[batch], &entries, 500));
        match engine {
            Engine::Managed(managed) => managed,
            Engine::Plain(_) => unreachable!("it has rules"),
        }
    }

    #[test]
    fn a_fetch_moves_no_more_records_to_the_front_than_it_takes() {
        let records = KEYS * RUN_MAX;
        let mut managed = loaded(records);
        let all = OffsetRange::new(0, records - 1);
        let ready = |managed: &Managed| managed.inner.ready_count(all, records);
        assert_eq!(ready(&managed), KEYS, "the first of each key");
        managed.line_up(WANTED, 999);
        assert_eq!(ready(&managed), WANTED);
        managed.line_up(WANTED, 499);
        assert_eq!(ready(&managed), WANTED, "they are lined up already");
        let options = AcquireOptions {
            fetch_offset: 0,
            max_fetch_records: WANTED - 1,
            batch_size: WANTED,
            record_limit: true,
        };
        let mut acquired = Vec::new();
        assert_eq!(
            managed.acquire(0, "m", &[all], options, &mut acquired),
            WANTED - 1
        );
        assert_eq!(managed.check(), Ok(()));
        assert_eq!(ready(&managed), 0, "a member has some of each key");
    }

    #[test]
    fn all_of_a_batch_is_lined_up_if_one_of_it_is_near_its_delivery_limit() {
        let records = KEYS * 4;
        let mut managed = loaded(records);
        let all = OffsetRange::new(0, records - 1);
        let options = AcquireOptions {
            fetch_offset: 0,
            max_fetch_records: 2 * KEYS,
            batch_size: records,
            record_limit: true,
        };
        for _ in 0..3 {
            managed.acquire(0, "m", &[all], options, &mut Vec::new());
            let write = managed.release("m").expect("records are held").id;
            managed.commit(write, 0).expect("it is open");
        }
        managed.line_up(1, 0);
        assert!(
            managed.inner.ready_count(all, records) >= 2 * KEYS,
            "more were delivered often"
        );
        assert_eq!(managed.check(), Ok(()));
    }
}
