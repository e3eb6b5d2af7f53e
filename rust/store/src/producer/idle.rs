//! Forgetting producers: after a time, and the longest idle ones if there are too many.

use super::Producers;
use crate::producer_room::oldest;

impl Producers {
    /// Forgets producers last seen before `before_ms`, except those with open transactions.
    pub(crate) fn expire(&mut self, before_ms: i64) {
        self.announced.expire(before_ms);
        self.entries
            .retain(|_, e| e.seen_ms > before_ms || e.transaction_start.is_some());
        self.entries.shrink_to(2 * self.entries.len());
    }

    /// The number of producers, and of announced first batches.
    pub(crate) fn counts(&self) -> [usize; 2] {
        [self.entries.len(), self.announced.len()]
    }

    /// Forgets the longest idle producers beyond `max`, except those with open transactions.
    pub(crate) fn keep_newest(&mut self, max: usize) {
        self.announced.keep_newest(max);
        let surplus = self.entries.len().saturating_sub(max);
        let idle = self.entries.iter();
        let idle = idle.filter(|(_, e)| e.transaction_start.is_none());
        let cut = match surplus {
            0 => None,
            _ => oldest(idle.map(|(id, e)| (e.seen_ms, *id)).collect(), surplus),
        };
        if let Some(cut) = cut {
            self.entries
                .retain(|id, e| (e.seen_ms, *id) > cut || e.transaction_start.is_some());
            self.entries.shrink_to(2 * self.entries.len());
        }
    }
}
