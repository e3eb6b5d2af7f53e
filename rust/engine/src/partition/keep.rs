//! Locks that last while their member is connected (`share.record.lock.keep`).

use super::Partition;

impl Partition {
    /// The members whose locks have expired at `now_ms`, each once.
    pub fn running_out(&self, now_ms: i64) -> Vec<&str> {
        let found = self.leases.running_out(now_ms);
        let mut names: Vec<_> = found.map(|id| self.leases.owner_name(id)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Restarts the expired locks of `members`, so that [`advance`](Self::advance) skips them.
    ///
    /// A lock is extended up to `max_ms` after its records were delivered or last renewed by their member; the delivery
    /// count stays. Nothing is persisted.
    pub fn keep_locks<S: AsRef<str>>(&mut self, now_ms: i64, members: &[S], max_ms: i64) {
        let found: Vec<_> = self.leases.running_out(now_ms).collect();
        for id in found {
            let owner = self.leases.owner_name(id);
            if members.iter().any(|member| member.as_ref() == owner) {
                self.leases.keep(id, now_ms, self.config.lock_ms, max_ms);
            }
        }
    }

    /// How many offsets members hold beyond the lock duration, because they are connected.
    pub fn kept(&self) -> i64 {
        self.leases.kept()
    }
}
