//! A store that is copied to a bucket, over a network that loses, delays and repeats requests, through kills: everything that
//! the bucket has confirmed can be restored, at any place of the journal, as it was committed.

mod common;

use std::{collections::BTreeMap, time::Duration};

use common::{ALL, Client, PLAIN, keyed::keyed_batch, tiny};
use sharecore_bucket::{Answer, Bucket, Call, MemoryBucket, What, names, read};
use sharecore_store::{
    BackupOptions, BackupState, BackupStatus, Change, CleanOptions, MemoryDisk, Moment, Options,
    Store, restore,
};

const HISTORY_MS: i64 = 3000;
const LOGS: u64 = 3;
/// The compacted log.
const KEYED: u64 = 3;

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

fn options(writer: u8, cluster: &str) -> Options {
    Options {
        bucket: Some(BackupOptions {
            cluster_id: cluster.into(),
            writer: [writer; 16],
            interval_ms: 100,
            object_bytes: 700,
            window: 2,
            part_bytes: 1500,
            objects_max: 20,
            history_ms: HISTORY_MS,
            ..BackupOptions::default()
        }),
        ..tiny()
    }
}

/// The content of a store: entries, and for each log its start and what readers get.
#[derive(Clone, PartialEq, Eq)]
struct Content {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    logs: Vec<(i64, Vec<u8>)>,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self
            .logs
            .iter()
            .map(|(start, bytes)| (start, bytes.len(), crc32c::crc32c(bytes)));
        write!(f, "{:?} {:?}", self.entries, bytes.collect::<Vec<_>>())
    }
}

fn content(store: &Store) -> Content {
    let mut ids = store.logs();
    ids.sort_unstable();
    let log = |id| {
        let start = store.offsets(id).expect("a log").start;
        let slice = store.read(id, start, ALL).expect("readable");
        let mut bytes = vec![0; slice.size];
        slice.copy_to(&mut bytes).expect("readable");
        (start, bytes)
    };
    Content {
        entries: store.entries(b""),
        logs: ids.into_iter().map(log).collect(),
    }
}

fn restored(bucket: &mut MemoryBucket, moment: Moment) -> Result<(u64, u64, Content), String> {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = MemoryDisk::mount(dir.path(), 1);
    let restored = restore(bucket, dir.path(), moment, &mut |_| {}).map_err(|it| it.to_string())?;
    let store = Store::open_stepped(dir.path(), &tiny()).map_err(|it| it.to_string())?;
    let found = (restored.place, restored.frame, content(&store));
    drop(store);
    disk.unmount();
    Ok(found)
}

/// A bucket behind a network.
struct Network {
    bucket: MemoryBucket,
    /// Requests that may be executed at any time, and whether the answer is awaited.
    requests: Vec<(Call, bool)>,
    /// Percentage of requests that go wrong.
    faults: u64,
}

impl Network {
    fn new(faults: u64) -> Self {
        Self {
            bucket: MemoryBucket::default(),
            requests: Vec::new(),
            faults,
        }
    }

    /// Execute some request and deliver its answer.
    fn deliver(&mut self, store: &Store, chance: &mut Chance) -> bool {
        let line = store.bucket_line().expect("it is copied");
        while let Some(call) = line.next(Duration::ZERO) {
            self.requests.push((call, true));
        }
        if self.requests.is_empty() {
            return false;
        }
        let at = chance.below(self.requests.len() as u64) as usize;
        let (call, is_awaited) = self.requests.swap_remove(at);
        let unknown = || Answer::Unknown("503".into());
        if is_awaited && chance.below(100) < self.faults {
            match chance.below(3) {
                // Refused
                0 => line.answer(call.id, unknown()),
                // Executed later, or never
                1 => {
                    line.answer(call.id, unknown());
                    self.requests.push((call, false));
                }
                // Executed now and later
                _ => {
                    let answer = self.bucket.ask(call.what.clone());
                    line.answer(call.id, answer);
                    self.requests.push((call, false));
                }
            }
            return true;
        }
        // A request that is not awaited may be lost
        if !is_awaited && chance.below(3) == 0 {
            return true;
        }
        let answer = self.bucket.ask(call.what);
        if is_awaited {
            line.answer(call.id, answer);
        }
        true
    }

    /// Kill the process: no answer is awaited any more.
    fn killed(&mut self, store: &Store) {
        let line = store.bucket_line().expect("it is copied");
        while let Some(call) = line.next(Duration::ZERO) {
            self.requests.push((call, true));
        }
        // Reads have no effect
        self.requests
            .retain(|(call, _)| matches!(call.what, What::Create { .. } | What::Delete { .. }));
        for (_, is_awaited) in &mut self.requests {
            *is_awaited = false;
        }
    }
}

struct World {
    dir: tempfile::TempDir,
    disk: MemoryDisk,
    store: Store,
    network: Network,
    chance: Chance,
    now_ms: u64,
    lives: u8,
    /// By the number of the newest frame.
    committed: BTreeMap<u64, Content>,
}

impl World {
    fn new(seed: u64, faults: u64) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = MemoryDisk::mount(dir.path(), seed);
        let store = Store::open_stepped(dir.path(), &options(1, "one")).expect("it opens");
        let mut world = Self {
            dir,
            disk,
            store,
            network: Network::new(faults),
            chance: Chance(seed * 2 + 1),
            now_ms: 0,
            lives: 1,
            committed: BTreeMap::new(),
        };
        world.note();
        let logs = (1..=LOGS).map(Change::CreateLog).collect();
        let created = world.store.change(logs).expect("room");
        world.store.wait(created);
        world.note();
        world
    }

    fn end(self) {
        drop(self.store);
        self.disk.unmount();
    }

    fn status(&self) -> BackupStatus {
        self.store.bucket_status().expect("it is copied")
    }

    fn note(&mut self) {
        self.committed
            .insert(self.status().committed - 1, content(&self.store));
    }

    fn at(&self, frame: u64) -> &Content {
        let (_, content) = self
            .committed
            .range(..=frame)
            .next_back()
            .expect("the first is empty");
        content
    }

    fn act(&mut self) {
        let log = 1 + self.chance.below(2);
        match self.chance.below(12) {
            0..=3 => {
                let value_bytes = self.chance.below(900) as usize;
                let client = Client {
                    value_bytes,
                    ..PLAIN
                };
                self.append(log, &client.bytes());
            }
            4 | 5 => {
                let key = vec![self.chance.below(4) as u8];
                let value = vec![0; self.chance.below(300) as usize];
                let pairs = [(Some(key), Some(value))];
                self.append(KEYED, &keyed_batch(&pairs, 1000, 0, (-1, -1, -1)));
            }
            6 => {
                let key = vec![self.chance.below(4) as u8];
                let value = self.now_ms.to_le_bytes().to_vec();
                let put = self
                    .store
                    .change(vec![Change::Put(key, value)])
                    .expect("room");
                self.store.wait(put);
            }
            7 => {
                let offsets = self.store.offsets(log).expect("a log");
                let length = (offsets.high_watermark - offsets.start + 1) as u64;
                let before = offsets.start + self.chance.below(length) as i64;
                let moved = self.store.delete_records(log, before).expect("room");
                self.store.wait(moved);
            }
            8 => {
                let options = CleanOptions {
                    now_ms: 1000,
                    newest_ms: i64::MAX,
                    delete_retention_ms: 0,
                    keys_bytes: 1 << 16,
                    keys_load: 0.9,
                    read_bytes: 1 << 16,
                    bytes_per_second: f64::MAX,
                };
                self.store.clean(KEYED, &options).expect("a log");
            }
            9 => {
                self.store.maintain();
            }
            10 => self.store.roll().expect("room"),
            _ if self.chance.below(4) == 0 => self.kill(),
            _ => {}
        }
        self.store.step();
        self.note();
    }

    fn append(&mut self, log: u64, batch: &[u8]) {
        let appended = self.store.append(log, batch, 1000).expect("room");
        self.store.wait(appended.sequence);
    }

    fn kill(&mut self) {
        self.network.killed(&self.store);
        self.store.abandon();
        self.lives += 1;
        let options = options(self.lives, "one");
        self.store = Store::open_stepped(self.dir.path(), &options).expect("it opens");
    }

    fn step(&mut self) -> Option<u64> {
        self.store.step_bucket(self.now_ms, self.now_ms as i64)
    }

    /// Let the network run.
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
            self.network.deliver(&self.store, &mut self.chance);
            self.now_ms += self.chance.below(40);
        }
    }

    /// Let the network run until it is done.
    fn settle(&mut self) -> BackupStatus {
        for _ in 0..20_000 {
            self.store.maintain();
            assert_eq!(self.store.maintenance_error(), None);
            self.store.step();
            let due = self.step();
            if !self.network.deliver(&self.store, &mut self.chance) {
                let status = self.status();
                if status.state != BackupState::Attaching && status.behind_bytes == 0 {
                    return status;
                }
                self.now_ms = self.now_ms.max(due.expect("it waits for something"));
            }
        }
        panic!("it does not settle: {:?}", self.status());
    }

    /// True if a place is recent enough to be restored.
    fn is_recent(&self, place: u64) -> bool {
        let object = self.network.bucket.get(&names::journal(place));
        let made = object.map(|object| read(object).expect("an object").header.ms);
        made.is_some_and(|made| made + HISTORY_MS >= self.now_ms as i64)
    }

    fn check(&mut self, moment: Moment) -> u64 {
        let status = self.status();
        let mut bucket = self.network.bucket.clone();
        let found = restored(&mut bucket, moment);
        let (_, frame, content) = found.unwrap_or_else(|error| {
            let names: Vec<&str> = bucket.objects().map(|(name, _)| name).collect();
            panic!("{moment:?}: {error}\n{status:?}\n{names:#?}")
        });
        assert_eq!(&content, self.at(frame), "{moment:?}: frame {frame}");
        frame
    }
}

#[test]
fn what_the_bucket_is_known_to_have_is_restored() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut world = World::new(seed, 20);
        for _ in 0..60 {
            world.act();
            let steps = world.chance.below(30);
            world.run(steps);
            let status = world.status();
            assert_eq!(status.stopped, None, "nobody else claims");
            // after the claim alone, the bucket has no state yet
            let has_state = status.state == BackupState::Leading && status.frame > 1;
            if world.chance.below(15) == 0 && has_state {
                let frame = world.check(Moment::Latest);
                assert!(frame + 1 >= status.frame, "{frame} of {}", status.frame);
            }
        }
        let status = world.settle();
        assert_eq!(world.check(Moment::Latest) + 1, status.committed);
        let newest = status.place - 1;
        for back in [0, 1, 3, 6, 10] {
            let place = newest.saturating_sub(back).max(1);
            if world.is_recent(place) {
                world.check(Moment::Place(place));
            }
        }
        world.check(Moment::At(world.now_ms as i64 - 1500));
        world.end();
    }
}
