//! Random operations: checks every invariant and the result after each one.

use crate::models::world::{Step, World};
use proptest::prelude::*;
use sharecore_engine::Config;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let member = 0..4_u8;
    let types = prop_oneof![
        prop::collection::vec(0..5_u8, 1..2),
        prop::collection::vec(0..6_u8, 1..9)
    ];
    let step = prop_oneof![
        8 => (member.clone(), prop::collection::vec((0..4_u8, 0..9_u8), 1..5), 0..30_u8, 0..20_u8, any::<bool>())
            .prop_map(|(member, batches, max, size, record_limit)| Step::Acquire { member, batches, max, size, record_limit }),
        10 => (member.clone(), prop::collection::vec((0..40_u8, 0..12_u8, types), 1..4))
            .prop_map(|(member, batches)| Step::Acknowledge { member, batches }),
        1 => member.prop_map(|member| Step::Release { member }),
        2 => (0..2000_u16).prop_map(|ms| Step::Advance { ms }),
        1 => (0..4_u8, 0..2000_u16, 0..5000_u16)
            .prop_map(|(member, ms, max_ms)| Step::Keep { member, ms, max_ms }),
        1 => (0..20_u8).prop_map(|by| Step::LogStart { by }),
        1 => (0..40_u8, 0..9_u8).prop_map(|(at, length)| Step::Archive { at, length }),
        8 => (any::<u8>(), prop::bool::weighted(0.7)).prop_map(|(which, well)| Step::End { which, well }),
        1 => (1..7_u16, 1..60_u8)
            .prop_map(|(max_delivery_count, max_inflight)| Step::Configure { max_delivery_count, max_inflight }),
        3 => (1..5_u8).prop_map(|most| Step::Letters { most }),
        1 => Just(Step::Reload),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn invariants_hold(max_delivery_count in 1..6_u16, max_inflight in 5..60_i64, dead_letters in any::<bool>(),
                       steps in steps()) {
        let config = Config { max_delivery_count, max_inflight, lock_ms: 1000, renew_enabled: true, dead_letters };
        let mut world = World::new(config);
        for step in &steps {
            world.step(step);
        }
    }
}
