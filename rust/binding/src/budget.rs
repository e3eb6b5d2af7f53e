//! `MemoryBudget`: the bound on the bytes of requests that have been read and are not answered yet.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

/// Bytes that all connections hold together.
#[pyclass(name = "MemoryBudget", module = "sharecore._core")]
pub(crate) struct PyMemoryBudget {
    #[pyo3(get, set)]
    bytes_max: i64,
    #[pyo3(get)]
    used_bytes: i64,
    #[pyo3(get)]
    released_bytes: i64,
    waiting: VecDeque<Py<PyAny>>,
}

impl PyMemoryBudget {
    pub(crate) fn is_exhausted(&self) -> bool {
        self.bytes_max >= 0 && self.bytes_max <= self.used_bytes
    }

    pub(crate) fn add(&mut self, size: i64) {
        self.used_bytes += size;
    }
}

#[pymethods]
impl PyMemoryBudget {
    #[new]
    #[pyo3(signature = (bytes_max = -1))]
    fn new(bytes_max: i64) -> Self {
        Self {
            bytes_max,
            used_bytes: 0,
            released_bytes: 0,
            waiting: VecDeque::new(),
        }
    }

    #[getter]
    fn exhausted(&self) -> bool {
        self.is_exhausted()
    }

    fn take(&mut self, size: i64) {
        self.add(size);
    }

    pub(crate) fn release(budget: &Bound<'_, Self>, size: i64) -> PyResult<()> {
        {
            let mut held = budget.borrow_mut();
            held.used_bytes -= size;
            held.released_bytes += size;
        }
        loop {
            // whoever is called may take what there is
            let next = {
                let mut held = budget.borrow_mut();
                if held.is_exhausted() {
                    None
                } else {
                    held.waiting.pop_front()
                }
            };
            match next {
                Some(room) => room.call0(budget.py())?,
                None => return Ok(()),
            };
        }
    }

    fn wait(&mut self, room: Py<PyAny>) {
        self.waiting.push_back(room);
    }

    fn withdraw(budget: &Bound<'_, Self>, room: &Bound<'_, PyAny>) -> PyResult<()> {
        let waiting: Vec<_> = {
            let held = budget.borrow();
            let each = held.waiting.iter();
            each.map(|each| each.bind(room.py()).clone()).collect()
        };
        for (at, each) in waiting.iter().enumerate() {
            if each.eq(room)? {
                budget.borrow_mut().waiting.remove(at);
                break;
            }
        }
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.waiting.iter().try_for_each(|each| visit.call(each))
    }

    fn __clear__(&mut self) {
        self.waiting.clear();
    }
}
