//! Reads in separate threads, so that the caller is not blocked.

use std::{
    collections::VecDeque,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{self, JoinHandle},
};

use crate::{
    LogId,
    read::Want,
    store::{Shared, Store},
};

/// Work for a thread, which stores its own result. Returns whether it is done; unfinished work is queued again after
/// all other waiting work, so that nobody waits long for someone else's.
pub type Job = Box<dyn FnMut() -> bool + Send>;

/// Reads waiting for a thread, and finished ones.
#[derive(Default)]
pub(crate) struct Reads {
    queue: Mutex<Queue>,
    work: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(u64, Job)>,
    ended: Vec<u64>,
    begun: u64,
    threads: Vec<JoinHandle<()>>,
    threads_max: usize,
    idle: usize,
    closed: bool,
}

impl Reads {
    /// Has at most this many threads, started on demand; with none, a simulation steps the work.
    pub(crate) fn new(threads_max: usize) -> Self {
        let reads = Self::default();
        reads.lock().threads_max = threads_max;
        reads
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no panic under the lock")
    }

    /// The reads finished since the last call.
    pub(crate) fn take_ended(&self) -> Vec<u64> {
        mem::take(&mut self.lock().ended)
    }

    /// Drops waiting reads, and waits for running ones.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        let forgotten = mem::take(&mut queue.waiting);
        let threads = mem::take(&mut queue.threads);
        drop(queue);
        drop(forgotten);
        self.work.notify_all();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Queue {
    /// Starts another thread if all are busy.
    fn grow(&mut self, shared: &Arc<Shared>) {
        if self.idle >= self.waiting.len() || self.threads.len() >= self.threads_max {
            return;
        }
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("store-read".into());
        // without another thread the running ones do the work
        self.threads.extend(thread.spawn(move || run(&shared)).ok());
        debug_assert!(self.threads.len() <= self.threads_max, "too many threads");
    }
}

/// Lowers this thread's priority: on scarce CPUs, requests go before reads of old records.
#[cfg(target_os = "linux")]
fn step_back() {
    /// A tenth of the others' weight.
    const NICENESS: i32 = 10;
    // applies to this thread only, as Linux does it; without permission, threads share equally
    let _ = rustix::process::nice(NICENESS);
}

#[cfg(not(target_os = "linux"))]
const fn step_back() {}

fn run(shared: &Shared) {
    step_back();
    let reads = &shared.reads;
    let mut queue = reads.lock();
    loop {
        if let Some(next) = queue.waiting.pop_front() {
            drop(queue);
            end(shared, next);
            queue = reads.lock();
        } else if queue.closed {
            return;
        } else {
            queue.idle += 1;
            queue = reads.work.wait(queue).expect("no panic under the lock");
            queue.idle -= 1;
        }
    }
}

/// Runs a job's turn, and reports its end.
fn end(shared: &Shared, (id, mut job): (u64, Job)) {
    // work that panics has found nothing, and counts as done
    let is_done = catch_unwind(AssertUnwindSafe(&mut job)).unwrap_or(true);
    let mut queue = shared.reads.lock();
    debug_assert!(
        (1..=queue.begun).contains(&id),
        "work ends that has not begun"
    );
    debug_assert!(
        queue.waiting.iter().all(|(other, _)| *other != id),
        "work is both waiting and running"
    );
    if !is_done && !queue.closed {
        queue.waiting.push_back((id, job));
        return;
    }
    queue.ended.push(id);
    drop(queue);
    shared.signal.raise();
}

impl Store {
    /// Runs a read in a thread; `drain` returns its number once it is done. Waiting reads are dropped when the store
    /// closes.
    pub fn read_apart(&self, read: impl FnOnce() + Send + 'static) -> u64 {
        let mut read = Some(read);
        self.work_apart(Box::new(move || {
            if let Some(read) = read.take() {
                read();
            }
            true
        }))
    }

    /// As `read_apart`, for work that takes turns with others.
    pub fn work_apart(&self, job: Job) -> u64 {
        let reads = &self.shared.reads;
        let mut queue = reads.lock();
        queue.begun += 1;
        let id = queue.begun;
        if queue.closed {
            return id;
        }
        queue.waiting.push_back((id, job));
        queue.grow(&self.shared);
        let stuck = queue.threads.is_empty() && queue.threads_max > 0;
        drop(queue);
        while stuck && self.step_read() {}
        reads.work.notify_one();
        id
    }

    /// Loads the index entries for an offset in a thread, as far as they are not in memory.
    pub fn look_up_apart(&self, log: LogId, offset: i64, want: Want) -> u64 {
        let shared = Arc::clone(&self.shared);
        self.read_apart(move || {
            // an error reappears when that is read
            let _ = shared.look_up_on_disk(|state, loaded| state.read(log, offset, want, loaded));
        })
    }

    /// Whether a read is waiting.
    pub fn has_reads(&self) -> bool {
        !self.shared.reads.lock().waiting.is_empty()
    }

    /// Runs one turn of work, in a store without threads; returns whether there was any.
    pub fn step_read(&self) -> bool {
        let next = self.shared.reads.lock().waiting.pop_front();
        next.is_some_and(|next| {
            end(&self.shared, next);
            true
        })
    }
}
