//! Machines that serve a home, one after the other, and what their clients know.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use sharecore_bucket::MemoryBucket;
use sharecore_store::{
    BackupOptions, BackupState, Change, CleanOptions, Durability, JournalEnd, Options, Prepared,
    Refusal, Store, prepare_home,
};

use crate::{
    common::{Client, PLAIN, keyed::keyed_batch, tiny},
    files::{cut_journal, directory, journal, numbers},
    network::{Chance, Network},
};

/// A log with a producer that numbers its batches, and a compacted log.
pub(crate) const NUMBERED: u64 = 2;
pub(crate) const KEYED: u64 = 3;
/// Unanswered batches of one producer: as many as a log remembers.
pub(crate) const UNANSWERED: usize = 5;

pub(crate) fn options(writer: u8) -> Options {
    Options {
        durability: Durability::Bucket,
        bucket: Some(BackupOptions {
            cluster_id: "one".into(),
            writer: [writer; 16],
            object_bytes: 700,
            window: 3,
            part_bytes: 1500,
            objects_max: 20,
            history_ms: 3000,
            linger_ms: 30,
            puts_per_second: 50,
            beat_ms: 200,
            close_ms: 100,
            ..BackupOptions::default()
        }),
        ..tiny()
    }
}

/// An unanswered operation.
pub(crate) enum Asked {
    /// An entry of the catalog.
    Put(u64),
    /// A batch of a log's producer, with its sequence.
    Batch(u64, i32),
}

/// A process that serves the home.
pub(crate) struct Process {
    pub(crate) store: Arc<Store>,
    pub(crate) writer: u8,
    pub(crate) asked: Vec<(u64, Asked)>,
    /// The last sequence number with an outcome.
    pub(crate) settled: u64,
}

impl Process {
    /// `restored`: what the start has read of the journal.
    pub(crate) fn new(
        dir: &Path,
        writer: u8,
        network: &Arc<Mutex<Network>>,
        restored: Option<JournalEnd>,
    ) -> Self {
        let mut options = options(writer);
        let bucket = options.bucket.as_mut().expect("it has one");
        bucket.restored = restored;
        if network.lock().expect("one thread").is_bounded {
            bucket.cache = Some(crate::bounded::little(network));
        }
        let store = Arc::new(Store::open_stepped(dir, &options).expect("it opens"));
        store.keep_local(&[]).expect("nothing is read");
        let (waiting, network) = (Arc::downgrade(&store), Arc::clone(network));
        store.set_pump(move || {
            if let Some(store) = waiting.upgrade() {
                network.lock().expect("one thread").tick(&store, writer);
            }
        });
        Self {
            store,
            writer,
            asked: Vec::new(),
            settled: 0,
        }
    }
}

pub(crate) struct World {
    pub(crate) machines: Vec<PathBuf>,
    pub(crate) _root: tempfile::TempDir,
    pub(crate) network: Arc<Mutex<Network>>,
    pub(crate) leader: Process,
    /// A process that does not know that another leads.
    pub(crate) stopped: Option<Process>,
    pub(crate) writers: u8,
    pub(crate) puts: u64,
    /// Entries that were confirmed.
    pub(crate) answered: Vec<u64>,
    /// For each log, the sequences of the next batch and of the first unconfirmed one.
    pub(crate) sequences: BTreeMap<u64, (i32, i32)>,
    pub(crate) restarts: u64,
    /// Segments that left the disk.
    pub(crate) evicted: u64,
}

impl World {
    /// A world whose stores keep little on the disk, or everything.
    pub(crate) fn keeping(seed: u64, faults: u64, is_bounded: bool) -> Self {
        let root = directory();
        let machines: Vec<PathBuf> = ["one", "two"].map(|it| root.path().join(it)).into();
        let network = Arc::new(Mutex::new(Network {
            bucket: MemoryBucket::default(),
            requests: Vec::new(),
            chance: Chance(seed * 2 + 1),
            now_ms: 0,
            faults,
            is_bounded,
            kill_in: None,
        }));
        fs::create_dir(&machines[0]).expect("made");
        let leader = Process::new(&machines[0], 1, &network, None);
        let logs = (1..=KEYED).map(Change::CreateLog).collect();
        let created = leader.store.change(logs).expect("room");
        leader.store.wait(created);
        Self {
            machines,
            _root: root,
            network,
            leader,
            stopped: None,
            writers: 1,
            puts: 0,
            answered: Vec::new(),
            sequences: (1..=NUMBERED).map(|log| (log, (0, 0))).collect(),
            restarts: 0,
            evicted: 0,
        }
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.network.lock().expect("one thread").chance.below(bound)
    }

    /// True if the leader accepts writes.
    pub(crate) fn leads(&self) -> bool {
        let status = self.leader.store.bucket_status().expect("it has a bucket");
        !matches!(status.state, BackupState::Fenced | BackupState::Refused)
    }

    pub(crate) fn put(&mut self, by_stopped: bool) {
        let key = self.puts.to_be_bytes().to_vec();
        let value = vec![7; self.below(200) as usize];
        let by = if by_stopped {
            self.stopped.as_mut()
        } else {
            Some(&mut self.leader)
        };
        let Some(by) = by else {
            return;
        };
        if let Ok(sequence) = by.store.change(vec![Change::Put(key, value)]) {
            by.asked.push((sequence, Asked::Put(self.puts)));
            self.puts += 1;
        }
    }

    /// Append the next batch of a log's producer.
    pub(crate) fn append(&mut self, log: u64) {
        let (next, unanswered) = self.sequences[&log];
        if (next - unanswered) as usize >= UNANSWERED {
            return;
        }
        if self.send(log, next) {
            self.sequences.insert(log, (next + 1, unanswered));
        }
    }

    pub(crate) fn send(&mut self, log: u64, sequence: i32) -> bool {
        let client = Client {
            value_bytes: (sequence as usize * 37) % 700,
            producer: (log as i64, 0, sequence),
            ..PLAIN
        };
        match self.leader.store.append(log, &client.bytes(), 1000) {
            // A duplicate, with nothing else pending
            Ok(appended) if appended.sequence <= self.leader.settled => {
                self.answer(log, sequence);
                true
            }
            Ok(appended) => {
                self.leader
                    .asked
                    .push((appended.sequence, Asked::Batch(log, sequence)));
                true
            }
            Err(Refusal::Storage(_) | Refusal::Busy) => false,
            Err(refusal) => panic!("log {log}, sequence {sequence}: {refusal}"),
        }
    }

    pub(crate) fn act(&mut self) {
        match self.below(17) {
            0..=3 => self.put(false),
            4 => self.put(true),
            5..=8 => {
                let log = 1 + self.below(NUMBERED);
                self.append(log);
            }
            9 | 10 => {
                let key = vec![self.below(4) as u8];
                let pairs = [(Some(key), Some(vec![0; self.below(300) as usize]))];
                let batch = keyed_batch(&pairs, 1000, 0, (-1, -1, -1));
                // Its confirmation is not checked
                let _ = self.leader.store.append(KEYED, &batch, 1000);
            }
            11 => {
                let log = 1 + self.below(NUMBERED);
                if let Ok(offsets) = self.leader.store.offsets(log) {
                    let length = (offsets.high_watermark - offsets.start + 1) as u64;
                    let before = offsets.start + self.below(length) as i64;
                    let _ = self.leader.store.delete_records(log, before);
                }
            }
            12 => {
                let options = CleanOptions {
                    now_ms: 1000,
                    newest_ms: i64::MAX,
                    delete_retention_ms: 0,
                    keys_bytes: 1 << 16,
                    keys_load: 0.9,
                    read_bytes: 1 << 16,
                    bytes_per_second: f64::MAX,
                };
                let _ = self.leader.store.clean(KEYED, &options);
            }
            13 => {
                self.leader.store.maintain();
            }
            14 => {
                let _ = self.leader.store.roll();
            }
            15 if self.below(4) == 0 => {
                let steps = 1 + self.below(30);
                self.network.lock().expect("one thread").kill_in = Some(steps);
            }
            16 if self.below(6) == 0 && self.stopped.is_none() => self.take_over(),
            _ => {}
        }
        self.leader.store.step();
        let steps = self.below(12);
        self.run(steps);
        self.evict();
    }

    /// Let segments leave the disk, and read all logs. Each step counts, since the next process begins anew.
    fn evict(&mut self) {
        let evicted = |store: &Store| store.evicted_figures().map_or(0, |it| it.evicted);
        if !self.network.lock().expect("one thread").is_bounded {
            return;
        }
        let before = evicted(&self.leader.store);
        self.leader.store.maintain();
        self.evicted += evicted(&self.leader.store) - before;
        for log in 1..=NUMBERED {
            numbers(&self.leader.store, log);
        }
    }

    /// Let the network run.
    pub(crate) fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.tick();
        }
        let is_killed = self.network.lock().expect("one thread").kill_in == Some(0);
        if is_killed || !self.leads() {
            self.restart();
        }
    }

    pub(crate) fn tick(&mut self) {
        self.network
            .lock()
            .expect("one thread")
            .tick(&self.leader.store, self.leader.writer);
        self.take_answers(false);
        if self.stopped.is_some() && self.below(3) == 0 {
            self.tick_stopped();
        }
    }

    pub(crate) fn tick_stopped(&mut self) {
        let mut network = self.network.lock().expect("one thread");
        let Some(stopped) = &self.stopped else {
            return;
        };
        // The kill applies only to the leader
        let kill_in = network.kill_in.take();
        stopped.store.step();
        network.tick(&stopped.store, stopped.writer);
        network.kill_in = kill_in;
        drop(network);
        self.take_answers(true);
        let status = self
            .stopped
            .as_ref()
            .and_then(|it| it.store.bucket_status());
        if status.is_some_and(|it| it.state == BackupState::Fenced) {
            self.end_stopped();
        }
    }

    pub(crate) fn end_stopped(&mut self) {
        self.take_answers(true);
        if let Some(stopped) = self.stopped.take() {
            let mut network = self.network.lock().expect("one thread");
            network.killed(&stopped.store, stopped.writer);
            stopped.store.abandon();
        }
    }

    fn answer(&mut self, log: u64, sequence: i32) {
        // A batch that is sent again is answered twice
        let (_, unanswered) = self.sequences.get_mut(&log).expect("a log");
        *unanswered = (*unanswered).max(sequence + 1);
    }

    pub(crate) fn take_answers(&mut self, by_stopped: bool) {
        let by = if by_stopped {
            self.stopped.as_mut()
        } else {
            Some(&mut self.leader)
        };
        let Some(by) = by else {
            return;
        };
        let mut answered = Vec::new();
        for outcome in by.store.drain().outcomes {
            by.settled = outcome.sequence;
            assert_eq!(outcome.error, None, "a commit waits, and does not fail");
            let (done, waits): (Vec<_>, Vec<_>) = std::mem::take(&mut by.asked)
                .into_iter()
                .partition(|(sequence, _)| *sequence <= outcome.sequence);
            by.asked = waits;
            answered.extend(done);
        }
        for (_, asked) in answered {
            match asked {
                Asked::Put(put) => self.answered.push(put),
                Asked::Batch(log, sequence) => self.answer(log, sequence),
            }
        }
    }

    /// Serve the home on a machine whose disk may be lost or may hold an old state.
    pub(crate) fn restart(&mut self) {
        // Collect what was confirmed before the process ended
        self.take_answers(false);
        {
            let mut network = self.network.lock().expect("one thread");
            network.kill_in = None;
            network.killed(&self.leader.store, self.leader.writer);
        }
        self.leader.store.abandon();
        self.begin();
    }

    /// Let another machine lead while the previous leader does not know.
    pub(crate) fn take_over(&mut self) {
        let other = self.machines.len() - 1;
        self.machines.swap(0, other);
        self.begin_stopped();
        self.begin();
    }

    pub(crate) fn begin_stopped(&mut self) {
        self.take_answers(false);
        let stopped = std::mem::replace(
            &mut self.leader,
            Process {
                store: Arc::new(
                    Store::open_stepped(&self.machines[0].join("none"), &tiny()).expect("one"),
                ),
                writer: 0,
                asked: Vec::new(),
                settled: 0,
            },
        );
        self.stopped = Some(stopped);
    }

    pub(crate) fn begin(&mut self) {
        self.restarts += 1;
        assert!(self.restarts < 1000, "it does not come to lead");
        match self.below(4) {
            // The disk is lost
            0 => {
                let _ = fs::remove_dir_all(&self.machines[0]);
            }
            1 if self.stopped.is_none() => self.machines.swap(0, 1),
            // The power failed: unsynced data is lost
            2 => cut_journal(&self.machines[0], self.below(200)),
            _ => {}
        }
        let dir = self.machines[0].clone();
        let mut bucket = self.network.lock().expect("one thread").bucket.clone();
        let is_bounded = self.network.lock().expect("one thread").is_bounded;
        let cluster = (Some("one"), "one");
        let prepared = prepare_home(&mut bucket, &dir, cluster, None, is_bounded, &mut |_| {});
        let prepared = prepared.unwrap_or_else(|error| panic!("{error}\n{}", journal(&bucket)));
        assert!(
            self.answered.is_empty() || matches!(prepared, Prepared::Bucket(_) | Prepared::Local),
            "the bucket holds what was answered"
        );
        self.writers += 1;
        let restored = match prepared {
            // some starts read the journal again
            Prepared::Bucket(restored) if self.below(4) > 0 => restored.end,
            _ => None,
        };
        self.leader = Process::new(&dir, self.writers, &self.network, restored);
        self.check();
        // Producers send unconfirmed batches again
        for (log, (next, unanswered)) in self.sequences.clone() {
            for sequence in unanswered..next {
                self.send(log, sequence);
            }
        }
    }

    /// Check that everything confirmed exists.
    pub(crate) fn check(&self) {
        let entries = self.leader.store.entries(b"");
        for put in &self.answered {
            let key = put.to_be_bytes();
            let is_there = entries.binary_search_by(|(it, _)| it[..].cmp(&key));
            assert!(is_there.is_ok(), "entry {put} was answered");
        }
        for (log, (_, unanswered)) in &self.sequences {
            let found = numbers(&self.leader.store, *log);
            assert!(
                found.windows(2).all(|it| it[0] + 1 == it[1]),
                "log {log}: {found:?}"
            );
            if let Some(last) = found.last() {
                assert!(last + 1 >= *unanswered, "log {log} ends with {last}");
            }
        }
    }

    /// Run until everything has ended.
    pub(crate) fn settle(&mut self) {
        self.end_stopped();
        for _ in 0..30_000 {
            self.run(1);
            while self.leader.store.step() {}
            self.leader.store.maintain();
            let all: Vec<_> = self.sequences.clone().into_iter().collect();
            // A store that does not lead yet may have to start again
            let status = self.leader.store.bucket_status().expect("a bucket");
            if status.state != BackupState::Leading {
                continue;
            }
            let is_done = all.iter().all(|(_, (next, unanswered))| next == unanswered);
            if is_done && self.leader.asked.is_empty() && self.leader.store.staged_bytes() == 0 {
                return;
            }
            // Batches that were refused for lack of room or of a leader
            if self.leader.asked.is_empty() {
                for (log, (next, unanswered)) in all {
                    for sequence in unanswered..next {
                        self.send(log, sequence);
                    }
                }
            }
        }
        panic!(
            "it does not settle: {:?}",
            self.leader.store.bucket_status()
        );
    }
}
