//! Replay: one line of JSON per operation, in the form of Apache's class.

use std::collections::VecDeque;
use std::fmt::Write as _;

use sharecore_engine::{
    AckBatch, AcquireOptions, Acquired, Combiner, Config, OffsetRange, Partition, Refusal,
    RefusalKind, StateBatch, Write,
};

use crate::op::Op;

/// A write with its content, to be sent to the persister.
#[derive(Clone)]
struct Begun {
    id: u64,
    start_offset: i64,
    batches: Vec<StateBatch>,
}

impl Begun {
    fn of(write: Option<Write<'_>>) -> Option<Self> {
        write.map(|write| Self {
            id: write.id,
            start_offset: write.start_offset,
            batches: write.batches.to_vec(),
        })
    }
}

/// The simulated persister: its content and its responses.
#[derive(Default)]
struct Persister {
    start_offset: i64,
    state: Vec<StateBatch>,
    hold: bool,
    fail_next: u32,
    error_code: i16,
    held: VecDeque<(Option<usize>, Begun)>,
}

impl Persister {
    fn store(&mut self, write: &Begun) {
        self.start_offset = write.start_offset;
        let mut combiner = Combiner::default();
        let state = combiner.combine(&self.state, &write.batches, Some(write.start_offset));
        self.state = state.to_vec();
    }
}

/// A partition with its clock and persister, driven by a trace.
pub struct Replay {
    config: Config,
    partition: Partition,
    now_ms: i64,
    persister: Persister,
    index: usize,
    acquired: Vec<Acquired>,
}

impl Default for Replay {
    fn default() -> Self {
        let config = Config::default();
        let partition = Partition::new(config, 0, &[]).expect("no state is good state");
        Self {
            config,
            partition,
            now_ms: 1_000_000,
            persister: Persister::default(),
            index: 0,
            acquired: Vec::new(),
        }
    }
}

fn error_name(refusal: Refusal) -> &'static str {
    match refusal.kind() {
        RefusalKind::InvalidRecordState => "\"InvalidRecordStateException\"",
        RefusalKind::InvalidRequest => "\"InvalidRequestException\"",
    }
}

impl Replay {
    /// Runs the next operation; with `check`, every invariant is checked after it.
    ///
    /// # Panics
    /// Panics if an invariant is broken and `check` is set.
    pub fn step(&mut self, op: &Op, check: bool) -> String {
        let index = self.index;
        self.index += 1;
        let mut line = String::new();
        let mut write = None;
        match op {
            Op::Init {
                config,
                start_offset,
                state,
            } => {
                let persister = Persister {
                    start_offset: *start_offset,
                    state: state.clone(),
                    ..Persister::default()
                };
                self.config = *config;
                self.persister = persister;
                self.load(&mut line, index, "init");
            }
            Op::Reload => {
                let Persister {
                    start_offset,
                    ref mut state,
                    ..
                } = self.persister;
                let state = std::mem::take(state);
                self.persister = Persister {
                    start_offset,
                    state,
                    ..Persister::default()
                };
                self.load(&mut line, index, "reload");
            }
            Op::Acquire {
                member,
                batches,
                options,
                at_next,
            } => self.acquire(&mut line, member, batches, *options, *at_next),
            Op::Ack { member, batches } => {
                let batches: Vec<_> = batches
                    .iter()
                    .map(|batch| AckBatch {
                        first: batch.first,
                        last: batch.last,
                        types: &batch.types,
                    })
                    .collect();
                let answer = self.partition.acknowledge(self.now_ms, member, &batches);
                let _ = write!(line, "{{\"i\":{index},\"op\":\"ack\"");
                let answer = answer.map(Begun::of);
                write = self.answer(&mut line, Some(index), answer);
            }
            Op::Release { member } => {
                let answer = Ok(Begun::of(self.partition.release(member)));
                let _ = write!(line, "{{\"i\":{index},\"op\":\"release\"");
                write = self.answer(&mut line, Some(index), answer);
            }
            Op::Advance { ms } => {
                self.now_ms += ms;
                let _ = write!(line, "{{\"i\":{index},\"op\":\"advance\"");
                write = Begun::of(self.partition.advance(self.now_ms));
                if let Some(write) = &write {
                    self.send(None, write);
                }
            }
            Op::LogStart { offset } => {
                self.partition.move_log_start(*offset);
                let _ = write!(line, "{{\"i\":{index},\"op\":\"lso\"");
            }
            Op::Writes {
                fail_next,
                hold,
                error_code,
            } => {
                self.persister.fail_next = *fail_next;
                self.persister.hold = *hold;
                self.persister.error_code = *error_code;
                let _ = write!(line, "{{\"i\":{index},\"op\":\"writes\"");
            }
            Op::Complete { count, error_code } => {
                self.complete(&mut line, index, *count, *error_code);
            }
            Op::Combine {
                existing,
                new,
                start_offset,
            } => return combined(existing, new, *start_offset),
        }
        self.snapshot(&mut line, write.as_ref());
        if check && let Err(broken) = self.partition.check() {
            panic!("operation {index}: {broken}");
        }
        line
    }

    fn acquire(
        &mut self,
        line: &mut String,
        member: &str,
        batches: &[OffsetRange],
        mut options: AcquireOptions,
        at_next: bool,
    ) {
        if at_next {
            options.fetch_offset = self.partition.next_fetch_offset();
        }
        self.acquired.clear();
        let count =
            self.partition
                .acquire(self.now_ms, member, batches, options, &mut self.acquired);
        let (index, fetch_offset) = (self.index - 1, options.fetch_offset);
        let _ = write!(
            line,
            "{{\"i\":{index},\"op\":\"acquire\",\"fetch_offset\":{fetch_offset},\"count\":{count},\"acquired\":["
        );
        list(
            line,
            self.acquired
                .iter()
                .map(|a| format!("[{},{},{}]", a.first, a.last, a.delivery_count)),
        );
        line.push(']');
    }

    fn load(&mut self, line: &mut String, index: usize, op: &str) {
        let _ = write!(line, "{{\"i\":{index},\"op\":\"{op}\"");
        if op == "reload" {
            let _ = write!(
                line,
                ",\"read_start_offset\":{},\"read\":[",
                self.persister.start_offset
            );
            let mut combiner = Combiner::default();
            runs(line, combiner.combine(&self.persister.state, &[], None));
            line.push(']');
        }
        let (partition, error) = match Partition::new(
            self.config,
            self.persister.start_offset,
            &self.persister.state,
        ) {
            Ok(partition) => (partition, "null"),
            Err(refusal) => {
                let empty = Partition::new(self.config, self.persister.start_offset, &[]);
                debug_assert_eq!(error_name(refusal), "\"InvalidRequestException\"");
                (
                    empty.expect("no state is good state"),
                    "\"IllegalStateException\"",
                )
            }
        };
        self.partition = partition;
        let _ = write!(line, ",\"error\":{error}");
    }

    /// Sends a write to the persister, which answers at once unless it holds writes.
    fn answer(
        &mut self,
        line: &mut String,
        index: Option<usize>,
        answer: Result<Option<Begun>, Refusal>,
    ) -> Option<Begun> {
        let (error, write) = match answer {
            Ok(Some(write)) => (self.send(index, &write), Some(write)),
            Ok(None) => ("null".to_owned(), None),
            Err(refusal) => (error_name(refusal).to_owned(), None),
        };
        let _ = write!(line, ",\"error\":{error}");
        write
    }

    fn send(&mut self, index: Option<usize>, write: &Begun) -> String {
        if self.persister.hold {
            self.persister.held.push_back((index, write.clone()));
            return "\"pending\"".to_owned();
        }
        let code = if self.persister.fail_next > 0 {
            self.persister.fail_next -= 1;
            self.persister.error_code
        } else {
            0
        };
        self.end(write, code)
    }

    fn end(&mut self, write: &Begun, code: i16) -> String {
        if code == 0 {
            self.persister.store(write);
            self.partition.commit(write.id).expect("the write is open");
            "null".to_owned()
        } else {
            self.partition
                .rollback(write.id, self.now_ms)
                .expect("the write is open");
            format!("{code}")
        }
    }

    fn complete(&mut self, line: &mut String, index: usize, count: usize, code: i16) {
        let mut completed = Vec::new();
        for _ in 0..count {
            let Some((index, write)) = self.persister.held.pop_front() else {
                break;
            };
            let error = self.end(&write, code);
            if let Some(index) = index {
                completed.push(format!("\"{index}\":{error}"));
            }
        }
        let _ = write!(
            line,
            "{{\"i\":{index},\"op\":\"complete\",\"completed\":{{{}}}",
            completed.join(",")
        );
    }

    fn snapshot(&self, line: &mut String, write: Option<&Begun>) {
        let partition = &self.partition;
        let _ = write!(
            line,
            ",\"start_offset\":{},\"end_offset\":{},\"next_fetch_offset\":{},\"can_acquire\":{},\
             \"delivery_complete_count\":{},\"inflight\":[",
            partition.start_offset(),
            partition.end_offset(),
            partition.next_fetch_offset(),
            partition.can_acquire(),
            partition.delivery_complete_count()
        );
        list(
            line,
            partition.inflight().iter().map(|run| {
                format!(
                    "[{},{},{},{}]",
                    run.first,
                    run.last,
                    run.state.id(),
                    run.delivery_count
                )
            }),
        );
        line.push_str("],\"persisted\":[");
        runs(line, write.map_or(&[], |write| &write.batches));
        let start = write.map_or("null".to_owned(), |write| write.start_offset.to_string());
        let _ = write!(line, "],\"write_start_offset\":{start}}}");
    }
}

fn combined(existing: &[StateBatch], new: &[StateBatch], start_offset: Option<i64>) -> String {
    let mut line = "{\"combined\":[".to_owned();
    runs(
        &mut line,
        Combiner::default().combine(existing, new, start_offset),
    );
    line.push_str("]}");
    line
}

fn list(line: &mut String, items: impl Iterator<Item = String>) {
    let items: Vec<_> = items.collect();
    line.push_str(&items.join(","));
}

fn runs(line: &mut String, batches: &[StateBatch]) {
    list(
        line,
        batches.iter().map(|b| {
            format!(
                "[{},{},{},{}]",
                b.first,
                b.last,
                b.state.id(),
                b.delivery_count
            )
        }),
    );
}

/// The offsets of an acknowledgement or an acquisition.
pub(crate) fn count(ranges: impl Iterator<Item = OffsetRange>) -> i64 {
    ranges.map(OffsetRange::count).sum()
}
