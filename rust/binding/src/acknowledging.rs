//! `ShareAcknowledge` and `acknowledge`: route a request's acknowledgements to the leaders of its share partitions.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use sharecore_engine::AckBatch;
use sharecore_share::{Claim, FINAL_EPOCH, INITIAL_EPOCH, Places, batches_of, walk};
use sharecore_wire::typed::share_acknowledge::ShareAcknowledgeRequest;
use smallvec::SmallVec;

use crate::checks::{FEATURES, RIGHTS};
use crate::codes::{INVALID_SHARE_SESSION_EPOCH, UNKNOWN_TOPIC_OR_PARTITION};
use crate::collected::collected;
use crate::completion::Completion;
use crate::convert::{acknowledgements, tuples};
use crate::error::{code_of, kafka_error, kafka_error_in};
use crate::gathering::{Answerer, Part, PyGather, PyPart};
use crate::incoming_request;
use crate::leader::PyLeader;
use crate::leaders::PyLeaders;
use crate::python;
use crate::session::PyShareSession;
use crate::share_answer::PyShareAnswer;
use crate::share_services::ShareServices;
use crate::testing::calls_by_name;
use crate::uuids::{PartitionId, partition_tuple};
use crate::waiting::PyLater;

/// Above this many partitions, a request is first checked against the size of its session.
const FEW: usize = 1000;
const NOT_HOSTED: &str = "This server does not host this topic-partition.";

/// The leaders, member and rights that a request's acknowledgements need.
struct Route<'a, 'f, 'py> {
    request: &'a incoming_request::IncomingRequest<'f, 'py>,
    may_read: &'a Bound<'py, PyAny>,
    share: Arc<ShareServices>,
    leaders: Bound<'py, PyLeaders>,
    /// True if no authorizer is configured.
    is_open: bool,
    group: Bound<'py, PyString>,
    member: Bound<'py, PyString>,
}

impl<'py> Places for Route<'_, '_, 'py> {
    type Leader = Bound<'py, PyLeader>;
    type Error = PyErr;

    fn leader(&mut self, id: PartitionId) -> PyResult<Option<Bound<'py, PyLeader>>> {
        PyLeaders::find(&self.leaders, &self.group, id)
    }

    fn partitions(&mut self, topic: [u8; 16]) -> PyResult<Option<i64>> {
        let py = self.request.py();
        let known = (topic_id(py, topic)?,);
        let share = self.share.share.bind(py);
        let count = share.call_method1(intern!(py, python::PARTITION_COUNT), known)?;
        count.extract()
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn may_read(&mut self, topic: [u8; 16]) -> PyResult<bool> {
        let arguments = (self.request.context()?, topic_id(self.request.py(), topic)?);
        self.may_read.call1(arguments)?.is_truthy()
    }
}

/// A topic's id as a Python object.
fn topic_id(py: Python<'_>, topic: [u8; 16]) -> PyResult<Bound<'_, PyAny>> {
    partition_tuple(py, (topic, 0))?.get_item(0)
}

impl<'a, 'f, 'py> Route<'a, 'f, 'py> {
    fn of(
        request: &'a incoming_request::IncomingRequest<'f, 'py>,
        may_read: &'a Bound<'py, PyAny>,
        session: &Bound<'py, PyShareSession>,
    ) -> PyResult<Self> {
        let py = request.py();
        let share = request.share()?;
        Ok(Self {
            request,
            may_read,
            leaders: share.leaders.bind(py).clone(),
            share,
            is_open: request.is_open()?,
            group: session.borrow().group_id.bind(py).clone(),
            member: session.borrow().member_id.bind(py).clone(),
        })
    }

    /// Passes acknowledgements to the leader, which completes `part`.
    fn pass_to_leader(
        &self,
        leader: Option<Bound<'py, PyLeader>>,
        claim: &Claim<'_, '_>,
        part: Part,
    ) -> PyResult<()> {
        let py = self.request.py();
        let Some(leader) = leader else {
            // The partition is not hosted here, so none of its records are acquired and it is not loaded
            let error = kafka_error(py, UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED);
            return part.end(py, Some(error.into_value(py).into_any()));
        };
        let batches: SmallVec<[AckBatch<'_>; 8]> = batches_of(claim.batches).collect();
        if leader.borrow().engine.is_some() {
            return settle(&leader, &self.member, &batches, part);
        }
        let late = LateAcknowledgement {
            leader: leader.clone().unbind(),
            member: self.member.clone().unbind(),
            batches: tuples(py, &batches)?.unbind(),
            part: Some(part),
        };
        leader.call_method0(intern!(py, python::LOAD))?;
        leader.call_method1(intern!(py, python::WHEN_LOADED), (late,))?;
        Ok(())
    }
}

/// Applies acknowledgements to the leader; `part` is completed with the result or with the error.
fn settle(
    leader: &Bound<'_, PyLeader>,
    member: &Bound<'_, PyString>,
    batches: &[AckBatch<'_>],
    part: Part,
) -> PyResult<()> {
    let py = leader.py();
    if calls_by_name() {
        let done = Bound::new(py, PyPart(Some(part)))?;
        let arguments = (member, tuples(py, batches)?, &done);
        return match leader.call_method1(python::ACKNOWLEDGE, arguments) {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = kafka_error_in(py, error)?;
                PyPart::__call__(&done, Some(error.unbind()))
            }
        };
    }
    match PyLeader::settle(leader, &member.to_cow()?, batches) {
        Ok(write) => PyLeader::persist(leader, write, Some(Completion::Part(part))),
        Err(error) => part.end(py, Some(kafka_error_in(py, error)?.unbind())),
    }
}

/// Acknowledgements that wait until their leader's state is loaded.
#[pyclass(module = "sharecore._core")]
struct LateAcknowledgement {
    leader: Py<PyLeader>,
    member: Py<PyString>,
    /// Copied into Python objects, because they outlive their request.
    batches: Py<PyList>,
    /// None once the acknowledgements are applied.
    part: Option<Part>,
}

#[pymethods]
impl LateAcknowledgement {
    /// Applies the acknowledgements, or completes `part` with the reason why the state could not be loaded.
    fn __call__(late: &Bound<'_, Self>) -> PyResult<()> {
        let py = late.py();
        let (leader, member, batches, part) = {
            let mut held = late.borrow_mut();
            let (leader, member) = (held.leader.clone_ref(py), held.member.clone_ref(py));
            (leader, member, held.batches.clone_ref(py), held.part.take())
        };
        let Some(part) = part else {
            return Ok(());
        };
        let batches = acknowledgements(batches.bind(py))?;
        settle(leader.bind(py), member.bind(py), &batches.batches(), part)
    }
}

collected!(LateAcknowledgement { leader, part } cut { part });

/// Starts the acknowledgements of one request; `gather` collects their errors.
pub(crate) fn acknowledge<'py, 'm, 'a: 'm>(
    request: &incoming_request::IncomingRequest<'_, 'py>,
    may_read: &Bound<'py, PyAny>,
    session: &Bound<'py, PyShareSession>,
    claims: impl IntoIterator<Item = Claim<'m, 'a>>,
    may_renew: bool,
    gather: &Bound<'py, PyGather>,
) -> PyResult<()> {
    let py = request.py();
    let mut begin = Route::of(request, may_read, session)?;
    begin.leaders.borrow_mut().acknowledgements += 1;
    let walked = walk(&mut begin, claims, may_renew)?;
    let mut errors: HashMap<i16, Py<PyAny>> = HashMap::new();
    for (id, refused) in walked.refused {
        // One error object per error code
        let code = refused.code();
        let error = errors.entry(code);
        let error = error.or_insert_with(|| kafka_error(py, code, "").into_value(py).into_any());
        let name = partition_tuple(py, id)?.into_any().unbind();
        gather.borrow_mut().put(name, Some(error.clone_ref(py)));
    }
    for (claim, leader) in walked.led {
        let known = leader.as_ref().and_then(|leader| leader.borrow().id(py));
        let name = match known {
            Some(name) => name.into_any(),
            None => partition_tuple(py, claim.id)?.into_any().unbind(),
        };
        let part = PyGather::begin(gather, name);
        begin.pass_to_leader(leader, &claim, part)?;
    }
    for id in walked.beside {
        let name = partition_tuple(py, id)?.into_any().unbind();
        gather.borrow_mut().put(name, None);
    }
    Ok(())
}

/// Handler of `ShareAcknowledge` requests.
#[pyclass(name = "ShareAcknowledge", module = "sharecore._core", frozen)]
pub(crate) struct PyShareAcknowledge {
    check: Py<PyAny>,
    may_read: Py<PyAny>,
}

impl PyShareAcknowledge {
    /// Returns the response, or a `Later` that completes with it.
    pub(crate) fn handle<'py>(
        &self,
        incoming: &incoming_request::IncomingRequest<'_, 'py>,
        request: &ShareAcknowledgeRequest<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = incoming.py();
        let (group, member) = (request.group_id, request.member_id);
        if incoming.needs(RIGHTS | FEATURES) {
            self.check.bind(py).call1((incoming.context()?, group))?;
        }
        let epoch = request.share_session_epoch;
        let share = incoming.share()?;
        let sessions = share.sessions.bind(py);
        let named: usize = request
            .topics
            .iter()
            .map(|topic| topic.partitions.len())
            .sum();
        let checked = if named > FEW {
            incoming
                .context()?
                .call_method0(intern!(py, python::END_TURN))?;
            sessions.call_method1(intern!(py, python::CHECK_ACKNOWLEDGED), (named,))
        } else {
            Ok(py.None().into_bound(py))
        };
        let resumed = if let Err(error) = checked {
            Err(error)
        } else if epoch == INITIAL_EPOCH {
            sessions
                .call_method1(intern!(py, python::OWN_CHECK_IDENTITY), (group, member))
                .and_then(|_| Err(kafka_error(py, INVALID_SHARE_SESSION_EPOCH, "")))
        } else {
            share.resume(incoming.connection(), group, member, epoch)
        };
        let session = match resumed {
            Ok(session) => session,
            Err(error) => {
                let refused = PyDict::new(py);
                let code = code_of(&kafka_error_in(py, error)?)?;
                refused.set_item(intern!(py, python::ERROR_CODE), code)?;
                return Ok(refused.into_any());
            }
        };
        let gather = Bound::new(py, PyGather::default())?;
        let claims = request.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| Claim {
                id: (topic.topic_id, partition.partition_index),
                batches: &partition.acknowledgement_batches,
            })
        });
        let may_read = self.may_read.bind(py);
        let may_renew = request.is_renew_ack;
        acknowledge(incoming, may_read, &session, claims, may_renew, &gather)?;
        let group_id = session.borrow().group_id.bind(py).clone();
        if epoch == FINAL_EPOCH {
            share.close(&session)?;
        }
        let lock_ms = PyLeaders::lock_ms(share.leaders.bind(py), &group_id)?;
        let cluster = share.cluster.clone_ref(py);
        let listener = incoming.listener()?.unbind();
        let answer = Py::new(py, PyShareAnswer::new(cluster, listener, lock_ms))?;
        let answerer = Answerer::Acknowledged(answer);
        if !gather.borrow().pending() {
            return Ok(answerer.answer(&gather)?.into_bound(py));
        }
        let later = Bound::new(py, PyLater::default())?;
        PyGather::answer(&gather, later.clone().unbind(), answerer)?;
        Ok(later.into_any())
    }
}

#[pymethods]
impl PyShareAcknowledge {
    #[new]
    fn new(check: Py<PyAny>, may_read: Py<PyAny>) -> Self {
        Self { check, may_read }
    }
}

collected!(PyShareAcknowledge { check, may_read });
