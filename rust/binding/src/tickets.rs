//! `Tickets` and `StoredLog`: the waiters of a store's writes, and a log's handle for appending.

use std::collections::VecDeque;

use pyo3::prelude::*;

use crate::completion::{Completion, Ended};
use crate::cork::corked;
use crate::store::PyStore;
use crate::waiting::PyTicket;

/// The waiters of one store's writes, in order.
#[pyclass(name = "Tickets", module = "sharecore._core")]
pub(crate) struct PyTickets {
    settled: Py<PyTicket>,
    waiting: VecDeque<(u64, Completion)>,
    ended: u64,
}

impl PyTickets {
    /// Adds a waiter for the end of a write; returns it if the write has already ended.
    pub(crate) fn wait(&mut self, sequence: u64, waiter: Completion) -> Option<Completion> {
        if sequence <= self.ended {
            return Some(waiter);
        }
        // The store also numbers its own operations, so this number may be lower than one that is already awaited
        let newest = self.waiting.back().map_or(0, |(newest, _)| *newest);
        self.waiting.push_back((newest.max(sequence), waiter));
        None
    }
}

#[pymethods]
impl PyTickets {
    #[new]
    #[pyo3(signature = (ended = 0))]
    fn new(py: Python<'_>, ended: u64) -> PyResult<Self> {
        let settled = Bound::new(py, PyTicket::of(0))?;
        PyTicket::settle(&settled, None)?;
        Ok(Self {
            settled: settled.unbind(),
            waiting: VecDeque::new(),
            ended,
        })
    }

    fn ticket(tickets: &Bound<'_, Self>, sequence: u64) -> PyResult<Py<PyTicket>> {
        let py = tickets.py();
        let newest = {
            let held = tickets.borrow();
            if sequence <= held.ended {
                return Ok(held.settled.clone_ref(py));
            }
            let newest = match held.waiting.back() {
                Some((newest, Completion::Ticket(ticket))) if *newest >= sequence => {
                    return Ok(ticket.clone_ref(py));
                }
                Some((newest, _)) => *newest,
                None => 0,
            };
            newest.max(sequence)
        };
        let ticket = Bound::new(py, PyTicket::of(newest))?;
        let waiter = Completion::Ticket(ticket.clone().unbind());
        tickets.borrow_mut().waiting.push_back((newest, waiter));
        Ok(ticket.unbind())
    }

    /// The newest awaited write.
    #[getter]
    fn newest(&self) -> Option<u64> {
        self.waiting.back().map(|(newest, _)| *newest)
    }

    /// Completes the writes up to `sequence`, with a `KafkaError` if they failed.
    pub(crate) fn end(
        tickets: &Bound<'_, Self>,
        sequence: u64,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = tickets.py();
        {
            let mut held = tickets.borrow_mut();
            held.ended = held.ended.max(sequence);
        }
        corked(py, || {
            loop {
                let next = {
                    let mut held = tickets.borrow_mut();
                    let waiting = &mut held.waiting;
                    match waiting.front() {
                        Some((first, _)) if *first <= sequence => waiting.pop_front(),
                        _ => None,
                    }
                };
                match next {
                    None => return Ok(()),
                    // A failing waiter must not keep the others waiting
                    Some((_, waiter)) => waiter.settle(py, Ended::Write(error))?,
                }
            }
        })
    }
}

/// A log of a store.
#[pyclass(name = "StoredLog", module = "sharecore._core", frozen)]
pub(crate) struct PyStoredLog {
    pub(crate) store: Py<PyStore>,
    pub(crate) id: u64,
    pub(crate) tickets: Py<PyTickets>,
    /// `DiskReads`, which is notified when a thread of the store has finished.
    pub(crate) threads: Py<PyAny>,
}

#[pymethods]
impl PyStoredLog {
    #[new]
    fn new(store: Py<PyStore>, id: u64, tickets: Py<PyTickets>, threads: Py<PyAny>) -> Self {
        Self {
            store,
            id,
            tickets,
            threads,
        }
    }

    fn hurry(&self) {
        self.store.get().0.hurry();
    }
}
