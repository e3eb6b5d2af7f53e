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

/// What a read waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// The local disk.
    Disk,
    /// The bucket. Such reads have threads of their own, so that others do not wait for a slow bucket.
    Bucket,
}

/// Reads waiting for a thread, and finished ones.
#[derive(Default)]
pub(crate) struct Reads {
    queue: Mutex<Queue>,
    work: [Condvar; 2],
}

#[derive(Default)]
struct Queue {
    /// By what they wait for.
    lanes: [Lane; 2],
    threads_max: usize,
    ended: Vec<u64>,
    begun: u64,
    closed: bool,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<(u64, Job)>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
}

impl Reads {
    /// Has at most this many threads for each kind of read, started on demand; with none, a simulation steps the work.
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
        let lanes = mem::take(&mut queue.lanes);
        drop(queue);
        for (lane, work) in lanes.into_iter().zip(&self.work) {
            drop(lane.waiting);
            work.notify_all();
            for thread in lane.threads {
                let _ = thread.join();
            }
        }
    }

    fn take_next(&self) -> Option<(u64, Job)> {
        let mut queue = self.lock();
        let mut lanes = queue.lanes.iter_mut();
        lanes.find_map(|lane| lane.waiting.pop_front())
    }
}

impl Lane {
    /// Starts another thread if all are busy.
    fn grow(&mut self, shared: &Arc<Shared>, threads_max: usize, from: ReadFrom) {
        if self.idle >= self.waiting.len() || self.threads.len() >= threads_max {
            return;
        }
        let shared = Arc::clone(shared);
        let name = match from {
            ReadFrom::Disk => "store-read",
            ReadFrom::Bucket => "store-bucket-read",
        };
        let thread = thread::Builder::new().name(name.into());
        // without another thread the running ones do the work
        let spawned = thread.spawn(move || run(&shared, from));
        self.threads.extend(spawned.ok());
        debug_assert!(self.threads.len() <= threads_max, "too many threads");
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

fn run(shared: &Shared, from: ReadFrom) {
    step_back();
    let reads = &shared.reads;
    let lane = from as usize;
    let mut queue = reads.lock();
    loop {
        if let Some(next) = queue.lanes[lane].waiting.pop_front() {
            drop(queue);
            end(shared, next, from);
            queue = reads.lock();
        } else if queue.closed {
            return;
        } else {
            queue.lanes[lane].idle += 1;
            let woken = reads.work[lane].wait(queue);
            queue = woken.expect("no panic under the lock");
            // closing leaves new lanes
            let idle = &mut queue.lanes[lane].idle;
            *idle = idle.saturating_sub(1);
        }
    }
}

/// Runs a job's turn, and reports its end.
fn end(shared: &Shared, (id, mut job): (u64, Job), from: ReadFrom) {
    // work that panics has found nothing, and counts as done
    let is_done = catch_unwind(AssertUnwindSafe(&mut job)).unwrap_or(true);
    let mut queue = shared.reads.lock();
    debug_assert!(
        (1..=queue.begun).contains(&id),
        "work ends that has not begun"
    );
    debug_assert!(
        queue
            .lanes
            .iter()
            .all(|lane| lane.waiting.iter().all(|(other, _)| *other != id)),
        "work is both waiting and running"
    );
    if !is_done && !queue.closed {
        queue.lanes[from as usize].waiting.push_back((id, job));
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
        self.read_apart_from(ReadFrom::Disk, read)
    }

    /// As `read_apart`, for a read that may wait for the bucket.
    pub fn read_apart_from(&self, from: ReadFrom, read: impl FnOnce() + Send + 'static) -> u64 {
        let mut read = Some(read);
        let job = move || {
            if let Some(read) = read.take() {
                read();
            }
            true
        };
        self.queue(from, Box::new(job))
    }

    /// As `read_apart`, for work that takes turns with others.
    pub fn work_apart(&self, job: Job) -> u64 {
        self.queue(ReadFrom::Disk, job)
    }

    fn queue(&self, from: ReadFrom, job: Job) -> u64 {
        let reads = &self.shared.reads;
        let mut queue = reads.lock();
        queue.begun += 1;
        let id = queue.begun;
        if queue.closed {
            return id;
        }
        let threads_max = queue.threads_max;
        let lane = &mut queue.lanes[from as usize];
        lane.waiting.push_back((id, job));
        lane.grow(&self.shared, threads_max, from);
        let stuck = lane.threads.is_empty() && threads_max > 0;
        drop(queue);
        while stuck && self.step_read() {}
        reads.work[from as usize].notify_one();
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
        let queue = self.shared.reads.lock();
        queue.lanes.iter().any(|lane| !lane.waiting.is_empty())
    }

    /// Runs one turn of work, in a store without threads; returns whether there was any.
    pub fn step_read(&self) -> bool {
        let next = self.shared.reads.take_next();
        next.is_some_and(|next| {
            end(&self.shared, next, ReadFrom::Disk);
            true
        })
    }
}
