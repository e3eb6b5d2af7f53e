//! `ShareAcknowledge` and `acknowledge`: what requests acknowledge, to the leaders of the share partitions.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

use std::cell::RefCell;
use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};
use sharecore_session::{FINAL_EPOCH, INITIAL_EPOCH};

use crate::codes::{
    INVALID_REQUEST, INVALID_SHARE_SESSION_EPOCH, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
};
use crate::error::{kafka_error, kafka_error_in};
use crate::leader::PyLeader;
use crate::leaders::PyLeaders;
use crate::share_answer::PyShareAnswer;
use crate::uuids;
use crate::waiting::{PyGather, PyLater, PyPart};

const NOT_HOSTED: &str = "This server does not host this topic-partition.";

/// The acknowledge type that renews a lock; those above it there are not.
const RENEW: u8 = 4;

/// What is acknowledged of one partition.
struct Asked<'py> {
    /// Topic id and partition.
    name: Bound<'py, PyTuple>,
    topic_id: Bound<'py, PyAny>,
    index: i32,
    batches: Bound<'py, PyAny>,
    /// Whether the batches may stand as they are.
    sound: bool,
}

/// What a request acknowledges. The last counts of a partition that is named twice.
fn asked<'py>(topics: &Bound<'py, PyAny>, may_renew: bool) -> PyResult<Vec<Asked<'py>>> {
    let py = topics.py();
    let mut asked: Vec<Asked<'py>> = Vec::new();
    for topic in topics.try_iter()? {
        let topic = topic?;
        let mut topic_id = topic.getattr(intern!(py, "topic_id"))?;
        if topic_id.is_none() {
            topic_id = uuids::zero(py)?;
        }
        for partition in topic.getattr(intern!(py, "partitions"))?.try_iter()? {
            let partition = partition?;
            let index = partition.getattr(intern!(py, "partition_index"))?;
            let batches = partition.getattr(intern!(py, "acknowledgement_batches"))?;
            asked.push(Asked {
                sound: are_sound(&batches, may_renew)?,
                index: index.extract()?,
                name: PyTuple::new(py, [topic_id.clone(), index])?,
                topic_id: topic_id.clone(),
                batches,
            });
        }
    }
    if asked.len() < 2 {
        return Ok(asked);
    }
    let last = PyDict::new(py);
    for (place, each) in asked.iter().enumerate() {
        last.set_item(&each.name, place)?;
    }
    let mut asked: Vec<Option<Asked<'py>>> = asked.into_iter().map(Some).collect();
    let mut kept = Vec::with_capacity(last.len());
    for (_, place) in last {
        kept.extend(asked[place.extract::<usize>()?].take());
    }
    Ok(kept)
}

/// Whether types are known and of the right number, and batches ascend.
fn are_sound(batches: &Bound<'_, PyAny>, may_renew: bool) -> PyResult<bool> {
    let most = if may_renew { RENEW } else { RENEW - 1 };
    let mut end = -1;
    for batch in batches.cast::<PyList>()?.iter() {
        let (first, last, types): (i64, i64, Bound<'_, PyBytes>) = batch.extract()?;
        let types = types.as_bytes();
        let count = types.len();
        let fits = count == 1
            || i64::try_from(count).is_ok_and(|count| last.checked_sub(first) == Some(count - 1));
        if first < end || last < first || !fits || types.iter().any(|each| *each > most) {
            return Ok(false);
        }
        end = last;
    }
    Ok(true)
}

/// Where acknowledgements go, and for whom.
struct Begin<'a, 'py> {
    context: &'a Bound<'py, PyAny>,
    may_read: &'a Bound<'py, PyAny>,
    share: Bound<'py, PyAny>,
    leaders: Bound<'py, PyLeaders>,
    /// Whether everybody may do everything.
    is_open: bool,
    /// What was decided about topics, by the addresses of the ids that the request has.
    readable: RefCell<HashMap<usize, bool>>,
    group: Bound<'py, PyAny>,
    member: Bound<'py, PyAny>,
}

impl<'a, 'py> Begin<'a, 'py> {
    fn of(
        context: &'a Bound<'py, PyAny>,
        may_read: &'a Bound<'py, PyAny>,
        session: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let py = context.py();
        let broker = context.getattr(intern!(py, "broker"))?;
        let share = broker.getattr(intern!(py, "share"))?;
        let leaders = share.getattr(intern!(py, "partitions"))?;
        Ok(Self {
            context,
            may_read,
            leaders: leaders.cast_into()?,
            share,
            is_open: broker.getattr(intern!(py, "authorizer"))?.is_none(),
            readable: RefCell::default(),
            group: session.getattr(intern!(py, "group_id"))?,
            member: session.getattr(intern!(py, "member_id"))?,
        })
    }

    /// Why acknowledgements of a partition do not get as far as its leader, who may be known.
    fn refusal(&self, asked: &Asked<'py>, is_led: bool) -> PyResult<Option<i16>> {
        let py = self.context.py();
        let count = if is_led {
            Some(i64::from(asked.index) + 1)
        } else {
            let known = (&asked.topic_id,);
            let count = self
                .share
                .call_method1(intern!(py, "partition_count"), known)?;
            count.extract()?
        };
        let Some(count) = count else {
            return Ok(Some(UNKNOWN_TOPIC_ID));
        };
        if !asked.sound {
            return Ok(Some(INVALID_REQUEST));
        }
        if !self.is_open && !self.may_read(&asked.topic_id)? {
            return Ok(Some(TOPIC_AUTHORIZATION_FAILED));
        }
        let is_there = (0..count).contains(&asked.index.into());
        Ok((!is_there).then_some(UNKNOWN_TOPIC_OR_PARTITION))
    }

    /// Whether the client may read a topic, decided once for all of its partitions.
    fn may_read(&self, topic_id: &Bound<'py, PyAny>) -> PyResult<bool> {
        let address = topic_id.as_ptr() as usize;
        if let Some(known) = self.readable.borrow().get(&address) {
            return Ok(*known);
        }
        let may = self.may_read.call1((self.context, topic_id))?.is_truthy()?;
        self.readable.borrow_mut().insert(address, may);
        Ok(may)
    }

    /// Hands acknowledgements to the leader, who calls `done`.
    fn hand_on(
        &self,
        leader: Option<Bound<'py, PyLeader>>,
        asked: &Asked<'py>,
        done: &Bound<'py, PyPart>,
    ) -> PyResult<()> {
        let py = self.context.py();
        let Some(leader) = leader else {
            // nothing of it is leased, nor is there a reason to load it
            return Err(kafka_error(py, UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED));
        };
        let late = LateAcknowledgement {
            leader: leader.clone().unbind(),
            member: self.member.clone().unbind(),
            batches: asked.batches.clone().unbind(),
            done: done.clone().unbind(),
        };
        if leader.borrow().engine.is_some() {
            return late.hand_on(py);
        }
        leader.call_method0(intern!(py, "load"))?;
        leader.call_method1(intern!(py, "when_loaded"), (late,))?;
        Ok(())
    }
}

/// An acknowledgement for a leader whose state may still be loading.
#[pyclass(module = "sharecore._core", frozen)]
struct LateAcknowledgement {
    leader: Py<PyLeader>,
    member: Py<PyAny>,
    batches: Py<PyAny>,
    done: Py<PyPart>,
}

impl LateAcknowledgement {
    fn hand_on(&self, py: Python<'_>) -> PyResult<()> {
        let told = (&self.member, &self.batches, &self.done);
        self.leader
            .call_method1(py, intern!(py, "acknowledge"), told)?;
        Ok(())
    }
}

#[pymethods]
impl LateAcknowledgement {
    /// Acknowledges: the state is loaded, or why it is not is known.
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        match self.hand_on(py) {
            Ok(()) => Ok(()),
            Err(error) => {
                let error = kafka_error_in(py, error)?;
                PyPart::__call__(self.done.bind(py), Some(error.unbind()))
            }
        }
    }
}

/// Begins the acknowledgements of one request; their errors are the outcomes of `gather`.
///
/// As with Kafka, those without batches are among the outcomes where something is acknowledged.
#[pyfunction]
pub(crate) fn acknowledge<'py>(
    context: &Bound<'py, PyAny>,
    may_read: &Bound<'py, PyAny>,
    session: &Bound<'py, PyAny>,
    topics: &Bound<'py, PyAny>,
    may_renew: bool,
    gather: &Bound<'py, PyGather>,
) -> PyResult<()> {
    let py = context.py();
    let begin = Begin::of(context, may_read, session)?;
    begin.leaders.borrow_mut().acknowledgements += 1;
    let (mut some, mut nothing) = (Vec::new(), Vec::new());
    for asked in asked(topics, may_renew)? {
        let leader = PyLeaders::found(&begin.leaders, &begin.group, &asked.topic_id, asked.index)?;
        if let Some(code) = begin.refusal(&asked, leader.is_some())? {
            let refusal = kafka_error(py, code, "").into_value(py).into_any();
            let name = asked.name.into_any().unbind();
            gather.borrow_mut().put(name, refusal);
        } else if asked.batches.is_truthy()? {
            some.push((asked, leader));
        } else {
            nothing.push(asked.name);
        }
    }
    let any = !some.is_empty();
    for (asked, leader) in some {
        let name = asked.name.clone().into_any().unbind();
        let done = Bound::new(py, PyGather::part(gather, name))?;
        if let Err(error) = begin.hand_on(leader, &asked, &done) {
            let error = kafka_error_in(py, error)?;
            PyPart::__call__(&done, Some(error.unbind()))?;
        }
    }
    for name in nothing.into_iter().filter(|_| any) {
        let name = name.into_any().unbind();
        gather.borrow_mut().put(name, py.None());
    }
    Ok(())
}

/// Handles `ShareAcknowledge` requests.
#[pyclass(name = "ShareAcknowledge", module = "sharecore._core", frozen)]
pub(crate) struct PyShareAcknowledge {
    check: Py<PyAny>,
    may_read: Py<PyAny>,
}

#[pymethods]
impl PyShareAcknowledge {
    #[new]
    fn new(check: Py<PyAny>, may_read: Py<PyAny>) -> Self {
        Self { check, may_read }
    }

    fn __call__<'py>(
        &self,
        context: &Bound<'py, PyAny>,
        request: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = context.py();
        let group_id = request.getattr(intern!(py, "group_id"))?;
        self.check.bind(py).call1((context, &group_id))?;
        let epoch: i32 = request
            .getattr(intern!(py, "share_session_epoch"))?
            .extract()?;
        let broker = context.getattr(intern!(py, "broker"))?;
        let share = broker.getattr(intern!(py, "share"))?;
        let sessions = share.getattr(intern!(py, "sessions"))?;
        let member_id = request.getattr(intern!(py, "member_id"))?;
        let resumed = if epoch == INITIAL_EPOCH {
            sessions
                .call_method1(intern!(py, "_check_identity"), (&group_id, &member_id))
                .and_then(|_| Err(kafka_error(py, INVALID_SHARE_SESSION_EPOCH, "")))
        } else {
            sessions.call_method1(intern!(py, "resume"), (&group_id, member_id, epoch))
        };
        let session = match resumed {
            Ok(session) => session,
            Err(error) => {
                let refused = PyDict::new(py);
                let code = kafka_error_in(py, error)?.getattr(intern!(py, "code"))?;
                refused.set_item(intern!(py, "error_code"), code)?;
                return Ok(refused.into_any());
            }
        };
        let gather = Bound::new(py, PyGather::default())?;
        let topics = request.getattr(intern!(py, "topics"))?;
        let may_renew = request.getattr(intern!(py, "is_renew_ack"))?.is_truthy()?;
        let may_read = self.may_read.bind(py);
        acknowledge(context, may_read, &session, &topics, may_renew, &gather)?;
        if epoch == FINAL_EPOCH {
            sessions.call_method1(intern!(py, "close"), (session,))?;
        }
        let leaders = share.getattr(intern!(py, "partitions"))?;
        let lock_ms = PyLeaders::config(leaders.cast()?, &group_id)?
            .getattr(intern!(py, "share_record_lock_duration_ms"))?
            .extract()?;
        let cluster = broker.getattr(intern!(py, "cluster"))?.unbind();
        let listener = context
            .getattr(intern!(py, "connection"))?
            .getattr(intern!(py, "listener"))?
            .unbind();
        let acknowledged = PyAcknowledged {
            answer: Py::new(py, PyShareAnswer::new(cluster, listener, lock_ms))?,
            gather: gather.clone().unbind(),
        };
        if !gather.borrow().pending() {
            let answer = acknowledged.__call__(py)?;
            return Ok(answer.into_bound(py).into_any());
        }
        let later = Bound::new(py, PyLater::default())?;
        let then = Py::new(py, acknowledged)?.into_any();
        PyGather::promise(&gather, later.clone().unbind(), then)?;
        Ok(later.into_any())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.check)?;
        visit.call(&self.may_read)
    }
}

/// Makes the answer to a `ShareAcknowledge` whose acknowledgements have ended.
#[pyclass(name = "Acknowledged", module = "sharecore._core", frozen)]
pub(crate) struct PyAcknowledged {
    answer: Py<PyShareAnswer>,
    gather: Py<PyGather>,
}

#[pymethods]
impl PyAcknowledged {
    fn __call__(&self, py: Python<'_>) -> PyResult<Py<PyShareAnswer>> {
        let answer = self.answer.bind(py);
        PyShareAnswer::acknowledged(answer, self.gather.bind(py), false)?;
        PyShareAnswer::message(answer)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.answer)?;
        visit.call(&self.gather)
    }
}
