//! What has happened in a store since its caller asked last.

use crate::{
    LogId,
    damage::Damage,
    log::Offsets,
    store::{Outcome, Store},
};

/// Events since the last call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// In sequence order.
    pub outcomes: Vec<Outcome>,
    /// Logs whose high watermark, last stable offset or start moved.
    pub moved: Vec<(LogId, Offsets)>,
    /// Finished reads of `Store::read_apart`.
    pub read: Vec<u64>,
    /// Damaged batches found for the first time.
    pub damaged: Vec<Damage>,
}

impl Store {
    /// Returns what became durable or failed since the last call.
    pub fn drain(&self) -> Drained {
        self.shared.signal.lower();
        let mut state = self.shared.lock();
        let outcomes = std::mem::take(&mut state.outcomes);
        let ids = std::mem::take(&mut state.moved);
        debug_assert!(
            outcomes.is_sorted_by(|a, b| a.sequence < b.sequence),
            "writes end in order"
        );
        let moved = ids.into_iter().filter_map(|id| {
            let log = state.logs.get_mut(&id)?;
            debug_assert!(log.moved, "a log is listed once");
            log.moved = false;
            Some((id, log.offsets()))
        });
        Drained {
            moved: moved.collect(),
            read: self.shared.reads.take_ended(),
            damaged: self.shared.damages.take_fresh(),
            outcomes,
        }
    }
}
