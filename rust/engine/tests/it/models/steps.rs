//! What happens to a share partition with an order.

use proptest::prelude::*;

/// How long a lock lasts.
pub(crate) const LOCK_MS: i64 = 1000;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A member fetches up to this many records.
    Fetch(usize, i64),
    /// The owner of an acquired record acknowledges it.
    Answer(usize, u8),
    /// A member's session ends.
    Leave(usize),
    /// An open write becomes durable, or fails.
    End(usize, bool),
    Wait(i64),
    /// The process is killed; the durable state is loaded.
    Kill,
    /// The log loses its first records.
    Lose(i64),
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_usize, prop_oneof![Just(1_i64), Just(3), Just(100)]).prop_map(|(who, most)| Step::Fetch(who, most)),
        4 => (any::<usize>(), prop_oneof![Just(1_u8), Just(1), Just(2), Just(3)]).prop_map(|(at, kind)| Step::Answer(at, kind)),
        1 => (0..3_usize).prop_map(Step::Leave),
        4 => (any::<usize>(), prop::bool::weighted(0.85)).prop_map(|(at, good)| Step::End(at, good)),
        1 => prop_oneof![Just(1_i64), Just(100), Just(LOCK_MS)].prop_map(Step::Wait),
        1 => Just(Step::Kill),
        1 => (1..4_i64).prop_map(Step::Lose),
    ];
    prop::collection::vec(step, 1..120)
}
