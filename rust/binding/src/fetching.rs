//! `ShareFetching`: one `ShareFetch` request, from its acknowledgements and its fetch to the response with both results.
//!
//! Acknowledgements start first; the fetch proceeds while they become durable, and the response is sent when both have ended.
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sharecore_share::lost_partitions;

use crate::collected::collected;
use crate::gather::PyPartitionFetch;
use crate::gathering::{Part, PyGather};
use crate::leader::PyLeader;
use crate::leaders::PyLeaders;
use crate::python;
use crate::session::PyShareSession;
use crate::share_answer::{PyShareAnswer, check_led, leader_check};
use crate::share_services::ShareServices;
use crate::uuids::{PartitionId, partition_id, partition_tuple};
use crate::waits::PyWaitingShareFetch;

/// A request whose response is not complete yet.
#[pyclass(name = "ShareFetching", module = "sharecore._core")]
pub(crate) struct PyShareFetching {
    cluster: Py<PyAny>,
    listener: Py<PyAny>,
    leaders: Py<PyLeaders>,
    session: Py<PyShareSession>,
    gather: Py<PyGather>,
    /// True if the response must also list partitions that no response has listed yet.
    names_new: bool,
    /// True if another broker may lead fetched partitions.
    checks_leaders: bool,
    /// True if the broker may have to stop leasing records.
    checks_lease: bool,
    /// Partitions excluded from the fetch, with their errors.
    pub(crate) refused: Option<Py<PyDict>>,
    fetched: Vec<Py<PyPartitionFetch>>,
    /// The waiting fetch, and the part that its end completes.
    pub(crate) fetch: Option<Py<PyWaitingShareFetch>>,
    pub(crate) part: Option<Part>,
}

impl PyShareFetching {
    pub(crate) fn new<'py>(
        share: &ShareServices,
        listener: Bound<'py, PyAny>,
        session: Bound<'py, PyShareSession>,
        gather: Bound<'py, PyGather>,
        names_new: bool,
        (checks_leaders, checks_lease): (bool, bool),
    ) -> Self {
        let py = listener.py();
        Self {
            cluster: share.cluster.clone_ref(py),
            listener: listener.unbind(),
            leaders: share.leaders.clone_ref(py),
            checks_leaders,
            checks_lease,
            session: session.unbind(),
            gather: gather.unbind(),
            names_new,
            refused: None,
            fetched: Vec::new(),
            fetch: None,
            part: None,
        }
    }

    /// Completes the fetch.
    pub(crate) fn end(
        fetching: &Bound<'_, Self>,
        fetched: Vec<Py<PyPartitionFetch>>,
    ) -> PyResult<()> {
        let py = fetching.py();
        let session = fetching.borrow().session.clone_ref(py);
        for each in &fetched {
            let each = each.get();
            if !each.acquired.is_empty() {
                let id = each.partition.borrow(py).name;
                session.borrow_mut(py).inner.touch(id);
            }
        }
        let (fetch, part) = {
            let mut held = fetching.borrow_mut();
            held.fetched = fetched;
            // Fetch and request refer to each other; breaking the cycle spares the collector one per fetch
            (held.fetch.take(), held.part.take())
        };
        drop(fetch);
        part.map_or(Ok(()), |part| part.end(py, None))
    }

    /// Called when the response is ready or the client has disconnected.
    pub(crate) fn answered(fetching: &Bound<'_, Self>, is_cancelled: bool) -> PyResult<()> {
        let py = fetching.py();
        let session = fetching.borrow().session.clone_ref(py);
        let waiting = session.borrow(py).fetches.clone_ref(py);
        if waiting.bind(py).contains(fetching)? {
            waiting.bind(py).del_item(fetching)?;
        }
        if is_cancelled {
            let fetch = fetching.borrow_mut().fetch.take();
            if let Some(fetch) = fetch {
                PyWaitingShareFetch::cancel(fetch.bind(py));
            }
        }
        Ok(())
    }

    pub(crate) fn answer(fetching: &Bound<'_, Self>) -> PyResult<Py<PyShareAnswer>> {
        let py = fetching.py();
        let (cluster, listener, leaders, session, gather) = {
            let held = fetching.borrow();
            let leaders = held.leaders.bind(py).clone();
            let session = held.session.bind(py).clone();
            let gather = held.gather.bind(py).clone();
            let (cluster, listener) = (held.cluster.clone_ref(py), held.listener.clone_ref(py));
            (cluster, listener, leaders, session, gather)
        };
        let group_id = session.borrow().group_id.bind(py).clone();
        let lock_ms = PyLeaders::lock_ms(&leaders, &group_id)?;
        let check_leader = if fetching.borrow().checks_leaders {
            Some(leader_check(cluster.bind(py))?)
        } else {
            None
        };
        let fetched = std::mem::take(&mut fetching.borrow_mut().fetched);
        let has_acquired = fetched.iter().any(|each| !each.get().acquired.is_empty());
        let may_lease = !fetching.borrow().checks_lease
            || !has_acquired
            || cluster_may_lease(cluster.bind(py))?;
        let answer = Bound::new(py, PyShareAnswer::new(cluster, listener, lock_ms))?;
        for each in &fetched {
            let lost = match &check_leader {
                Some(check_leader) => not_led(check_leader, each.get())?,
                None => None,
            };
            PyShareAnswer::put(&answer, each.get(), may_lease, lost)?;
        }
        let mut failed = Vec::new();
        if let (Some(check_leader), true) = (&check_leader, fetched.is_empty()) {
            failed = refuse_not_led(check_leader, &session, &answer)?;
        }
        let (refused, names_new) = {
            let held = fetching.borrow();
            let refused = held.refused.as_ref();
            (refused.map(|refused| refused.clone_ref(py)), held.names_new)
        };
        if let Some(refused) = refused {
            for (partition, error) in refused.bind(py) {
                failed.push(partition_id(&partition)?);
                PyShareAnswer::refuse(&answer, partition.cast::<PyTuple>()?, &error, false)?;
            }
        }
        if names_new {
            let unreported: Vec<_> = session.borrow().inner.unreported().collect();
            for id in unreported {
                let partition = partition_tuple(py, id)?;
                let leader = PyLeaders::find(&leaders, &group_id, id)?;
                if can_acquire(leader)? {
                    PyShareAnswer::name(&answer, &partition)?;
                }
            }
        }
        {
            let answer = answer.borrow();
            let inner_answer = answer.inner();
            failed.extend(inner_answer.failed().map(|(id, _)| id));
            let served = inner_answer.served().map(|(id, _)| id);
            let inner = &mut session.borrow_mut().inner;
            inner.report(inner_answer.ids(), failed, served);
        }
        PyShareAnswer::acknowledged(&answer, &gather, true)?;
        PyShareAnswer::message(&answer)
    }
}

/// Whether the broker may lease records now. It may have been suspended since they were acquired, while another one took over.
fn cluster_may_lease(cluster: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = cluster.py();
    cluster
        .call_method0(intern!(py, python::MAY_LEASE))?
        .extract()
}

/// Returns the error for a fetched partition that this broker no longer leads, for example after it was suspended.
fn not_led<'py>(
    check_leader: &Bound<'py, PyAny>,
    fetched: &PyPartitionFetch,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = check_leader.py();
    let Some(id) = fetched.partition.borrow(py).id(py) else {
        return Ok(None);
    };
    check_led(check_leader, id.bind(py))
}

/// Refuses partitions that are no longer led, for an empty fetch: without an error the client would keep polling this broker.
fn refuse_not_led(
    check_leader: &Bound<'_, PyAny>,
    session: &Bound<'_, PyShareSession>,
    answer: &Bound<'_, PyShareAnswer>,
) -> PyResult<Vec<PartitionId>> {
    let py = check_leader.py();
    let known: Vec<_> = session.borrow().inner.known().collect();
    let lost = lost_partitions(known, |id| {
        check_led(check_leader, &partition_tuple(py, id)?)
    })?;
    lost.into_iter()
        .map(|(id, error)| {
            PyShareAnswer::refuse(answer, &partition_tuple(py, id)?, &error, false)?;
            Ok(id)
        })
        .collect()
}

/// True if the share partition is led here and its in-flight window has room, whether or not there are records.
fn can_acquire(leader: Option<Bound<'_, PyLeader>>) -> PyResult<bool> {
    match leader.and_then(|leader| PyLeader::engine(&leader)) {
        Some(engine) => engine.get().can_acquire(engine.py()),
        None => Ok(false),
    }
}

#[pymethods]
impl PyShareFetching {
    /// Ends the fetch because its session has ended; the response holds no records.
    fn abandon(fetching: &Bound<'_, Self>) -> PyResult<()> {
        let py = fetching.py();
        let fetch = {
            let held = fetching.borrow();
            held.fetch.as_ref().map(|fetch| fetch.clone_ref(py))
        };
        if let Some(fetch) = fetch {
            PyWaitingShareFetch::end(fetch.bind(py), Vec::new())?;
        }
        Ok(())
    }
}

collected!(PyShareFetching { cluster, listener, leaders, session, gather, refused, fetched, fetch, part } cut { fetched, fetch, part, refused });
