//! Threads that send for the thread that owns the sockets.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use mio::Waker;

use crate::output::{Output, Queue};
use crate::poller::Poller;
use crate::socket::{Socket, Stream};

/// With so many batches waiting for a thread, the owner of the sockets sends the next one itself.
const WAITING_MAX: usize = 2;
/// Larger buffers are returned as soon as they are sent; smaller ones when their owner has something else to do.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// What one socket is to send, on its way to another thread and back. `T` identifies the socket for its owner.
pub struct SendJob<T, B> {
    /// As given to `new`.
    pub of: T,
    /// None once sent: a connection that its owner has closed meanwhile must not stay open.
    stream: Option<Arc<Stream>>,
    queue: Queue<B>,
    /// Whether everything was sent.
    sent: io::Result<bool>,
    /// Whether its owner waits for it.
    is_urgent: bool,
}

impl<T, B: AsRef<[u8]>> SendJob<T, B> {
    /// Takes all that is to be sent; None if there is nothing, if it is away already, or if the socket takes nothing now.
    pub fn new(of: T, socket: &mut Socket, output: &mut Output<B>) -> Option<Self> {
        if output.is_away() || output.bytes() == 0 || !socket.is_writable() {
            return None;
        }
        Some(Self {
            of,
            is_urgent: output.is_high() || output.bytes() > KEPT_BYTES_MAX,
            stream: Some(socket.lend()),
            queue: output.lend(),
            sent: Ok(false),
        })
    }

    fn send(&mut self) {
        if let Some(stream) = self.stream.take() {
            // A socket whose job did not come back would never send again
            let sent = catch_unwind(AssertUnwindSafe(|| self.queue.send(&stream)));
            self.sent = sent.unwrap_or_else(|_| Err(io::Error::other("a sender panicked")));
        }
        self.is_urgent |= !matches!(self.sent, Ok(true));
    }

    /// Gives back what was not sent, to the socket and the output that it was made of.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn settle(self, socket: &mut Socket, output: &mut Output<B>) -> io::Result<()> {
        output.take_back(self.queue);
        if self.sent? {
            socket.set_writable(true);
        }
        Ok(())
    }
}

type Batch<T, B> = Vec<SendJob<T, B>>;

/// What the threads share.
struct Work<T, B> {
    waiting: VecDeque<Batch<T, B>>,
    done: Batch<T, B>,
    /// Threads without a batch.
    idle: usize,
    is_over: bool,
}

struct Shared<T, B> {
    work: Mutex<Work<T, B>>,
    wake: Condvar,
    has_done: AtomicBool,
    /// Whether the owner waits for one of the jobs that are away.
    is_awaited: AtomicBool,
    owner: Waker,
}

impl<T, B> Shared<T, B> {
    /// A thread that panicked has left `Work` whole: nothing panics while it is locked.
    fn work(&self) -> MutexGuard<'_, Work<T, B>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what was sent, and wakes the owner if it waits for some of it.
    fn return_all(&self, mut batch: Batch<T, B>) {
        let is_urgent = batch.iter().any(|job| job.is_urgent);
        self.work().done.append(&mut batch);
        // In this order, and `expect` in the other one: one of both sees what the other has written
        self.has_done.store(true, Ordering::SeqCst);
        if self.is_awaited.load(Ordering::SeqCst) || is_urgent {
            self.wake_owner();
        }
    }

    fn wake_owner(&self) {
        // Fails only if the owner's poller is gone, and with it the sockets
        let _ = self.owner.wake();
    }
}

impl<T: Send, B: AsRef<[u8]> + Send> Shared<T, B> {
    fn run(&self) {
        loop {
            let mut batch = {
                let mut work = self.work();
                work.idle += 1;
                while work.waiting.is_empty() && !work.is_over {
                    work = self.wake.wait(work).unwrap_or_else(PoisonError::into_inner);
                }
                work.idle -= 1;
                match work.waiting.pop_front() {
                    Some(batch) => batch,
                    None => return,
                }
            };
            batch.iter_mut().for_each(SendJob::send);
            self.return_all(batch);
        }
    }
}

/// Threads that send, started when there is work for them.
pub struct Senders<T, B> {
    shared: Arc<Shared<T, B>>,
    threads: Vec<JoinHandle<()>>,
    threads_max: usize,
    /// Jobs that are away.
    away: usize,
}

impl<T: Send + 'static, B: AsRef<[u8]> + Send + 'static> Senders<T, B> {
    /// At most `threads_max` threads. They make `poller` readable if its owner waits for what they have sent.
    pub fn new(threads_max: usize, poller: &Poller) -> io::Result<Self> {
        let work = Work {
            waiting: VecDeque::new(),
            done: Vec::new(),
            idle: 0,
            is_over: false,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                work: Mutex::new(work),
                wake: Condvar::new(),
                has_done: AtomicBool::new(false),
                is_awaited: AtomicBool::new(false),
                owner: poller.waker()?,
            }),
            threads: Vec::new(),
            threads_max,
            away: 0,
        })
    }

    /// Whether another batch would be sent soon.
    pub fn has_room(&self) -> bool {
        self.threads_max > 0 && self.shared.work().waiting.len() < WAITING_MAX * self.threads_max
    }

    /// Sends a batch in another thread; `sent` returns its jobs.
    pub fn send(&mut self, batch: Batch<T, B>) {
        self.away += batch.len();
        let has_idle = {
            let mut work = self.shared.work();
            work.waiting.push_back(batch);
            work.idle >= work.waiting.len()
        };
        if !has_idle && self.threads.len() < self.threads_max {
            self.start();
        }
        self.shared.wake.notify_one();
        if self.threads.is_empty() {
            self.run_here();
        }
    }

    fn start(&mut self) {
        let shared = Arc::clone(&self.shared);
        let name = "sharecore-io".to_owned();
        match thread::Builder::new()
            .name(name)
            .spawn(move || shared.run())
        {
            Ok(thread) => self.threads.push(thread),
            // Out of threads: those that there are do the work
            Err(_) => self.threads_max = self.threads.len(),
        }
    }

    /// Sends what waits, as there is no thread for it.
    fn run_here(&mut self) {
        let waiting = std::mem::take(&mut self.shared.work().waiting);
        for mut batch in waiting {
            batch.iter_mut().for_each(SendJob::send);
            self.shared.return_all(batch);
        }
    }

    /// Wakes the poller once more jobs are back: there is something to do with one of them.
    pub fn expect(&self) {
        self.shared.is_awaited.store(true, Ordering::SeqCst);
        if self.shared.has_done.load(Ordering::SeqCst) {
            self.shared.wake_owner();
        }
    }

    /// The jobs that were sent since the last call, also partly or in vain.
    pub fn sent(&mut self) -> Batch<T, B> {
        if !self.shared.has_done.swap(false, Ordering::SeqCst) {
            return Vec::new();
        }
        let done = std::mem::take(&mut self.shared.work().done);
        self.away -= done.len();
        if self.away == 0 {
            self.shared.is_awaited.store(false, Ordering::SeqCst);
        }
        done
    }
}

impl<T, B> Drop for Senders<T, B> {
    /// Waits for the threads; what still waits for one is not sent.
    fn drop(&mut self) {
        {
            let mut work = self.shared.work();
            work.is_over = true;
            work.waiting.clear();
        }
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to say
            let _ = thread.join();
        }
    }
}
