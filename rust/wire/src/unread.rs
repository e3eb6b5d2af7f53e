//! Memory for unread responses: they share one limit, and no owner can use it up.

use std::collections::HashMap;
use std::sync::Arc;

/// A response with room for less than this is not worth its request.
const WORTHWHILE_BYTES: u64 = 64 << 10;

/// Memory for responses that are built and not yet sent.
#[derive(Debug, Default)]
pub struct Unread {
    /// `None` if unlimited.
    bytes_max: Option<u64>,
    used: u64,
    owners: HashMap<Arc<str>, u64>,
}

impl Unread {
    /// Creates room for this many bytes.
    pub fn new(bytes_max: Option<u64>) -> Self {
        Unread {
            bytes_max,
            ..Unread::default()
        }
    }

    /// Total bytes in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Changes the bytes of an owner's connection from `before`.
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

    /// How many bytes the next response of an owner may carry; 0 if it must wait for others to be read.
    ///
    /// Half of the remaining room, so that no client gets the last of it. `reading`: bytes being read for responses,
    /// which are counted nowhere else.
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

    /// Whether an owner waits for its own responses to be read, rather than for anyone's.
    pub fn waits_for_own(&self, owner: &Arc<str>) -> bool {
        let own = self.owners.get(owner).copied().unwrap_or(0);
        self.bytes_max.is_some_and(|most| own >= most / 2)
    }
}
