//! Objects of the journal that are read several at a time.

use sharecore_bucket::{Answer, Retried, What};

/// A journal object being read.
pub(super) struct Ahead {
    pub(super) slot: Retried,
    /// Whether it was the next one when requested.
    pub(super) was_next: bool,
    pub(super) found: Option<Answer>,
}

impl Ahead {
    pub(super) fn begun(name: String, was_next: bool) -> Self {
        Self {
            slot: Retried::begun(get(name)),
            was_next,
            found: None,
        }
    }
}

pub(super) fn get(name: String) -> What {
    What::Get { name, range: None }
}
