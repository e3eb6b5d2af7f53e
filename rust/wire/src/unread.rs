//! How much may wait for clients to read it: answers share one bound, and no owner can take all of it.

use std::collections::HashMap;
use std::sync::Arc;

/// An answer that may carry less than this is not worth its request.
const WORTHWHILE_BYTES: u64 = 64 << 10;

/// Memory for answers that are made and not yet sent.
#[derive(Debug, Default)]
pub struct Unread {
    /// `None` for no bound.
    bytes_max: Option<u64>,
    used: u64,
    owners: HashMap<Arc<str>, u64>,
}

impl Unread {
    /// Room for so many bytes.
    pub fn new(bytes_max: Option<u64>) -> Self {
        Unread {
            bytes_max,
            ..Unread::default()
        }
    }

    /// All that is taken.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// A connection of an owner has so many bytes now, where it had others.
    pub fn change(&mut self, owner: &Arc<str>, before: u64, now: u64) {
        if before == now {
            return;
        }
        self.used = self.used - before + now;
        let own = self.owners.entry(Arc::clone(owner)).or_default();
        *own = *own - before + now;
        if *own == 0 {
            self.owners.remove(owner);
        }
    }

    /// Bytes that the next answer of an owner may carry; 0 where it has to wait for others to be read.
    ///
    /// It is half of what is left, so that no client gets the last of it. `reading`: what is being read for answers, and
    /// is counted nowhere else.
    pub fn room(&self, owner: &Arc<str>, reading: u64) -> u64 {
        let Some(most) = self.bytes_max else {
            return u64::MAX;
        };
        let own = self.owners.get(owner).copied().unwrap_or(0);
        let left = most.saturating_sub(self.used.saturating_add(reading));
        let left = left.min((most / 2).saturating_sub(own));
        if left == 0 {
            return 0;
        }
        (left / 2).max(WORTHWHILE_BYTES)
    }

    /// Whether an owner waits for its own answers to be read, rather than for anybody's.
    pub fn waits_for_own(&self, owner: &Arc<str>) -> bool {
        let own = self.owners.get(owner).copied().unwrap_or(0);
        self.bytes_max.is_some_and(|most| own >= most / 2)
    }
}
