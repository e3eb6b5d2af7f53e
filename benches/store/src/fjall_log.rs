//! The same on fjall: a keyspace with blob separation, keys of log and offset, and a thread that commits what has come.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use crate::{LOGS, Log};

/// What may wait for a commit, as in sharecore's store by default.
const WAITING_MAX: usize = 16 << 20;

#[derive(Default)]
struct Waiting {
    entries: Vec<([u8; 16], Vec<u8>)>,
    bytes: usize,
    next: [u64; LOGS],
    staged: u64,
    durable: u64,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

pub(crate) struct FjallLog {
    records: Keyspace,
    shared: Arc<Shared>,
}

impl FjallLog {
    pub(crate) fn open(dir: &Path, sync: bool) -> Self {
        let db = Database::builder(dir).open().expect("a database");
        let options = || {
            KeyspaceCreateOptions::default()
                .with_kv_separation(Some(KvSeparationOptions::default()))
        };
        let records = db.keyspace("records", options).expect("a keyspace");
        let shared = Arc::<Shared>::default();
        let (keyspace, theirs) = (records.clone(), Arc::clone(&shared));
        thread::spawn(move || commit(&db, &keyspace, &theirs, sync));
        Self { records, shared }
    }
}

fn commit(db: &Database, records: &Keyspace, shared: &Shared, sync: bool) {
    loop {
        let mut waiting = shared.waiting.lock().expect("a lock");
        while waiting.entries.is_empty() {
            waiting = shared.changed.wait(waiting).expect("a lock");
        }
        let (entries, staged) = (std::mem::take(&mut waiting.entries), waiting.staged);
        waiting.bytes = 0;
        drop(waiting);
        shared.changed.notify_all();
        let mode = if sync {
            PersistMode::SyncData
        } else {
            PersistMode::Buffer
        };
        let mut batch = db.batch().durability(Some(mode));
        for (key, value) in entries {
            batch.insert(records, key, value);
        }
        batch.commit().expect("committed");
        shared.waiting.lock().expect("a lock").durable = staged;
        shared.changed.notify_all();
    }
}

impl Log for FjallLog {
    fn append(&self, log: usize, batch: &[u8]) -> u64 {
        // what any store of record batches has to do: check what came
        assert_eq!(crc32c::crc32c(&batch[21..]).to_be_bytes(), batch[17..21]);
        let mut waiting = self.shared.waiting.lock().expect("a lock");
        while waiting.bytes + batch.len() > WAITING_MAX {
            waiting = self.shared.changed.wait(waiting).expect("a lock");
        }
        let offset = waiting.next[log];
        waiting.next[log] += 1;
        let mut key = [0; 16];
        key[..8].copy_from_slice(&(log as u64).to_be_bytes());
        key[8..].copy_from_slice(&offset.to_be_bytes());
        waiting.entries.push((key, batch.to_vec()));
        waiting.bytes += batch.len();
        waiting.staged += 1;
        self.shared.changed.notify_all();
        waiting.staged
    }

    fn wait(&self, ticket: u64) {
        let mut waiting = self.shared.waiting.lock().expect("a lock");
        while waiting.durable < ticket {
            waiting = self.shared.changed.wait(waiting).expect("a lock");
        }
    }

    fn scan(&self, log: usize) -> usize {
        let first = (log as u64).to_be_bytes();
        let values = self.records.prefix(first);
        values
            .map(|entry| entry.value().expect("readable").len())
            .sum()
    }
}
