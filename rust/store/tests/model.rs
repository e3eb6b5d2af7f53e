//! Random operations on a store and on a list of batches, with segments so small that all kinds of maintenance happen.

mod common;

use std::collections::BTreeMap;

use common::{ALL, Client, PLAIN, create_log, open, tiny};
use proptest::prelude::*;
use sharecore_store::{Change, FaultPoint, LogId, Options, Store};

const LOGS: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    Append {
        log: usize,
        records: i32,
        value_bytes: usize,
    },
    Delete {
        log: usize,
        percent: i64,
    },
    Put {
        key: u8,
        value: u8,
    },
    Replace {
        log: usize,
    },
    Fail {
        sync: bool,
    },
    Settle,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..LOGS, 1..4_i32, 0..900_usize)
            .prop_map(|(log, records, value_bytes)| Step::Append { log, records, value_bytes }),
        3 => (0..LOGS, 0..100_i64).prop_map(|(log, percent)| Step::Delete { log, percent }),
        2 => (0..4_u8, any::<u8>()).prop_map(|(key, value)| Step::Put { key, value }),
        1 => (0..LOGS).prop_map(|log| Step::Replace { log }),
        1 => any::<bool>().prop_map(|sync| Step::Fail { sync }),
        2 => Just(Step::Settle),
        1 => Just(Step::Reopen),
    ]
}

/// First offset, last offset and size of each.
type Batches = Vec<(i64, i64, usize)>;

#[derive(Default, Clone)]
struct Model {
    logs: Vec<(LogId, i64, Batches)>,
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Model {
    fn check(&self, store: &Store) -> Result<(), TestCaseError> {
        for (log, start, batches) in &self.logs {
            let end = batches.last().map_or(0, |(_, last, _)| last + 1);
            let offsets = store.offsets(*log).expect("a log");
            prop_assert_eq!(
                (offsets.start, offsets.high_watermark, offsets.end),
                (*start, end, end)
            );
            let slice = store.read(*log, *start, ALL).expect("readable");
            let live = batches.iter().filter(|(_, last, _)| last >= start);
            prop_assert_eq!(
                &slice.batches,
                &live
                    .clone()
                    .map(|(base, last, _)| (*base, *last))
                    .collect::<Vec<_>>()
            );
            let mut bytes = vec![0; slice.size];
            slice.copy_to(&mut bytes).expect("readable");
            prop_assert_eq!(slice.size, live.map(|(_, _, size)| size).sum::<usize>());
        }
        prop_assert_eq!(
            store.entries(b""),
            self.entries.clone().into_iter().collect::<Vec<_>>()
        );
        Ok(())
    }
}

/// A store, its expected content, and the expected content if all steps since the last settling fail.
struct World {
    dir: tempfile::TempDir,
    store: Store,
    model: Model,
    durable: Model,
    failing: bool,
    last: u64,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(dir.path(), &options());
        let logs = (0..LOGS)
            .map(|_| (create_log(&store), 0, Vec::new()))
            .collect();
        let model = Model {
            logs,
            ..Model::default()
        };
        Self {
            dir,
            store,
            durable: model.clone(),
            model,
            failing: false,
            last: 0,
        }
    }

    fn settle(&mut self) -> Result<(), TestCaseError> {
        self.store.wait(self.last);
        // The failed operation may be the store's own
        let outcomes = self.store.drain().outcomes;
        let mine = outcomes
            .iter()
            .find(|outcome| outcome.sequence >= self.last);
        let failed = mine.is_some_and(|outcome| outcome.error.is_some());
        prop_assert!(
            !failed || self.failing,
            "a write failed without being asked to"
        );
        self.failing = false;
        self.store.fault().clear();
        if failed {
            self.model.clone_from(&self.durable);
        } else {
            self.durable.clone_from(&self.model);
        }
        self.durable.check(&self.store)
    }

    fn reopen(&mut self) -> Result<(), TestCaseError> {
        self.store.close();
        self.store = open(self.dir.path(), &options());
        self.last = 0;
        self.durable.check(&self.store)
    }

    fn put(&mut self, key: u8, value: u8) {
        self.model.entries.insert(vec![key], vec![value]);
        self.last = self
            .store
            .change(vec![Change::Put(vec![key], vec![value])])
            .expect("room");
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        if !matches!(step, Step::Append { .. } | Step::Put { .. }) {
            self.settle()?;
        }
        match *step {
            Step::Append {
                log,
                records,
                value_bytes,
            } => {
                let (id, _, batches) = &mut self.model.logs[log];
                let bytes = Client {
                    records,
                    value_bytes,
                    ..PLAIN
                }
                .bytes();
                let appended = self.store.append(*id, &bytes, 0).expect("appended");
                batches.push((appended.base_offset, appended.last_offset, bytes.len()));
                self.last = appended.sequence;
            }
            Step::Delete { log, percent } => {
                let (id, start, batches) = &mut self.model.logs[log];
                let end = batches.last().map_or(0, |(_, last, _)| last + 1);
                *start += (end - *start) * percent / 100;
                self.last = self
                    .store
                    .delete_records(*id, *start)
                    .expect("an offset of the log");
            }
            Step::Put { key, value } => self.put(key, value),
            Step::Replace { log } => {
                let (id, start, batches) = &mut self.model.logs[log];
                let new = self.store.new_log_id();
                let changes = vec![Change::DropLog(*id), Change::CreateLog(new)];
                self.last = self.store.change(changes).expect("room");
                (*id, *start) = (new, 0);
                batches.clear();
            }
            Step::Fail { sync } => {
                let point = if sync {
                    FaultPoint::Sync
                } else {
                    FaultPoint::Write
                };
                self.store.fault().plan(point, 5, 0, 1);
                self.failing = true;
                // A single operation: of several, some might have been committed before the failure
                self.put(9, 9);
                self.settle()?;
            }
            Step::Settle => {}
            Step::Reopen => self.reopen()?,
        }
        Ok(())
    }
}

fn options() -> Options {
    Options {
        segment_bytes: 3000,
        ..tiny()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn a_store_is_a_list_of_batches(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in steps {
            world.step(&step)?;
        }
        world.settle()?;
        world.reopen()?;
    }
}
