//! `AnswerBudget`: the bound on the bytes of answers that wait for their clients to read them; and what of it an exchange has.

use std::collections::VecDeque;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use sharecore_wire::Unread;

use crate::collected::collected;
use crate::exchange::PyExchange;
use crate::python;
use crate::slices::reading_bytes;

/// Less than this is not counted: what a connection has sent is looked at when it is so much.
const NOTED_BYTES: u64 = 16 << 10;

/// Bytes of answers that all connections have together, and who waits to make more.
#[pyclass(name = "AnswerBudget", module = "sharecore._core")]
pub(crate) struct PyAnswerBudget {
    unread: Unread,
    waiting: VecDeque<(Arc<str>, Py<PyAny>)>,
}

impl PyAnswerBudget {
    pub(crate) fn room(&self, owner: &Arc<str>) -> u64 {
        self.unread.room(owner, reading_bytes())
    }

    pub(crate) fn wait(&mut self, owner: &Arc<str>, room: Py<PyAny>) {
        self.waiting.push_back((Arc::clone(owner), room));
    }

    /// Calls those who wait and have room now; each may take what there is.
    fn wake(budget: &Bound<'_, Self>) -> PyResult<()> {
        let left = budget.borrow().waiting.len();
        for _ in 0..left {
            let next = {
                let mut held = budget.borrow_mut();
                let Some((owner, room)) = held.waiting.pop_front() else {
                    return Ok(());
                };
                if held.room(&owner) == 0 {
                    held.waiting.push_back((owner, room));
                    continue;
                }
                room
            };
            next.call0(budget.py())?;
        }
        Ok(())
    }

    pub(crate) fn change(
        budget: &Bound<'_, Self>,
        owner: &Arc<str>,
        before: u64,
        now: u64,
    ) -> PyResult<()> {
        let wakes = {
            let mut held = budget.borrow_mut();
            held.unread.change(owner, before, now);
            now < before && !held.waiting.is_empty()
        };
        if wakes { Self::wake(budget) } else { Ok(()) }
    }
}

#[pymethods]
impl PyAnswerBudget {
    #[new]
    #[pyo3(signature = (bytes_max = -1))]
    fn new(bytes_max: i64) -> Self {
        Self {
            unread: Unread::new(u64::try_from(bytes_max).ok()),
            waiting: VecDeque::new(),
        }
    }

    #[getter]
    fn used_bytes(&self) -> u64 {
        self.unread.used() + reading_bytes()
    }

    #[getter]
    fn is_wanted(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn wanted(&self) -> Vec<(String, bool)> {
        let mut wanted: Vec<(String, bool)> = Vec::new();
        for (owner, _) in &self.waiting {
            if wanted.iter().all(|(known, _)| **known != **owner) {
                wanted.push((owner.to_string(), self.unread.waits_for_own(owner)));
            }
        }
        wanted
    }

    fn _wake(budget: &Bound<'_, Self>) -> PyResult<()> {
        Self::wake(budget)
    }
}

collected!(PyAnswerBudget { waiting } cut { waiting });

/// What of its answers a connection keeps in memory.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Answers that are ready and wait behind others.
    pub(crate) ready: u64,
    /// Bytes that were given to the transport since it was last asked what it has.
    written: u64,
    /// Bytes of answers that are made of what another broker sends.
    held: u64,
    /// Bytes in memory for what the transport has.
    lingering: u64,
    /// The largest buffer among those: all of it stays until its last byte is sent.
    largest: u64,
    /// What the budget knows of.
    pub(crate) counted: u64,
    /// Whether the next answer waits until others were read.
    pub(crate) waits_for_readers: bool,
}

impl Outgoing {
    /// The transport got a part of a buffer.
    pub(crate) fn write(&mut self, bytes: usize, buffer: usize) {
        self.written += bytes as u64;
        self.largest = self.largest.max(buffer as u64);
    }

    /// More or fewer bytes are held for answers that are not made yet.
    pub(crate) fn hold(&mut self, change: i64) {
        self.held = self.held.saturating_add_signed(change);
    }

    pub(crate) fn is_noteworthy(&self) -> bool {
        self.written >= NOTED_BYTES
    }

    /// The transport has so many bytes; returns what is in memory for them.
    fn settle(&mut self, transport_bytes: u64) -> u64 {
        if transport_bytes == 0 {
            (self.lingering, self.largest) = (0, 0);
        } else {
            let most = transport_bytes + self.largest;
            self.lingering = (self.lingering + self.written)
                .max(transport_bytes)
                .min(most);
        }
        self.written = 0;
        self.lingering
    }
}

impl PyExchange {
    /// Counts anew what the connection's answers keep in memory.
    pub(crate) fn recount(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        let transport = Self::open_transport(exchange)?;
        let transport_bytes: u64 = match transport {
            Some(transport) => transport.unsent_bytes(py)?,
            None => 0,
        };
        let (budget, owner, before, now) = {
            let mut held = exchange.borrow_mut();
            let lingering = held.outgoing.settle(transport_bytes);
            let now = lingering + held.unsent.bytes() + held.outgoing.ready + held.outgoing.held;
            let now = if held.is_closed() { 0 } else { now };
            let before = std::mem::replace(&mut held.outgoing.counted, now);
            (held.answers.clone_ref(py), held.owner(), before, now)
        };
        if before == now {
            return Ok(());
        }
        PyAnswerBudget::change(budget.bind(py), &owner, before, now)
    }

    /// Whether the next answer has to wait until others were read; if so, `_pump` is called then.
    pub(crate) fn waits_for_readers(exchange: &Bound<'_, Self>) -> PyResult<bool> {
        let py = exchange.py();
        let (budget, owner, waits) = {
            let held = exchange.borrow();
            (
                held.answers.clone_ref(py),
                held.owner(),
                held.outgoing.waits_for_readers,
            )
        };
        if waits {
            return Ok(true);
        }
        if budget.borrow(py).room(&owner) > 0 {
            return Ok(false);
        }
        exchange.borrow_mut().outgoing.waits_for_readers = true;
        let room = exchange.getattr(intern!(py, python::OWN_READERS_HAVE_READ))?;
        budget.borrow_mut(py).wait(&owner, room.unbind());
        exchange.call_method0(intern!(py, python::OWN_WAIT_FOR_ROOM))?;
        Ok(true)
    }
}
