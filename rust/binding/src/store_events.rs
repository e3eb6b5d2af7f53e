//! `StoreEvents`: passes what a store reports on to its logs and to the waiters of its writes, on the event loop.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use sharecore_share::IdMap;
use sharecore_store::{Damage, Outcome, Store};

use crate::collected::collected;
use crate::cork::staging;
use crate::error::keep_first;
use crate::log_offsets::PyLogOffsets;
use crate::store::PyStore;
use crate::tickets::PyTickets;

/// Ended logs are looked for when there are twice as many as after the last time, and at least this many.
const SWEPT_AT: usize = 64;

/// How often a turn commits at its end: what one commit has staged goes into the next.
const COMMITS_MAX: usize = 4;

/// Leaves the store's turn when dropped, if a panic has kept it from its end.
struct Left<'a>(&'a Store);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.leave_turn();
        }
    }
}

/// What a store reports: writes that have ended, logs that have moved, reads that are done, damage.
#[pyclass(name = "StoreEvents", module = "sharecore._core")]
pub(crate) struct PyStoreEvents {
    store: Py<PyStore>,
    tickets: Py<PyTickets>,
    /// Returns the error of writes that failed, from the reason.
    failed: Py<PyAny>,
    /// Called with each damaged batch.
    damaged: Py<PyAny>,
    /// Called with the numbers of reads that are done.
    read: Py<PyAny>,
    logs: IdMap<u64, Py<PyWeakrefReference>>,
    swept_at: usize,
}

impl PyStoreEvents {
    /// Runs `work`, a turn of the event loop that begins with so many clients and returns how many it served. Commits what it
    /// has written if the store leaves that to the turn, and passes on what has happened.
    pub(crate) fn turn(
        events: &Bound<'_, Self>,
        clients: usize,
        work: impl FnOnce() -> PyResult<usize>,
    ) -> PyResult<()> {
        let py = events.py();
        let store = events.borrow().store.clone_ref(py);
        let store = &store.get().0;
        let _left = Left(store);
        store.begin_turn(clients);
        let mut served = clients;
        let mut done = staging(py, || {
            served = work()?;
            Ok(())
        });
        for left in (0..COMMITS_MAX).rev() {
            // other threads may go on while it syncs
            if !py.detach(|| store.end_turn(served)) {
                break;
            }
            if left > 0 {
                store.begin_turn(served);
            }
            let drained = staging(py, || Self::drain(events));
            done = done.and(drained);
        }
        done
    }

    /// Forgets the logs that nobody uses any more.
    fn sweep(events: &Bound<'_, Self>) {
        let py = events.py();
        let mut logs = std::mem::take(&mut events.borrow_mut().logs);
        logs.retain(|_, log| log.bind(py).upgrade().is_some());
        let mut held = events.borrow_mut();
        held.swept_at = SWEPT_AT.max(2 * logs.len());
        held.logs = logs;
    }
}

#[pymethods]
impl PyStoreEvents {
    #[new]
    #[pyo3(signature = (store, tickets, *, failed, damaged, read))]
    fn new(
        store: Py<PyStore>,
        tickets: Py<PyTickets>,
        failed: Py<PyAny>,
        damaged: Py<PyAny>,
        read: Py<PyAny>,
    ) -> Self {
        Self {
            store,
            tickets,
            failed,
            damaged,
            read,
            logs: IdMap::default(),
            swept_at: SWEPT_AT,
        }
    }

    /// Passes on what is reported about a log, as long as it is in use.
    fn follow(
        events: &Bound<'_, Self>,
        log_id: u64,
        log: &Bound<'_, PyLogOffsets>,
    ) -> PyResult<()> {
        if events.borrow().logs.len() >= events.borrow().swept_at {
            Self::sweep(events);
        }
        let log = PyWeakrefReference::new(log)?.unbind();
        events.borrow_mut().logs.insert(log_id, log);
        Ok(())
    }

    /// Returns a log that is followed and in use, or None.
    fn log<'py>(
        events: &Bound<'py, Self>,
        log_id: u64,
    ) -> PyResult<Option<Bound<'py, PyLogOffsets>>> {
        let py = events.py();
        let log = events
            .borrow()
            .logs
            .get(&log_id)
            .map(|log| log.clone_ref(py));
        log.map_or(Ok(None), |log| log.bind(py).upgrade_as())
    }

    /// Runs `work` as a turn of the event loop that serves so many clients.
    #[pyo3(name = "turn")]
    fn py_turn(events: &Bound<'_, Self>, clients: usize, work: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::turn(events, clients, || {
            work.call0()?;
            Ok(clients)
        })
    }

    /// Passes on everything since the last call: first the offsets, then the ends of writes, then the listeners of logs.
    ///
    /// What raises does not keep the rest from being passed on; the first error is raised at the end.
    fn drain(events: &Bound<'_, Self>) -> PyResult<()> {
        let drained = events.borrow().store.get().0.drain();
        let mut ended = Ok(());
        let mut note = |result| keep_first(&mut ended, result);
        for each in drained.damaged {
            note(Self::damaged(events, each));
        }
        let mut moved = Vec::with_capacity(drained.moved.len());
        for (log_id, offsets) in drained.moved {
            if let Some(log) = Self::log(events, log_id)? {
                log.borrow_mut().set(offsets);
                moved.push(log);
            }
        }
        for outcome in drained.outcomes {
            note(Self::ended(events, outcome));
        }
        for log in &moved {
            note(PyLogOffsets::notify(log));
        }
        if !drained.read.is_empty() {
            let read = events.borrow().read.clone_ref(events.py());
            note(read.call1(events.py(), (drained.read,)).map(|_| ()));
        }
        ended
    }
}

impl PyStoreEvents {
    fn damaged(events: &Bound<'_, Self>, each: Damage) -> PyResult<()> {
        let damaged = events.borrow().damaged.clone_ref(events.py());
        let (first, last) = each.offsets;
        damaged.call1(events.py(), (each.log, first, last, each.path, each.at))?;
        Ok(())
    }

    fn ended(events: &Bound<'_, Self>, outcome: Outcome) -> PyResult<()> {
        let py = events.py();
        let (tickets, failed) = {
            let held = events.borrow();
            (held.tickets.clone_ref(py), held.failed.clone_ref(py))
        };
        let error = outcome.error.map(|reason| failed.bind(py).call1((reason,)));
        PyTickets::end(
            tickets.bind(py),
            outcome.sequence,
            error.transpose()?.as_ref(),
        )
    }
}

collected!(PyStoreEvents { store, tickets, failed, damaged, read, logs } cut { logs });
