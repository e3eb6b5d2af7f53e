//! The invariants of a partition, each checked from scratch.

use std::collections::HashMap;

use super::{Partition, Side};
use crate::inflight::LeaseId;
use crate::record_state::RecordState;

impl Partition {
    /// Checks every invariant; the error names the broken one. Linear in the window: for tests and simulation.
    pub fn check(&self) -> Result<(), String> {
        self.map.check()?;
        let side = Side::of(self);
        let mut complete = 0;
        let mut leaning = HashMap::new();
        for run in self.map.iter() {
            let at = format!("run {}-{}", run.first, run.last);
            let holds = run.cell().lease() != LeaseId::NONE;
            if holds != (run.cell().is_pending() || run.cell().state() == RecordState::Acquired) {
                return Err(format!(
                    "{at} is {:?}, and a lease is{} set",
                    run.cell().state(),
                    if holds { "" } else { " not" }
                ));
            }
            if holds {
                *leaning.entry(run.cell().lease().0).or_insert(0) += run.range().count();
                if run.first < self.leases.first(run.cell().lease()) {
                    return Err(format!("{at} begins before its lease"));
                }
                if !run.cell().is_pending() && self.leases.has_expired(run.cell().lease(), i64::MIN)
                {
                    return Err(format!("{at} is acquired under a lock that has run out"));
                }
            }
            if run.cell().is_rejected()
                && (run.cell().state() != RecordState::Archiving || !run.cell().is_pending())
            {
                return Err(format!(
                    "{at} is rejected, and not on its way to a dead letter"
                ));
            }
            if run.first < self.start && run.cell().is_available() {
                return Err(format!("{at} is available before the start offset"));
            }
            if run.cell().state().is_terminal() {
                complete += side.counted(run.range());
            }
        }
        if complete != self.complete {
            return Err(format!(
                "delivery complete count is {}, counted {complete}",
                self.complete
            ));
        }
        if self
            .map
            .last_offset()
            .is_some_and(|last| last >= self.start && last != self.end)
        {
            return Err(format!(
                "the end offset is {}, the last run ends elsewhere",
                self.end
            ));
        }
        self.leases.check(&leaning)
    }
}
