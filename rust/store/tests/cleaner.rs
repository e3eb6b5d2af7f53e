//! Random keyed records, transactions and cleaner passes, compared with a list of the written records.

mod common;

use common::{
    TRANSACTIONAL, create_log,
    keyed::{Pair, Seen, committed, keyed_batch},
    open, tiny,
};
use proptest::prelude::*;
use sharecore_store::{
    CleanOptions, Cleaned, Durability, FaultPoint, LogId, Options, Store, salvage, survey,
};

const PRODUCERS: usize = 2;
const HOUR_MS: i64 = 3_600_000;

#[derive(Debug, Clone)]
enum Step {
    Append {
        pairs: Vec<(Option<u8>, Option<u8>)>,
        compression: i16,
        /// 0: none; otherwise an idempotent producer, in a transaction if `transactional`.
        producer: usize,
        transactional: bool,
    },
    End {
        producer: usize,
        commit: bool,
    },
    /// Records of another log, so that the logs share segments.
    Elsewhere,
    Roll,
    Clean {
        keys: u8,
        later: bool,
        fails: bool,
    },
    Delete {
        percent: i64,
    },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let pair = (
        prop::option::weighted(0.9, 0..6_u8),
        prop::option::weighted(0.8, any::<u8>()),
    );
    let append = (
        prop::collection::vec(pair, 1..5),
        0..5_i16,
        0..=PRODUCERS,
        any::<bool>(),
    );
    prop_oneof![
        10 => append.prop_map(|(pairs, compression, producer, transactional)| Step::Append {
            pairs, compression, producer, transactional,
        }),
        4 => (1..=PRODUCERS, any::<bool>())
            .prop_map(|(producer, commit)| Step::End { producer, commit }),
        2 => Just(Step::Elsewhere),
        4 => Just(Step::Roll),
        5 => (1..8_u8, any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(keys, later, fails)| Step::Clean { keys, later, fails }),
        1 => (0..60_i64).prop_map(|percent| Step::Delete { percent }),
        2 => Just(Step::Reopen),
    ]
}

#[derive(Debug, Clone)]
struct Written {
    seen: Seen,
    /// `None` while its transaction is open.
    committed: Option<bool>,
    producer: usize,
}

struct World {
    dir: tempfile::TempDir,
    store: Store,
    log: LogId,
    other: LogId,
    written: Vec<Written>,
    sequences: [i32; PRODUCERS + 1],
    transactions: [bool; PRODUCERS + 1],
    /// First offset that no pass has seen, and the largest time passed to a pass.
    cleaned: i64,
    now_ms: i64,
}

fn options() -> Options {
    Options {
        segment_bytes: 2000,
        durability: Durability::Os,
        ..tiny()
    }
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(dir.path(), &options());
        let (log, other) = (create_log(&store), create_log(&store));
        Self {
            dir,
            store,
            log,
            other,
            written: Vec::new(),
            sequences: [0; PRODUCERS + 1],
            transactions: [false; PRODUCERS + 1],
            cleaned: 0,
            now_ms: 1_000_000,
        }
    }

    fn append(&mut self, pairs: &[Pair], compression: i16, producer: usize, transactional: bool) {
        // A producer in a transaction writes nothing outside of it
        let transactional = producer > 0 && (transactional || self.transactions[producer]);
        let attributes = compression | if transactional { TRANSACTIONAL } else { 0 };
        let identity = if producer == 0 {
            (-1, -1, -1)
        } else {
            (producer as i64, 0, self.sequences[producer])
        };
        self.now_ms += 10;
        let batch = keyed_batch(pairs, self.now_ms, attributes, identity);
        let appended = self
            .store
            .append(self.log, &batch, self.now_ms)
            .expect("appended");
        self.store.wait(appended.sequence);
        self.sequences[producer] += pairs.len() as i32;
        self.transactions[producer] = transactional;
        for (offset, pair) in (appended.base_offset..).zip(pairs) {
            self.written.push(Written {
                seen: Seen {
                    offset,
                    timestamp: self.now_ms + offset - appended.base_offset,
                    pair: pair.clone(),
                },
                committed: (!transactional).then_some(true),
                producer,
            });
        }
    }

    fn end(&mut self, producer: usize, commit: bool) {
        if !std::mem::take(&mut self.transactions[producer]) {
            return;
        }
        let identity = (producer as i64, 0);
        let marker = self
            .store
            .append_marker(self.log, identity, 0, commit, self.now_ms)
            .expect("appended");
        self.store.wait(marker.sequence);
        for each in &mut self.written {
            if each.producer == producer && each.committed.is_none() {
                each.committed = Some(commit);
            }
        }
    }

    fn elsewhere(&mut self) {
        let batch = keyed_batch(&[(None, Some(vec![0; 300]))], 0, 0, (-1, -1, -1));
        let appended = self.store.append(self.other, &batch, 0).expect("appended");
        self.store.wait(appended.sequence);
        if appended.base_offset % 4 == 3 {
            let deleted = self.store.delete_records(self.other, -1).expect("the end");
            self.store.wait(deleted);
        }
    }

    fn clean(&mut self, keys: u8, later: bool, fails: bool) -> Result<(), TestCaseError> {
        if later {
            self.now_ms += 2 * HOUR_MS;
        }
        if fails {
            self.store.fault().plan(FaultPoint::Write, 28, 0, 1);
        }
        let before = committed(&self.store, self.log);
        let options = CleanOptions {
            now_ms: self.now_ms,
            newest_ms: i64::MAX,
            delete_retention_ms: HOUR_MS,
            keys_bytes: 24 << 10,
            keys_load: f64::from(keys) / 1024.0,
            read_bytes: 1000,
            bytes_per_second: f64::MAX,
        };
        let result = self.store.clean(self.log, &options);
        if fails {
            self.store.fault().clear();
            self.take_failures();
        }
        match result {
            Ok(Some(cleaned)) => {
                prop_assert!(cleaned.end > self.cleaned.max(-1));
                self.cleaned = cleaned.end;
            }
            Ok(None) => prop_assert_eq!(committed(&self.store, self.log), before),
            Err(error) => {
                prop_assert!(fails, "{}", error);
                prop_assert_eq!(committed(&self.store, self.log), before);
            }
        }
        Ok(())
    }

    /// Handles failed writes, on which the store refuses to build. The failed write may be one of the store's own threads,
    /// which `clean` does not report; a later write that succeeds shows that its outcome is known.
    fn take_failures(&self) {
        let batch = keyed_batch(&[(None, None)], 0, 0, (-1, -1, -1));
        loop {
            self.store.drain();
            if let Ok(appended) = self.store.append(self.other, &batch, 0) {
                self.store.wait(appended.sequence);
                if self
                    .store
                    .drain()
                    .outcomes
                    .iter()
                    .all(|it| it.error.is_none())
                {
                    return;
                }
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let offsets = self.store.offsets(self.log).expect("a log");
        let seen = committed(&self.store, self.log);
        let visible: Vec<&Written> = self
            .written
            .iter()
            .filter(|w| w.committed == Some(true) && w.seen.offset < offsets.last_stable)
            .filter(|w| w.seen.offset >= offsets.start)
            .collect();
        let mut rest = seen.iter().peekable();
        for each in &visible {
            let there = rest.next_if(|s| s.offset == each.seen.offset);
            if let Some(there) = there {
                prop_assert_eq!(there, &each.seen);
            }
            let (key, value) = &each.seen.pair;
            let newest = |limit: i64| {
                !visible.iter().any(|w| {
                    (each.seen.offset + 1..limit).contains(&w.seen.offset) && w.seen.pair.0 == *key
                })
            };
            if each.seen.offset >= self.cleaned
                || (newest(i64::MAX) && key.is_some() && value.is_some())
            {
                prop_assert!(there.is_some(), "{:?} is lost", each);
            } else if key.is_none() || !newest(self.cleaned) {
                prop_assert!(there.is_none(), "{:?} is still there", each);
            }
        }
        prop_assert_eq!(rest.next(), None);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Append {
                pairs,
                compression,
                producer,
                transactional,
            } => {
                let pairs: Vec<Pair> = pairs
                    .iter()
                    .map(|(k, v)| (k.map(|k| vec![k]), v.map(|v| vec![v; 60])))
                    .collect();
                self.append(&pairs, *compression, *producer, *transactional);
            }
            Step::End { producer, commit } => self.end(*producer, *commit),
            Step::Elsewhere => self.elsewhere(),
            Step::Roll => {
                self.store.roll().expect("open");
                settle(&self.store, self.log);
            }
            Step::Clean { keys, later, fails } => self.clean(*keys, *later, *fails)?,
            Step::Delete { percent } => {
                let offsets = self.store.offsets(self.log).expect("a log");
                let live = offsets.last_stable - offsets.start;
                let before = offsets.start + live * percent / 100;
                let deleted = self
                    .store
                    .delete_records(self.log, before)
                    .expect("in range");
                self.store.wait(deleted);
            }
            Step::Reopen => {
                self.store.close();
                self.store = open(self.dir.path(), &options());
            }
        }
        self.check()
    }
}

/// Waits until all segments of the log are written and sealed.
fn settle(store: &Store, log: LogId) {
    while store.dirt(log, i64::MAX).expect("a log").active_bytes > 0 {
        std::thread::yield_now();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]
    #[test]
    fn the_newest_record_of_each_key_stays(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in steps {
            world.step(&step)?;
        }
    }
}

fn pair(key: &str, value: Option<&str>) -> Pair {
    (Some(key.into()), value.map(Into::into))
}

fn pass(now_ms: i64) -> CleanOptions {
    CleanOptions {
        now_ms,
        newest_ms: i64::MAX,
        delete_retention_ms: HOUR_MS,
        keys_bytes: 1 << 20,
        keys_load: 0.9,
        read_bytes: 1 << 20,
        bytes_per_second: f64::MAX,
    }
}

fn rolled(world: &mut World) {
    world.store.roll().expect("open");
    settle(&world.store, world.log);
}

/// Cleans the log up to its end; panics if there is nothing to clean.
fn rolled_and_cleaned(world: &mut World, now_ms: i64) -> Cleaned {
    rolled(world);
    let cleaned = world.store.clean(world.log, &pass(now_ms));
    cleaned.expect("cleaned").expect("dirty")
}

#[test]
fn a_tombstone_stays_for_its_time_and_then_goes() {
    let mut world = World::new();
    world.append(&[pair("a", Some("1")), pair("b", Some("2"))], 0, 0, false);
    world.append(&[pair("a", None)], 0, 0, false);
    world.append(&[pair("c", Some("3"))], 0, 0, false);
    let offsets = |world: &World| -> Vec<i64> {
        let seen = committed(&world.store, world.log);
        seen.iter().map(|s| s.offset).collect()
    };
    rolled_and_cleaned(&mut world, 0);
    assert_eq!(offsets(&world), [1, 2, 3]);
    for (now_ms, expected) in [(HOUR_MS - 1, vec![1, 2, 3]), (HOUR_MS, vec![1, 3])] {
        world.append(&[pair("c", Some("3"))], 0, 0, false);
        rolled_and_cleaned(&mut world, now_ms);
        let seen = offsets(&world);
        assert_eq!(
            seen[..seen.len() - 2],
            expected[..expected.len() - 1],
            "{now_ms}"
        );
    }
}

#[test]
fn a_compacted_log_is_whole_and_outlives_salvage() {
    let mut world = World::new();
    for n in 0..60_u8 {
        world.append(&[(Some(vec![n % 7]), Some(vec![n; 100]))], 0, 0, false);
        if n % 25 == 24 {
            rolled_and_cleaned(&mut world, 0);
        }
    }
    let expected = committed(&world.store, world.log);
    assert!(expected.len() < 30, "{}", expected.len());
    world.store.close();
    let findings = survey(world.dir.path(), &mut |_, _| ()).expect("readable");
    assert_eq!(
        (&findings.problems[..], &findings.lost[..]),
        (&[][..], &[][..])
    );
    assert_eq!(findings.kept[0].batches, expected.len() as u64);

    let to = world.dir.path().with_extension("salvaged");
    salvage(world.dir.path(), &to, &mut |_, _| ()).expect("salvaged");
    let salvaged = open(&to, &options());
    assert_eq!(committed(&salvaged, world.log), expected);
    let offset = salvaged.offsets(world.log).expect("a log").end;
    drop(salvaged);
    assert_eq!(offset, 60);
    std::fs::remove_dir_all(to).expect("removed");
}

#[test]
fn a_compacted_segment_that_is_gone_is_named_as_damage() {
    let mut world = World::new();
    for n in 0..60_u8 {
        world.append(&[(Some(vec![n % 7]), Some(vec![n; 100]))], 0, 0, false);
    }
    rolled_and_cleaned(&mut world, 0);
    world.store.close();
    let dir = world.dir.path();
    let gone: Vec<_> = std::fs::read_dir(dir)
        .expect("readable")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "compact"))
        .collect();
    assert!(!gone.is_empty());
    for path in gone {
        let aside = path.with_extension("aside");
        std::fs::rename(&path, &aside).expect("moved");
        let refused = Store::open(dir, &options())
            .err()
            .expect("refused")
            .to_string();
        assert!(
            refused.starts_with(&path.display().to_string()),
            "{refused}"
        );
        assert!(refused.contains("the segment is missing"), "{refused}");
        std::fs::rename(&aside, &path).expect("moved back");
    }
    drop(open(dir, &options()));
}

#[test]
fn nothing_newer_than_the_lag_and_nothing_undecided_is_touched() {
    let mut world = World::new();
    for value in ["1", "2"] {
        world.append(&[pair("a", Some(value))], 0, 0, false);
    }
    rolled(&mut world);
    let before = committed(&world.store, world.log);
    let lagging = CleanOptions {
        newest_ms: world.now_ms - 1,
        ..pass(0)
    };
    assert_eq!(world.store.clean(world.log, &lagging), Ok(None));
    assert_eq!(committed(&world.store, world.log), before);

    world.append(&[pair("a", Some("3"))], 0, 1, true);
    world.append(&[pair("a", Some("4"))], 0, 0, false);
    let cleaned = rolled_and_cleaned(&mut world, 0);
    assert_eq!(cleaned.end, 2);
    world.cleaned = cleaned.end;
    world.end(1, true);
    world.check().expect("as written");
}

#[test]
fn a_pass_is_slowed_down_and_ends_when_the_store_closes() {
    let mut world = World::new();
    for _ in 0..20 {
        world.append(&[(Some(vec![1]), Some(vec![7; 400]))], 0, 0, false);
    }
    rolled(&mut world);
    let slow = CleanOptions {
        bytes_per_second: 10.0,
        ..pass(0)
    };
    std::thread::scope(|scope| {
        let (store, log) = (&world.store, world.log);
        let pass = scope.spawn(move || store.clean(log, &slow));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!pass.is_finished());
        store.close();
        let error = pass
            .join()
            .expect("no panic")
            .expect_err("the store was closed");
        assert!(error.to_string().contains("closed"), "{error}");
    });
    world.store = open(world.dir.path(), &options());
    world.check().expect("as written");
}
