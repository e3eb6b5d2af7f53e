//! `ShareSession`: the partitions and fetches of one member of one group. `sharecore.session` creates them.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySet, PyString, PyTuple};
use sharecore_share::{IdMap, Session, Walk};

use crate::collected::collected;
use crate::leader::PyLeader;
use crate::python;
use crate::uuids::{PartitionId, partition_id, partition_tuple};
use crate::waits::PyWaitingShareFetch;

/// A share session: its partitions, the leaders that may have records, and the waiting fetches.
///
/// When a fetch finds a partition empty, the session subscribes to a single notification by its leader.
#[pyclass(name = "ShareSession", module = "sharecore._core")]
pub(crate) struct PyShareSession {
    #[pyo3(get)]
    pub(crate) group_id: Py<PyString>,
    #[pyo3(get)]
    pub(crate) member_id: Py<PyString>,
    #[pyo3(get)]
    connection: Py<PyAny>,
    pub(crate) inner: Session<PartitionId, Py<PyLeader>>,
    /// Leaders that this session is subscribed to, by address.
    known: IdMap<usize, Py<PyLeader>>,
    #[pyo3(get)]
    pub(crate) fetches: Py<PyDict>,
    /// True once the session has ended.
    is_closed: bool,
    /// Fetches that wait for notifications by leaders.
    offered: Vec<Py<PyWaitingShareFetch>>,
}

/// Reads partition ids from Python tuples.
fn ids(partitions: &Bound<'_, PyAny>) -> PyResult<Vec<PartitionId>> {
    let partitions = partitions.try_iter()?;
    partitions.map(|each| partition_id(&each?)).collect()
}

fn tuples(
    py: Python<'_>,
    ids: impl IntoIterator<Item = PartitionId>,
) -> PyResult<Vec<Bound<'_, PyTuple>>> {
    let ids = ids.into_iter();
    ids.map(|id| partition_tuple(py, id)).collect()
}

impl PyShareSession {
    /// True if this is the open session of this member.
    pub(crate) fn is_of(&self, py: Python<'_>, group_id: &str, member_id: &str) -> PyResult<bool> {
        Ok(!self.is_closed
            && self.member_id.bind(py).to_str()? == member_id
            && self.group_id.bind(py).to_str()? == group_id)
    }

    /// True if the group has rules; all of its share partitions have the same.
    pub(crate) fn has_rules(&self, py: Python<'_>) -> bool {
        let mut leaders = self.known.values();
        let engine = leaders.find_map(|leader| PyLeader::engine(leader.bind(py)));
        engine.is_some_and(|engine| engine.get().has_rules())
    }

    /// Removes partitions and unsubscribes from their leaders.
    pub(crate) fn forget_all(session: &Bound<'_, Self>, partitions: &[PartitionId]) {
        for partition in partitions {
            let leader = session.borrow_mut().inner.forget(partition);
            if let Some(leader) = leader {
                Self::unsubscribe_from(session, leader.bind(session.py()));
            }
        }
    }

    /// Adds a leader that is loaded or may have records.
    pub(crate) fn put(session: &Bound<'_, Self>, leader: &Bound<'_, PyLeader>) {
        let id = leader.borrow().name;
        let is_here = {
            let mut held = session.borrow_mut();
            held.inner.put(&id, leader.clone().unbind())
        };
        if is_here {
            Self::remember(session, leader);
            PyLeader::subscribe_end(leader, session);
        }
    }

    /// Removes a leader in which a fetch found no records, and subscribes to it.
    pub(crate) fn empty(session: &Bound<'_, Self>, leader: &Bound<'_, PyLeader>) {
        let id = leader.borrow().name;
        let before = session.borrow_mut().inner.take_out(&id);
        drop(before);
        Self::ask(session, leader);
    }

    /// Subscribes to a leader's next notification.
    pub(crate) fn ask(session: &Bound<'_, Self>, leader: &Bound<'_, PyLeader>) {
        Self::remember(session, leader);
        PyLeader::subscribe(leader, session);
    }

    /// Returns the next leader of a walk.
    pub(crate) fn step<'py>(
        session: &Bound<'py, Self>,
        walk: &mut Walk,
    ) -> Option<Bound<'py, PyLeader>> {
        let held = session.borrow();
        let leader = held.inner.step(walk)?;
        Some(leader.bind(session.py()).clone())
    }

    fn remember(session: &Bound<'_, Self>, leader: &Bound<'_, PyLeader>) {
        let mut held = session.borrow_mut();
        let address = leader.as_ptr() as usize;
        let known = held.known.entry(address);
        known.or_insert_with(|| leader.clone().unbind());
    }

    fn unsubscribe_from(session: &Bound<'_, Self>, leader: &Bound<'_, PyLeader>) {
        let known = session
            .borrow_mut()
            .known
            .remove(&(leader.as_ptr() as usize));
        drop(known);
        PyLeader::unsubscribe(leader, session);
    }

    /// A copy of the list of waiting fetches.
    fn offered<'py>(session: &Bound<'py, Self>) -> Vec<Bound<'py, PyWaitingShareFetch>> {
        let held = session.borrow();
        let offered = held.offered.iter();
        offered
            .map(|fetch| fetch.bind(session.py()).clone())
            .collect()
    }

    /// Notifies a fetch when leaders become ready.
    pub(crate) fn wait(&mut self, fetch: &Bound<'_, PyWaitingShareFetch>) {
        self.offered.push(fetch.clone().unbind());
    }

    pub(crate) fn stop_waiting(&mut self, fetch: &Bound<'_, PyWaitingShareFetch>) {
        self.offered.retain(|each| !each.is(fetch));
    }

    /// Handles a leader's notification that it may have records.
    pub(crate) fn notified(
        session: &Bound<'_, Self>,
        leader: &Bound<'_, PyLeader>,
    ) -> PyResult<()> {
        let id = leader.borrow().name;
        let is_here = || session.borrow().inner.contains(&id);
        if !is_here() {
            Self::unsubscribe_from(session, leader);
            return Ok(());
        }
        Self::put(session, leader);
        for fetch in Self::offered(session) {
            PyWaitingShareFetch::offer(&fetch, leader)?;
        }
        if session.borrow().waiting() && is_here() {
            Self::ask(session, leader);
        }
        Ok(())
    }
}

#[pymethods]
impl PyShareSession {
    #[new]
    fn new(
        py: Python<'_>,
        group_id: Py<PyString>,
        member_id: Py<PyString>,
        connection: Py<PyAny>,
    ) -> Self {
        Self {
            group_id,
            member_id,
            connection,
            inner: Session::default(),
            known: IdMap::default(),
            is_closed: false,
            fetches: PyDict::new(py).unbind(),
            offered: Vec::new(),
        }
    }

    #[getter]
    fn key(&self, py: Python<'_>) -> (Py<PyString>, Py<PyString>) {
        (self.group_id.clone_ref(py), self.member_id.clone_ref(py))
    }

    #[getter]
    fn epoch(&self) -> i32 {
        self.inner.epoch
    }

    #[setter]
    fn set_epoch(&mut self, epoch: i32) {
        self.inner.epoch = epoch;
    }

    #[getter]
    fn partition_count(&self) -> usize {
        self.inner.len()
    }

    #[getter]
    fn partitions<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        tuples(py, self.inner.partitions())
    }

    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        tuples(py, self.inner.held())
    }

    #[getter]
    fn unreported<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        tuples(py, self.inner.unreported())
    }

    #[getter]
    fn unknown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        PySet::new(py, tuples(py, self.inner.unknown())?)
    }

    #[getter]
    fn waiting(&self) -> bool {
        !self.offered.is_empty()
    }

    fn add(&mut self, partitions: &Bound<'_, PyAny>) -> PyResult<()> {
        let partitions = ids(partitions)?.into_iter();
        partitions.for_each(|partition| self.inner.add(partition));
        Ok(())
    }

    fn forget(session: &Bound<'_, Self>, partitions: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::forget_all(session, &ids(partitions)?);
        Ok(())
    }

    fn rotation(&self) -> u64 {
        self.inner.rotation()
    }

    fn in_order<'py>(
        &self,
        partitions: &Bound<'py, PyAny>,
        first: u64,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let here = self.inner.in_order(ids(partitions)?, first);
        tuples(partitions.py(), here)
    }

    fn report(
        &mut self,
        partitions: &Bound<'_, PyAny>,
        failed: &Bound<'_, PyAny>,
        served: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (named, failed, served) = (ids(partitions)?, ids(failed)?, ids(served)?);
        self.inner.report(named, failed, served);
        Ok(())
    }

    fn touch(&mut self, partition: &Bound<'_, PyAny>) -> PyResult<()> {
        self.inner.touch(partition_id(partition)?);
        Ok(())
    }

    fn replace(&mut self, before: &Bound<'_, Self>) {
        self.inner.replace(&before.borrow().inner);
    }

    fn walk<'py>(session: &Bound<'py, Self>, first: u64) -> Vec<Bound<'py, PyLeader>> {
        let mut walk = session.borrow().inner.walk(first);
        std::iter::from_fn(|| Self::step(session, &mut walk)).collect()
    }

    fn failed(session: &Bound<'_, Self>, leader: &Bound<'_, PyLeader>) -> PyResult<()> {
        let id = leader.borrow().name;
        let (known, is_here) = {
            let mut held = session.borrow_mut();
            let known = held.known.remove(&(leader.as_ptr() as usize));
            (known, held.inner.lose(&id))
        };
        drop(known);
        if is_here {
            for fetch in Self::offered(session) {
                PyWaitingShareFetch::lose(&fetch, leader)?;
            }
        }
        Ok(())
    }

    /// Ends waiting fetches first, so that they do not acquire records released by the session's end.
    fn close(session: &Bound<'_, Self>) -> PyResult<()> {
        let py = session.py();
        session.borrow_mut().is_closed = true;
        let fetches = session.borrow().fetches.clone_ref(py);
        for fetch in fetches.bind(py).keys() {
            fetch.call_method0(intern!(py, python::ABANDON))?;
        }
        let known = std::mem::take(&mut session.borrow_mut().known);
        for leader in known.into_values() {
            PyLeader::unsubscribe(leader.bind(py), session);
        }
        Ok(())
    }
}

collected!(PyShareSession { connection, fetches, offered, inner, known } cut { inner, known, offered });
