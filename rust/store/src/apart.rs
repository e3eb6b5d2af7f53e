//! Reads in threads of their own, so that who asks for them can go on meanwhile.

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

/// Work for a thread, which keeps what it finds where whoever began it looks for that. It returns whether it is done; what is
/// not goes on behind all other work that waits, so that nobody waits long for somebody else's.
pub type Job = Box<dyn FnMut() -> bool + Send>;

/// Reads that wait for a thread, and those that have ended.
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
    /// Has so many threads at most; none runs before the first read, and without any a simulation steps.
    pub(crate) fn new(threads_max: usize) -> Self {
        let reads = Self::default();
        reads.lock().threads_max = threads_max;
        reads
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no panic under the lock")
    }

    /// The reads that have ended since the last call.
    pub(crate) fn take_ended(&self) -> Vec<u64> {
        mem::take(&mut self.lock().ended)
    }

    /// Forgets what has not begun, and waits for the rest.
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
    /// Another thread where all are busy.
    fn grow(&mut self, shared: &Arc<Shared>) {
        if self.idle >= self.waiting.len() || self.threads.len() >= self.threads_max {
            return;
        }
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("store-read".into());
        // without another thread those that run do the work
        self.threads.extend(thread.spawn(move || run(&shared)).ok());
        debug_assert!(self.threads.len() <= self.threads_max, "too many threads");
    }
}

/// Lets those that answer go first where CPUs are scarce: whoever reads old records takes what is left.
#[cfg(target_os = "linux")]
fn step_back() {
    /// The weight of a tenth of what the others have.
    const NICENESS: i32 = 10;
    // of this thread alone, which is Linux's way; where the system refuses, threads share as equals
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

/// Works for a turn, and tells when that was the last.
fn end(shared: &Shared, (id, mut job): (u64, Job)) {
    // work that fails in this way has found nothing, and says so
    let is_done = catch_unwind(AssertUnwindSafe(&mut job)).unwrap_or(true);
    let mut queue = shared.reads.lock();
    debug_assert!(
        (1..=queue.begun).contains(&id),
        "work ends that has not begun"
    );
    debug_assert!(
        queue.waiting.iter().all(|(other, _)| *other != id),
        "work waits and is at work"
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
    /// Has a thread read; `drain` names the number that is returned once it has. What waits when the store is closed is
    /// forgotten.
    pub fn read_apart(&self, read: impl FnOnce() + Send + 'static) -> u64 {
        let mut read = Some(read);
        self.work_apart(Box::new(move || {
            if let Some(read) = read.take() {
                read();
            }
            true
        }))
    }

    /// As `read_apart`, for work that takes turns with what others want.
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

    /// Has a thread load what tells where batches lie, as far as no memory holds that.
    pub fn look_up_apart(&self, log: LogId, offset: i64, want: Want) -> u64 {
        let shared = Arc::clone(&self.shared);
        self.read_apart(move || {
            // an error shows again where that is read
            let _ = shared.look_up_on_disk(|state, loaded| state.read(log, offset, want, loaded));
        })
    }

    /// Whether a read waits.
    pub fn has_reads(&self) -> bool {
        !self.shared.reads.lock().waiting.is_empty()
    }

    /// Works for one turn, in a store without threads; returns whether there was anything.
    pub fn step_read(&self) -> bool {
        let next = self.shared.reads.lock().waiting.pop_front();
        next.is_some_and(|next| {
            end(&self.shared, next);
            true
        })
    }
}
