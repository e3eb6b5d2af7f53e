//! A store without threads on an in-memory disk: the power fails at any step of the disk, everything reported durable exists
//! afterwards, and the outcome is the same each time.

mod common;

use common::{Client, PLAIN, tiny};
use sharecore_store::{Change, MemoryDisk, Operation, Options, Store, Want};

const LOGS: u64 = 2;
const ALL: Want = Want {
    max_bytes: 1 << 30,
    max_records: i64::MAX,
    limit: None,
    at_least_one: true,
};

fn options() -> Options {
    Options {
        cache_bytes: 0,
        ..tiny()
    }
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn content(store: &Store, log: u64) -> Vec<u8> {
    let slice = store.read(log, 0, ALL).expect("a log");
    let mut bytes = vec![0; slice.size];
    slice.copy_to(&mut bytes).expect("readable");
    bytes
}

/// Runs one life after the other on one disk; returns the final content of the logs.
fn lives(seed: u64) -> Vec<Vec<u8>> {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = MemoryDisk::mount(dir.path(), seed);
    let mut chance = Chance(seed);
    let mut durable: Vec<Vec<u8>> = vec![Vec::new(); LOGS as usize];
    for life in 0..6 {
        let store = Store::open_stepped(dir.path(), &options())
            .unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
        if life == 0 {
            let logs = (1..=LOGS).map(Change::CreateLog).collect();
            let created = store.change(logs).expect("staged");
            store.wait(created);
        }
        for (log, before) in (1..=LOGS).zip(&durable) {
            let now = content(&store, log);
            assert!(
                now.starts_with(before),
                "seed {seed}, life {life}: log {log} lost what was durable"
            );
        }
        if chance.below(2) == 0 {
            disk.fail(Operation::Sync, 5, chance.below(10), chance.below(3));
        }
        let last = chance.below(60);
        if chance.below(2) == 0 {
            disk.end_after(1 + chance.below(40));
        }
        for i in 0..last {
            let value_bytes = chance.below(700) as usize;
            let client = Client {
                value_bytes,
                timestamp: i.cast_signed(),
                ..PLAIN
            };
            let _ = store.append(1 + chance.below(LOGS), &client.bytes(), 0);
            match chance.below(4) {
                0 => drop(store.maintain()),
                1 | 2 => drop(store.step()),
                _ => {}
            }
            let _ = store.drain();
            if disk.is_gone() {
                break;
            }
        }
        if !disk.is_gone() {
            durable = (1..=LOGS).map(|log| content(&store, log)).collect();
        }
        store.abandon();
        disk.crash();
    }
    let store = Store::open_stepped(dir.path(), &options()).expect("opened");
    let found = (1..=LOGS).map(|log| content(&store, log)).collect();
    store.abandon();
    disk.unmount();
    found
}

#[test]
fn what_is_durable_outlives_the_power_and_a_seed_is_a_life() {
    for seed in (0..25).chain(112..118) {
        assert_eq!(lives(seed), lives(seed), "seed {seed} is not one life");
    }
}

#[test]
fn without_syncs_the_power_takes_what_was_answered() {
    let lost = (0..40).filter(|seed| {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = MemoryDisk::mount(dir.path(), *seed);
        let store = Store::open_stepped(dir.path(), &options()).expect("opened");
        let created = store.change(vec![Change::CreateLog(1)]).expect("staged");
        store.wait(created);
        disk.lie(0, 1000);
        let appended = store.append(1, &PLAIN.bytes(), 0).expect("appended");
        store.wait(appended.sequence);
        let before = content(&store, 1);
        store.abandon();
        disk.crash();
        let is_lost = match Store::open_stepped(dir.path(), &options()) {
            Ok(store) => {
                let after = content(&store, 1);
                store.abandon();
                after != before
            }
            // It is known how far the disk reported that it was synced
            Err(error) => error.to_string().contains("were confirmed"),
        };
        disk.unmount();
        is_lost
    });
    assert!(lost.count() > 5, "a disk that lies must be able to lose");
}
