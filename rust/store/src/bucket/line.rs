//! Connects the store's thread and the transport: queued calls, and answers.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use sharecore_bucket::{Answer, Call, What};

/// Request counts by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Requests {
    pub(crate) creates: u64,
    pub(crate) gets: u64,
    pub(crate) lists: u64,
    pub(crate) deletes: u64,
    /// Bytes of all create requests, retries included.
    pub(crate) bytes: u64,
    /// Answers without a result.
    pub(crate) failed: u64,
}

#[derive(Default)]
struct Inner {
    calls: VecDeque<Call>,
    answers: VecDeque<(u64, Answer)>,
    requests: Requests,
    /// The store's thread has something to look at.
    is_woken: bool,
    is_closed: bool,
}

/// The queue of a store's calls and their answers. The transport's threads call `next` and `answer`.
#[derive(Default)]
pub struct BucketLine {
    inner: Mutex<Inner>,
    called: Condvar,
    woken: Condvar,
}

impl BucketLine {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Return the next call to make. None after the timeout, or if the store was closed.
    pub fn next(&self, timeout: Duration) -> Option<Call> {
        let until = Instant::now() + timeout;
        let mut inner = self.lock();
        loop {
            if let Some(call) = inner.calls.pop_front() {
                return Some(call);
            }
            let left = until.saturating_duration_since(Instant::now());
            if inner.is_closed || left.is_zero() {
                return None;
            }
            let woken = self.called.wait_timeout(inner, left);
            inner = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether the store was closed: no more calls follow, and answers have no effect.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Pass in the answer to a call. Answers may arrive in any order; every call needs one, if only
    /// [`Answer::Unknown`].
    pub fn answer(&self, id: u64, answer: Answer) {
        let mut inner = self.lock();
        if inner.is_closed {
            return;
        }
        inner.requests.failed += u64::from(matches!(answer, Answer::Unknown(_)));
        inner.answers.push_back((id, answer));
        self.wake_locked(inner);
    }

    /// Wake the store's thread.
    pub(crate) fn wake(&self) {
        self.wake_locked(self.lock());
    }

    fn wake_locked(&self, mut inner: MutexGuard<'_, Inner>) {
        let was = std::mem::replace(&mut inner.is_woken, true);
        drop(inner);
        if !was {
            self.woken.notify_one();
        }
    }

    pub(crate) fn push(&self, calls: Vec<Call>) {
        if calls.is_empty() {
            return;
        }
        let mut inner = self.lock();
        for call in &calls {
            match &call.what {
                What::Create { body, .. } | What::Put { body, .. } => {
                    inner.requests.creates += 1;
                    inner.requests.bytes += body.len() as u64;
                }
                What::Get { .. } => inner.requests.gets += 1,
                What::List { .. } => inner.requests.lists += 1,
                What::Delete { .. } => inner.requests.deletes += 1,
            }
        }
        inner.calls.extend(calls);
        drop(inner);
        self.called.notify_all();
    }

    pub(crate) fn take_answers(&self) -> VecDeque<(u64, Answer)> {
        std::mem::take(&mut self.lock().answers)
    }

    pub(crate) fn requests(&self) -> Requests {
        self.lock().requests
    }

    /// Wait until the store's thread is woken, or for a time.
    pub(crate) fn wait(&self, timeout: Option<Duration>) {
        let mut inner = self.lock();
        let until = timeout.map(|timeout| Instant::now() + timeout);
        while !inner.is_woken {
            let woken = match until {
                None => self.woken.wait(inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return;
                    }
                    let woken = self.woken.wait_timeout(inner, left);
                    inner = woken.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            inner = woken.unwrap_or_else(PoisonError::into_inner);
        }
        inner.is_woken = false;
    }

    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        inner.calls.clear();
        inner.answers.clear();
        drop(inner);
        self.called.notify_all();
    }
}
