//! `Staging`: records on their way into a partition of a coordinator's topic. `sharecore.coordinator_log.StagedLog` is one.
//!
//! Python decides what becomes of a batch that was not written. No borrow of an object is held while Python runs, which may
//! come back to the same object.

use std::collections::VecDeque;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::clock::Clock;
use crate::collected::collected;
use crate::completion::{Completion, Ended, settle_all};
use crate::python;
use crate::staged_batch::PyStagedBatch;

type Batches = Vec<Py<PyStagedBatch>>;

/// Joins the records of one turn of the event loop into one batch.
#[pyclass(name = "Staging", module = "sharecore._core", subclass)]
pub(crate) struct PyStaging {
    #[pyo3(get)]
    pub(crate) log: Py<PyAny>,
    timers: Py<PyAny>,
    timeout_ms: i64,
    clock: Clock,
    /// Called when what was staged has been handed to the log.
    tell_sent: Py<PyAny>,
    writes: Py<PyAny>,
    /// Whether memory is ahead of the log.
    #[pyo3(get)]
    stale: bool,
    /// How often what is in memory was read anew, or moved.
    moves: u64,
    staged: Batches,
    pub(crate) sent: Batches,
    lost: Batches,
    unanswered: VecDeque<Py<PyStagedBatch>>,
    /// When `_time_is_over` is called.
    timer_due_ms: Option<i64>,
    is_resending: bool,
    /// A batch was written behind one that was lost.
    is_overtaken: bool,
    error: Option<Py<PyAny>>,
}

fn refs(py: Python<'_>, batches: &[Py<PyStagedBatch>]) -> Batches {
    batches.iter().map(|batch| batch.clone_ref(py)).collect()
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

    /// The batch that records of a producer join; None where they begin another one.
    fn last<'py>(
        staging: &Bound<'py, Self>,
        producer: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyStagedBatch>>> {
        let py = staging.py();
        let last = staging.borrow().staged.last().map(|it| it.clone_ref(py));
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
            producer: producer.map(|producer| producer.clone().unbind()),
            records: PyList::empty(py).unbind(),
            waiting: Vec::new(),
            ended: Vec::new(),
            placed: Vec::new(),
            now_ms: 0,
            began_ms: Self::monotonic_ms(staging)?,
            attempts: 0,
            due_ms: 0,
            answered: false,
            open: 0,
            error: None,
        };
        let batch = Bound::new(py, batch)?;
        let kept = batch.clone().unbind();
        staging.borrow_mut().staged.push(kept);
        Ok(batch)
    }

    /// The batch that records of a producer join.
    fn open<'py>(
        staging: &Bound<'py, Self>,
        producer: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyStagedBatch>> {
        let py = staging.py();
        let begins = staging.borrow().staged.is_empty();
        if begins {
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

    /// How often what is in memory was read anew, or moved.
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    /// Whether memory is not ahead of the log, and nothing in it has moved since.
    pub(crate) fn is_at(&self, moves: u64) -> bool {
        !self.stale && self.moves == moves
    }

    /// Has a batch answered in time. One timer serves all of them: most are answered long before.
    fn limit(staging: &Bound<'_, Self>, batch: &Bound<'_, PyStagedBatch>) -> PyResult<()> {
        let now_ms = Self::monotonic_ms(staging)?;
        let is_timed = {
            let mut held = staging.borrow_mut();
            batch.borrow_mut().due_ms = now_ms + held.timeout_ms;
            held.unanswered.push_back(batch.clone().unbind());
            held.timer_due_ms.is_some()
        };
        if is_timed {
            Ok(())
        } else {
            Self::_arm(staging, now_ms)
        }
    }

    pub(crate) fn ended(
        staging: &Bound<'_, Self>,
        batch: &Bound<'_, PyStagedBatch>,
        error: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let is_lost = {
            let mut held = staging.borrow_mut();
            held.sent.retain(|each| !each.is(batch));
            if error.is_some() {
                held.lost.push(batch.clone().unbind());
                held.error = error;
                true
            } else {
                // one before it was lost: written now, that one would come behind what followed it
                held.is_overtaken = !held.lost.is_empty();
                false
            }
        };
        if !is_lost {
            Self::_end(staging, batch, None)?;
        }
        Self::mend(staging)
    }

    /// Once nothing is under way, has what was lost tried again, or given up.
    fn mend(staging: &Bound<'_, Self>) -> PyResult<()> {
        let py = staging.py();
        let (error, attempts, is_overtaken) = {
            let mut held = staging.borrow_mut();
            if held.error.is_none() || !held.sent.is_empty() || held.is_resending {
                return Ok(());
            }
            let attempts = held.lost.first().map_or(0, |lost| lost.borrow(py).attempts);
            (held.error.take(), attempts, held.is_overtaken)
        };
        let asked = (error, attempts, is_overtaken);
        staging
            .call_method1(intern!(py, python::OWN_MEND), asked)
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
        writes: Py<PyAny>,
        _rest: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Ok(Self {
            log,
            timers,
            timeout_ms: write_timeout_ms,
            clock: Clock::of(monotonic_ms)?,
            tell_sent: sent,
            writes,
            stale: true,
            moves: 0,
            staged: Vec::new(),
            sent: Vec::new(),
            lost: Vec::new(),
            unanswered: VecDeque::new(),
            timer_due_ms: None,
            is_resending: false,
            is_overtaken: false,
            error: None,
        })
    }

    #[setter]
    fn set_stale(&mut self, stale: bool) {
        self.stale = stale;
        self.moves += 1;
    }

    /// Notes that something in memory is gone, or lies elsewhere: leaders look for their state again.
    fn note_move(&mut self) {
        self.moves += 1;
    }

    #[getter]
    fn _staged(&self, py: Python<'_>) -> Batches {
        refs(py, &self.staged)
    }

    #[getter]
    fn _sent(&self, py: Python<'_>) -> Batches {
        refs(py, &self.sent)
    }

    #[getter]
    fn _lost(&self, py: Python<'_>) -> Batches {
        refs(py, &self.lost)
    }

    /// The first of those that are not answered.
    #[getter]
    fn _oldest(&self, py: Python<'_>) -> Option<Py<PyStagedBatch>> {
        self.unanswered.front().map(|batch| batch.clone_ref(py))
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
        let count = {
            let held = staging.borrow();
            if held.lost.is_empty() {
                held.staged.len()
            } else {
                0
            }
        };
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            let batch = {
                let mut held = staging.borrow_mut();
                if !held.lost.is_empty() || held.staged.is_empty() {
                    break;
                }
                held.staged.remove(0).into_bound(py)
            };
            let is_empty = batch.borrow().records.bind(py).is_empty();
            if is_empty {
                Self::_end(staging, &batch, None)?;
            } else {
                Self::limit(staging, &batch)?;
                Self::send(staging, &batch)?;
            }
        }
        let tell_sent = staging.borrow().tell_sent.clone_ref(py);
        tell_sent.call0(py).map(|_| ())
    }

    /// Sends what was lost once more, in its order.
    fn _try_again(staging: &Bound<'_, Self>) -> PyResult<()> {
        let lost = {
            let mut held = staging.borrow_mut();
            held.is_resending = true; // until all are sent: none is mended before
            std::mem::take(&mut held.lost)
        };
        for batch in lost {
            let waits = !staging.borrow().lost.is_empty();
            if waits {
                staging.borrow_mut().lost.push(batch);
            } else {
                Self::send(staging, batch.bind(staging.py()))?;
            }
        }
        staging.borrow_mut().is_resending = false;
        Self::mend(staging)?;
        Self::flush(staging)
    }

    /// Takes out what is lost, and what was staged on top of it: none of it is written any more.
    fn _abandon(&mut self) -> Batches {
        self.is_overtaken = false;
        self.set_stale(true);
        let mut lost = std::mem::take(&mut self.lost);
        lost.append(&mut self.staged);
        lost
    }

    /// Takes out batches of transactions that are lost, or wait behind what is lost.
    fn _abandon_transactions(&mut self, py: Python<'_>) -> Batches {
        let mut taken = Vec::new();
        for batches in [&mut self.lost, &mut self.staged] {
            let mut kept = Vec::new();
            for batch in batches.drain(..) {
                let is_plain = batch.borrow(py).producer.is_none();
                (if is_plain { &mut kept } else { &mut taken }).push(batch);
            }
            *batches = kept;
        }
        self.is_overtaken &= !self.lost.is_empty();
        taken
    }

    /// A batch was written, or never will be: calls those who follow its end, then those who wait for an answer.
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

    /// Has `_time_is_over` called when the oldest is to be answered at the latest.
    fn _arm(staging: &Bound<'_, Self>, now_ms: i64) -> PyResult<()> {
        let py = staging.py();
        let delay_ms = {
            let mut held = staging.borrow_mut();
            let due_ms = held.unanswered.front().map(|first| first.borrow(py).due_ms);
            held.timer_due_ms = due_ms;
            due_ms.map(|due_ms| i32::try_from(due_ms - now_ms).unwrap_or(i32::MAX))
        };
        let Some(delay_ms) = delay_ms else {
            return Ok(());
        };
        let asked = (
            f64::from(delay_ms) / 1000.0,
            staging.getattr(intern!(py, python::OWN_TIME_IS_OVER))?,
        );
        let timers = Self::timers(staging);
        timers
            .call_method1(intern!(py, python::CALL_LATER), asked)
            .map(|_| ())
    }

    /// Tells those who wait for a batch how it has ended.
    #[pyo3(signature = (batch, error))]
    fn _settle(
        staging: &Bound<'_, Self>,
        batch: &Bound<'_, PyStagedBatch>,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = staging.py();
        let (waiting, began_ms) = {
            let mut held = batch.borrow_mut();
            held.answered = true;
            (std::mem::take(&mut held.waiting), held.began_ms)
        };
        let mut answered = Vec::new();
        {
            let mut held = staging.borrow_mut();
            while let Some(first) = held.unanswered.pop_front() {
                if !first.borrow(py).answered {
                    held.unanswered.push_front(first);
                    break;
                }
                answered.push(first);
            }
        }
        drop(answered);
        if waiting.is_empty() {
            return Ok(());
        }
        let took_ms = Self::monotonic_ms(staging)? - began_ms;
        let how = PyDict::new(py);
        how.set_item(intern!(py, python::FAILED), error.is_some())?;
        let writes = staging.borrow().writes.clone_ref(py);
        let asked = (took_ms, waiting.len()).into_pyobject(py)?;
        writes.call_method(py, intern!(py, python::ADD), asked, Some(&how))?;
        settle_all(py, waiting, Ended::Write(error))
    }
}

collected!(PyStaging { log, timers, clock, tell_sent, writes, staged, sent, lost, unanswered, error } cut { staged, sent, lost, unanswered, error });
