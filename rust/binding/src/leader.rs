//! `Leader`: what fetches and acknowledgements need of a share-partition leader. `sharecore.partition.SharePartition` extends
//! it.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::sync::Arc;

use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sharecore_lease::Admitted;
use sharecore_share::{Alarm, Writes};

use crate::bounds::PyGroupBounds;
use crate::clock::Clock;
use crate::codes::NOT_LEADER_OR_FOLLOWER;
use crate::collected::collected;
use crate::completion::Completion;
use crate::convert::acknowledgements;
use crate::error::{kafka_error, kafka_error_in};
use crate::interest::Interest;
use crate::log_offsets::{self, PyLogAccess};
use crate::partition::PyPartition;
use crate::python;
use crate::session::PyShareSession;
use crate::state_slot::StateSlot;
use crate::state_write::PyWrite;
use crate::testing::calls_by_name;
use crate::uuids::{PartitionId, partition_id};
use crate::waits::ring;

/// A changed wall clock is noticed within this time.
const WALL_AHEAD_MS_MAX: i64 = 60_000;

/// The hot path of a share-partition leader: whether records are acquirable, and acknowledgements.
#[pyclass(name = "Leader", module = "sharecore._core", subclass)]
pub(crate) struct PyLeader {
    /// None until the state is loaded.
    #[pyo3(get, set)]
    pub(crate) engine: Option<Py<PyPartition>>,
    /// Topic id and partition, as a Python tuple.
    id: Option<Py<PyTuple>>,
    pub(crate) name: PartitionId,
    /// Why there is no engine, once loading has failed or the leader was fenced.
    #[pyo3(get, set)]
    pub(crate) error: Option<Py<PyAny>>,
    /// True while no records may be acquired.
    #[pyo3(get, set)]
    resting: bool,
    #[pyo3(get, set)]
    pub(crate) used_ms: i64,
    #[pyo3(get, set)]
    pub(crate) state_epoch: i32,
    #[pyo3(get, set)]
    pub(crate) leader_epoch: i32,
    /// Fires when the next lock expires or the next record becomes deliverable.
    #[pyo3(get, name = "_timer")]
    pub(crate) timer: Option<Py<PyAny>>,
    alarm: Alarm,
    pub(crate) writes: Writes,
    /// The log to acquire from, and how to read it.
    #[pyo3(get, set)]
    pub(crate) log: Option<Py<PyAny>>,
    #[pyo3(get, set)]
    pub(crate) leasing: Option<Py<PyLogAccess>>,
    /// The clock for lock timeouts.
    clock: Option<Clock>,
    /// The group's configuration and its lock timeout.
    #[pyo3(get)]
    config: Option<Py<PyAny>>,
    lock_ms: i64,
    /// Where the state is stored, once it has been written.
    pub(crate) slot: Option<Arc<StateSlot>>,
    /// Sessions to wake when records may be ready, or when the leader has ended.
    pub(crate) interest: Interest,
    is_waking: bool,
    /// The group's delivery bounds, if it has any.
    #[pyo3(get, set)]
    pub(crate) bounds: Option<Py<PyGroupBounds>>,
}

impl PyLeader {
    pub(crate) fn now_ms(leader: &Bound<'_, Self>) -> PyResult<i64> {
        let py = leader.py();
        let clock = leader.borrow().clock.as_ref().map(|it| it.clone_ref(py));
        let unset = || PyAttributeError::new_err("the leader has no now_ms");
        clock.ok_or_else(unset)?.ms(py)
    }

    /// The log to acquire from.
    pub(crate) fn log<'py>(leader: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = leader.py();
        let log = leader.borrow().log.as_ref().map(|it| it.bind(py).clone());
        log.ok_or_else(|| PyAttributeError::new_err("the leader has no log"))
    }

    /// How to read the log.
    pub(crate) fn leasing<'py>(leader: &Bound<'py, Self>) -> PyResult<Bound<'py, PyLogAccess>> {
        let py = leader.py();
        let access = leader
            .borrow()
            .leasing
            .as_ref()
            .map(|it| it.bind(py).clone());
        access.ok_or_else(|| PyAttributeError::new_err("the leader has no leasing"))
    }

    /// The offset before which records may be acquired.
    pub(crate) fn end_of(leader: &Bound<'_, Self>) -> PyResult<i64> {
        if calls_by_name() {
            return leader
                .getattr(intern!(leader.py(), python::READABLE_END))?
                .extract();
        }
        Self::readable_end(leader)
    }

    pub(crate) fn wall_ms(leader: &Bound<'_, Self>) -> PyResult<i64> {
        leader
            .call_method0(intern!(leader.py(), python::WALL_MS))?
            .extract()
    }

    pub(crate) fn bounds<'py>(leader: &Bound<'py, Self>) -> Option<Bound<'py, PyGroupBounds>> {
        let held = leader.borrow();
        let bounds = held.bounds.as_ref();
        bounds.map(|bounds| bounds.bind(leader.py()).clone())
    }

    pub(crate) fn engine<'py>(leader: &Bound<'py, Self>) -> Option<Bound<'py, PyPartition>> {
        let held = leader.borrow();
        let engine = held.engine.as_ref();
        engine.map(|engine| engine.bind(leader.py()).clone())
    }

    /// The `KafkaError` for a leader without an engine.
    pub(crate) fn no_engine<'py>(leader: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        let py = leader.py();
        match &leader.borrow().error {
            Some(error) => error.bind(py).clone(),
            None => kafka_error(py, NOT_LEADER_OR_FOLLOWER, "")
                .into_value(py)
                .into_bound(py)
                .into_any(),
        }
    }

    /// Wakes sessions in a later turn of the event loop.
    fn wake_soon(leader: &Bound<'_, Self>) -> PyResult<()> {
        let py = leader.py();
        let wake = leader.getattr(intern!(py, python::WAKE))?;
        let call_later = Self::call_later(leader)?;
        call_later.call1((0, wake)).map(|_| ())
    }

    fn call_later<'py>(leader: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        leader.getattr(intern!(leader.py(), python::OWN_CALL_LATER))
    }

    /// Fences the leader if the error came from the engine.
    pub(crate) fn check_engine(leader: &Bound<'_, Self>, error: &Bound<'_, PyAny>) -> PyResult<()> {
        let check = intern!(leader.py(), python::OWN_CHECK_ENGINE);
        leader.call_method1(check, (error,)).map(|_| ())
    }

    /// Returns the engine's result; an engine failure fences the leader.
    pub(crate) fn engine_result<T>(
        leader: &Bound<'_, Self>,
        answer: PyResult<T>,
    ) -> PyResult<Option<T>> {
        let error = match answer {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) => kafka_error_in(leader.py(), error)?,
        };
        Self::check_engine(leader, &error)?;
        Ok(None)
    }

    /// Schedules `_expire` for the expiry of locks that start now.
    pub(crate) fn arm_for_locks(leader: &Bound<'_, Self>, now_ms: i64) -> PyResult<()> {
        let lock_ms = leader.borrow().lock_ms;
        Self::_arm(leader, now_ms + lock_ms)
    }

    /// Completes an acquisition: schedules the expiry of its locks.
    ///
    /// `error` is why reading the log stopped early, or an engine failure. If only a later read failed, the records acquired
    /// before it are delivered.
    pub(crate) fn leased(
        leader: &Bound<'_, Self>,
        engine: &Bound<'_, PyPartition>,
        now_ms: i64,
        acquired: bool,
        archived: bool,
        error: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = leader.py();
        if let Some(error) = error {
            Self::check_engine(leader, &error)?;
            let goes_on = Self::engine(leader).is_some_and(|now| now.is(engine));
            if !acquired || !goes_on {
                return Err(PyErr::from_value(error));
            }
        }
        if archived {
            // Archiving made room in the window without a write that would wake sessions
            Self::wake_soon(leader)?;
        }
        if acquired {
            leader.borrow_mut().used_ms = now_ms;
            Self::arm_for_locks(leader, now_ms)?;
            if !leader.borrow().writes.start_is_persisted() {
                leader.call_method0(intern!(py, python::OWN_PERSIST_START))?;
            }
        }
        Ok(())
    }

    /// Handles newly admitted delivery times: counts unreadable ones and schedules the next delivery.
    pub(crate) fn admitted(
        leader: &Bound<'_, Self>,
        engine: &Bound<'_, PyPartition>,
        admitted: Admitted,
    ) -> PyResult<()> {
        let py = leader.py();
        engine
            .get()
            .tally
            .unreadable_times(admitted.unreadable_headers, admitted.unreadable_batches);
        if admitted.unreadable_batches > 0 {
            let batches = admitted.unreadable_batches;
            leader.call_method1(intern!(py, python::OWN_UNREADABLE), (batches,))?;
        }
        if admitted.goes_on {
            Self::wake_soon(leader)?;
        }
        Self::_rearm(leader)
    }
}

#[pymethods]
impl PyLeader {
    #[new]
    #[pyo3(signature = (*_args, **_rest))]
    fn new(_args: &Bound<'_, PyTuple>, _rest: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            engine: None,
            id: None,
            name: PartitionId::default(),
            error: None,
            resting: false,
            used_ms: 0,
            state_epoch: 0,
            leader_epoch: 0,
            timer: None,
            alarm: Alarm::default(),
            writes: Writes::default(),
            log: None,
            leasing: None,
            clock: None,
            config: None,
            lock_ms: 0,
            slot: None,
            interest: Interest::default(),
            is_waking: false,
            bounds: None,
        }
    }

    /// Sessions to wake when records may be ready, the longest waiting first.
    #[getter]
    fn _interested(&self, py: Python<'_>) -> Vec<Py<PyShareSession>> {
        let waiters = self.interest.waiters();
        waiters.map(|session| session.clone_ref(py)).collect()
    }

    /// All sessions that are subscribed to the leader's end.
    #[getter]
    fn _subscribers(&self, py: Python<'_>) -> Vec<Py<PyShareSession>> {
        let all = self.interest.all();
        all.map(|session| session.clone_ref(py)).collect()
    }

    /// Removes and returns all sessions that are subscribed to the leader's end.
    fn _take_subscribers(leader: &Bound<'_, Self>) -> Vec<Py<PyShareSession>> {
        let subscribers = std::mem::take(&mut leader.borrow_mut().interest);
        subscribers
            .all()
            .map(|session| session.clone_ref(leader.py()))
            .collect()
    }

    #[getter]
    fn _writes(&self) -> u64 {
        self.writes.under_way()
    }

    #[getter(_start_is_persisted)]
    fn start_is_persisted(&self) -> bool {
        self.writes.start_is_persisted()
    }

    #[setter(_start_is_persisted)]
    fn set_start_is_persisted(&mut self, is_persisted: bool) {
        self.writes.set_start_is_persisted(is_persisted);
    }

    #[getter]
    pub(crate) fn id(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.id.as_ref().map(|id| id.clone_ref(py))
    }

    #[setter]
    fn set_id(&mut self, id: Bound<'_, PyTuple>) -> PyResult<()> {
        self.name = partition_id(&id)?;
        self.id = Some(id.unbind());
        Ok(())
    }

    #[getter]
    fn readable_end(leader: &Bound<'_, Self>) -> PyResult<i64> {
        let committed = Self::leasing(leader)?.borrow().read_committed;
        log_offsets::readable_end(&Self::log(leader)?, committed)
    }

    #[setter(_timer)]
    fn set_timer(&mut self, timer: Option<Py<PyAny>>) {
        if timer.is_none() {
            self.alarm.off();
        }
        self.timer = timer;
    }

    #[getter]
    fn get_now_ms(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.clock
            .as_ref()
            .map(|clock| clock.callable(py))
            .transpose()
    }

    #[setter]
    fn set_now_ms(&mut self, now_ms: &Bound<'_, PyAny>) -> PyResult<()> {
        self.clock = Some(Clock::of(now_ms)?);
        Ok(())
    }

    #[setter]
    fn set_config(&mut self, config: &Bound<'_, PyAny>) -> PyResult<()> {
        let lock_ms =
            config.getattr(intern!(config.py(), python::SHARE_RECORD_LOCK_DURATION_MS))?;
        self.lock_ms = lock_ms.extract()?;
        self.config = Some(config.clone().unbind());
        Ok(())
    }

    #[getter]
    pub(crate) fn fetchable(leader: &Bound<'_, Self>) -> PyResult<bool> {
        let py = leader.py();
        if leader.borrow().resting {
            return Ok(false);
        }
        let Some(engine) = Self::engine(leader) else {
            return Ok(false);
        };
        let end = Self::end_of(leader)?;
        let can = engine.get().can_acquire_before(py, end);
        Ok(Self::engine_result(leader, can)?.unwrap_or(false))
    }

    fn acknowledge(
        leader: &Bound<'_, Self>,
        member: &str,
        batches: &Bound<'_, PyAny>,
        done: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let batches = acknowledgements(batches)?;
        let write = Self::settle(leader, member, &batches.batches())?;
        Self::persist(leader, write, Some(Completion::of(done)))
    }

    /// Persists a state change, if there is one.
    #[pyo3(signature = (write, done = None))]
    pub(crate) fn _persist(
        leader: &Bound<'_, Self>,
        write: Option<Py<PyWrite>>,
        done: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        Self::write(leader, write, Completion::of_some(done))
    }

    pub(crate) fn wake(leader: &Bound<'_, Self>) -> PyResult<()> {
        {
            let mut held = leader.borrow_mut();
            if held.is_waking {
                return Ok(());
            }
            held.is_waking = true;
        }
        let notified = Self::notify_all(leader);
        leader.borrow_mut().is_waking = false;
        notified
    }

    fn _log_advanced(leader: &Bound<'_, Self>, log: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = leader.py();
        let Some(engine) = Self::engine(leader) else {
            return Ok(());
        };
        let start_offset = log_offsets::start_offset(log)?;
        let has_moved = engine
            .get()
            .start_offset(py)
            .map(|start| start_offset > start);
        if Self::engine_result(leader, has_moved)?.unwrap_or(false) {
            let now_ms = Self::now_ms(leader)?;
            Self::engine_result(
                leader,
                engine.get().move_log_start(py, now_ms, start_offset),
            )?;
        }
        Self::wake_interested(leader)
    }

    /// Schedules `_expire` no later than `due_ms`.
    fn _arm(leader: &Bound<'_, Self>, due_ms: i64) -> PyResult<()> {
        let py = leader.py();
        let now_ms = Self::now_ms(leader)?;
        let (delay_ms, before) = {
            let mut held = leader.borrow_mut();
            let Some(delay_ms) = held.alarm.set(due_ms, now_ms) else {
                return Ok(());
            };
            (delay_ms, held.timer.take())
        };
        let expire = leader.getattr(intern!(py, python::OWN_EXPIRE))?;
        let call_later = Self::call_later(leader)?;
        let timer = ring(before, &call_later, delay_ms.max(1), &expire)?;
        leader.borrow_mut().timer = Some(timer);
        Ok(())
    }

    /// Schedules `_expire` for the next lock timeout or delivery time.
    pub(crate) fn _rearm(leader: &Bound<'_, Self>) -> PyResult<()> {
        let Some(engine) = Self::engine(leader) else {
            return Ok(());
        };
        // New locks never expire before earlier ones, so a timer that is set needs no change; with rules, an earlier delivery
        // time may have been added
        if leader.borrow().alarm.is_set() && !engine.get().has_rules() {
            return Ok(());
        }
        if let Some(due_ms) = engine.get().next_time_ms(leader.py())? {
            Self::_arm(leader, due_ms)?;
        }
        if engine.get().has_rules()
            && let Some(due_wall_ms) = engine.get().next_wall_ms(leader.py())?
        {
            // Limited, so that a changed wall clock is noticed
            let ahead_ms = due_wall_ms.saturating_sub(Self::wall_ms(leader)?);
            Self::_arm(
                leader,
                Self::now_ms(leader)? + ahead_ms.clamp(1, WALL_AHEAD_MS_MAX),
            )?;
        }
        Ok(())
    }

    /// Sends the dead-letter records that are due.
    pub(crate) fn _send_dead_letters(leader: &Bound<'_, Self>) -> PyResult<()> {
        let py = leader.py();
        let Some(engine) = Self::engine(leader) else {
            return Ok(());
        };
        let due = engine.get().take_dead_letters(py);
        match Self::engine_result(leader, due)? {
            Some(due) if !due.is_empty() => {
                let send = intern!(py, python::OWN_SEND);
                leader.call_method1(send, (due,)).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Retries fetches that their bounds held back, since members may now hold fewer records.
    pub(crate) fn _freed(leader: &Bound<'_, Self>) -> PyResult<()> {
        Self::bounds(leader).map_or(Ok(()), |bounds| PyGroupBounds::more(&bounds))
    }
}

collected!(PyLeader { engine, bounds, error, timer, log, leasing, config, clock, slot, interest } cut { engine, error, timer, log, leasing, slot, interest });
