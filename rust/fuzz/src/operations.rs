//! Operations with small numbers, so that they overlap; every result is checked against the history.

use arbitrary::{Result, Unstructured};
use sharecore_engine::Config;

use crate::world::{Step, World};

const STEPS_MAX: usize = 300;

/// Runs any operations on one partition, with commits and rollbacks interleaved, and checks every invariant after each.
pub fn operations(data: &[u8]) {
    // The trace ends when the bytes run out
    let _ = run(&mut Unstructured::new(data));
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut world = World::new(Config {
        max_delivery_count: u.int_in_range(1..=7)?,
        max_inflight: u.int_in_range(1..=80)?,
        lock_ms: 1000,
        renew_enabled: u.ratio(7, 8)?,
        dead_letters: u.ratio(1, 2)?,
    });
    for _ in 0..STEPS_MAX {
        if u.is_empty() {
            break;
        }
        world.step(&step(u)?);
    }
    Ok(())
}

fn step(u: &mut Unstructured<'_>) -> Result<Step> {
    let kind: u8 = u.int_in_range(0..=17)?;
    Ok(match kind {
        0..=3 => Step::Acquire {
            member: u.int_in_range(0..=3)?,
            batches: list(u, 6, |u| {
                Ok((u.int_in_range(0..=7)?, u.int_in_range(0..=15)?))
            })?,
            max: u.int_in_range(0..=60)?,
            size: u.int_in_range(0..=30)?,
            record_limit: u.arbitrary()?,
        },
        4..=7 => Step::Acknowledge {
            member: u.int_in_range(0..=3)?,
            batches: list(u, 4, |u| {
                let types = list(u, 9, |u| u.int_in_range(0..=5))?;
                Ok((u.int_in_range(0..=60)?, u.int_in_range(0..=15)?, types))
            })?,
        },
        8 => Step::Release {
            member: u.int_in_range(0..=3)?,
        },
        9 => Step::Advance {
            ms: u.int_in_range(0..=2000)?,
        },
        10 => Step::LogStart {
            by: u.int_in_range(0..=40)?,
        },
        11 => Step::Archive {
            at: u.int_in_range(0..=60)?,
            length: u.int_in_range(0..=15)?,
        },
        12 | 13 => Step::End {
            which: u.arbitrary()?,
            well: u.arbitrary()?,
        },
        14 => Step::Configure {
            max_delivery_count: u.int_in_range(1..=7)?,
            max_inflight: u.int_in_range(1..=80)?,
        },
        16 => Step::Keep {
            member: u.int_in_range(0..=3)?,
            ms: u.int_in_range(0..=2000)?,
            max_ms: u.int_in_range(0..=5000)?,
        },
        15 => Step::Letters {
            most: u.int_in_range(0..=4)?,
        },
        _ => Step::Reload,
    })
}

/// Reads one to `most` items with `one`.
pub(crate) fn list<'a, T>(
    u: &mut Unstructured<'a>,
    most: usize,
    one: impl Fn(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    (0..u.int_in_range(1..=most)?).map(|_| one(u)).collect()
}
