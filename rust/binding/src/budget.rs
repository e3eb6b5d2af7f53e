//! `MemoryBudget`: bounds the bytes of requests that are being read or not yet answered.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use sharecore_wire::Room;

use crate::collected::collected;
use crate::exchange::PyExchange;

/// Request bytes over all connections, and the connections that wait for room.
#[pyclass(name = "MemoryBudget", module = "sharecore._core")]
pub(crate) struct PyMemoryBudget {
    room: Room,
    waiting: HashMap<u64, Py<PyExchange>>,
}

impl PyMemoryBudget {
    pub(crate) fn is_crowded(&self) -> bool {
        self.room.is_crowded()
    }

    pub(crate) fn take(&mut self, owner: &Arc<str>, size: usize) {
        self.room.take(owner, size);
    }

    /// Reserves room; returns False if the exchange must wait until it is admitted.
    pub(crate) fn ask(
        &mut self,
        owner: &Arc<str>,
        who: u64,
        size: usize,
        exchange: &Bound<'_, PyExchange>,
    ) -> bool {
        let is_admitted = self.room.ask(owner, who, size);
        if !is_admitted {
            self.waiting.insert(who, exchange.clone().unbind());
        }
        is_admitted
    }

    pub(crate) fn withdraw(&mut self, owner: &Arc<str>, who: u64) {
        if self.waiting.remove(&who).is_some() {
            self.room.withdraw(owner, who);
        }
    }

    /// Releases the room of a small request, which never makes others wait.
    pub(crate) fn give_small(&mut self, owner: &Arc<str>, size: usize) {
        self.room.give(owner, size);
    }

    pub(crate) fn give_parked(&mut self, owner: &Arc<str>, size: usize) {
        self.room.give_parked(owner, size);
    }

    /// Moves a request that waits for its response out of the bound and admits waiting connections; returns False if it must
    /// stay.
    pub(crate) fn park(budget: &Bound<'_, Self>, owner: &Arc<str>, size: usize) -> PyResult<bool> {
        let is_parked = budget.borrow_mut().room.park(owner, size);
        if is_parked {
            Self::admit(budget)?;
        }
        Ok(is_parked)
    }

    /// Releases room and admits waiting connections.
    pub(crate) fn give(
        budget: &Bound<'_, Self>,
        owner: &Arc<str>,
        sizes: impl IntoIterator<Item = usize>,
    ) -> PyResult<()> {
        {
            let mut held = budget.borrow_mut();
            for size in sizes {
                held.room.give(owner, size);
            }
        }
        Self::admit(budget)
    }

    fn admit(budget: &Bound<'_, Self>) -> PyResult<()> {
        if !budget.borrow().room.is_wanted() {
            return Ok(());
        }
        loop {
            let admitted = {
                let mut held = budget.borrow_mut();
                let Some(who) = held.room.admit() else {
                    return Ok(());
                };
                held.waiting.remove(&who)
            };
            if let Some(exchange) = admitted {
                let exchange = exchange.bind(budget.py());
                // A failing connection must not keep the others waiting
                if let Err(error) = PyExchange::admitted(exchange) {
                    PyExchange::fail(exchange, error)?;
                }
            }
        }
    }
}

#[pymethods]
impl PyMemoryBudget {
    #[new]
    #[pyo3(signature = (bytes_max = -1))]
    fn new(bytes_max: i64) -> Self {
        Self {
            room: Room::new(u64::try_from(bytes_max).ok()),
            waiting: HashMap::new(),
        }
    }

    #[getter]
    fn bytes_max(&self) -> i64 {
        self.room.bytes_max().map_or(-1, |most| most as i64)
    }

    #[getter]
    fn used_bytes(&self) -> u64 {
        self.room.used()
    }

    #[getter]
    fn is_wanted(&self) -> bool {
        self.room.is_wanted()
    }

    fn wanted(&self) -> Vec<(String, u64, bool)> {
        let wanted = self.room.wanted().into_iter();
        wanted
            .map(|each| (each.owner.to_string(), each.bytes, each.for_own))
            .collect()
    }
}

collected!(PyMemoryBudget { waiting } cut { waiting });
