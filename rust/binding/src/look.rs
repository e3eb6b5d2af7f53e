//! `ShareLook`: the attempts of one share fetch to acquire records.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::intern;
use pyo3::prelude::*;
use sharecore_share::{IdSet, Limits, Look, Seen, Sight, Walk};

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

/// Acquires records for one member from the ready partitions of its session.
#[pyclass(name = "ShareLook", module = "sharecore._core")]
pub(crate) struct PyShareLook {
    session: Py<PyShareSession>,
    /// Leaders of partitions that are not in the session yet.
    found: Vec<Py<PyLeader>>,
    failed: Vec<Py<PyLeader>>,
    inner: Look,
    first: u64,
    hidden: IdSet<PartitionId>,
    /// The connection that the response goes to.
    exchange: Option<Py<PyExchange>>,
    /// The group's bounds, once they have held the fetch back.
    bounded_by: Option<Py<PyGroupBounds>>,
}

/// One attempt.
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

/// The fetch's view for `sharecore_share::look`.
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
        hidden: IdSet<PartitionId>,
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

    /// Retries the fetch once there is room for its response, if that is why it waits.
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

    /// The group's bounds, if it has any and a partition is ready.
    fn bounds<'py>(look: &Bound<'py, Self>) -> Option<Bound<'py, PyGroupBounds>> {
        let session = Self::session(look);
        let first = Self::looking(look, &session).next();
        first.and_then(|leader| PyLeader::bounds(&leader))
    }

    /// Retries the fetch once the group's bounds allow more, if that is why it waits.
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

    /// Notes that clients have read responses.
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

    /// Loads the leaders that are not in the session yet.
    pub(crate) fn load(look: &Bound<'_, Self>) -> PyResult<()> {
        let py = look.py();
        let found = Self::bound(py, &look.borrow().found);
        for leader in found {
            leader.call_method0(intern!(py, python::LOAD))?;
        }
        Ok(())
    }

    /// True if the first attempt is also the last.
    pub(crate) fn is_late_at_once(&self, max_wait_ms: i64) -> bool {
        self.inner.is_late_at_once(max_wait_ms)
    }

    /// Makes the first attempt; returns None if the fetch must wait.
    pub(crate) fn begin(look: &Bound<'_, Self>, max_wait_ms: i64) -> PyResult<Option<Fetched>> {
        let is_late = look.borrow().is_late_at_once(max_wait_ms);
        Self::look(look, is_late)
    }

    /// The partitions to visit, in order.
    fn walk<'py>(look: &Bound<'py, Self>) -> Vec<Bound<'py, PyLeader>> {
        let session = Self::session(look);
        let mut looking = Self::looking(look, &session);
        std::iter::from_fn(|| looking.next()).collect()
    }

    /// Adds the leaders that have loaded to the session.
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

    /// True if the partitions together have `wanted` readable bytes.
    ///
    /// A partition that cannot be read counts as 0 bytes; the response reports its error.
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

    /// Returns the result once `min_bytes` or `max_wait` is met, else None. An expired fetch waits only for disk reads.
    pub(crate) fn look(look: &Bound<'_, Self>, late: bool) -> PyResult<Option<Fetched>> {
        if !look.borrow().found.is_empty() {
            Self::take_in(look);
        }
        sharecore_share::look(&mut Seeing(look), late)
    }

    /// Leaders whose records are being read from disk.
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

    /// Subscribes a fetch to new records and to the end of loading.
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
        let mut leaders = Self::walk(look);
        {
            let held = look.borrow();
            leaders.extend(Self::bound(py, &held.found));
            leaders.extend(Self::bound(py, &held.failed));
        }
        for leader in &leaders {
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

    /// Ends the fetch after a partition failed; returns None if the failure does not end it.
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

/// Summarizes the result of an attempt.
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

    /// Loads missing leaders and makes the first attempt; returns None if the fetch must wait.
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
