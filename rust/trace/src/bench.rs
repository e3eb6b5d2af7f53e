//! How fast the engine replays a trace: input is read and partitions are made outside the timing.

use std::time::Duration;

use cpu_time::ThreadTime;

use sharecore_engine::{AckBatch, OffsetRange, Partition, combine};

use crate::op::Op;
use crate::replay::count;

/// What a replay cost.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// Operations, `init` not counted.
    pub ops: usize,
    /// Offsets acquired and offsets acknowledged; for combines, batches read.
    pub records: i64,
    /// The time of each run.
    pub runs: Vec<Duration>,
}

impl Timing {
    /// `count` things, in the median run, a second.
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
/// Each acquire first asks for the next fetch offset, as a broker does, and each write is committed at once. Holding,
/// failing writes and reloads are left out.
pub fn bench(ops: &[Op], warmup: usize, runs: usize) -> Timing {
    let mut timing = Timing {
        ops: ops
            .iter()
            .filter(|op| !matches!(op, Op::Init { .. }))
            .count(),
        ..Timing::default()
    };
    for index in 0..warmup + runs {
        let (took, records) = once(ops);
        if index >= warmup {
            timing.runs.push(took);
            timing.records = records;
        }
    }
    timing
}

/// One replay: the time it took, and the offsets or batches it dealt with.
fn once(ops: &[Op]) -> (Duration, i64) {
    let mut partitions = Vec::new();
    let mut acks = Vec::new();
    for op in ops {
        match op {
            Op::Init {
                config,
                start_offset,
                state,
            } => partitions.extend(Partition::new(*config, *start_offset, state)),
            Op::Ack { batches, .. } => {
                let batches = batches.iter().map(|ack| AckBatch {
                    first: ack.first,
                    last: ack.last,
                    types: &ack.types,
                });
                acks.push(batches.collect());
            }
            _ => {}
        }
    }
    // CPU time: what else the machine does is not counted
    let started = ThreadTime::now();
    let records = replay(ops, &mut partitions, &acks);
    (started.elapsed(), records)
}

/// What is timed; a function of its own so that a profiler can be told to look at nothing else.
#[inline(never)]
fn replay(ops: &[Op], made: &mut [Partition], acks: &[Vec<AckBatch<'_>>]) -> i64 {
    let (mut next_partition, mut next_ack, mut now_ms, mut records) = (0, 0, 1_000_000, 0);
    let mut acquired = Vec::new();
    let mut combined = Vec::new();
    for op in ops {
        let partition = made.get_mut(next_partition.max(1) - 1);
        let Some(partition) = partition else {
            if let Op::Combine {
                existing,
                new,
                start_offset,
            } = op
            {
                combine(existing, new, *start_offset, &mut combined);
                records += (existing.len() + new.len()) as i64;
            }
            continue;
        };
        let write = match op {
            Op::Init { .. } => {
                next_partition += 1;
                None
            }
            Op::Acquire {
                member,
                batches,
                options,
                at_next,
            } => {
                let next = partition.next_fetch_offset();
                let mut options = *options;
                if *at_next {
                    options.fetch_offset = next;
                }
                acquired.clear();
                partition.acquire(now_ms, member, batches, options, &mut acquired);
                records += count(acquired.iter().map(|a| OffsetRange::new(a.first, a.last)));
                None
            }
            Op::Ack { member, .. } => {
                let batches = &acks[next_ack];
                next_ack += 1;
                let answer = partition.acknowledge(now_ms, member, batches);
                if answer.is_ok() {
                    records += count(batches.iter().map(|b| OffsetRange::new(b.first, b.last)));
                }
                answer.unwrap_or_default()
            }
            Op::Release { member } => partition.release(member),
            Op::Advance { ms } => {
                now_ms += ms;
                partition.advance(now_ms)
            }
            Op::LogStart { offset } => {
                partition.move_log_start(*offset);
                None
            }
            Op::Writes { .. } | Op::Complete { .. } | Op::Reload | Op::Combine { .. } => None,
        };
        if let Some(write) = write {
            partition.commit(write.id).expect("the write is open");
        }
    }
    records
}
