//! `AnswerBudget`: bounds the bytes of responses that clients have not read yet, and counts the share of each connection.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sharecore_wire::{Readers, Unread};

use crate::collected::collected;
use crate::completion::call_logged;
use crate::exchange::PyExchange;
use crate::python;
use crate::slices::reading_bytes;

/// Bytes of unread responses over all connections, and the connections that wait for room.
#[pyclass(name = "AnswerBudget", module = "sharecore._core")]
pub(crate) struct PyAnswerBudget {
    unread: Unread,
    waiting: Readers<Py<PyAny>>,
}

impl PyAnswerBudget {
    pub(crate) fn room(&self, owner: &Arc<str>) -> u64 {
        self.unread.room(owner, reading_bytes())
    }

    pub(crate) fn wait(&mut self, owner: &Arc<str>, room: Py<PyAny>) {
        self.waiting.push(owner, room);
    }

    /// Wakes waiting connections while there is room.
    fn wake(budget: &Bound<'_, Self>) -> PyResult<()> {
        let mut tries = budget.borrow().waiting.len();
        loop {
            let next = {
                let mut held = budget.borrow_mut();
                let Self { unread, waiting } = &mut *held;
                waiting.next(&mut tries, |owner| unread.room(owner, reading_bytes()) > 0)
            };
            let Some(room) = next else { return Ok(()) };
            // A failing callback must not keep the others waiting
            call_logged(room.bind(budget.py()), &PyTuple::empty(budget.py()))?;
        }
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
            waiting: Readers::default(),
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
        let owners = self.waiting.owners().into_iter();
        owners
            .map(|owner| (owner.to_string(), self.unread.waits_for_own(owner)))
            .collect()
    }

    fn _wake(budget: &Bound<'_, Self>) -> PyResult<()> {
        Self::wake(budget)
    }
}

collected!(PyAnswerBudget { waiting } cut { waiting });

impl PyExchange {
    /// Recounts the bytes that the connection's unread responses hold in memory.
    pub(crate) fn recount(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        // A closing connection still holds the bytes that its client has not read
        let transport = Self::any_transport(exchange);
        let transport_bytes: u64 = match transport {
            Some(transport) => transport.unsent_bytes(py)?,
            None => 0,
        };
        let (budget, owner, before, now) = {
            let mut held = exchange.borrow_mut();
            let unsent = (!held.closed).then_some(held.unsent.bytes());
            let (before, now) = held.outgoing.count(transport_bytes, unsent);
            (held.answers.clone_ref(py), held.owner(), before, now)
        };
        if before == now {
            return Ok(());
        }
        PyAnswerBudget::change(budget.bind(py), &owner, before, now)
    }

    /// Counts again if the last count found unread bytes, since another thread has sent some.
    pub(crate) fn unread_left(exchange: &Bound<'_, Self>) -> PyResult<()> {
        if exchange.borrow().outgoing.counted == 0 {
            return Ok(());
        }
        Self::recount(exchange)
    }

    /// True if the next response must wait until clients have read earlier ones; `_pump` is then called once there is room.
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
        Self::seek_room(exchange)?;
        Ok(true)
    }
}
