//! Operations with any numbers of their types: nothing may overflow, and the invariants hold.

use arbitrary::{Result, Unstructured};
use sharecore_engine::{
    AckBatch, AcquireOptions, Config, OffsetRange, Partition, RecordState, StateBatch,
};

use crate::operations::list;

const STEPS_MAX: usize = 60;
/// The highest offset of a record batch; no log gets there, and the engine counts on from it.
const OFFSET_MAX: i64 = i64::MAX / 2;
/// Maximum width of the window, more than 32 bits.
const WINDOW_MAX: i64 = 1 << 40;
const MEMBERS: [&str; 3] = ["", "m", "another"];

/// Runs any operations with any numbers. Checks first what the engine's callers check: limits are positive, record batches
/// ascend.
pub fn numbers(data: &[u8]) {
    // The trace ends when the bytes run out
    let _ = run(&mut Unstructured::new(data));
}

/// A number that is small, or near the ends of the range, or any.
fn number(u: &mut Unstructured<'_>) -> Result<i64> {
    let small = i64::from(u.arbitrary::<i8>()?);
    Ok(match u.int_in_range(0..=5_u8)? {
        0 => i64::MAX - small.max(0),
        1 => i64::MIN + small.max(0),
        2 => u.arbitrary()?,
        3 => (1 << u.int_in_range(0..=62)?) + small,
        _ => small,
    })
}

fn config(u: &mut Unstructured<'_>) -> Result<Config> {
    Ok(Config {
        max_delivery_count: u.arbitrary::<u16>()?.max(1),
        max_inflight: number(u)?.max(1),
        lock_ms: number(u)?.max(1),
        renew_enabled: u.arbitrary()?,
        dead_letters: u.arbitrary()?,
    })
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut partition = load(u)?;
    let (mut open, mut now_ms) = (Vec::new(), number(u)?);
    for _ in 0..STEPS_MAX {
        if u.is_empty() {
            break;
        }
        let member = u.choose(&MEMBERS)?;
        let write = match u.int_in_range(0..=10_u8)? {
            0..=2 => {
                acquire(u, &mut partition, now_ms, member)?;
                None
            }
            3 | 4 => acknowledge(u, &mut partition, now_ms, member)?,
            5 => partition.release(member).map(|write| write.id),
            6 => {
                now_ms = now_ms.max(number(u)?);
                partition.advance(now_ms).map(|write| write.id)
            }
            7 => {
                partition.move_log_start(number(u)?);
                None
            }
            8 => {
                let (first, last) = (number(u)?, number(u)?);
                partition.archive(first, last);
                partition.pass_hole(first, last);
                None
            }
            9 => {
                partition.take_dead_letters();
                let write = partition.finish_archiving(number(u)?, number(u)?);
                write.map(|write| write.id)
            }
            _ => {
                partition.configure(config(u)?);
                None
            }
        };
        open.extend(write);
        if !open.is_empty() && u.arbitrary()? {
            let id = open.swap_remove(u.choose_index(open.len())?);
            let batches = partition.write_batches(id).expect("the write is open");
            assert!(batches.is_sorted_by(|a, b| a.last < b.first));
            let ended = if u.arbitrary()? {
                partition.commit(id)
            } else {
                partition.rollback(id, now_ms)
            };
            ended.expect("the write is open");
        }
        if let Err(broken) = partition.check() {
            panic!("{broken}");
        }
    }
    Ok(())
}

/// Loads a partition from state that may be invalid; an empty one if it is.
fn load(u: &mut Unstructured<'_>) -> Result<Partition> {
    let config = config(u)?;
    let start_offset = number(u)?;
    let state = list(u, 4, |u| {
        let first = number(u)?;
        Ok(StateBatch {
            first,
            last: number(u)?.min(first.saturating_add(WINDOW_MAX)),
            state: RecordState::from_id(u.int_in_range(0..=4)?).unwrap_or(RecordState::Archived),
            delivery_count: u.arbitrary()?,
        })
    })?;
    let loaded = Partition::new(config, start_offset, &state);
    let made = loaded.or_else(|_| Partition::new(config, start_offset.max(0), &[]));
    let partition = made.expect("empty state behind offset 0");
    if let Err(broken) = partition.check() {
        panic!("after loading: {broken}");
    }
    Ok(partition)
}

fn acquire(
    u: &mut Unstructured<'_>,
    partition: &mut Partition,
    now_ms: i64,
    member: &str,
) -> Result<()> {
    let mut after = if u.arbitrary()? {
        partition.next_fetch_offset()
    } else {
        number(u)?.max(0)
    };
    let mut batches = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let first = after.saturating_add(number(u)?.max(0));
        // A batch counts its offsets in 32 bits
        let last = first.saturating_add(number(u)?.clamp(0, i64::from(i32::MAX)));
        if last > OFFSET_MAX || last > partition.start_offset().saturating_add(WINDOW_MAX) {
            break;
        }
        batches.push(OffsetRange::new(first, last));
        after = last + 1;
    }
    let options = AcquireOptions {
        fetch_offset: if u.arbitrary()? {
            partition.next_fetch_offset()
        } else {
            number(u)?
        },
        max_fetch_records: number(u)?,
        batch_size: number(u)?,
        record_limit: u.arbitrary()?,
    };
    let mut out = Vec::new();
    partition.acquire(now_ms, member, &batches, options, &mut out);
    assert!(out.is_sorted_by(|a, b| a.last < b.first));
    Ok(())
}

fn acknowledge(
    u: &mut Unstructured<'_>,
    partition: &mut Partition,
    now_ms: i64,
    member: &str,
) -> Result<Option<u64>> {
    let given = list(u, 3, |u| {
        let start = partition.start_offset();
        let from = if u.arbitrary()? { start } else { 0 };
        let types = list(u, 4, |u| u.int_in_range(0..=5_u8))?;
        Ok((
            from.saturating_add(number(u)?),
            from.saturating_add(number(u)?),
            types,
        ))
    })?;
    let batches: Vec<_> = given
        .iter()
        .map(|(first, last, types)| AckBatch {
            first: *first,
            last: *last,
            types,
        })
        .collect();
    let answer = partition.acknowledge(now_ms, member, &batches);
    Ok(answer.ok().flatten().map(|write| write.id))
}
