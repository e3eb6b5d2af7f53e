//! sharecore's own store.

use std::{path::Path, thread, time::Duration};

use sharecore_store::{Change, Durability, LogConfig, LogId, Options, Store, Want};

use crate::{LOGS, Log};

pub(crate) struct OwnLog {
    store: Store,
    logs: Vec<LogId>,
}

impl OwnLog {
    pub(crate) fn open(dir: &Path, sync: bool) -> Self {
        let durability = if sync {
            Durability::Fsync
        } else {
            Durability::Os
        };
        let store = Store::open(
            dir,
            &Options {
                durability,
                ..Options::default()
            },
        )
        .expect("a store");
        let logs: Vec<LogId> = (0..LOGS).map(|_| store.new_log_id()).collect();
        let created = store.change(logs.iter().map(|id| Change::CreateLog(*id)).collect());
        store.wait(created.expect("room"));
        for &log in &logs {
            store.configure(log, LogConfig::default()).expect("a log");
        }
        Self { store, logs }
    }
}

impl Log for OwnLog {
    fn append(&self, log: usize, batch: &[u8]) -> u64 {
        loop {
            match self.store.append(self.logs[log], batch, 1000) {
                Ok(appended) => return appended.sequence,
                Err(_) => thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    fn wait(&self, ticket: u64) {
        self.store.wait(ticket);
    }

    fn scan(&self, log: usize) -> usize {
        let want = Want {
            max_bytes: 1 << 20,
            max_records: i64::MAX,
            limit: None,
            at_least_one: true,
        };
        let mut out = vec![0; 1 << 20];
        let (mut offset, mut seen) = (0, 0);
        loop {
            let slice = self
                .store
                .read(self.logs[log], offset, want)
                .expect("readable");
            let Some((_, last)) = slice.batches.last() else {
                return seen;
            };
            slice.copy_to(&mut out[..slice.size]).expect("readable");
            (offset, seen) = (last + 1, seen + slice.size);
        }
    }
}
