//! Compares the order that members see with a ledger that knows the log and the durable state, but nothing of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use sharecore_engine::{
    AckBatch, AcquireOptions, Backoff, Config, Engine, Entry, Key, OffsetRange, Order, RecordState,
    Rules, Spec, StateBatch,
};

use crate::models::steps::{LOCK_MS, Step, steps};

const MEMBERS: [&str; 3] = ["a", "b", "c"];

/// The owner of a record, its lock's deadline, and the pending acknowledgement.
#[derive(Clone, Debug)]
struct Held {
    member: &'static str,
    until_ms: i64,
    delivery_count: u16,
    /// The write that will end or release it.
    write: Option<u64>,
}

/// The content of a record that matters for order.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// Of its key; 0 for none.
    digest: u64,
    /// Delivery time and expiry.
    times: (i64, i64),
}

struct Ledger {
    /// The log's records; None is an offset without a record.
    log: Vec<Option<Said>>,
    rules: Rules,
    engine: Engine,
    now_ms: i64,
    log_start: i64,
    held: BTreeMap<i64, Held>,
    /// Batches and start offset of each open write.
    asked: BTreeMap<u64, (Vec<StateBatch>, i64)>,
    durable: BTreeMap<i64, (RecordState, u16)>,
    start_offset: i64,
    /// When a record may be redelivered.
    not_before: BTreeMap<i64, i64>,
}

impl Ledger {
    fn new(log: Vec<Option<Said>>, rules: Rules) -> Self {
        Self {
            engine: Engine::new(config(), 0, &[], Some(rules.clone()), 0).expect("an empty state"),
            log,
            rules,
            now_ms: 0,
            log_start: 0,
            held: BTreeMap::new(),
            asked: BTreeMap::new(),
            durable: BTreeMap::new(),
            start_offset: 0,
            not_before: BTreeMap::new(),
        }
    }

    fn end(&self) -> i64 {
        self.log.len() as i64
    }

    fn key(&self, offset: i64) -> Option<u64> {
        let digest = self.log[offset as usize]?.digest;
        match self.rules.order {
            Order::Partition => Some(1),
            Order::None => Some(digest).filter(|digest| *digest != 0),
        }
    }

    fn is_settled(&self, offset: i64) -> bool {
        let state = self.durable.get(&offset);
        offset < self.log_start.max(self.start_offset)
            || self.log[offset as usize].is_none()
            || state.is_some_and(|(state, _)| state.is_terminal())
    }

    /// Admits records as far as required, then acquires, like a fetch.
    fn fetch(&mut self, member: &'static str, most: i64) -> Vec<(i64, u16)> {
        let batch_of = |offset: i64| OffsetRange::new(offset - offset % 4, offset - offset % 4 + 3);
        let mut out = Vec::new();
        self.engine.come_up(self.now_ms, self.now_ms);
        for _ in 0..100 {
            if !self.engine.can_acquire() || !out.is_empty() {
                break;
            }
            let spec = self.engine.spec().cloned();
            let spec = spec.filter(|_| self.engine.next_ready().is_none());
            let from = self.engine.next_fetch_offset();
            if from >= self.end() {
                break;
            }
            let batches: Vec<_> = (0..3).map(|n| batch_of(from + 4 * n)).collect();
            let batches: Vec<_> = batches
                .into_iter()
                .filter(|batch| batch.last < self.end())
                .collect();
            let Some(last) = batches.last().map(|batch| batch.last) else {
                break;
            };
            if let Some(spec) = &spec {
                let offsets = batches[0].first..=last;
                let entries = offsets.clone().filter_map(|offset| {
                    let said = self.log[offset as usize]?;
                    Some(Entry {
                        offset,
                        not_before_ms: said.times.0,
                        expires_ms: said.times.1,
                        digest: said.digest,
                    })
                });
                let entries: Vec<_> = entries.collect();
                let times = (self.now_ms, self.now_ms);
                let engine = &mut self.engine;
                assert!(engine.admit(times, spec, from, &batches, &entries, 500));
                for offset in offsets.filter(|offset| self.log[*offset as usize].is_none()) {
                    engine.archive(offset, offset);
                }
            }
            if most != 3 {
                // as a fetch does that has yet to read
                self.engine.line_up(most, from + most - 1);
            }
            let options = AcquireOptions {
                fetch_offset: from,
                max_fetch_records: most,
                batch_size: 500,
                record_limit: false,
            };
            self.engine
                .acquire(self.now_ms, member, &batches, options, &mut out);
        }
        let taken = out.iter().flat_map(|each| {
            let count = each.delivery_count;
            (each.first..=each.last).map(move |offset| (offset, count))
        });
        taken.collect()
    }

    fn take(&mut self, member: &'static str, most: i64) -> Result<usize, TestCaseError> {
        let taken = self.fetch(member, most);
        let mut runs: BTreeMap<u64, i64> = BTreeMap::new();
        for (at, &(offset, _)) in taken.iter().enumerate() {
            prop_assert!(!self.held.contains_key(&offset), "{offset} is out twice");
            let due_ms = self.not_before.get(&offset).copied().unwrap_or(0);
            prop_assert!(due_ms <= self.now_ms, "{offset} came before {due_ms}");
            let (not_before_ms, expires_ms) =
                self.log[offset as usize].map_or((0, 0), |said| said.times);
            prop_assert!(
                (not_before_ms..expires_ms).contains(&self.now_ms),
                "{offset} came from {not_before_ms} to {expires_ms}"
            );
            let Some(key) = self.key(offset) else {
                continue;
            };
            *runs.entry(key).or_default() += 1;
            for earlier in 0..offset {
                let same = self.key(earlier) == Some(key);
                let is_here = taken[..at].iter().any(|(each, _)| *each == earlier);
                prop_assert!(
                    !same || is_here || self.is_settled(earlier),
                    "{offset} came before {earlier}, which has its key"
                );
            }
            for (held, by) in &self.held {
                prop_assert!(
                    self.key(*held) != Some(key),
                    "{member} has {offset}, and {by:?} has {held} of its key"
                );
            }
        }
        for (key, count) in runs {
            let run_max = self.rules.run_max;
            prop_assert!(count <= run_max, "{count} of key {key}, {run_max} may be");
        }
        for (offset, delivery_count) in &taken {
            let held = Held {
                member,
                until_ms: self.now_ms + LOCK_MS,
                delivery_count: *delivery_count,
                write: None,
            };
            self.held.insert(*offset, held);
        }
        Ok(taken.len())
    }

    fn answer(&mut self, at: usize, kind: u8) {
        let open: Vec<_> = self
            .held
            .iter()
            .filter(|(offset, held)| held.write.is_none() && **offset >= self.engine.start_offset())
            .map(|(offset, held)| (*offset, held.member))
            .collect();
        if open.is_empty() {
            return;
        }
        let (offset, member) = open[at % open.len()];
        let batch = AckBatch {
            first: offset,
            last: offset,
            types: &[kind],
        };
        let write = self.engine.acknowledge(self.now_ms, member, &[batch]);
        let Some(write) = write.expect("its owner may") else {
            return;
        };
        let (id, batches, start) = (write.id, write.batches.to_vec(), write.start_offset);
        self.asked.insert(id, (batches, start));
        self.held.get_mut(&offset).expect("it is held").write = Some(id);
    }

    fn leave(&mut self, member: &str) {
        let Some(write) = self.engine.release(member) else {
            return;
        };
        let (id, batches, start) = (write.id, write.batches.to_vec(), write.start_offset);
        for batch in &batches {
            for offset in batch.first..=batch.last {
                self.held.get_mut(&offset).expect("it is held").write = Some(id);
            }
        }
        self.asked.insert(id, (batches, start));
    }

    /// As in the coordinator: the higher delivery count wins, then the later state.
    fn write(&mut self, offset: i64, batch: &StateBatch) {
        let new = (batch.state, batch.delivery_count);
        let held = self.durable.entry(offset).or_insert(new);
        if (held.1, held.0) < (new.1, new.0) {
            *held = new;
        }
    }

    fn end_write(&mut self, at: usize, good: bool) {
        let Some(&id) = self.asked.keys().nth(at % self.asked.len().max(1)) else {
            return;
        };
        let (batches, start) = self.asked.remove(&id).expect("it is open");
        let mine: Vec<_> = self
            .held
            .iter()
            .filter(|(_, held)| held.write == Some(id))
            .map(|(offset, held)| (*offset, held.clone()))
            .collect();
        if good {
            self.start_offset = self.start_offset.max(start);
            for batch in &batches {
                for offset in batch.first..=batch.last {
                    self.write(offset, batch);
                }
            }
            self.engine.commit(id, self.now_ms).expect("it is open");
            for (offset, _) in mine {
                self.held.remove(&offset);
            }
            return;
        }
        self.engine.rollback(id, self.now_ms).expect("it is open");
        for (offset, held) in mine {
            if held.until_ms <= self.now_ms {
                self.held.remove(&offset);
                if held.delivery_count >= config().max_delivery_count {
                    // Visible as finished, even if it is not written
                    let batch = StateBatch {
                        first: offset,
                        last: offset,
                        state: RecordState::Archived,
                        delivery_count: held.delivery_count,
                    };
                    self.write(offset, &batch);
                }
            } else if let Some(held) = self.held.get_mut(&offset) {
                held.write = None;
            }
        }
    }

    fn wait(&mut self, ms: i64) {
        self.now_ms += ms;
        if let Some(write) = self.engine.advance(self.now_ms, self.now_ms) {
            let (id, batches, start) = (write.id, write.batches.to_vec(), write.start_offset);
            for batch in &batches {
                for offset in batch.first..=batch.last {
                    self.held.remove(&offset);
                    if batch.state == RecordState::Available {
                        let wait_ms = self.rules.backoff.first_ms;
                        self.not_before.insert(offset, self.now_ms + wait_ms);
                    }
                }
                // Visible as finished, even if it is not written
                if batch.state.is_terminal() {
                    for offset in batch.first..=batch.last {
                        self.write(offset, batch);
                    }
                }
            }
            self.asked.insert(id, (batches, start));
        }
    }

    fn kill(&mut self) {
        let state: Vec<_> = self
            .durable
            .iter()
            .filter(|(offset, _)| **offset >= self.start_offset)
            .map(|(offset, (state, delivery_count))| StateBatch {
                first: *offset,
                last: *offset,
                state: *state,
                delivery_count: *delivery_count,
            })
            .collect();
        let rules = Some(self.rules.clone());
        let loaded = Engine::new(config(), self.start_offset, &state, rules, self.now_ms);
        self.engine = loaded.expect("what was written");
        self.engine.move_log_start(self.log_start);
        self.held.clear();
        self.asked.clear();
        // A back-off starts again if the delivery is durable
        let due_ms = self.now_ms + self.rules.backoff.first_ms;
        let open = state
            .iter()
            .filter(|batch| batch.state == RecordState::Available && batch.delivery_count > 0);
        self.not_before = open.map(|batch| (batch.first, due_ms)).collect();
    }

    fn lose(&mut self, count: i64) {
        self.log_start = (self.log_start + count).min(self.end());
        self.engine.move_log_start(self.log_start);
        // Records that their member released are gone at once, even if the release is not written yet
        let (asked, lost) = (&self.asked, self.log_start);
        self.held.retain(|offset, held| {
            let write = held.write.and_then(|id| asked.get(&id));
            let gives_back = write.is_some_and(|(batches, _)| {
                let mut batches = batches.iter();
                batches.any(|batch| {
                    (batch.first..=batch.last).contains(offset)
                        && batch.state == RecordState::Available
                })
            });
            *offset >= lost || !gives_back
        });
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Fetch(who, most) => {
                self.take(MEMBERS[who], most)?;
            }
            Step::Answer(at, kind) => self.answer(at, kind),
            Step::Leave(who) => self.leave(MEMBERS[who]),
            Step::End(at, good) => self.end_write(at, good),
            Step::Wait(ms) => self.wait(ms),
            Step::Kill => self.kill(),
            Step::Lose(count) => self.lose(count),
        }
        let sound = self.engine.check();
        prop_assert!(sound.is_ok(), "after {step:?}: {sound:?}");
        Ok(())
    }

    /// Everything is processed in the end.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..2000 {
            while !self.asked.is_empty() {
                self.end_write(0, true);
            }
            let taken = self.take("z", 100)?;
            while self.held.values().any(|held| held.write.is_none()) {
                let before = self.asked.len();
                self.answer(0, 1);
                if self.asked.len() == before {
                    break; // the log has lost what is held
                }
            }
            while !self.asked.is_empty() {
                self.end_write(0, true);
            }
            if taken == 0 && (0..self.end() / 4 * 4).all(|offset| self.is_settled(offset)) {
                return Ok(());
            }
            if taken == 0 {
                self.wait(100);
            }
        }
        prop_assert!(false, "something never came");
        Ok(())
    }
}

fn config() -> Config {
    Config {
        lock_ms: LOCK_MS,
        max_inflight: 12,
        max_delivery_count: 4,
        ..Config::default()
    }
}

fn rules(order: Order, key: Option<Key>) -> impl Strategy<Value = Rules> {
    let parts = (
        prop_oneof![Just(1_i64), Just(2), Just(5)],
        prop_oneof![Just(0_i64), Just(100)],
        prop_oneof![Just(6_i64), Just(1000)],
    );
    let spec = key.map(|key| {
        Arc::new(Spec {
            key: Some(key),
            ..Spec::default()
        })
    });
    parts.prop_map(move |(run_max, first_ms, max_waiting)| Rules {
        order,
        run_max,
        backoff: Backoff {
            first_ms,
            max_ms: 100_000,
            multiplier: 1.0,
            jitter: 0.0,
            on_release: false,
            on_timeout: true,
        },
        max_waiting,
        spec: spec.clone(),
        expired_letters: false,
    })
}

const AT_ONCE: Just<i64> = Just(Entry::AT_ONCE);
const NEVER: Just<i64> = Just(Entry::NEVER);

/// A log of records with delivery times, and of gaps.
fn log(times: impl Strategy<Value = (i64, i64)>) -> impl Strategy<Value = Vec<Option<Said>>> {
    let digest = prop_oneof![2 => Just(0), 8 => 1..4_u64];
    let said = (digest, times).prop_map(|(digest, times)| Said { digest, times });
    prop::collection::vec(prop::option::weighted(0.9, said), 4..60)
}

fn holds(log: Vec<Option<Said>>, rules: Rules, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut ledger = Ledger::new(log, rules);
    for step in steps {
        ledger.step(step)?;
    }
    ledger.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn records_of_a_key_come_in_their_order_to_one_member_at_a_time(
        log in log((AT_ONCE, NEVER)), rules in rules(Order::None, Some(Key::Own)), steps in steps()
    ) {
        holds(log, rules, &steps)?;
    }

    #[test]
    fn records_of_a_key_come_in_their_order_where_they_have_times(
        log in log((prop_oneof![2 => AT_ONCE, 1 => 0..2000_i64], prop_oneof![2 => NEVER, 1 => 1..3000_i64])),
        rules in rules(Order::None, Some(Key::Own)),
        steps in steps(),
    ) {
        holds(log, rules, &steps)?;
    }

    #[test]
    fn records_of_a_partition_come_in_their_order_to_one_member_at_a_time(
        length in 4..60_usize, rules in rules(Order::Partition, None), steps in steps()
    ) {
        let said = Said { digest: 0, times: (Entry::AT_ONCE, Entry::NEVER) };
        holds(vec![Some(said); length], rules, &steps)?;
    }
}
