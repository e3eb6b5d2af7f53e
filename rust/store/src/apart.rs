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
    error::Refusal,
    fault::FaultPoint,
    read::Want,
    slice::Intact,
    store::{Shared, Store},
};

/// Work for a thread, which stores its own result. Returns whether it is done; unfinished work is queued again after
/// all other waiting work, so that nobody waits long for someone else's.
pub type Job = Box<dyn FnMut() -> bool + Send>;

/// What a turn of a thread's work has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It is done.
    Done,
    /// It has another turn, after other waiting work.
    Again,
    /// It waits for the bucket, so another thread does it.
    Bucket,
}

/// The result of a read: the bytes, the first and last offset of each batch, and which are intact.
pub type WholeRead = (Vec<u8>, Vec<(i64, i64)>, Intact);

/// Work with the kind of thread that does it.
type Work = Box<dyn FnMut(ReadFrom) -> Turn + Send>;

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
    waiting: VecDeque<(u64, Work)>,
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

    fn take_next(&self) -> Option<(ReadFrom, (u64, Work))> {
        let mut queue = self.lock();
        [ReadFrom::Disk, ReadFrom::Bucket]
            .into_iter()
            .find_map(|from| Some((from, queue.lanes[from as usize].waiting.pop_front()?)))
    }
}

impl Queue {
    /// Queues work, and starts a thread for it if all are busy. Returns whether the caller must do it, because no thread
    /// can be started.
    fn wait(&mut self, shared: &Arc<Shared>, from: ReadFrom, work: (u64, Work)) -> bool {
        let threads_max = self.threads_max;
        let lane = &mut self.lanes[from as usize];
        lane.waiting.push_back(work);
        lane.grow(shared, threads_max, from);
        shared.reads.work[from as usize].notify_one();
        lane.threads.is_empty() && threads_max > 0
    }
}

impl Lane {
    /// Starts another thread if all are busy.
    fn grow(&mut self, shared: &Arc<Shared>, threads_max: usize, from: ReadFrom) {
        if self.idle >= self.waiting.len() || self.threads.len() >= threads_max {
            return;
        }
        let fault = shared.fault.at(FaultPoint::Thread);
        let shared = Arc::clone(shared);
        let name = match from {
            ReadFrom::Disk => "store-read",
            ReadFrom::Bucket => "store-bucket-read",
        };
        let thread = thread::Builder::new().name(name.into());
        // without another thread the running ones do the work
        let spawned = fault.and_then(|()| thread.spawn(move || run(&shared, from)));
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

fn run(shared: &Arc<Shared>, from: ReadFrom) {
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

/// Runs a turn of work, and reports its end.
fn end(shared: &Arc<Shared>, (id, mut work): (u64, Work), from: ReadFrom) {
    // work that panics has found nothing, and counts as done
    let turn = catch_unwind(AssertUnwindSafe(|| work(from))).unwrap_or(Turn::Done);
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
    if turn != Turn::Done && !queue.closed {
        let to = if turn == Turn::Again {
            from
        } else {
            ReadFrom::Bucket
        };
        let is_stuck = queue.wait(shared, to, (id, work));
        // work that only has another turn keeps its thread, or a caller steps it
        if is_stuck && turn == Turn::Bucket {
            let next = queue.lanes[to as usize].waiting.pop_front();
            drop(queue);
            if let Some(next) = next {
                end(shared, next, to);
            }
        }
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
        self.read_apart_from(ReadFrom::Disk, move |_| {
            if let Some(read) = read.take() {
                read();
            }
            true
        })
    }

    /// As `read_apart`, for a read that may wait for the bucket. It is called with what it may wait for, and returns false
    /// if that is the disk, but it needs the bucket: another thread calls it again.
    pub fn read_apart_from(
        &self,
        from: ReadFrom,
        mut read: impl FnMut(ReadFrom) -> bool + Send + 'static,
    ) -> u64 {
        let work = move |from| {
            if read(from) {
                Turn::Done
            } else {
                debug_assert_eq!(from, ReadFrom::Disk, "it may wait for the bucket");
                Turn::Bucket
            }
        };
        self.queue(from, Box::new(work))
    }

    /// As `read_apart`, for work that takes turns with others.
    pub fn work_apart(&self, mut job: Job) -> u64 {
        let work = move |_| if job() { Turn::Done } else { Turn::Again };
        self.queue(ReadFrom::Disk, Box::new(work))
    }

    fn queue(&self, from: ReadFrom, work: Work) -> u64 {
        let reads = &self.shared.reads;
        let mut queue = reads.lock();
        queue.begun += 1;
        let id = queue.begun;
        if queue.closed {
            return id;
        }
        let is_stuck = queue.wait(&self.shared, from, (id, work));
        drop(queue);
        while is_stuck && self.step_read() {}
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

    /// Reads batches in a thread that locates them, too, and passes the result to `done`.
    pub fn read_whole_apart(
        &self,
        log: LogId,
        offset: i64,
        want: Want,
        done: impl FnOnce(Result<WholeRead, Refusal>) + Send + 'static,
    ) -> u64 {
        let shared = Arc::clone(&self.shared);
        let mut done = Some(done);
        let from = if shared.evicted().is_some() {
            ReadFrom::Bucket
        } else {
            ReadFrom::Disk
        };
        self.read_apart_from(from, move |_| {
            let found =
                shared.look_up_on_disk(|state, loaded| state.read(log, offset, want, loaded));
            let read = found.and_then(|slice| {
                let mut bytes = vec![0; slice.size];
                let intact = slice.copy_to(&mut bytes)?;
                Ok((bytes, slice.batches, intact))
            });
            if let Some(done) = done.take() {
                done(read);
            }
            true
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
        next.is_some_and(|(from, next)| {
            end(&self.shared, next, from);
            true
        })
    }
}
