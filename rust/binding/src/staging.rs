//! `Staging`: records that wait to be appended to a partition of a coordinator's topic. `sharecore.coordinator_log.StagedLog`
//! extends it.
//!
//! Python decides what happens to a batch that was not written. No object stays borrowed while Python code runs: Python may
//! call back into the same object.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use sharecore_share::{Number, Staging};

use crate::clock::Clock;
use crate::collected::collected;
use crate::completion::{Completion, Ended, settle_all};
use crate::cork::append_later;
use crate::python;
use crate::spans::PySpans;
use crate::staged_batch::PyStagedBatch;

/// Joins the records of one turn of the event loop into one batch.
#[pyclass(name = "Staging", module = "sharecore._core", subclass)]
pub(crate) struct PyStaging {
    #[pyo3(get)]
    pub(crate) log: Py<PyAny>,
    timers: Py<PyAny>,
    clock: Clock,
    /// Called when the staged records were passed to the log.
    on_sent: Py<PyAny>,
    writes: Py<PySpans>,
    pub(crate) inner: Staging<Py<PyStagedBatch>>,
    /// The error of a lost batch.
    error: Option<Py<PyAny>>,
}

fn refs<'a>(
    py: Python<'_>,
    batches: impl Iterator<Item = &'a Py<PyStagedBatch>>,
) -> Vec<Py<PyStagedBatch>> {
    batches.map(|batch| batch.clone_ref(py)).collect()
}

impl PyStaging {
    fn monotonic_ms(staging: &Bound<'_, Self>) -> PyResult<i64> {
        let py = staging.py();
        let clock = staging.borrow().clock.clone_ref(py);
        clock.ms(py)
    }

    fn timers<'py>(staging: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        staging.borrow().timers.bind(staging.py()).clone()
    }

    /// Returns the open batch that records of a producer join; None if they need a new one.
    fn last<'py>(
        staging: &Bound<'py, Self>,
        producer: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyStagedBatch>>> {
        let py = staging.py();
        let last = staging.borrow().inner.last().map(|it| it.clone_ref(py));
        let Some(last) = last.map(|last| last.into_bound(py)) else {
            return Ok(None);
        };
        let before = last.borrow().producer.as_ref().map(|it| it.clone_ref(py));
        let is_same = match (&before, producer) {
            (None, None) => true,
            (Some(before), Some(producer)) => producer.eq(before)?,
            _ => false,
        };
        Ok(is_same.then_some(last))
    }

    fn begin<'py>(
        staging: &Bound<'py, Self>,
        producer: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyStagedBatch>> {
        let py = staging.py();
        let batch = PyStagedBatch {
            staging: staging.clone().unbind(),
            number: 0,
            producer: producer.map(|producer| producer.clone().unbind()),
            records: PyList::empty(py).unbind(),
            waiting: Vec::new(),
            ended: Vec::new(),
            placed: Vec::new(),
            now_ms: 0,
            began_ms: Self::monotonic_ms(staging)?,
            error: None,
        };
        let batch = Bound::new(py, batch)?;
        let kept = batch.clone().unbind();
        let is_plain = producer.is_none();
        let number = staging.borrow_mut().inner.stage(is_plain, kept);
        batch.borrow_mut().number = number;
        Ok(batch)
    }

    /// Returns the batch that records of a producer join, creating it if necessary.
    fn open<'py>(
        staging: &Bound<'py, Self>,
        producer: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyStagedBatch>> {
        let py = staging.py();
        let begins_turn = staging.borrow().inner.begins_turn();
        if begins_turn && !append_later(staging) {
            let flush = staging.getattr(intern!(py, python::FLUSH))?;
            Self::timers(staging).call_method1(intern!(py, python::CALL_SOON), (flush,))?;
        }
        match Self::last(staging, producer)? {
            Some(batch) => Ok(batch),
            None => Self::begin(staging, producer),
        }
    }

    /// Stages a record.
    pub(crate) fn stage(
        staging: &Bound<'_, Self>,
        record: Bound<'_, PyTuple>,
        now_ms: i64,
        done: Completion,
    ) -> PyResult<()> {
        let batch = Self::open(staging, None)?;
        let all = {
            let mut held = batch.borrow_mut();
            held.waiting.push(done);
            held.now_ms = now_ms;
            held.records.bind(staging.py()).clone()
        };
        all.append(record)
    }

    /// Starts a batch's write timeout.
    fn limit(staging: &Bound<'_, Self>, number: Number) -> PyResult<()> {
        let now_ms = Self::monotonic_ms(staging)?;
        let is_to_ring = staging.borrow_mut().inner.limit(number, now_ms);
        if is_to_ring {
            Self::_arm(staging, now_ms)?;
        }
        Ok(())
    }

    pub(crate) fn ended(
        staging: &Bound<'_, Self>,
        batch: &Bound<'_, PyStagedBatch>,
        error: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let is_lost = error.is_some();
        {
            let number = batch.borrow().number;
            let mut held = staging.borrow_mut();
            held.inner.ended(number, is_lost);
            if is_lost {
                held.error = error;
            }
        }
        if !is_lost {
            Self::_end(staging, batch, None)?;
        }
        Self::mend(staging)
    }

    /// Once no append is pending, retries or abandons lost batches.
    fn mend(staging: &Bound<'_, Self>) -> PyResult<()> {
        let py = staging.py();
        let (mend, error) = {
            let mut held = staging.borrow_mut();
            let Some(mend) = held.inner.mend() else {
                return Ok(());
            };
            (mend, held.error.take())
        };
        let arguments = (error, mend.attempts, mend.is_overtaken);
        staging
            .call_method1(intern!(py, python::OWN_MEND), arguments)
            .map(|_| ())
    }
}

#[pymethods]
impl PyStaging {
    #[new]
    #[pyo3(signature = (log, timers, write_timeout_ms, *, monotonic_ms, sent, writes, **_rest))]
    fn new(
        log: Py<PyAny>,
        timers: Py<PyAny>,
        write_timeout_ms: i64,
        monotonic_ms: &Bound<'_, PyAny>,
        sent: Py<PyAny>,
        writes: Py<PySpans>,
        _rest: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Ok(Self {
            log,
            timers,
            clock: Clock::of(monotonic_ms)?,
            on_sent: sent,
            writes,
            inner: Staging::new(write_timeout_ms),
            error: None,
        })
    }

    /// True if the state in memory is ahead of the log.
    #[getter]
    fn stale(&self) -> bool {
        self.inner.is_stale()
    }

    #[setter]
    fn set_stale(&mut self, stale: bool) {
        self.inner.set_stale(stale);
    }

    /// Notes that states in memory were removed or moved, so that leaders look up theirs again.
    fn note_move(&mut self) {
        self.inner.note_move();
    }

    #[getter]
    fn _staged(&self, py: Python<'_>) -> Vec<Py<PyStagedBatch>> {
        refs(py, self.inner.staged())
    }

    #[getter]
    fn _sent(&self, py: Python<'_>) -> Vec<Py<PyStagedBatch>> {
        refs(py, self.inner.sent())
    }

    #[getter]
    fn _lost(&self, py: Python<'_>) -> Vec<Py<PyStagedBatch>> {
        refs(py, self.inner.lost())
    }

    /// The oldest unanswered batch.
    #[getter]
    fn _oldest(&self, py: Python<'_>) -> Option<Py<PyStagedBatch>> {
        self.inner.oldest().map(|batch| batch.clone_ref(py))
    }

    /// The oldest unanswered batch, if it has timed out.
    fn _overdue(&self, py: Python<'_>, now_ms: i64) -> Option<Py<PyStagedBatch>> {
        let batch = self.inner.overdue(now_ms);
        batch.map(|batch| batch.clone_ref(py))
    }

    #[pyo3(signature = (records, now_ms, done = None, *, ended = None, placed = None, producer = None))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn append(
        staging: &Bound<'_, Self>,
        records: &Bound<'_, PyAny>,
        now_ms: i64,
        done: Option<&Bound<'_, PyAny>>,
        ended: Option<&Bound<'_, PyAny>>,
        placed: Option<Py<PyAny>>,
        producer: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = staging.py();
        let batch = Self::open(staging, producer)?;
        let all = batch.borrow().records.bind(py).clone();
        {
            let mut held = batch.borrow_mut();
            held.placed.extend(placed.map(|placed| (all.len(), placed)));
            held.waiting.extend(Completion::of_some(done));
            held.ended.extend(Completion::of_some(ended));
            held.now_ms = now_ms;
        }
        records
            .try_iter()?
            .try_for_each(|record| all.append(record?))
    }

    fn flush(staging: &Bound<'_, Self>) -> PyResult<()> {
        let py = staging.py();
        let count = staging.borrow().inner.to_flush();
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            let next = {
                let mut held = staging.borrow_mut();
                let next = held.inner.take();
                next.map(|(number, batch)| (number, batch.clone_ref(py)))
            };
            let Some((number, batch)) = next else {
                break;
            };
            let batch = batch.into_bound(py);
            let is_empty = batch.borrow().records.bind(py).is_empty();
            if is_empty {
                Self::_end(staging, &batch, None)?;
            } else {
                Self::limit(staging, number)?;
                Self::send(staging, &batch)?;
            }
        }
        let on_sent = staging.borrow().on_sent.clone_ref(py);
        on_sent.call0(py).map(|_| ())
    }

    /// Sends the lost batches again, in order.
    fn _try_again(staging: &Bound<'_, Self>) -> PyResult<()> {
        let py = staging.py();
        let lost = staging.borrow_mut().inner.begin_again();
        for number in lost {
            let next = {
                let mut held = staging.borrow_mut();
                held.inner.again(number).map(|batch| batch.clone_ref(py))
            };
            if let Some(batch) = next {
                Self::send(staging, batch.bind(py))?;
            }
        }
        staging.borrow_mut().inner.end_again();
        Self::mend(staging)?;
        Self::flush(staging)
    }

    /// Removes the lost batches and those staged after them; none of them will be written.
    fn _abandon(&mut self, py: Python<'_>) -> Vec<Py<PyStagedBatch>> {
        let gone = self.inner.abandon();
        refs(py, gone.iter().filter_map(|number| self.inner.get(*number)))
    }

    /// Removes lost batches of transactions, and those that wait behind lost ones.
    fn _abandon_transactions(&mut self, py: Python<'_>) -> Vec<Py<PyStagedBatch>> {
        let gone = self.inner.abandon_transactions();
        refs(py, gone.iter().filter_map(|number| self.inner.get(*number)))
    }

    /// Completes a batch that was written or never will be: calls `ended` first, then `waiting`.
    #[pyo3(signature = (batch, error))]
    fn _end(
        staging: &Bound<'_, Self>,
        batch: &Bound<'_, PyStagedBatch>,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let ended = std::mem::take(&mut batch.borrow_mut().ended);
        settle_all(staging.py(), ended, Ended::Write(error))?;
        Self::_settle(staging, batch, error)
    }

    /// Schedules `_time_is_over` for the timeout of the oldest batch.
    fn _arm(staging: &Bound<'_, Self>, now_ms: i64) -> PyResult<()> {
        let py = staging.py();
        let delay_ms = staging.borrow_mut().inner.arm(now_ms);
        let Some(delay_ms) = delay_ms else {
            return Ok(());
        };
        let arguments = (
            f64::from(i32::try_from(delay_ms).unwrap_or(i32::MAX)) / 1000.0,
            staging.getattr(intern!(py, python::OWN_TIME_IS_OVER))?,
        );
        let timers = Self::timers(staging);
        timers
            .call_method1(intern!(py, python::CALL_LATER), arguments)
            .map(|_| ())
    }

    /// Completes the waiters of a batch.
    #[pyo3(signature = (batch, error))]
    fn _settle(
        staging: &Bound<'_, Self>,
        batch: &Bound<'_, PyStagedBatch>,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = staging.py();
        let (waiting, began_ms, number) = {
            let mut held = batch.borrow_mut();
            let waiting = std::mem::take(&mut held.waiting);
            (waiting, held.began_ms, held.number)
        };
        staging.borrow_mut().inner.answer(number);
        if waiting.is_empty() {
            return Ok(());
        }
        let took_ms = Self::monotonic_ms(staging)? - began_ms;
        let took_ms = f64::from(i32::try_from(took_ms).unwrap_or(i32::MAX));
        let writes = staging.borrow().writes.clone_ref(py);
        writes
            .borrow_mut(py)
            .add(took_ms, waiting.len() as u64, error.is_some());
        settle_all(py, waiting, Ended::Write(error))
    }
}

collected!(PyStaging { log, timers, clock, on_sent, writes, inner, error } cut { inner, error });
