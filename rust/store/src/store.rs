//! The public interface of the store.

use std::{
    io,
    os::fd::RawFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{
    LogId,
    apart::Reads,
    bucket::{self, Backup, Worker, home},
    damage::Damages,
    directory_lock::DirectoryLock,
    error::{Refusal, StoreError},
    evicted::EvictedSegments,
    fault::Fault,
    figures::Counts,
    flush,
    journal::Journal,
    log::{LogConfig, Offsets},
    maintain::{self, Work},
    options::{Durability, Options, OwnCommits},
    pending::Pending,
    producer::{Aborted, Active},
    recover,
    shipping::Shipping,
    signal::Signal,
    state::State,
    turn::{self, Pace},
};

/// A change of the catalog or of the set of logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets a key.
    Put(Vec<u8>, Vec<u8>),
    /// Removes a key.
    Delete(Vec<u8>),
    /// Creates an empty log.
    CreateLog(LogId),
    /// Removes a log and its content.
    DropLog(LogId),
}

impl Change {
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Put(key, value) => key.len() + value.len() + 64,
            Self::Delete(key) => key.len() + 64,
            Self::CreateLog(_) | Self::DropLog(_) => 64,
        }
    }
}

/// The outcome of the operations after the previous outcome and up to a sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The last operation included.
    pub sequence: u64,
    /// Why they failed; `None` if they are durable.
    pub error: Option<String>,
}

pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) work: Condvar,
    pub(crate) maintenance: Condvar,
    pub(crate) settled: Condvar,
    pub(crate) signal: Arc<Signal>,
    pub(crate) damages: Arc<Damages>,
    pub(crate) fault: Fault,
    pub(crate) counts: Counts,
    pub(crate) reads: Reads,
    pub(crate) leaving: AtomicBool,
    /// The copy in a bucket, if there is one.
    pub(crate) backup: Option<Arc<Backup>>,
    /// Used by the one that `State::writer` names, or by a simulation's step; locked before the state. None once closed.
    pub(crate) journal: Mutex<Option<Journal>>,
    /// Whether no thread commits (`Store::open_stepped`).
    pub(crate) stepped: AtomicBool,
    pub(crate) pace: Pace,
    /// Lets simulated time pass while a store without threads waits for its bucket.
    pub(crate) pump: Mutex<Option<Pump>>,
}

/// See `Store::set_pump`.
pub(crate) type Pump = Box<dyn FnMut() + Send>;

impl Shared {
    fn new(state: State, read_threads: usize, backup: Option<Arc<Backup>>) -> io::Result<Self> {
        let (signal, damages) = (Arc::new(Signal::new()?), Arc::clone(&state.damages));
        damages.notify(Arc::clone(&signal));
        Ok(Self {
            damages,
            signal,
            state: Mutex::new(state),
            work: Condvar::new(),
            maintenance: Condvar::new(),
            settled: Condvar::new(),
            fault: Fault::default(),
            counts: Counts::default(),
            reads: Reads::new(read_threads),
            leaving: AtomicBool::new(false),
            backup,
            journal: Mutex::default(),
            stepped: AtomicBool::new(false),
            pace: Pace::new(),
            pump: Mutex::default(),
        })
    }

    /// Whether the store is closing: no more maintenance, and soon no more writes. Set under the lock.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }

    /// Waits until an operation has an outcome; returns the result of `look`.
    pub(crate) fn wait<T>(&self, sequence: u64, look: impl FnOnce(&State) -> T) -> T {
        let mut state = self.lock();
        while !state.is_settled(sequence) && state.ended.is_none() {
            drop(state);
            let stepped = self.step() || self.pump();
            state = self.lock();
            if state.held {
                // the turn that would commit it waits here
                state.held = false;
                self.wake(state);
                state = self.lock();
            }
            if !stepped && !state.is_settled(sequence) && state.ended.is_none() {
                state.waiters += 1;
                state = self.settled.wait(state).expect("no panic under the lock");
                state.waiters -= 1;
            }
        }
        look(&state)
    }
}

/// Logs of record batches and a key-value catalog in one directory.
pub struct Store {
    pub(crate) shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    maintainers: Mutex<Vec<JoinHandle<()>>>,
    copier: Mutex<Option<JoinHandle<()>>>,
    /// The worker for the bucket, if no thread owns it.
    pub(crate) stepped_worker: Mutex<Option<Worker>>,
    pub(crate) lock: Mutex<Option<DirectoryLock>>,
    pub(crate) dir: PathBuf,
    pub(crate) segment_bytes: u64,
    /// See `begin_turn`.
    pub(crate) own_commits: OwnCommits,
}

/// How often a read is retried if the directory changes meanwhile, and the delay.
const LOOKS_MAX: usize = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(50);

impl Store {
    /// Reads the current state of the store in `dir` without changing it: no file, no lock. A process that owns the
    /// directory may continue writing; its later writes are not seen. Calls that would write are refused.
    pub fn look(dir: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        let mut attempt = 1;
        let mut state = loop {
            let mut state = State::new(dir.into(), cache_bytes, 0, usize::MAX);
            match recover::look(dir, &mut state) {
                Ok(()) => break state,
                // the owner may have replaced files between two reads
                Err(error) if attempt == LOOKS_MAX || !error.may_pass() => return Err(error),
                Err(_) => thread::sleep(LOOK_PAUSE),
            }
            attempt += 1;
        };
        state.closing = true;
        Ok(Self {
            shared: Arc::new(Shared::new(state, 1, None).map_err(StoreError::io(dir))?),
            writer: Mutex::default(),
            maintainers: Mutex::default(),
            copier: Mutex::default(),
            stepped_worker: Mutex::default(),
            lock: Mutex::default(),
            dir: dir.into(),
            segment_bytes: 0,
            own_commits: OwnCommits::default(),
        })
    }

    /// Opens the store in `dir`, creating it if need be.
    pub fn open(dir: &Path, options: &Options) -> Result<Self, StoreError> {
        let (store, journal) = Self::recover(dir, options)?;
        let shared = Arc::clone(&store.shared);
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            thread::Builder::new()
                .name(name.into())
                .spawn(run)
                .map(Some)
                .map_err(StoreError::io(dir))
        };
        let for_writer = Arc::clone(&shared);
        *hold(&shared.journal) = Some(journal);
        *hold(&store.writer) = spawn("store", Box::new(move || flush::run(&for_writer)))?;
        let evicting = shared.evicted().map(|_| Work::Evicted);
        for work in [Work::Local].into_iter().chain(evicting) {
            let (shared, dir, segment_bytes) = (
                Arc::clone(&shared),
                dir.to_path_buf(),
                options.segment_bytes,
            );
            let maintain = move || maintain::run(&shared, &dir, segment_bytes, work);
            hold(&store.maintainers).extend(spawn(work.thread(), Box::new(maintain))?);
        }
        if let Some(backup) = store.shared.backup.clone() {
            let shared = Arc::clone(&store.shared);
            let copy = move || bucket::run(&shared, &backup);
            *hold(&store.copier) = spawn("store-bucket", Box::new(copy))?;
        }
        Ok(store)
    }

    pub(crate) fn recover(dir: &Path, options: &Options) -> Result<(Self, Journal), StoreError> {
        let lock = DirectoryLock::create(dir)?;
        home::check(dir, options)?;
        let mut state = State::new(
            dir.into(),
            options.cache_bytes,
            options.staging_bytes,
            options.producer_bytes,
        );
        let is_home = options.durability == Durability::Bucket;
        let bound = options.bucket.as_ref().and_then(|it| it.cache.as_ref());
        let bound = bound.filter(|_| is_home);
        let evicted = bound.map(|it| EvictedSegments::open(dir, it));
        if let Some(evicted) = &evicted {
            state.segments.bound(evicted.segment_bytes);
        }
        let (journal, leftovers) = recover::open(dir, options, &mut state)?;
        state.bound_producers();
        if is_home {
            state.shipping = Some(Shipping::new(journal.next_frame));
        }
        let backup = options.bucket.clone().map(|options| {
            let backup = Backup::new(dir, options, is_home, &journal).with(evicted);
            for (id, path) in leftovers {
                // already gone, or removed by the next start
                let _ = backup.discard(id, &path);
            }
            Arc::new(backup)
        });
        let store = Self {
            shared: Arc::new(
                Shared::new(state, options.read_threads, backup).map_err(StoreError::io(dir))?,
            ),
            writer: Mutex::default(),
            maintainers: Mutex::default(),
            copier: Mutex::default(),
            stepped_worker: Mutex::default(),
            lock: Mutex::new(Some(lock)),
            dir: dir.into(),
            segment_bytes: options.segment_bytes,
            own_commits: turn::own_commits(options),
        };
        Ok((store, journal))
    }

    /// Commits staged operations and stops; later calls are refused.
    pub fn close(&self) {
        {
            let _state = self.shared.lock();
            self.shared.leaving.store(true, Ordering::Relaxed);
        }
        if let Some(evicted) = self.shared.evicted() {
            evicted.close();
        }
        self.shared.reads.close();
        self.await_bucket();
        self.shared.maintenance.notify_all();
        for thread in hold(&self.maintainers).drain(..) {
            let _ = thread.join();
        }
        let mut state = self.shared.lock();
        while state.passes > 0 {
            let woken = self.shared.maintenance.wait(state);
            state = woken.expect("no panic under the lock");
        }
        state.closing = true;
        drop(state);
        self.shared.work.notify_all();
        if let Some(thread) = hold(&self.writer).take() {
            let _ = thread.join();
        }
        while self.shared.step() {}
        // whoever panicked while it wrote: the rest is closed
        let journal = self.shared.journal.lock();
        let journal = journal.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(journal) = journal {
            journal.finish();
        }
        if let Some(backup) = &self.shared.backup {
            backup.begin_closing();
            if let Some(thread) = hold(&self.copier).take() {
                let _ = thread.join();
            }
            backup.end();
        }
        drop(hold(&self.lock).take());
    }

    /// Becomes readable when there is something to `drain`.
    pub fn fileno(&self) -> RawFd {
        self.shared.signal.fileno()
    }

    /// Injected failures, for tests.
    pub fn fault(&self) -> &Fault {
        &self.shared.fault
    }

    /// Waits until the operation has an outcome.
    pub fn wait(&self, sequence: u64) {
        self.shared.wait(sequence, |_| ());
    }

    /// Returns an ID for a new log; IDs are never reused.
    pub fn new_log_id(&self) -> LogId {
        let mut state = self.shared.lock();
        state.next_log += 1;
        let id = state.next_log - 1;
        debug_assert!(!state.logs.contains_key(&id), "another log has the number");
        id
    }

    /// Stages changes that become durable together.
    pub fn change(&self, changes: Vec<Change>) -> Result<u64, Refusal> {
        let state = self.shared.lock();
        state.room()?;
        for change in &changes {
            match change {
                Change::DropLog(id) => drop(state.log(*id)?),
                Change::CreateLog(id) if state.logs.contains_key(id) => {
                    return Err(Refusal::Storage(format!("log {id} exists already")));
                }
                _ => {}
            }
        }
        Ok(self.stage(state, Pending::Catalog(changes)))
    }

    /// Durable catalog entries whose keys begin with `prefix`, in key order.
    pub fn entries(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let state = self.shared.lock();
        let from = state.catalog.range(prefix.to_vec()..);
        from.take_while(|(k, _)| k.starts_with(prefix))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    /// IDs of all logs.
    pub fn logs(&self) -> Vec<LogId> {
        self.shared.lock().logs.keys().copied().collect()
    }

    /// Sets the limits of a log.
    pub fn configure(&self, log: LogId, config: LogConfig) -> Result<(), Refusal> {
        self.shared.lock().log_mut(log)?.config = config;
        Ok(())
    }

    /// The offsets of a log.
    pub fn offsets(&self, log: LogId) -> Result<Offsets, Refusal> {
        Ok(self.shared.lock().log(log)?.offsets())
    }

    /// Bytes of a log's batches.
    pub fn log_bytes(&self, log: LogId) -> Result<u64, Refusal> {
        Ok(self.shared.lock().log(log)?.bytes())
    }

    /// Bytes waiting to be written.
    pub fn staged_bytes(&self) -> usize {
        self.shared.lock().staged_bytes
    }

    /// Moves a log's start to `before`; -1 means the high watermark.
    pub fn delete_records(&self, log: LogId, before: i64) -> Result<u64, Refusal> {
        let state = self.shared.lock();
        state.writable()?;
        let target = state.log(log)?;
        let before = if before == -1 {
            target.durable_end
        } else {
            before
        };
        if before < 0 || before > target.durable_end {
            return Err(Refusal::OffsetOutOfRange(format!(
                "records end at {}, not at {before}",
                target.durable_end
            )));
        }
        if before <= target.start {
            return Ok(state.sequence);
        }
        Ok(self.stage(
            state,
            Pending::LogStart {
                log,
                offset: before,
            },
        ))
    }

    /// The largest timestamp of the log's durable batches.
    pub fn max_timestamp(&self, log: LogId) -> Result<Option<i64>, Refusal> {
        let look = |state: &mut State, loaded: &_| state.max_timestamp(log, loaded);
        self.shared.look_up_on_disk(look)
    }

    /// Moves a log's start past batches whose newest record is older than `oldest_ms`, and past the oldest ones while
    /// `max_bytes` remain after them; `None` if there is nothing to delete.
    pub fn retain(
        &self,
        log: LogId,
        oldest_ms: Option<i64>,
        max_bytes: Option<u64>,
    ) -> Result<Option<u64>, Refusal> {
        let offset = self.shared.look_up_on_disk(|state, loaded| {
            state.writable()?;
            state.retained_from(log, oldest_ms, max_bytes, loaded)
        })?;
        let state = self.shared.lock();
        state.writable()?;
        if offset <= state.log(log)?.start {
            return Ok(None);
        }
        Ok(Some(self.stage(state, Pending::LogStart { log, offset })))
    }

    /// Aborted transactions with records in `[first, end)`.
    pub fn aborted(&self, log: LogId, first: i64, end: i64) -> Result<Vec<Aborted>, Refusal> {
        Ok(self.shared.lock().log(log)?.producers.aborted(first, end))
    }

    /// A log's state of its producers, by ID.
    pub fn active_producers(&self, log: LogId) -> Result<Vec<Active>, Refusal> {
        Ok(self.shared.lock().log(log)?.producers.active())
    }

    /// Forgets producers last seen before `before_ms`.
    pub fn expire_producers(&self, before_ms: i64) {
        self.shared
            .lock()
            .logs
            .values_mut()
            .for_each(|log| log.producers.expire(before_ms));
    }

    fn stage(&self, state: MutexGuard<'_, State>, pending: Pending) -> u64 {
        self.shared.stage(state, pending, false)
    }
}

pub(crate) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic while opening or closing")
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}
