//! A partition with its persister: checks every result and every invariant.

use std::collections::{BTreeMap, HashMap};

use sharecore_engine::{
    AckBatch, AcquireOptions, Combiner, Config, DeadLetter, OffsetRange, Partition, RecordState,
    StateBatch, Write,
};

/// An operation; offsets are relative to the start offset or to the next fetch offset.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Acquire {
        member: u8,
        batches: Vec<(u8, u8)>,
        max: u8,
        size: u8,
        record_limit: bool,
    },
    Acknowledge {
        member: u8,
        batches: Vec<(u8, u8, Vec<u8>)>,
    },
    Release {
        member: u8,
    },
    Advance {
        ms: u16,
    },
    /// Like `Advance`, while a member is connected whose locks are extended for this long.
    Keep {
        member: u8,
        ms: u16,
        max_ms: u16,
    },
    LogStart {
        by: u8,
    },
    Archive {
        at: u8,
        length: u8,
    },
    /// Ends one of the open writes.
    End {
        which: u8,
        well: bool,
    },
    Configure {
        max_delivery_count: u16,
        max_inflight: u8,
    },
    /// Writes some of the dead-letter records that are due.
    Letters {
        most: u8,
    },
    Reload,
}

pub(crate) struct World {
    partition: Partition,
    config: Config,
    now_ms: i64,
    durable: (i64, Vec<StateBatch>),
    /// Id and start offset of the open writes.
    open: Vec<(u64, i64)>,
    /// Dead letters taken from the partition.
    letters: Vec<DeadLetter>,
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        let partition = Partition::new(config, 0, &[]).expect("empty state");
        Self {
            partition,
            config,
            now_ms: 0,
            durable: (0, vec![]),
            open: vec![],
            letters: vec![],
        }
    }

    fn states(&self) -> BTreeMap<i64, (RecordState, u16)> {
        let runs = self.partition.inflight();
        let each = runs
            .iter()
            .flat_map(|run| (run.first..=run.last).map(|o| (o, (run.state, run.delivery_count))));
        each.collect()
    }

    /// Runs an operation; panics if a result or an invariant is wrong.
    pub(crate) fn step(&mut self, step: &Step) {
        let before = (self.partition.start_offset(), self.states());
        let write = match step {
            Step::Acquire {
                member,
                batches,
                max,
                size,
                record_limit,
            } => {
                self.acquire(&format!("m{member}"), batches, *max, *size, *record_limit);
                None
            }
            Step::Acknowledge { member, batches } => {
                self.acknowledge(&format!("m{member}"), batches)
            }
            Step::Release { member } => self.partition.release(&format!("m{member}")).map(summary),
            Step::Advance { ms } => {
                self.now_ms += i64::from(*ms);
                self.advance()
            }
            Step::Keep { member, ms, max_ms } => {
                self.now_ms += i64::from(*ms);
                let members = [format!("m{member}")];
                self.partition
                    .keep_locks(self.now_ms, &members, i64::from(*max_ms));
                self.advance()
            }
            Step::LogStart { by } => {
                self.partition.move_log_start(before.0 + i64::from(*by));
                None
            }
            Step::Archive { at, length } => {
                let first = before.0 + i64::from(*at);
                self.partition.archive(first, first + i64::from(*length));
                None
            }
            Step::End { which, well } => {
                self.end(*which, *well);
                None
            }
            Step::Configure {
                max_delivery_count,
                max_inflight,
            } => {
                self.config.max_delivery_count = *max_delivery_count;
                self.config.max_inflight = i64::from(*max_inflight);
                self.partition.configure(self.config);
                None
            }
            Step::Letters { most } => {
                self.finish(usize::from(*most), before.0);
                None
            }
            Step::Reload => return self.reload(),
        };
        if let Some((id, start_offset)) = write {
            assert_eq!(start_offset, before.0);
            self.open.push((id, start_offset));
        }
        self.take_letters();
        if let Err(broken) = self.partition.check() {
            panic!("{broken}");
        }
        let undone = matches!(step, Step::End { well: false, .. });
        self.keeps(&before, undone);
    }

    /// The start offset only grows, finished records stay finished and delivery counts don't fall.
    fn keeps(&self, (start, states): &(i64, BTreeMap<i64, (RecordState, u16)>), undone: bool) {
        // A fetch may return a record batch that begins before the start offset of an empty window
        assert!(*start <= self.partition.start_offset());
        let now = self.states();
        for (offset, &(state, count)) in states.range(self.partition.start_offset()..) {
            let &(state_now, count_now) = now.get(offset).expect("what is in flight stays known");
            assert!(
                count_now >= count,
                "delivery count of {offset} fell from {count} to {count_now}"
            );
            assert!(
                !state.is_terminal() || state_now == state || undone,
                "{offset} was {state:?} and is {state_now:?}"
            );
            assert!(
                state != RecordState::Archiving
                    || undone
                    || matches!(state_now, RecordState::Archiving | RecordState::Archived),
                "{offset} waited for its dead letter and is {state_now:?}"
            );
        }
    }

    fn advance(&mut self) -> Option<(u64, i64)> {
        let write = self.partition.advance(self.now_ms).map(summary);
        let next = self.partition.next_deadline_ms();
        assert!(next.is_none_or(|deadline| deadline > self.now_ms));
        write
    }

    fn acquire(
        &mut self,
        member: &str,
        batches: &[(u8, u8)],
        max: u8,
        size: u8,
        record_limit: bool,
    ) {
        let fetch_offset = self.partition.next_fetch_offset();
        let mut next = fetch_offset;
        let mut ranges = vec![];
        for &(gap, length) in batches {
            let first = next + i64::from(gap / 2);
            ranges.push(OffsetRange::new(first, first + i64::from(length)));
            next = first + i64::from(length) + 1;
        }
        let before = self.states();
        let max_fetch_records = i64::from(max);
        let options = AcquireOptions {
            fetch_offset,
            max_fetch_records,
            batch_size: i64::from(size),
            record_limit,
        };
        let mut out = vec![];
        self.partition
            .acquire(self.now_ms, member, &ranges, options, &mut out);
        let count: i64 = out.iter().map(|a| a.last - a.first + 1).sum();
        assert!(
            !record_limit || count <= max_fetch_records,
            "{count} records, {max_fetch_records} were wanted"
        );
        assert!(out.is_sorted_by(|a, b| a.last < b.first));
        for (offset, acquired) in out
            .iter()
            .flat_map(|a| (a.first..=a.last).map(move |offset| (offset, a)))
        {
            let known = before
                .get(&offset)
                .copied()
                .unwrap_or((RecordState::Available, 0));
            assert_eq!(
                known.0,
                RecordState::Available,
                "{offset} was given out twice"
            );
            assert_eq!(known.1 + 1, acquired.delivery_count);
        }
    }

    fn acknowledge(&mut self, member: &str, batches: &[(u8, u8, Vec<u8>)]) -> Option<(u64, i64)> {
        let start = self.partition.start_offset();
        let batches: Vec<_> = batches
            .iter()
            .map(|(at, length, types)| {
                let first = start + i64::from(*at) - 2;
                let length = if types.len() == 1 {
                    i64::from(*length)
                } else {
                    types.len() as i64 - 1
                };
                AckBatch {
                    first,
                    last: first + length,
                    types,
                }
            })
            .collect();
        let before = self.partition.inflight();
        let complete = self.partition.delivery_complete_count();
        let answer = self.partition.acknowledge(self.now_ms, member, &batches);
        let answer = answer.map(|write| write.map(summary));
        if answer.is_err() {
            let now = self.partition.inflight();
            assert_eq!(now, before, "a refused request changes nothing");
            assert_eq!(self.partition.delivery_complete_count(), complete);
        }
        answer.unwrap_or_default()
    }

    fn end(&mut self, which: u8, well: bool) {
        if self.open.is_empty() {
            return;
        }
        let (id, start_offset) = self.open.remove(usize::from(which) % self.open.len());
        if well {
            self.durable.0 = self.durable.0.max(start_offset);
            let new = self.partition.write_batches(id).expect("open");
            let (existing, start_offset) = (&self.durable.1, Some(self.durable.0));
            self.durable.1 = Combiner::default()
                .combine(existing, new, start_offset)
                .to_vec();
            self.partition.commit(id).expect("open");
        } else {
            self.partition.rollback(id, self.now_ms).expect("open");
        }
        assert!(self.partition.commit(id).is_err(), "a write ends once");
    }

    /// Each dead letter is due once, for a record that waits for it.
    fn take_letters(&mut self) {
        let states = self.states();
        for letter in self.partition.take_dead_letters() {
            assert!(letter.first <= letter.last);
            for offset in letter.first.max(self.partition.start_offset())..=letter.last {
                let found = states.get(&offset);
                assert_eq!(
                    found,
                    Some(&(RecordState::Archiving, letter.delivery_count))
                );
            }
            let apart = |other: &DeadLetter| other.last < letter.first || letter.last < other.first;
            assert!(self.letters.iter().all(apart), "{letter:?} is due twice");
            self.letters.push(letter);
        }
    }

    fn finish(&mut self, most: usize, start_offset: i64) {
        for letter in self.letters.drain(..most.min(self.letters.len())) {
            let write = self.partition.finish_archiving(letter.first, letter.last);
            if let Some(write) = write {
                assert_eq!(write.start_offset, start_offset);
                self.open.push(summary(write));
            }
        }
    }

    /// Durable acknowledgements survive a restart.
    fn reload(&mut self) {
        let start = self.partition.start_offset();
        let settled: HashMap<_, _> = self
            .states()
            .into_iter()
            .filter(|(_, (state, _))| state.is_terminal())
            .collect();
        self.partition =
            Partition::new(self.config, self.durable.0, &self.durable.1).expect("sound state");
        self.open.clear();
        self.letters.clear();
        self.take_letters();
        self.partition.check().expect("invariants");
        for (offset, (state, _)) in self.states() {
            assert!(state != RecordState::Acquired);
            assert!(!state.is_terminal() || settled.contains_key(&offset) || offset < start);
        }
    }
}

/// Kept for each write until it ends; its batches are read only then, whatever other writes did meanwhile.
fn summary(write: Write<'_>) -> (u64, i64) {
    assert!(!write.batches.is_empty());
    assert!(write.batches.is_sorted_by(|a, b| a.last < b.first));
    (write.id, write.start_offset)
}
