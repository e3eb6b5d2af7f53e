//! Checks the records of a Produce request in a thread of the store if the check is expensive. Other clients are served
//! meanwhile; the same client's next request waits, so that batches are appended in the order in which they were sent.

use std::mem;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use sharecore_produce::Checks;
use sharecore_store::{Incoming, Refusal};
use sharecore_wire::Pause;

use crate::collected::collected;
use crate::exchange::PyExchange;
use crate::produce_append::ProducedBatch;
use crate::produce_refused::failure;
use crate::produced::PyProduced;
use crate::python;
use crate::waiting::PyLater;

/// Check at most this many decompressed bytes (or work that costs as much) before the thread turns to the next request.
const TURN: usize = 4 << 20;

type Results = Arc<Mutex<Vec<Result<Incoming, Refusal>>>>;

/// Starts checking batches in a thread; each batch comes with its place in the response. Returns the `Later` that completes
/// with the response.
pub(crate) fn check_apart<'py>(
    exchange: Option<Bound<'py, PyExchange>>,
    admit: &Bound<'py, PyAny>,
    batches: Vec<(usize, ProducedBatch)>,
    produced: &Bound<'py, PyProduced>,
    wants_answer: bool,
) -> PyResult<Bound<'py, PyLater>> {
    let py = admit.py();
    let later = Bound::new(py, PyLater::default())?;
    {
        let mut held = produced.borrow_mut();
        held.answer.check_first(batches.len());
        held.later = wants_answer.then(|| later.clone().unbind());
    }
    if let Some(exchange) = &exchange {
        PyExchange::pause_for(exchange, Pause::Check)?;
    }
    let target = Arc::clone(&batches[0].1.target);
    let stored = target.stored.get();
    let (places, incoming): (Vec<_>, Vec<_>) = batches
        .into_iter()
        .map(|(place, mut batch)| {
            let unknown = Err(Refusal::Storage("the records could not be checked".into()));
            let incoming = mem::replace(&mut batch.incoming, unknown);
            ((place, batch), incoming)
        })
        .unzip();
    let results = Results::default();
    let number = stored
        .store
        .get()
        .0
        .work_apart(Box::new(turns(incoming, Arc::clone(&results))));
    let checked = PyChecked {
        admit: admit.clone().unbind(),
        batches: places,
        results,
        produced: produced.clone().unbind(),
        later: later.clone().unbind(),
        exchange: exchange.map(Bound::unbind),
        wants_answer,
    };
    let arguments = (number, py.None(), Py::new(py, checked)?);
    stored.threads.call_method1(py, python::BEGUN, arguments)?;
    Ok(later)
}

/// Returns a job that checks for one turn per call and returns True when done.
fn turns(batches: Vec<Result<Incoming, Refusal>>, results: Results) -> impl FnMut() -> bool {
    let mut checks = Checks::new(batches);
    move || {
        let is_done = checks.turn(TURN);
        if is_done {
            *results.lock().expect("no panic under the lock") = checks.take();
        }
        is_done
    }
}

/// Appends batches after a thread has checked them.
#[pyclass(name = "Checked", module = "sharecore._core")]
pub(crate) struct PyChecked {
    admit: Py<PyAny>,
    batches: Vec<(usize, ProducedBatch)>,
    results: Results,
    produced: Py<PyProduced>,
    later: Py<PyLater>,
    exchange: Option<Py<PyExchange>>,
    wants_answer: bool,
}

impl PyChecked {
    fn append(checked: &Bound<'_, Self>) -> PyResult<()> {
        let py = checked.py();
        let (batches, results, produced, admit) = {
            let mut held = checked.borrow_mut();
            let results = mem::take(&mut *held.results.lock().expect("no panic under the lock"));
            let batches = mem::take(&mut held.batches);
            let produced = held.produced.clone_ref(py);
            (batches, results, produced, held.admit.clone_ref(py))
        };
        let (produced, admit) = (produced.bind(py), admit.bind(py));
        let mut results = results.into_iter();
        let places: Vec<usize> = batches.iter().map(|(place, _)| *place).collect();
        for (place, mut batch) in batches {
            if let Some(result) = results.next() {
                batch.incoming = result;
            }
            batch.append(admit, produced, place)?;
        }
        for place in places {
            PyProduced::end(produced, place, 0)?;
        }
        Ok(())
    }
}

#[pymethods]
impl PyChecked {
    /// Called when the thread is done.
    fn __call__(checked: &Bound<'_, Self>, _found: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = checked.py();
        let (produced, later, exchange, wants_answer) = {
            let held = checked.borrow();
            let exchange = held.exchange.as_ref().map(|each| each.clone_ref(py));
            let later = held.later.clone_ref(py);
            (
                held.produced.clone_ref(py),
                later,
                exchange,
                held.wants_answer,
            )
        };
        let later = later.bind(py);
        let appended = Self::append(checked);
        let failed = match appended {
            Err(error) => Some(error),
            Ok(()) if wants_answer => None,
            Ok(()) => failure(produced.bind(py))?,
        };
        match failed {
            Some(error) => PyLater::set_exception(later, error.into_value(py).into_any())?,
            None if !wants_answer => PyLater::set_result(later, py.None())?,
            None => {}
        }
        if let Some(exchange) = exchange {
            let exchange = exchange.bind(py);
            PyExchange::resume_after(exchange, Pause::Check)?;
            PyExchange::pump_soon(exchange)?;
        }
        Ok(())
    }
}

collected!(PyChecked { admit, produced, later, exchange } cut { exchange, batches });
