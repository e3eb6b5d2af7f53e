//! `ShareLook`: one share fetch, and where it looks.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

use std::collections::HashSet;

use pyo3::intern;
use pyo3::prelude::*;
use sharecore_share::{Limits, Look, Seen, Sight, Walk};

use crate::bounds::PyGroupBounds;
use crate::collected::collected;
use crate::error::kafka_error_in;
use crate::exchange::PyExchange;
use crate::gather::{Order, PyPartitionFetch, gather};
use crate::leader::PyLeader;
use crate::python;
use crate::session::PyShareSession;
use crate::uuids::{PartitionId, partition_id};
use crate::waits::PyWaitingShareFetch;

pub(crate) type Fetched = Vec<Py<PyPartitionFetch>>;

/// Gathers records for one member out of what is ready in its session.
#[pyclass(name = "ShareLook", module = "sharecore._core")]
pub(crate) struct PyShareLook {
    session: Py<PyShareSession>,
    /// Leaders of partitions that the session does not know yet.
    found: Vec<Py<PyLeader>>,
    failed: Vec<Py<PyLeader>>,
    inner: Look,
    first: u64,
    hidden: HashSet<PartitionId>,
    /// Where the answer goes.
    exchange: Option<Py<PyExchange>>,
    /// The bounds of the group, once they have kept it waiting.
    bounded_by: Option<Py<PyGroupBounds>>,
}

/// One look.
struct Looking<'a, 'py> {
    look: &'a Bound<'py, PyShareLook>,
    session: &'a Bound<'py, PyShareSession>,
    walk: Walk,
}

impl<'py> Order<'py> for Looking<'_, 'py> {
    fn next(&mut self) -> Option<Bound<'py, PyLeader>> {
        while let Some(leader) = PyShareSession::step(self.session, &mut self.walk) {
            if self.look.borrow().sees(&leader) {
                return Some(leader);
            }
        }
        None
    }

    fn empty(&mut self, partition: &Bound<'py, PyLeader>) -> PyResult<()> {
        PyShareSession::empty(self.session, partition);
        Ok(())
    }

    fn failed(&mut self, partition: Bound<'py, PyLeader>) {
        self.look.borrow_mut().failed.push(partition.unbind());
    }
}

/// What a look of a fetch consults.
struct Seeing<'a, 'py>(&'a Bound<'py, PyShareLook>);

impl Sight for Seeing<'_, '_> {
    type Found = Fetched;
    type Error = PyErr;

    fn state<R>(&mut self, work: impl FnOnce(&mut Look) -> R) -> R {
        work(&mut self.0.borrow_mut().inner)
    }

    fn room(&mut self) -> Option<u64> {
        let py = self.0.py();
        let held = self.0.borrow();
        let exchange = held.exchange.as_ref();
        exchange.map(|exchange| exchange.borrow(py).answer_room(py))
    }

    fn has_bytes(&mut self, bytes: i64) -> PyResult<bool> {
        PyShareLook::has_bytes(self.0, bytes)
    }

    fn gather(&mut self) -> PyResult<(Fetched, Seen)> {
        let fetched = PyShareLook::gathered(self.0)?;
        let seen = seen(&fetched);
        Ok((fetched, seen))
    }

    fn is_reading(&mut self) -> PyResult<bool> {
        Ok(!PyShareLook::reading(self.0)?.is_empty())
    }
}

impl PyShareLook {
    pub(crate) fn of(
        session: Py<PyShareSession>,
        limits: Limits,
        first: u64,
        found: Vec<Py<PyLeader>>,
        hidden: HashSet<PartitionId>,
        exchange: Option<Py<PyExchange>>,
    ) -> Self {
        Self {
            session,
            found,
            failed: Vec::new(),
            inner: Look::new(limits),
            first,
            hidden,
            exchange,
            bounded_by: None,
        }
    }

    /// Has a fetch look again when there is room for its answer, where that is what it waits for.
    pub(crate) fn wait_for_readers(
        look: &Bound<'_, Self>,
        fetch: &Bound<'_, PyWaitingShareFetch>,
    ) -> PyResult<()> {
        let py = look.py();
        let exchange = {
            let mut held = look.borrow_mut();
            if !held.inner.asks_for_room() {
                return Ok(());
            }
            held.exchange
                .as_ref()
                .map(|exchange| exchange.clone_ref(py))
        };
        let Some(exchange) = exchange else {
            return Ok(());
        };
        let again = fetch.getattr(intern!(py, python::OWN_READERS_HAVE_READ))?;
        PyExchange::when_answer_room(exchange.bind(py), again.unbind())
    }

    /// The bounds of the group, where it has some and a partition is ready.
    fn bounds<'py>(look: &Bound<'py, Self>) -> Option<Bound<'py, PyGroupBounds>> {
        let session = Self::session(look);
        let first = Self::looking(look, &session).next();
        first.and_then(|leader| PyLeader::bounds(&leader))
    }

    /// Has a fetch look again when its group or member may be given more, where that is what it waits for.
    pub(crate) fn wait_for_bounds(
        look: &Bound<'_, Self>,
        fetch: &Bound<'_, PyWaitingShareFetch>,
    ) -> PyResult<()> {
        let py = look.py();
        let bounds = {
            let held = look.borrow();
            let bounds = held.bounded_by.as_ref();
            bounds.map(|bounds| bounds.bind(py).clone())
        };
        bounds.map_or(Ok(()), |bounds| PyGroupBounds::wait(&bounds, fetch))
    }

    /// Clients have read their answers.
    pub(crate) fn readers_have_read(&mut self) {
        self.inner.readers_have_read();
    }

    pub(crate) fn sees(&self, leader: &Bound<'_, PyLeader>) -> bool {
        self.hidden.is_empty() || !self.hidden.contains(&leader.borrow().name)
    }

    fn session<'py>(look: &Bound<'py, Self>) -> Bound<'py, PyShareSession> {
        look.borrow().session.bind(look.py()).clone()
    }

    fn bound<'py>(py: Python<'py>, leaders: &[Py<PyLeader>]) -> Vec<Bound<'py, PyLeader>> {
        let leaders = leaders.iter();
        leaders.map(|leader| leader.bind(py).clone()).collect()
    }

    fn looking<'a, 'py>(
        look: &'a Bound<'py, Self>,
        session: &'a Bound<'py, PyShareSession>,
    ) -> Looking<'a, 'py> {
        let walk = session.borrow().inner.walk(look.borrow().first);
        Looking {
            look,
            session,
            walk,
        }
    }

    /// Has leaders load that the session does not know yet.
    pub(crate) fn load(look: &Bound<'_, Self>) -> PyResult<()> {
        let py = look.py();
        let found = Self::bound(py, &look.borrow().found);
        for leader in found {
            leader.call_method0(intern!(py, python::LOAD))?;
        }
        Ok(())
    }

    /// Whether its first look is final.
    pub(crate) fn is_late_at_once(&self, max_wait_ms: i64) -> bool {
        self.inner.is_late_at_once(max_wait_ms)
    }

    /// What there is at once; None where the fetch has to wait.
    pub(crate) fn begin(look: &Bound<'_, Self>, max_wait_ms: i64) -> PyResult<Option<Fetched>> {
        let is_late = look.borrow().is_late_at_once(max_wait_ms);
        Self::look(look, is_late)
    }

    /// The partitions to look at, in their order.
    fn walk<'py>(look: &Bound<'py, Self>) -> Vec<Bound<'py, PyLeader>> {
        let session = Self::session(look);
        let mut looking = Self::looking(look, &session);
        std::iter::from_fn(|| looking.next()).collect()
    }

    /// Puts those leaders into the session that have loaded.
    fn take_in(look: &Bound<'_, Self>) {
        let py = look.py();
        let found = std::mem::take(&mut look.borrow_mut().found);
        for leader in found {
            let (has_engine, has_error) = {
                let held = leader.borrow(py);
                (held.engine.is_some(), held.error.is_some())
            };
            if has_engine {
                PyShareSession::put(&Self::session(look), leader.bind(py));
            } else if has_error {
                look.borrow_mut().failed.push(leader);
            } else {
                look.borrow_mut().found.push(leader);
            }
        }
    }

    /// Whether the partitions have so many bytes together.
    ///
    /// One that cannot be read counts for nothing here; the answer tells of it.
    fn has_bytes(look: &Bound<'_, Self>, mut wanted: i64) -> PyResult<bool> {
        let py = look.py();
        for partition in Self::walk(look) {
            match partition.call_method1(intern!(py, python::READABLE_BYTES), (wanted,)) {
                Ok(bytes) => wanted -= bytes.extract::<i64>()?,
                Err(error) => drop(kafka_error_in(py, error)?),
            }
            if wanted <= 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn gathered(look: &Bound<'_, Self>) -> PyResult<Fetched> {
        let py = look.py();
        let limits = look.borrow_mut().inner.begin();
        let mut results = Vec::new();
        if let Some(limits) = limits {
            let session = Self::session(look);
            let member = session.borrow().member_id.clone_ref(py);
            let mut looking = Self::looking(look, &session);
            let member = member.bind(py).to_str()?;
            let bounds = Self::bounds(look);
            let gathered = match &bounds {
                None => gather(&mut looking, member, &limits).map(Some),
                Some(bounds) => PyGroupBounds::gather(bounds, &mut looking, member, &limits),
            };
            let mut held = look.borrow_mut();
            held.inner.end();
            let gathered = gathered?;
            if gathered.is_none() {
                held.bounded_by = bounds.map(Bound::unbind);
            }
            results = gathered.unwrap_or_default();
        }
        let failed = Self::bound(py, &look.borrow().failed);
        if failed.is_empty() {
            return Ok(results);
        }
        let mut all = Vec::new();
        for leader in failed {
            let error = leader
                .borrow()
                .error
                .as_ref()
                .map(|error| error.clone_ref(py));
            if let Some(error) = error {
                all.push(Py::new(py, PyPartitionFetch::refused(&leader, error))?);
            }
        }
        all.append(&mut results);
        Ok(all)
    }

    /// Return the result once `min_bytes` or `max_wait` is met, else None. An expired fetch waits only for disk reads.
    pub(crate) fn look(look: &Bound<'_, Self>, late: bool) -> PyResult<Option<Fetched>> {
        if !look.borrow().found.is_empty() {
            Self::take_in(look);
        }
        sharecore_share::look(&mut Seeing(look), late)
    }

    /// Leaders whose records are being read from the disk.
    pub(crate) fn reading<'py>(look: &Bound<'py, Self>) -> PyResult<Vec<Bound<'py, PyLeader>>> {
        let py = look.py();
        let mut reading = Vec::new();
        for partition in Self::walk(look) {
            if partition
                .getattr(intern!(py, python::READING))?
                .is_truthy()?
            {
                reading.push(partition);
            }
        }
        Ok(reading)
    }

    /// Has a fetch told when there may be more, and when leaders have loaded.
    pub(crate) fn watch(
        look: &Bound<'_, Self>,
        fetch: &Bound<'_, PyWaitingShareFetch>,
    ) -> PyResult<()> {
        let py = look.py();
        let session = Self::session(look);
        session.borrow_mut().wait(fetch);
        let found = Self::bound(py, &look.borrow().found);
        for leader in &found {
            let loaded = fetch.getattr(intern!(py, python::OWN_LOADED))?;
            leader.call_method1(intern!(py, python::WHEN_LOADED), (loaded,))?;
        }
        let mut asked = Self::walk(look);
        {
            let held = look.borrow();
            asked.extend(Self::bound(py, &held.found));
            asked.extend(Self::bound(py, &held.failed));
        }
        for leader in &asked {
            PyShareSession::ask(&session, leader);
        }
        Ok(())
    }

    pub(crate) fn unwatch(look: &Bound<'_, Self>, fetch: &Bound<'_, PyWaitingShareFetch>) {
        if let Some(bounds) = &look.borrow().bounded_by {
            bounds.borrow_mut(look.py()).stop_waiting(fetch);
        }
        Self::session(look).borrow_mut().stop_waiting(fetch);
    }

    /// What there is, now that a partition is gone; None where that is no end of the fetch.
    pub(crate) fn fail(
        look: &Bound<'_, Self>,
        partition: &Bound<'_, PyLeader>,
    ) -> PyResult<Option<Fetched>> {
        {
            let mut held = look.borrow_mut();
            if held.inner.is_gathering() || !held.sees(partition) {
                return Ok(None);
            }
            held.failed.push(partition.clone().unbind());
        }
        sharecore_share::last_look(&mut Seeing(look)).map(Some)
    }
}

/// What a look has found.
fn seen(results: &[Py<PyPartitionFetch>]) -> Seen {
    let mut given = results.iter().map(Py::get);
    Seen {
        partitions: results.len(),
        acquired: given.any(|each| !each.acquired.is_empty()),
    }
}

#[pymethods]
impl PyShareLook {
    #[new]
    #[pyo3(signature = (session, found = Vec::new(), *, min_bytes, max_bytes, max_records, batch_size,
                        record_limit = false, first = 0, hidden = Vec::new()))]
    #[allow(clippy::too_many_arguments)]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "pyo3 extracts owned arguments"
    )]
    fn new(
        session: Py<PyShareSession>,
        found: Vec<Py<PyLeader>>,
        min_bytes: i64,
        max_bytes: i64,
        max_records: i64,
        batch_size: i64,
        record_limit: bool,
        first: u64,
        hidden: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let limits = Limits {
            min_bytes,
            max_bytes,
            max_records,
            batch_size,
            record_limit,
        };
        let hidden: PyResult<_> = hidden.iter().map(partition_id).collect();
        Ok(Self::of(session, limits, first, found, hidden?, None))
    }

    /// What there is at once; None where the fetch has to wait.
    #[pyo3(name = "begin")]
    fn load_and_begin(look: &Bound<'_, Self>, max_wait_ms: i64) -> PyResult<Option<Fetched>> {
        Self::load(look)?;
        Self::begin(look, max_wait_ms)
    }
}

collected!(PyShareLook {
    session,
    exchange,
    bounded_by,
    found,
    failed
});
