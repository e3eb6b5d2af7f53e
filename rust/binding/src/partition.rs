//! `sharecore._core.Partition`: the engine behind a lock.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyAssertionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_engine::{AckBatch, AcquireOptions, Config, DeadLetterCause, Engine, Entry};
use sharecore_guard::Guarded;
use sharecore_records::Cause;
use sharecore_share::Tally;

use crate::convert::{StateBatches, acknowledgements, ranges, span};
use crate::error::{failed, refused};
use crate::reasons::PyWaitingReasons;
use crate::rules::PyRules;
use crate::state_write::PyWrite;

/// From this many runs on, calls that may visit all runs release the interpreter.
const LONG_RUNS: usize = 4096;

/// The in-flight state of one share partition.
#[pyclass(name = "Partition", module = "sharecore._core", frozen)]
pub(crate) struct PyPartition {
    pub(crate) inner: Guarded,
    pub(crate) tally: Tally,
    /// True if it has rules.
    is_managed: AtomicBool,
}

/// Start offset, end offset, in-flight records, delivery-complete count, next deadline, expired locks.
type WindowState = (i64, i64, i64, i64, Option<i64>, u64);
/// See `_core.pyi`.
pub(crate) type Keys = (i64, usize, Vec<(u64, i64, i64)>);
/// See `_core.pyi`.
type Observed = (WindowState, (u64, u64, u64, u64, u64), Vec<u64>);

impl PyPartition {
    /// Number of acquired records.
    pub(crate) fn leased(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |partition| partition.leased())
    }

    /// Runs `work` under the lock. `work` must not call Python or wait for the interpreter.
    fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut Engine) -> R) -> PyResult<R> {
        self.inner.with(work).map_err(|error| failed(py, &error))
    }

    /// Like `acknowledge`, with Rust types.
    pub(crate) fn settle(
        &self,
        py: Python<'_>,
        now_ms: i64,
        member: &str,
        batches: &[AckBatch<'_>],
    ) -> PyResult<Option<PyWrite>> {
        let answer = self.with(py, |partition| {
            let answer = partition.acknowledge(now_ms, member, batches);
            answer.map(|write| write.map(PyWrite::of))
        })?;
        let write = answer.map_err(|refusal| refused(py, refusal))?;
        self.tally.acknowledged(batches);
        Ok(write)
    }

    /// True if records wait for earlier ones with the same key.
    pub(crate) fn is_ordered(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.has_rules() && self.with(py, |partition| partition.is_ordered())?)
    }

    /// Runs work whose cost grows with the window.
    fn sweep<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Engine) -> R + Send,
    ) -> PyResult<R> {
        if self.with(py, |partition| partition.runs())? < LONG_RUNS {
            self.with(py, work)
        } else {
            py.detach(|| self.inner.with(work))
                .map_err(|error| failed(py, &error))
        }
    }
}

fn checked(config: Config) -> PyResult<Config> {
    if config.max_delivery_count == 0 || config.max_inflight <= 0 || config.lock_ms <= 0 {
        return Err(PyValueError::new_err(
            "max_delivery_count, max_inflight and lock_ms must be positive",
        ));
    }
    Ok(config)
}

#[allow(
    unused_variables,
    reason = "every operation receives the time, used or not"
)]
#[pymethods]
impl PyPartition {
    #[new]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "pyo3 extracts owned arguments"
    )]
    #[pyo3(signature = (start_offset = 0, state_batches = StateBatches(vec![]), *, max_delivery_count = 5, max_inflight = 2000,
                        lock_ms = 30000, renew_enabled = true, dead_letters = false, rules = None, now_ms = 0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        start_offset: i64,
        state_batches: StateBatches,
        max_delivery_count: u16,
        max_inflight: i64,
        lock_ms: i64,
        renew_enabled: bool,
        dead_letters: bool,
        rules: Option<Bound<'_, PyRules>>,
        now_ms: i64,
    ) -> PyResult<Self> {
        let config = checked(Config {
            max_delivery_count,
            max_inflight,
            lock_ms,
            renew_enabled,
            dead_letters,
        })?;
        let rules = rules.map(|rules| rules.get().0.clone());
        let is_managed = AtomicBool::new(rules.is_some());
        let inner = Engine::new(config, start_offset, &state_batches.0, rules, now_ms)
            .map_err(|refusal| refused(py, refusal))?;
        Ok(Self {
            inner: Guarded::new(inner),
            tally: Tally::default(),
            is_managed,
        })
    }

    #[pyo3(signature = (now_ms, member, batches, fetch_offset, max_fetch_records = 500, batch_size = 500,
                        record_limit = false))]
    #[allow(clippy::too_many_arguments)]
    fn acquire<'py>(
        &self,
        py: Python<'py>,
        now_ms: i64,
        member: &str,
        batches: &Bound<'py, PyAny>,
        fetch_offset: i64,
        max_fetch_records: i64,
        batch_size: i64,
        record_limit: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let batches = ranges(batches)?;
        let options = AcquireOptions {
            fetch_offset,
            max_fetch_records,
            batch_size,
            record_limit,
        };
        let mut out = Vec::new();
        self.with(py, |partition| {
            partition.acquire(now_ms, member, &batches, options, &mut out);
        })?;
        self.tally.acquired(&out);
        PyList::new(py, out.iter().map(span))
    }

    fn acknowledge(
        &self,
        py: Python<'_>,
        now_ms: i64,
        member: &str,
        batches: &Bound<'_, PyAny>,
    ) -> PyResult<Option<PyWrite>> {
        self.settle(py, now_ms, member, &acknowledgements(batches)?.batches())
    }

    pub(crate) fn held_by(&self, py: Python<'_>, member: &str) -> PyResult<i64> {
        self.with(py, |partition| partition.held_by(member))
    }

    fn observe(&self, py: Python<'_>) -> PyResult<Observed> {
        let window = self.with(py, |partition| {
            (
                partition.start_offset(),
                partition.end_offset(),
                partition.in_flight(),
                partition.delivery_complete_count(),
                partition.next_deadline_ms(),
                partition.timed_out(),
            )
        })?;
        let by_type = self.tally.by_type().into();
        Ok((window, by_type, self.tally.deliveries()))
    }

    fn running_out(&self, py: Python<'_>, now_ms: i64) -> PyResult<Vec<String>> {
        let names = |engine: &mut Engine| {
            let names = engine.running_out(now_ms).into_iter();
            names.map(str::to_owned).collect()
        };
        self.with(py, names)
    }

    #[allow(
        clippy::needless_pass_by_value,
        reason = "pyo3 extracts owned arguments"
    )]
    fn keep_locks(
        &self,
        py: Python<'_>,
        now_ms: i64,
        members: Vec<String>,
        max_ms: i64,
    ) -> PyResult<()> {
        self.sweep(py, |partition| {
            partition.keep_locks(now_ms, &members, max_ms);
        })
    }

    fn release(&self, py: Python<'_>, now_ms: i64, member: &str) -> PyResult<Option<PyWrite>> {
        self.sweep(py, |partition| partition.release(member).map(PyWrite::of))
    }

    #[pyo3(signature = (now_ms, wall_ms = 0))]
    fn advance(&self, py: Python<'_>, now_ms: i64, wall_ms: i64) -> PyResult<Option<PyWrite>> {
        self.sweep(py, |partition| {
            let before = partition.expired();
            let mut write = partition.advance(now_ms, wall_ms).map(PyWrite::of)?;
            write.blameless = (partition.expired() - before) as i64;
            Some(write)
        })
    }

    #[pyo3(signature = (now_ms, wall_ms, fetch_offset, batches, entries, batch_size = 500))]
    #[allow(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "pyo3 extracts owned arguments"
    )]
    fn admit(
        &self,
        py: Python<'_>,
        now_ms: i64,
        wall_ms: i64,
        fetch_offset: i64,
        batches: &Bound<'_, PyAny>,
        entries: Vec<(i64, Option<i64>, Option<i64>, u64)>,
        batch_size: i64,
    ) -> PyResult<bool> {
        let batches = ranges(batches)?;
        let entries = entries.into_iter();
        let entries: Vec<_> = entries
            .map(|(offset, not_before_ms, expires_ms, digest)| Entry {
                offset,
                not_before_ms: not_before_ms.unwrap_or(Entry::AT_ONCE),
                expires_ms: expires_ms.unwrap_or(Entry::NEVER),
                digest,
            })
            .collect();
        self.with(py, |partition| {
            partition.come_up(now_ms, wall_ms);
            let Some(spec) = partition.spec().cloned() else {
                return false;
            };
            let times = (now_ms, wall_ms);
            partition.admit(times, &spec, fetch_offset, &batches, &entries, batch_size)
        })
    }

    #[getter]
    fn next_admission(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |partition| {
            partition.next_admission().map(|(offset, _)| offset)
        })
    }

    #[getter]
    pub(crate) fn next_wall_ms(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |partition| partition.next_wall_ms())
    }

    pub(crate) fn move_log_start(&self, py: Python<'_>, now_ms: i64, offset: i64) -> PyResult<()> {
        self.with(py, |partition| partition.move_log_start(offset))
    }

    fn archive(&self, py: Python<'_>, now_ms: i64, first: i64, last: i64) -> PyResult<()> {
        self.with(py, |partition| partition.archive(first, last))
    }

    fn pass_hole(&self, py: Python<'_>, now_ms: i64, first: i64, last: i64) -> PyResult<()> {
        self.with(py, |partition| partition.pass_hole(first, last))
    }

    pub(crate) fn take_dead_letters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let due = self.with(py, |partition| partition.take_dead_letters())?;
        PyList::new(
            py,
            due.iter().map(|letter| {
                let cause = match letter.cause {
                    DeadLetterCause::DeliveryLimit => Cause::DeliveryLimit,
                    DeadLetterCause::Rejected => Cause::Rejected,
                    DeadLetterCause::Expired => Cause::Expired,
                };
                (
                    letter.first,
                    letter.last,
                    letter.delivery_count,
                    cause as u8,
                )
            }),
        )
    }

    fn finish_archiving(
        &self,
        py: Python<'_>,
        now_ms: i64,
        first: i64,
        last: i64,
    ) -> PyResult<Option<PyWrite>> {
        self.sweep(py, |partition| {
            let mut write = partition.finish_archiving(first, last).map(PyWrite::of)?;
            write.blameless = i64::MAX;
            Some(write)
        })
    }

    pub(crate) fn commit(&self, py: Python<'_>, write_id: u64, now_ms: i64) -> PyResult<()> {
        let answer = self.with(py, |partition| partition.commit(write_id, now_ms))?;
        answer.map_err(|refusal| refused(py, refusal))
    }

    pub(crate) fn rollback(&self, py: Python<'_>, write_id: u64, now_ms: i64) -> PyResult<()> {
        let answer = self.with(py, |partition| partition.rollback(write_id, now_ms))?;
        answer.map_err(|refusal| refused(py, refusal))
    }

    #[pyo3(signature = (*, max_delivery_count = None, max_inflight = None, lock_ms = None, renew_enabled = None,
                        dead_letters = None))]
    #[allow(clippy::too_many_arguments)]
    fn configure(
        &self,
        py: Python<'_>,
        max_delivery_count: Option<u16>,
        max_inflight: Option<i64>,
        lock_ms: Option<i64>,
        renew_enabled: Option<bool>,
        dead_letters: Option<bool>,
    ) -> PyResult<()> {
        self.with(py, |partition| {
            let now = partition.config();
            partition.configure(checked(Config {
                max_delivery_count: max_delivery_count.unwrap_or(now.max_delivery_count),
                max_inflight: max_inflight.unwrap_or(now.max_inflight),
                lock_ms: lock_ms.unwrap_or(now.lock_ms),
                renew_enabled: renew_enabled.unwrap_or(now.renew_enabled),
                dead_letters: dead_letters.unwrap_or(now.dead_letters),
            })?);
            Ok(())
        })?
    }

    #[allow(
        clippy::needless_pass_by_value,
        reason = "pyo3 extracts owned arguments"
    )]
    fn set_rules(&self, py: Python<'_>, rules: Option<Bound<'_, PyRules>>) -> PyResult<()> {
        let rules = rules.map(|rules| rules.get().0.clone());
        self.is_managed.store(rules.is_some(), Ordering::Relaxed);
        self.sweep(py, |partition| partition.set_rules(rules))
    }

    fn waiting(&self, py: Python<'_>) -> PyResult<(i64, bool)> {
        if self.has_rules() {
            self.sweep(py, |partition| partition.waiting())
        } else {
            Ok((0, false))
        }
    }

    fn keys(&self, py: Python<'_>, limit: usize) -> PyResult<Option<Keys>> {
        if !self.is_ordered(py)? {
            return Ok(None);
        }
        let found = self.sweep(py, |partition| partition.keys(limit))?;
        Ok(found.map(|found| (found.behind, found.keys, found.largest)))
    }

    fn waiting_reasons(&self, py: Python<'_>, limit: usize) -> PyResult<PyWaitingReasons> {
        let found = self.sweep(py, |partition| partition.waiting_reasons(limit))?;
        Ok(PyWaitingReasons::of(found))
    }

    fn knows_waits(&self, py: Python<'_>, backs_off: bool) -> PyResult<bool> {
        self.sweep(py, |partition| partition.knows_waits(backs_off))
    }

    fn looked_at(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64)> {
        let expired = self.with(py, |partition| partition.expired())?;
        let (headers, batches) = self.tally.unreadable();
        Ok((expired, headers, batches, self.tally.thinned_bytes()))
    }

    fn lateness(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.with(py, |partition| partition.lateness())
    }

    #[getter]
    pub(crate) fn has_rules(&self) -> bool {
        self.is_managed.load(Ordering::Relaxed)
    }

    #[getter]
    pub(crate) fn next_time_ms(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |partition| partition.next_time_ms())
    }

    fn batch_end(&self, py: Python<'_>, offset: i64) -> PyResult<i64> {
        self.with(py, |partition| partition.batch_end(offset))
    }

    fn is_slow(&self, py: Python<'_>, offset: i64) -> PyResult<bool> {
        self.with(py, |partition| partition.is_slow(offset))
    }

    #[getter]
    pub(crate) fn start_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |partition| partition.start_offset())
    }

    #[getter]
    fn end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |partition| partition.end_offset())
    }

    #[getter]
    pub(crate) fn next_fetch_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |partition| partition.next_fetch_offset())
    }

    #[getter]
    pub(crate) fn can_acquire(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |partition| partition.can_acquire())
    }

    pub(crate) fn can_acquire_before(&self, py: Python<'_>, end: i64) -> PyResult<bool> {
        self.with(py, |partition| {
            partition.can_acquire() && partition.next_fetch_offset() < end
        })
    }

    #[getter]
    fn delivery_complete_count(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |partition| partition.delivery_complete_count())
    }

    #[getter]
    pub(crate) fn next_deadline_ms(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |partition| partition.next_deadline_ms())
    }

    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |partition| partition.memory_bytes())
    }

    #[getter]
    fn runs(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |partition| partition.runs())
    }

    fn inflight<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let runs = self.sweep(py, |partition| partition.inflight())?;
        PyList::new(
            py,
            runs.iter()
                .map(|run| (run.first, run.last, run.state.id(), run.delivery_count)),
        )
    }

    fn leases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let held = self.sweep(py, |partition| {
            let held = partition.held().into_iter();
            held.map(|run| (run.first, run.last, run.member.to_owned(), run.deadline_ms))
                .collect::<Vec<_>>()
        })?;
        PyList::new(py, held)
    }

    #[cfg(feature = "testing")]
    fn fail(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |_| panic!("a test requested this failure"))
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let answer = self.sweep(py, |partition| partition.check())?;
        answer.map_err(PyAssertionError::new_err)
    }
}
