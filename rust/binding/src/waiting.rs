//! `Later`, `Ticket`, `Gather` and `settle`: callbacks in place of tasks and futures, for `sharecore.waiting`.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::error::{drop_traceback, kafka_error_in};

/// Calls one callback; an exception is logged, others than `Exception` are raised on.
fn tell<'py>(callback: &Bound<'py, PyAny>, outcome: &Bound<'py, PyTuple>) -> PyResult<()> {
    let Err(error) = callback.call1(outcome) else {
        return Ok(());
    };
    let py = callback.py();
    if !error.is_instance_of::<PyException>(py) {
        return Err(error);
    }
    log_failure(callback, error)
}

/// Logs what a callback has raised.
pub(crate) fn log_failure(callback: &Bound<'_, PyAny>, error: PyErr) -> PyResult<()> {
    let py = callback.py();
    let logger = py
        .import("logging")?
        .call_method1("getLogger", ("sharecore.waiting",))?;
    let how = PyDict::new(py);
    how.set_item("exc_info", error.into_value(py))?;
    logger.call_method("error", ("a callback failed: %r", callback), Some(&how))?;
    Ok(())
}

/// Calls one callback with how something has ended: an error, or None.
pub(crate) fn settle_one<'py>(
    callback: &Bound<'py, PyAny>,
    error: Option<Bound<'py, PyAny>>,
) -> PyResult<()> {
    tell(callback, &PyTuple::new(callback.py(), [error])?)
}

/// As `settle`, for callbacks that are held here.
pub(crate) fn settle_all(callbacks: Vec<Py<PyAny>>, outcome: &Bound<'_, PyTuple>) -> PyResult<()> {
    let py = outcome.py();
    let mut callbacks = callbacks.into_iter();
    callbacks.try_for_each(|each| tell(each.bind(py), outcome))
}

/// Calls each callback; one that raises is logged, and the others are called all the same.
#[pyfunction]
#[pyo3(signature = (callbacks, *outcome))]
pub(crate) fn settle<'py>(
    callbacks: &Bound<'py, PyAny>,
    outcome: &Bound<'py, PyTuple>,
) -> PyResult<()> {
    if let Ok(list) = callbacks.cast::<PyList>() {
        return list.iter().try_for_each(|each| tell(&each, outcome));
    }
    callbacks
        .try_iter()?
        .try_for_each(|each| tell(&each?, outcome))
}

/// An answer that is not known yet; done once.
#[pyclass(name = "Later", module = "sharecore._core", subclass)]
#[derive(Default)]
pub(crate) struct PyLater {
    callbacks: Vec<Py<PyAny>>,
    done: bool,
    cancelled: bool,
    error: Option<Py<PyAny>>,
    value: Option<Py<PyAny>>,
}

impl PyLater {
    /// The error and the value.
    pub(crate) fn outcome(&self, py: Python<'_>) -> (Option<Py<PyAny>>, Option<Py<PyAny>>) {
        let value = self.value.as_ref().map(|value| value.clone_ref(py));
        (self.exception(py), value)
    }

    fn end(later: &Bound<'_, Self>, change: impl FnOnce(&mut PyLater)) -> PyResult<()> {
        let py = later.py();
        let callbacks = {
            let mut held = later.borrow_mut();
            if held.done {
                return Ok(());
            }
            held.done = true;
            change(&mut held);
            std::mem::take(&mut held.callbacks)
        };
        if callbacks.is_empty() {
            return Ok(());
        }
        let outcome = PyTuple::new(py, [later])?;
        callbacks
            .into_iter()
            .try_for_each(|each| tell(each.bind(py), &outcome))
    }
}

#[pymethods]
impl PyLater {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn done(&self) -> bool {
        self.done
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.cancelled
    }

    fn exception(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.error.as_ref().map(|error| error.clone_ref(py))
    }

    fn result(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match &self.error {
            Some(error) => Err(PyErr::from_value(error.bind(py).clone())),
            None => Ok(self.value.as_ref().map(|value| value.clone_ref(py))),
        }
    }

    pub(crate) fn set_result(later: &Bound<'_, Self>, value: Py<PyAny>) -> PyResult<()> {
        Self::end(later, |held| held.value = Some(value))
    }

    pub(crate) fn set_exception(later: &Bound<'_, Self>, error: Py<PyAny>) -> PyResult<()> {
        Self::end(later, |held| held.error = Some(error))
    }

    fn cancel(later: &Bound<'_, Self>) -> PyResult<bool> {
        if later.borrow().done {
            return Ok(false);
        }
        let error = later
            .py()
            .import("asyncio")?
            .call_method0("CancelledError")?
            .unbind();
        Self::end(later, |held| {
            held.cancelled = true;
            held.error = Some(error);
        })?;
        Ok(true)
    }

    pub(crate) fn add_done_callback(later: &Bound<'_, Self>, callback: Py<PyAny>) -> PyResult<()> {
        {
            let mut held = later.borrow_mut();
            if !held.done {
                held.callbacks.push(callback);
                return Ok(());
            }
        }
        callback.call1(later.py(), (later,)).map(|_| ())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callbacks
            .iter()
            .try_for_each(|each| visit.call(each))?;
        visit.call(&self.error)?;
        visit.call(&self.value)
    }

    fn __clear__(&mut self) {
        self.callbacks.clear();
        self.error = None;
        self.value = None;
    }
}

/// A write on its way to the disk.
#[pyclass(name = "Ticket", module = "sharecore._core", subclass)]
pub(crate) struct PyTicket {
    #[pyo3(get)]
    sequence: u64,
    done: bool,
    error: Option<Py<PyAny>>,
    callbacks: Vec<Py<PyAny>>,
}

#[pymethods]
impl PyTicket {
    #[new]
    fn new(sequence: u64) -> Self {
        Self {
            sequence,
            done: false,
            error: None,
            callbacks: Vec::new(),
        }
    }

    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.exception(py)
    }

    fn done(&self) -> bool {
        self.done
    }

    pub(crate) fn exception(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.error.as_ref().map(|error| error.clone_ref(py))
    }

    pub(crate) fn add_done_callback(ticket: &Bound<'_, Self>, callback: Py<PyAny>) -> PyResult<()> {
        {
            let mut held = ticket.borrow_mut();
            if !held.done {
                held.callbacks.push(callback);
                return Ok(());
            }
        }
        callback.call1(ticket.py(), (ticket,)).map(|_| ())
    }

    #[pyo3(signature = (error = None))]
    pub(crate) fn settle(ticket: &Bound<'_, Self>, error: Option<Py<PyAny>>) -> PyResult<()> {
        let callbacks = {
            let mut held = ticket.borrow_mut();
            held.error = error;
            held.done = true;
            std::mem::take(&mut held.callbacks)
        };
        let outcome = PyTuple::new(ticket.py(), [ticket])?;
        callbacks
            .into_iter()
            .try_for_each(|each| tell(each.bind(ticket.py()), &outcome))
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callbacks
            .iter()
            .try_for_each(|each| visit.call(each))?;
        visit.call(&self.error)
    }

    fn __clear__(&mut self) {
        self.callbacks.clear();
        self.error = None;
    }
}

/// Operations that end through callbacks, and what they have ended with.
#[pyclass(name = "Gather", module = "sharecore._core", subclass)]
#[derive(Default)]
pub(crate) struct PyGather {
    /// Names and outcomes as they came; a later outcome of the same name counts.
    outcomes: Vec<(Py<PyAny>, Py<PyAny>)>,
    left: usize,
    then: Option<Py<PyAny>>,
    /// The place of an operation under way that outlasts the others.
    lasting: Option<usize>,
    /// The log of a write among the others that lingers as long as that one lasts.
    lingering: Option<Py<PyAny>>,
}

impl PyGather {
    /// Names with their outcomes.
    pub(crate) fn told(&self, py: Python<'_>) -> Vec<(Py<PyAny>, Py<PyAny>)> {
        let outcomes = self.outcomes.iter();
        outcomes
            .map(|(name, outcome)| (name.clone_ref(py), outcome.clone_ref(py)))
            .collect()
    }

    /// A part that outlasts the others: until it ends, they need not hurry.
    pub(crate) fn lasting_part(gather: &Bound<'_, Self>, name: Py<PyAny>) -> PyPart {
        let part = Self::part(gather, name);
        let mut held = gather.borrow_mut();
        held.lasting = Some(held.outcomes.len() - 1);
        part
    }

    fn end(gather: &Bound<'_, Self>, place: usize, outcome: Py<PyAny>) -> PyResult<()> {
        let py = gather.py();
        drop_traceback(outcome.bind(py))?;
        let (before, then, lingering) = {
            let mut held = gather.borrow_mut();
            let before = std::mem::replace(&mut held.outcomes[place].1, outcome);
            held.left -= 1;
            held.lasting = held.lasting.filter(|lasting| *lasting != place);
            let (ended, outlasted) = (held.left == 0, held.lasting.is_some());
            let then = held.then.take_if(|_| ended);
            let lingering = held.lingering.take_if(|_| ended || !outlasted);
            (before, then, lingering.filter(|_| !ended))
        };
        drop(before);
        if let Some(log) = lingering {
            log.call_method0(py, intern!(py, "hurry"))?;
        }
        // let go of: whoever waits holds the gather, and cycles are work for the collector
        then.map_or(Ok(()), |then| then.call0(py).map(|_| ()))
    }
}

#[pymethods]
impl PyGather {
    #[new]
    #[pyo3(signature = (names = None))]
    fn new(py: Python<'_>, names: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut outcomes = Vec::new();
        if let Some(names) = names {
            for name in names.try_iter()? {
                outcomes.push((name?.unbind(), py.None()));
            }
        }
        Ok(Self {
            outcomes,
            left: 0,
            then: None,
            lasting: None,
            lingering: None,
        })
    }

    #[getter]
    fn outcomes<'py>(gather: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = gather.py();
        let told = gather.borrow().told(py);
        let outcomes = PyDict::new(py);
        for (name, outcome) in told {
            outcomes.set_item(name, outcome)?;
        }
        Ok(outcomes)
    }

    #[getter]
    pub(crate) fn pending(&self) -> bool {
        self.left > 0
    }

    pub(crate) fn part(gather: &Bound<'_, Self>, name: Py<PyAny>) -> PyPart {
        let mut held = gather.borrow_mut();
        held.left += 1;
        held.outcomes.push((name, gather.py().None()));
        PyPart(Some((gather.clone().unbind(), held.outcomes.len() - 1)))
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

    pub(crate) fn put(&mut self, name: Py<PyAny>, outcome: Py<PyAny>) {
        self.outcomes.push((name, outcome));
    }

    fn when_ended(gather: &Bound<'_, Self>, then: Py<PyAny>) -> PyResult<()> {
        {
            let mut held = gather.borrow_mut();
            if held.left > 0 {
                held.then = Some(then);
                return Ok(());
            }
        }
        then.call0(gather.py()).map(|_| ())
    }

    /// Has `answer` make the result of `later` when all have ended.
    pub(crate) fn promise(
        gather: &Bound<'_, Self>,
        later: Py<PyLater>,
        answer: Py<PyAny>,
    ) -> PyResult<()> {
        let then = Py::new(gather.py(), PyAnswering(Some((later, answer))))?;
        Self::when_ended(gather, then.into_any())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (name, outcome) in &self.outcomes {
            visit.call(name)?;
            visit.call(outcome)?;
        }
        visit.call(&self.then)?;
        visit.call(&self.lingering)
    }

    fn __clear__(&mut self) {
        self.outcomes.clear();
        self.then = None;
        self.lingering = None;
    }
}

/// What one operation calls when it ends; later calls are passed over.
#[pyclass(name = "Part", module = "sharecore._core")]
pub(crate) struct PyPart(Option<(Py<PyGather>, usize)>);

impl PyPart {
    /// Whether another part outlasts this one.
    pub(crate) fn is_outlasted(&self, py: Python<'_>) -> bool {
        let gather = self.0.as_ref();
        gather.is_some_and(|(gather, _)| gather.borrow(py).lasting.is_some())
    }

    /// Has `log` hurry when the part that outlasts this one ends before it.
    pub(crate) fn linger(&self, log: &Bound<'_, PyAny>) {
        if let Some((gather, _)) = &self.0 {
            gather.borrow_mut(log.py()).lingering = Some(log.clone().unbind());
        }
    }
}

#[pymethods]
impl PyPart {
    #[pyo3(signature = (outcome = None))]
    pub(crate) fn __call__(part: &Bound<'_, Self>, outcome: Option<Py<PyAny>>) -> PyResult<()> {
        let py = part.py();
        let taken = part.borrow_mut().0.take();
        let Some((gather, place)) = taken else {
            return Ok(());
        };
        PyGather::end(gather.bind(py), place, outcome.unwrap_or_else(|| py.None()))
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some((gather, _)) = &self.0 {
            visit.call(gather)?;
        }
        Ok(())
    }

    fn __clear__(&mut self) {
        self.0 = None;
    }
}

/// Makes the answer of a request when all that it waits for has ended.
#[pyclass(name = "Answering", module = "sharecore._core")]
pub(crate) struct PyAnswering(Option<(Py<PyLater>, Py<PyAny>)>);

#[pymethods]
impl PyAnswering {
    fn __call__(answering: &Bound<'_, Self>) -> PyResult<()> {
        let py = answering.py();
        let taken = answering.borrow_mut().0.take();
        let Some((later, answer)) = taken else {
            return Ok(());
        };
        let later = later.bind(py);
        if later.borrow().done {
            return Ok(()); // the client has gone
        }
        match answer.call0(py) {
            Ok(value) => PyLater::set_result(later, value),
            Err(error) if error.is_instance_of::<PyException>(py) => {
                PyLater::set_exception(later, error.into_value(py).into_any())
            }
            Err(error) => Err(error),
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some((later, answer)) = &self.0 {
            visit.call(later)?;
            visit.call(answer)?;
        }
        Ok(())
    }

    fn __clear__(&mut self) {
        self.0 = None;
    }
}
