//! `Leaders` and `Sessions`: look up the leader and the session of a share group's request.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use sharecore_share::IdMap;
use smallvec::SmallVec;

use crate::codes::{INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND};
use crate::collected::collected;
use crate::error::kafka_error;
use crate::leader::PyLeader;
use crate::python;
use crate::session::PyShareSession;
use crate::testing::calls_by_name;
use crate::uuids::{PartitionId, partition_tuple};

/// Leaders of one partition with their groups; usually just one.
type Recent = SmallVec<[(Box<str>, Py<PyLeader>); 1]>;

/// Share-partition leaders. `sharecore.partition.SharePartitions` extends it.
#[pyclass(name = "Leaders", module = "sharecore._core", subclass)]
pub(crate) struct PyLeaders {
    /// By group and topic, then by partition, because a fetch names many partitions of one topic.
    #[pyo3(get, name = "_leaders")]
    leaders: Py<PyDict>,
    /// By group.
    #[pyo3(get, name = "_configs")]
    configs: Py<PyDict>,
    /// A cache of leaders by partition, with their groups.
    recent: IdMap<PartitionId, Recent>,
    /// Number of requests that acknowledged records, including fetches that did.
    #[pyo3(get)]
    pub(crate) acknowledgements: u64,
}

impl PyLeaders {
    /// Like `found`, with a cache in front that avoids Python's dictionaries.
    pub(crate) fn find<'py>(
        leaders: &Bound<'py, Self>,
        group_id: &Bound<'py, PyString>,
        id: PartitionId,
    ) -> PyResult<Option<Bound<'py, PyLeader>>> {
        let py = leaders.py();
        let group = group_id.to_str()?;
        if let Some(recent) = leaders.borrow().recent.get(&id) {
            let leader = recent.iter().find(|(name, _)| &**name == group);
            if let Some((_, leader)) = leader {
                return Ok(Some(leader.bind(py).clone()));
            }
        }
        let name = partition_tuple(py, id)?;
        let found = Self::found(leaders, group_id, &name.get_item(0)?, id.1)?;
        if let Some(leader) = &found {
            let mut held = leaders.borrow_mut();
            let recent = held.recent.entry(id).or_default();
            recent.push((group.into(), leader.clone().unbind()));
        }
        Ok(found)
    }

    /// Lock timeout of a group.
    pub(crate) fn lock_ms<'py>(
        leaders: &Bound<'py, Self>,
        group_id: &Bound<'py, PyAny>,
    ) -> PyResult<i64> {
        let config = Self::config(leaders, group_id)?;
        let lock_ms = intern!(leaders.py(), python::LOCK_TIMEOUT_MS);
        config.getattr(lock_ms)?.extract()
    }

    /// Looks up the leader of a share partition.
    pub(crate) fn found<'py>(
        leaders: &Bound<'py, Self>,
        group_id: &Bound<'py, PyAny>,
        topic_id: &Bound<'py, PyAny>,
        partition: i32,
    ) -> PyResult<Option<Bound<'py, PyLeader>>> {
        let all = leaders.borrow().leaders.clone_ref(leaders.py());
        let all = all.bind(leaders.py());
        let Some(of_topic) = all.get_item((group_id, topic_id))? else {
            return Ok(None);
        };
        match of_topic.cast::<PyDict>()?.get_item(partition)? {
            Some(leader) => Ok(Some(leader.cast_into()?)),
            None => Ok(None),
        }
    }
}

#[pymethods]
impl PyLeaders {
    #[new]
    #[pyo3(signature = (*args, **_rest))]
    fn new(args: &Bound<'_, PyTuple>, _rest: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            leaders: PyDict::new(args.py()).unbind(),
            configs: PyDict::new(args.py()).unbind(),
            recent: IdMap::default(),
            acknowledgements: 0,
        }
    }

    pub(crate) fn config<'py>(
        leaders: &Bound<'py, Self>,
        group_id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = leaders.py();
        let configs = leaders.borrow().configs.clone_ref(py);
        if let Some(config) = configs.bind(py).get_item(group_id)? {
            return Ok(config);
        }
        let config = leaders.call_method1(intern!(py, python::OWN_GROUP_CONFIG), (group_id,))?;
        configs.bind(py).set_item(group_id, &config)?;
        Ok(config)
    }

    /// Removes a leader that has ended from the cache.
    fn _let_go(leaders: &Bound<'_, Self>, leader: &Bound<'_, PyLeader>) {
        let id = leader.borrow().name;
        let gone: SmallVec<[_; 1]> = {
            let mut held = leaders.borrow_mut();
            let Some(recent) = held.recent.get_mut(&id) else {
                return;
            };
            let place = recent.iter().position(|(_, each)| each.is(leader));
            let gone = place.map(|place| recent.remove(place));
            if recent.is_empty() {
                held.recent.remove(&id);
            }
            gone.into_iter().collect()
        };
        drop(gone); // an object of Python's, whose end may come back here
    }

    fn peek<'py>(
        leaders: &Bound<'py, Self>,
        group_id: &Bound<'py, PyAny>,
        topic_id: &Bound<'py, PyAny>,
        partition: i32,
    ) -> PyResult<Option<Bound<'py, PyLeader>>> {
        Self::found(leaders, group_id, topic_id, partition)
    }
}

collected!(PyLeaders { recent, leaders, configs } cut { recent });

/// Share sessions. `sharecore.session.ShareSessionCache` extends it.
#[pyclass(name = "Sessions", module = "sharecore._core", subclass)]
pub(crate) struct PySessions {
    /// By group and member.
    #[pyo3(get, name = "_sessions")]
    sessions: Py<PyDict>,
}

impl PySessions {
    /// Continues a session with its next request.
    pub(crate) fn continue_session(
        session: &Bound<'_, PyShareSession>,
        epoch: i32,
    ) -> PyResult<()> {
        let resumed = session.borrow_mut().inner.resume(epoch);
        resumed.map_err(|unexpected| {
            let text = unexpected.to_string();
            kafka_error(session.py(), INVALID_SHARE_SESSION_EPOCH, &text)
        })
    }

    /// Looks up the session that a member's request continues; see `resume`.
    pub(crate) fn find<'py>(
        sessions: &Bound<'py, PyAny>,
        group_id: &Bound<'py, PyAny>,
        member_id: &Bound<'py, PyAny>,
        epoch: i32,
    ) -> PyResult<Bound<'py, PyShareSession>> {
        if calls_by_name() {
            let arguments = (group_id, member_id, epoch);
            return Ok(sessions
                .call_method1(python::RESUME, arguments)?
                .cast_into()?);
        }
        Self::resume(sessions.cast()?, group_id, member_id, epoch)
    }
}

#[pymethods]
impl PySessions {
    #[new]
    #[pyo3(signature = (*args, **_rest))]
    fn new(args: &Bound<'_, PyTuple>, _rest: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            sessions: PyDict::new(args.py()).unbind(),
        }
    }

    fn resume<'py>(
        sessions: &Bound<'py, Self>,
        group_id: &Bound<'py, PyAny>,
        member_id: &Bound<'py, PyAny>,
        epoch: i32,
    ) -> PyResult<Bound<'py, PyShareSession>> {
        let py = sessions.py();
        let all = sessions.borrow().sessions.clone_ref(py);
        let Some(session) = all.bind(py).get_item((group_id, member_id))? else {
            sessions.call_method1(
                intern!(py, python::OWN_CHECK_IDENTITY),
                (group_id, member_id),
            )?;
            return Err(kafka_error(py, SHARE_SESSION_NOT_FOUND, ""));
        };
        let session = session.cast_into::<PyShareSession>()?;
        Self::continue_session(&session, epoch)?;
        Ok(session)
    }
}

collected!(PySessions { sessions });

/// Returns the session epoch after `epoch`.
#[pyfunction]
pub(crate) fn next_epoch(epoch: i32) -> i32 {
    sharecore_share::next_epoch(epoch)
}
