//! `Gather`: collects the outcomes of callback-based operations, for `sharecore.waiting`.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};
use sharecore_share::Outcomes;

use crate::collected::{Refers, collected};
use crate::error::{drop_traceback, is_kafka_error, kafka_error_in};
use crate::fetching::PyShareFetching;
use crate::python;
use crate::share_answer::PyShareAnswer;
use crate::waiting::PyLater;
use crate::waits::PyWaitingShareFetch;

/// Builds the response of a request once all of its operations have ended.
pub(crate) enum Answerer {
    Call(Py<PyAny>),
    /// A `ShareAcknowledge` response that lacks only the outcomes.
    Acknowledged(Py<PyShareAnswer>),
    Fetched(Py<PyShareFetching>),
}

impl Answerer {
    /// Builds the response.
    pub(crate) fn answer(self, gather: &Bound<'_, PyGather>) -> PyResult<Py<PyAny>> {
        let py = gather.py();
        match self {
            Answerer::Call(call) => call.call0(py),
            Answerer::Acknowledged(answer) => {
                let answer = answer.bind(py);
                PyShareAnswer::acknowledged(answer, gather, false)?;
                PyShareAnswer::message(answer).map(Py::into_any)
            }
            Answerer::Fetched(fetching) => {
                PyShareFetching::answer(fetching.bind(py)).map(Py::into_any)
            }
        }
    }
}

impl Refers for Answerer {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Answerer::Call(call) => call.show(visit),
            Answerer::Acknowledged(answer) => answer.show(visit),
            Answerer::Fetched(fetching) => fetching.show(visit),
        }
    }
}

/// What to do once all operations have ended.
enum Then {
    Call(Py<PyAny>),
    Answer(Py<PyLater>, Answerer),
}

impl Refers for Then {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Then::Call(call) => call.show(visit),
            Then::Answer(later, answerer) => {
                later.show(visit)?;
                answerer.show(visit)
            }
        }
    }
}

impl Then {
    fn run(self, gather: &Bound<'_, PyGather>) -> PyResult<()> {
        let py = gather.py();
        let (later, answerer) = match self {
            Then::Call(call) => return call.call0(py).map(|_| ()),
            Then::Answer(later, answerer) => (later.into_bound(py), answerer),
        };
        if later.borrow().done() {
            return Ok(()); // the client has gone
        }
        match answerer.answer(gather) {
            Ok(value) => PyLater::set_result(&later, value),
            Err(error) if error.is_instance_of::<PyException>(py) => {
                PyLater::set_exception(&later, error.into_value(py).into_any())
            }
            Err(error) => Err(error),
        }
    }
}

/// Collects the outcomes of operations by name; if a name repeats, the last outcome wins.
#[pyclass(name = "Gather", module = "sharecore._core", generic)]
#[derive(Default)]
pub(crate) struct PyGather {
    inner: Outcomes<Py<PyAny>, Py<PyAny>, Py<PyAny>>,
    then: Option<Then>,
    /// A fetch that starts once all other parts have ended.
    held: Option<Py<PyWaitingShareFetch>>,
}

/// One of the operations that are collected.
pub(crate) struct Part {
    gather: Py<PyGather>,
    place: usize,
}

impl Part {
    /// True if another part lasts longer. A held fetch does not, because it waits for this part.
    pub(crate) fn is_outlasted(&self, py: Python<'_>) -> bool {
        let gather = self.gather.borrow(py);
        gather.held.is_none() && gather.inner.is_outlasted()
    }

    /// Speeds up the writes of `log` if the longer part ends before this one.
    pub(crate) fn linger(&self, log: &Bound<'_, PyAny>) {
        let gather = &mut self.gather.borrow_mut(log.py());
        gather.inner.linger(log.clone().unbind());
    }

    /// Ends the operation.
    pub(crate) fn end(self, py: Python<'_>, outcome: Option<Py<PyAny>>) -> PyResult<()> {
        let outcome = outcome.filter(|outcome| !outcome.is_none(py));
        PyGather::end(self.gather.bind(py), self.place, outcome)
    }
}

impl Refers for Part {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.gather.show(visit)
    }
}

impl PyGather {
    /// Names and their outcomes.
    pub(crate) fn named_outcomes(&self, py: Python<'_>) -> Vec<(Py<PyAny>, Option<Py<PyAny>>)> {
        let outcomes = self.inner.iter();
        outcomes
            .map(|(name, outcome)| {
                let outcome = outcome.as_ref().map(|outcome| outcome.clone_ref(py));
                (name.clone_ref(py), outcome)
            })
            .collect()
    }

    fn part_at(gather: &Bound<'_, Self>, place: usize) -> Part {
        Part {
            gather: gather.clone().unbind(),
            place,
        }
    }

    /// Starts an operation.
    pub(crate) fn begin(gather: &Bound<'_, Self>, name: Py<PyAny>) -> Part {
        let place = gather.borrow_mut().inner.begin(name);
        Self::part_at(gather, place)
    }

    /// Starts a part that outlasts the others: until it ends, their writes are not urgent.
    pub(crate) fn lasting_part(gather: &Bound<'_, Self>, name: Py<PyAny>) -> Part {
        let place = gather.borrow_mut().inner.begin_lasting(name);
        Self::part_at(gather, place)
    }

    /// Holds a fetch until all other parts have ended.
    pub(crate) fn hold(gather: &Bound<'_, Self>, fetch: &Bound<'_, PyWaitingShareFetch>) {
        fetch.borrow_mut().hold();
        gather.borrow_mut().held = Some(fetch.clone().unbind());
    }

    fn end(gather: &Bound<'_, Self>, place: usize, outcome: Option<Py<PyAny>>) -> PyResult<()> {
        let py = gather.py();
        if let Some(outcome) = &outcome {
            drop_traceback(outcome.bind(py))?;
        }
        let (ended, then, fetch) = {
            let mut held = gather.borrow_mut();
            let ended = held.inner.end(place, outcome);
            let then = held.then.take_if(|_| ended.is_last);
            let fetch = held.held.take_if(|_| ended.fetch_goes_on);
            (ended, then, fetch)
        };
        if let Some(log) = &ended.hurry {
            log.call_method0(py, intern!(py, python::HURRY))?;
        }
        drop(ended); // objects of Python's, whose end may come back here
        if let Some(fetch) = fetch {
            PyWaitingShareFetch::release_hold(fetch.bind(py))?;
        }
        // `then` was taken out because whoever waits also holds the gather: a cycle would be work for the collector
        then.map_or(Ok(()), |then| then.run(gather))
    }

    /// Records the outcome of an operation that has already ended.
    pub(crate) fn put(&mut self, name: Py<PyAny>, outcome: Option<Py<PyAny>>) {
        self.inner.put(name, outcome);
    }

    fn run_then(gather: &Bound<'_, Self>, then: Then) -> PyResult<()> {
        {
            let mut held = gather.borrow_mut();
            if held.inner.is_pending() {
                held.then = Some(then);
                return Ok(());
            }
        }
        then.run(gather)
    }

    /// Completes `later` with the response of `answerer` once all operations have ended.
    pub(crate) fn answer(
        gather: &Bound<'_, Self>,
        later: Py<PyLater>,
        answerer: Answerer,
    ) -> PyResult<()> {
        Self::run_then(gather, Then::Answer(later, answerer))
    }
}

#[pymethods]
impl PyGather {
    #[new]
    #[pyo3(signature = (names = None))]
    fn new(names: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut gather = Self::default();
        if let Some(names) = names {
            for name in names.try_iter()? {
                gather.put(name?.unbind(), None);
            }
        }
        Ok(gather)
    }

    #[getter]
    fn outcomes<'py>(gather: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = gather.py();
        let named = gather.borrow().named_outcomes(py);
        let outcomes = PyDict::new(py);
        for (name, outcome) in named {
            outcomes.set_item(name, outcome)?;
        }
        Ok(outcomes)
    }

    #[getter]
    pub(crate) fn pending(&self) -> bool {
        self.inner.is_pending()
    }

    fn part(gather: &Bound<'_, Self>, name: Py<PyAny>) -> PyPart {
        PyPart(Some(Self::begin(gather, name)))
    }

    #[pyo3(signature = (name, operation, *args))]
    fn run<'py>(
        gather: &Bound<'py, Self>,
        name: Py<PyAny>,
        operation: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<()> {
        let py = gather.py();
        let done = Bound::new(py, Self::part(gather, name))?;
        let whole = args.iter().chain([done.clone().into_any()]);
        let whole = PyTuple::new(py, whole.collect::<Vec<_>>())?;
        if let Err(error) = operation.call1(whole) {
            let error = kafka_error_in(py, error)?;
            PyPart::__call__(&done, Some(error.unbind()))?;
        }
        Ok(())
    }

    #[pyo3(name = "put")]
    fn put_python(&mut self, py: Python<'_>, name: Py<PyAny>, outcome: Py<PyAny>) {
        self.put(name, (!outcome.is_none(py)).then_some(outcome));
    }

    /// Operations that failed, with their errors.
    #[getter]
    fn failed<'py>(gather: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = gather.py();
        let failed = PyDict::new(py);
        for (name, outcome) in Self::outcomes(gather)? {
            if is_kafka_error(&outcome)? {
                failed.set_item(name, outcome)?;
            }
        }
        Ok(failed)
    }

    fn when_ended(gather: &Bound<'_, Self>, then: Py<PyAny>) -> PyResult<()> {
        Self::run_then(gather, Then::Call(then))
    }

    fn promise(gather: &Bound<'_, Self>, later: Py<PyLater>, answer: Py<PyAny>) -> PyResult<()> {
        Self::answer(gather, later, Answerer::Call(answer))
    }
}

collected!(PyGather { inner, then, held } cut { inner, then, held });

/// The callback that a Python operation calls when it ends; only the first call counts.
#[pyclass(name = "Part", module = "sharecore._core")]
pub(crate) struct PyPart(pub(crate) Option<Part>);

#[pymethods]
impl PyPart {
    #[pyo3(signature = (outcome = None))]
    pub(crate) fn __call__(part: &Bound<'_, Self>, outcome: Option<Py<PyAny>>) -> PyResult<()> {
        let taken = part.borrow_mut().0.take();
        taken.map_or(Ok(()), |taken| taken.end(part.py(), outcome))
    }
}

collected!(PyPart { 0 } cut { 0 });
