//! Measures how fast the engine replays a trace, excluding reading input and creating partitions.

use std::collections::HashSet;
use std::time::Duration;

use cpu_time::ThreadTime;

use sharecore_engine::{AckBatch, AcquireOptions, Combiner, OffsetRange, Partition, StateBatch};

use crate::op::Op;
use crate::replay::count;

/// The cost of a replay.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// Operations, excluding `init`.
    pub ops: usize,
    /// Offsets acquired and acknowledged; for combines, batches read.
    pub records: i64,
    /// The time of each run.
    pub runs: Vec<Duration>,
}

impl Timing {
    /// `count` per second, in the median run.
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    pub fn per_second(&self, count: i64) -> f64 {
        count as f64 / self.median().as_secs_f64()
    }

    /// The median run.
    pub fn median(&self) -> Duration {
        let mut runs = self.runs.clone();
        runs.sort_unstable();
        runs.get(runs.len() / 2).copied().unwrap_or_default()
    }
}

/// Replays a trace `warmup` times unmeasured, then `runs` times measured.
///
/// Each acquire first asks for the next fetch offset, as a broker does, and each write is committed at once. Delayed
/// and failing writes and reloads are skipped.
pub fn bench(ops: &[Op], warmup: usize, runs: usize) -> Timing {
    let mut timing = Timing {
        ops: ops
            .iter()
            .filter(|op| !matches!(op, Op::Init { .. }))
            .count(),
        ..Timing::default()
    };
    let input = Input::of(ops);
    let calls = input.calls(ops);
    for index in 0..warmup + runs {
        let (took, records) = once(ops, &calls);
        if index >= warmup {
            timing.runs.push(took);
            timing.records = records;
        }
    }
    timing
}

/// A call to the engine, ready to be made. Its inputs are contiguous in memory, so that the engine is timed and not
/// cache misses.
enum Call<'a> {
    NextPartition,
    Acquire {
        member: &'a str,
        batches: &'a [OffsetRange],
        options: AcquireOptions,
        at_next: bool,
    },
    Acknowledge {
        member: &'a str,
        batches: &'a [AckBatch<'a>],
        records: i64,
    },
    Release {
        member: &'a str,
    },
    Advance {
        ms: i64,
    },
    LogStart {
        offset: i64,
    },
    Combine {
        existing: &'a [StateBatch],
        new: &'a [StateBatch],
        start_offset: Option<i64>,
    },
}

/// Inputs of the calls of a trace.
struct Input<'a> {
    fetched: Vec<OffsetRange>,
    combined: Vec<StateBatch>,
    acknowledged: Vec<AckBatch<'a>>,
}

impl<'a> Input<'a> {
    fn of(ops: &'a [Op]) -> Self {
        let (mut fetched, mut acknowledged) = (Vec::new(), Vec::new());
        let mut combined = Vec::new();
        // equal lists of types are shared
        let mut types = HashSet::new();
        for op in ops {
            match op {
                Op::Acquire { batches, .. } => fetched.extend_from_slice(batches),
                Op::Ack { batches, .. } => acknowledged.extend(batches.iter().map(|ack| {
                    types.insert(&ack.types[..]);
                    AckBatch {
                        first: ack.first,
                        last: ack.last,
                        types: types.get(&ack.types[..]).expect("just put there"),
                    }
                })),
                Op::Combine { existing, new, .. } => {
                    combined.extend_from_slice(existing);
                    combined.extend_from_slice(new);
                }
                _ => {}
            }
        }
        Self {
            fetched,
            combined,
            acknowledged,
        }
    }

    fn calls(&'a self, ops: &'a [Op]) -> Vec<Call<'a>> {
        let (mut fetched, mut acknowledged) = (&self.fetched[..], &self.acknowledged[..]);
        let mut combined = &self.combined[..];
        let mut members = HashSet::new();
        let mut calls = Vec::with_capacity(ops.len());
        let mut known = |member: &'a str| {
            members.insert(member);
            *members.get(member).expect("just put there")
        };
        for op in ops {
            calls.push(match op {
                Op::Init { .. } => Call::NextPartition,
                Op::Acquire {
                    member,
                    batches,
                    options,
                    at_next,
                } => Call::Acquire {
                    member: known(member),
                    batches: take(&mut fetched, batches.len()),
                    options: *options,
                    at_next: *at_next,
                },
                Op::Ack { member, batches } => Call::Acknowledge {
                    member: known(member),
                    batches: take(&mut acknowledged, batches.len()),
                    records: count(batches.iter().map(|b| OffsetRange::new(b.first, b.last))),
                },
                Op::Release { member } => Call::Release {
                    member: known(member),
                },
                Op::Advance { ms } => Call::Advance { ms: *ms },
                Op::LogStart { offset } => Call::LogStart { offset: *offset },
                Op::Combine {
                    existing,
                    new,
                    start_offset,
                } => Call::Combine {
                    existing: take(&mut combined, existing.len()),
                    new: take(&mut combined, new.len()),
                    start_offset: *start_offset,
                },
                Op::Writes { .. } | Op::Complete { .. } | Op::Reload => continue,
            });
        }
        calls
    }
}

fn take<'a, T>(rest: &mut &'a [T], count: usize) -> &'a [T] {
    let (taken, left) = rest.split_at(count);
    *rest = left;
    taken
}

/// One replay: its time, and the offsets or batches processed.
fn once(ops: &[Op], calls: &[Call<'_>]) -> (Duration, i64) {
    let made = ops.iter().filter_map(|op| match op {
        Op::Init {
            config,
            start_offset,
            state,
        } => Partition::new(*config, *start_offset, state).ok(),
        _ => None,
    });
    let mut partitions: Vec<_> = made.collect();
    // CPU time: other load of the machine is not counted
    let started = ThreadTime::now();
    let records = replay(calls, &mut partitions);
    (started.elapsed(), records)
}

/// The timed part; a function of its own so that a profiler can be limited to it.
#[inline(never)]
fn replay(calls: &[Call<'_>], partitions: &mut [Partition]) -> i64 {
    let (mut now_ms, mut records) = (1_000_000, 0);
    let (mut acquired, mut combiner) = (Vec::new(), Combiner::default());
    let mut partitions = partitions.iter_mut();
    let mut current = None;
    for call in calls {
        // the content of a write does not matter: it is durable at once
        let write = match (call, &mut current) {
            (Call::NextPartition, current) => {
                *current = partitions.next();
                None
            }
            (
                &Call::Acquire {
                    member,
                    batches,
                    mut options,
                    at_next,
                },
                Some(partition),
            ) => {
                let next = partition.next_fetch_offset();
                if at_next {
                    options.fetch_offset = next;
                }
                acquired.clear();
                records += partition.acquire(now_ms, member, batches, options, &mut acquired);
                None
            }
            (
                &Call::Acknowledge {
                    member,
                    batches,
                    records: acknowledged,
                },
                Some(partition),
            ) => match partition.acknowledge(now_ms, member, batches) {
                Ok(write) => {
                    records += acknowledged;
                    write.map(|write| write.id)
                }
                Err(_) => None,
            },
            (Call::Release { member }, Some(partition)) => {
                partition.release(member).map(|write| write.id)
            }
            (Call::Advance { ms }, Some(partition)) => {
                now_ms += ms;
                partition.advance(now_ms).map(|write| write.id)
            }
            (Call::LogStart { offset }, Some(partition)) => {
                partition.move_log_start(*offset);
                None
            }
            (
                Call::Combine {
                    existing,
                    new,
                    start_offset,
                },
                _,
            ) => {
                combiner.combine(existing, new, *start_offset);
                records += (existing.len() + new.len()) as i64;
                None
            }
            (_, None) => None,
        };
        if let (Some(write), Some(partition)) = (write, &mut current) {
            partition.commit(write).expect("the write is open");
        }
    }
    records
}
