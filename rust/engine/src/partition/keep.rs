//! Locks that go on while their member is connected (`share.record.lock.keep`).

use super::Partition;

impl Partition {
    /// The members whose locks have run out at `now_ms`, each once.
    pub fn running_out(&self, now_ms: i64) -> Vec<&str> {
        let found = self.leases.running_out(now_ms);
        let mut names: Vec<_> = found.map(|id| self.leases.owner_name(id)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Starts the locks of `members` anew that have run out at `now_ms`, so that [`advance`](Self::advance) leaves them.
    ///
    /// A lock goes on until `max_ms` after its records were delivered, or after their member has renewed them last; the
    /// delivery count stays. Nothing is persisted.
    pub fn keep_locks<S: AsRef<str>>(&mut self, now_ms: i64, members: &[S], max_ms: i64) {
        let found: Vec<_> = self.leases.running_out(now_ms).collect();
        for id in found {
            let owner = self.leases.owner_name(id);
            if members.iter().any(|member| member.as_ref() == owner) {
                self.leases.keep(id, now_ms, self.config.lock_ms, max_ms);
            }
        }
    }

    /// How many offsets members hold longer than a lock lasts, as they are connected.
    pub fn kept(&self) -> i64 {
        self.leases.kept()
    }
}
