//! Which batches belong to aborted transactions, and which markers have no batches left.

use std::collections::{HashMap, HashSet};

use crate::{batch::Header, producer::Aborted};

/// The transactions of a log, as its batches are visited in order.
pub(crate) struct Transactions<'a> {
    /// By first offset.
    aborted: &'a [Aborted],
    next: usize,
    /// By producer: its aborted transaction, and whether one of its batches was seen.
    aborting: HashMap<i64, (Aborted, bool)>,
    /// Producers of other transactions with a batch seen.
    committing: HashSet<i64>,
    seen: HashSet<(i64, i64)>,
}

impl<'a> Transactions<'a> {
    /// `aborted` is ordered by first offset.
    pub(crate) fn new(aborted: &'a [Aborted]) -> Self {
        debug_assert!(
            aborted.is_sorted_by_key(|transaction| transaction.first_offset),
            "they begin in order"
        );
        Self {
            aborted,
            next: 0,
            aborting: HashMap::new(),
            committing: HashSet::new(),
            seen: HashSet::new(),
        }
    }

    fn begin_up_to(&mut self, offset: i64) {
        while let Some(begun) = self.aborted.get(self.next).copied()
            && begun.first_offset <= offset
        {
            self.aborting.insert(begun.producer_id, (begun, false));
            self.next += 1;
        }
    }

    /// Visits a data batch; returns whether it was aborted.
    pub(crate) fn data(&mut self, header: &Header) -> bool {
        self.begin_up_to(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        if let Some((aborted, seen)) = self.aborting.get_mut(&header.producer_id) {
            *seen = true;
            self.seen
                .insert((aborted.producer_id, aborted.first_offset));
            return true;
        }
        self.committing.insert(header.producer_id);
        false
    }

    /// Visits a marker (committing or not, `None` for an invalid one); returns whether no batch of its transaction is
    /// left before it.
    pub(crate) fn marker(&mut self, header: &Header, commits: Option<bool>) -> bool {
        self.begin_up_to(header.last_offset());
        match commits {
            None => true,
            Some(false) => self
                .aborting
                .remove(&header.producer_id)
                .is_none_or(|(_, seen)| !seen),
            Some(true) => !self.committing.remove(&header.producer_id),
        }
    }

    /// Aborted transactions decided before `end` without remaining batches: readers need not know of them.
    pub(crate) fn vanished(&self, end: i64) -> Vec<Aborted> {
        let gone = |a: &&Aborted| {
            a.last_offset < end && !self.seen.contains(&(a.producer_id, a.first_offset))
        };
        self.aborted.iter().filter(gone).copied().collect()
    }
}
