//! `ShareFetch`: handles requests of that name; `sharecore.broker.handlers.share_fetch` has one.
//!
//! Python decides who may do what, and who leads a partition that the session does not know yet. No borrow of an object is
//! held while Python runs, which may come back to the same object.

use std::collections::HashSet;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};
use sharecore_session::{FINAL_EPOCH, INITIAL_EPOCH};

use crate::acknowledging::acknowledge;
use crate::codes::INVALID_REQUEST;
use crate::error::{kafka_error, kafka_error_in};
use crate::exchange::PyExchange;
use crate::fetching::PyShareFetching;
use crate::gather::Limits;
use crate::leader::PyLeader;
use crate::look::PyShareLook;
use crate::session::PyShareSession;
use crate::uuids::{self, PartitionId, partition_id};
use crate::waiting::{PyGather, PyLater};
use crate::waits::PyWaitingShareFetch;

/// The acquire mode of requests whose number of records is exact (KIP-1206).
const RECORD_LIMIT: i32 = 1;

/// A request, as far as it is read here.
struct Request<'py> {
    message: Bound<'py, PyAny>,
    topics: Bound<'py, PyAny>,
    epoch: i32,
    max_wait_ms: i64,
    min_bytes: i64,
    max_bytes: i64,
    max_records: i64,
    batch_size: i64,
    acquire_mode: i32,
    is_renewal: bool,
    acknowledges: bool,
}

impl<'py> Request<'py> {
    fn read(message: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = message.py();
        let int = |name| message.getattr(name)?.extract::<i64>();
        let small = |name| message.getattr(name)?.extract::<i32>();
        let topics = message.getattr(intern!(py, "topics"))?;
        Ok(Self {
            epoch: small(intern!(py, "share_session_epoch"))?,
            max_wait_ms: int(intern!(py, "max_wait_ms"))?,
            min_bytes: int(intern!(py, "min_bytes"))?,
            max_bytes: int(intern!(py, "max_bytes"))?,
            max_records: int(intern!(py, "max_records"))?,
            batch_size: int(intern!(py, "batch_size"))?,
            acquire_mode: small(intern!(py, "share_acquire_mode"))?,
            is_renewal: message.getattr(intern!(py, "is_renew_ack"))?.is_truthy()?,
            acknowledges: acknowledges(&topics)?,
            topics,
            message: message.clone(),
        })
    }

    /// What is refused before the session takes notice of the request.
    fn check(&self) -> PyResult<()> {
        let wants = [
            self.max_wait_ms,
            self.min_bytes,
            self.max_bytes,
            self.max_records,
        ];
        if self.is_renewal && wants.iter().any(|wanted| *wanted > 0) {
            return Err(self.refusal("a request that renews locks must not ask for records"));
        }
        if self.epoch == INITIAL_EPOCH && self.acknowledges {
            return Err(self.refusal("the first request of a session acknowledges nothing"));
        }
        Ok(())
    }

    /// What is refused where there is something to fetch; the session has taken notice of the request.
    fn check_mode(&self, session: &Bound<'py, PyShareSession>) -> PyResult<()> {
        if self.epoch == FINAL_EPOCH || session.borrow().inner.is_empty() {
            return Ok(());
        }
        if !(0..=RECORD_LIMIT).contains(&self.acquire_mode) {
            let text = format!("there is no acquire mode {}", self.acquire_mode);
            return Err(self.refusal(&text));
        }
        Ok(())
    }

    fn refusal(&self, text: &str) -> PyErr {
        kafka_error(self.message.py(), INVALID_REQUEST, text)
    }

    /// Puts partitions into the session and takes others out; none of that where there is no room for them.
    fn change(
        &self,
        session: &Bound<'py, PyShareSession>,
        share: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let py = session.py();
        let mut new = Vec::new();
        for topic in self.topics.try_iter()? {
            let topic = topic?;
            let topic_id = uuids::bytes(&topic.getattr(intern!(py, "topic_id"))?)?;
            for partition in topic.getattr(intern!(py, "partitions"))?.try_iter()? {
                let index = partition?.getattr(intern!(py, "partition_index"))?;
                let id = (topic_id, index.extract()?);
                if !session.borrow().inner.contains(&id) {
                    new.push(id);
                }
            }
        }
        if !new.is_empty() {
            let sessions = share.getattr(intern!(py, "sessions"))?;
            sessions.call_method1(intern!(py, "admit"), (session, new.len()))?;
            let inner = &mut session.borrow_mut().inner;
            for id in new {
                inner.add(id);
            }
        }
        if self.epoch == INITIAL_EPOCH {
            return Ok(()); // there is nothing to forget yet
        }
        let forgotten = self.message.getattr(intern!(py, "forgotten_topics_data"))?;
        for topic in forgotten.try_iter()? {
            let topic = topic?;
            let topic_id = uuids::bytes(&topic.getattr(intern!(py, "topic_id"))?)?;
            let mut gone = Vec::new();
            for index in topic.getattr(intern!(py, "partitions"))?.try_iter()? {
                gone.push((topic_id, index?.extract()?));
            }
            PyShareSession::forget_all(session, &gone)?;
        }
        Ok(())
    }
}

/// Whether anything is acknowledged.
fn acknowledges(topics: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = topics.py();
    for topic in topics.try_iter()? {
        for partition in topic?.getattr(intern!(py, "partitions"))?.try_iter()? {
            let batches = partition?.getattr(intern!(py, "acknowledgement_batches"))?;
            if batches.is_truthy()? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// What of a session is not looked at: leaders that are to be loaded first, partitions that are refused, and those that
/// are passed over.
#[derive(Default)]
struct Sifted<'py> {
    found: Vec<Py<PyLeader>>,
    refused: Option<Bound<'py, PyDict>>,
    hidden: HashSet<PartitionId>,
}

/// Handles `ShareFetch` requests.
#[pyclass(name = "ShareFetch", module = "sharecore._core", subclass)]
pub(crate) struct PyShareFetch {
    check: Py<PyAny>,
    may_read: Py<PyAny>,
}

/// A request and whom it concerns.
struct Asked<'a, 'py> {
    handler: &'a Bound<'py, PyShareFetch>,
    context: &'a Bound<'py, PyAny>,
    broker: Bound<'py, PyAny>,
    share: Bound<'py, PyAny>,
    request: Request<'py>,
}

impl<'py> Asked<'_, 'py> {
    /// The session as this request leaves it.
    fn session(&self) -> PyResult<Bound<'py, PyShareSession>> {
        let py = self.context.py();
        let request = &self.request;
        request.check()?;
        let session = if request.epoch == INITIAL_EPOCH {
            let asked = (self.context, &request.message);
            self.handler.call_method1(intern!(py, "_open"), asked)?
        } else {
            let sessions = self.share.getattr(intern!(py, "sessions"))?;
            let group_id = request.message.getattr(intern!(py, "group_id"))?;
            let member_id = request.message.getattr(intern!(py, "member_id"))?;
            sessions.call_method1(intern!(py, "resume"), (group_id, member_id, request.epoch))?
        };
        let session = session.cast_into::<PyShareSession>()?;
        if let Err(error) = request.change(&session, &self.share) {
            if request.epoch == INITIAL_EPOCH {
                let sessions = self.share.getattr(intern!(py, "sessions"))?;
                sessions.call_method1(intern!(py, "close"), (session,))?;
            }
            return Err(error);
        }
        request.check_mode(&session)?;
        Ok(session)
    }

    fn begin(&self, session: &Bound<'py, PyShareSession>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.context.py();
        let request = &self.request;
        let gather = Bound::new(py, PyGather::default())?;
        if request.acknowledges {
            let may_read = self.handler.borrow().may_read.clone_ref(py);
            acknowledge(
                self.context,
                may_read.bind(py),
                session.as_any(),
                &request.topics,
                request.is_renewal,
                &gather,
            )?;
        }
        let is_last = request.epoch == FINAL_EPOCH;
        let listener = self
            .context
            .getattr(intern!(py, "connection"))?
            .getattr(intern!(py, "listener"))?;
        let fetching = PyShareFetching::new(
            self.broker.getattr(intern!(py, "cluster"))?,
            listener,
            self.share.getattr(intern!(py, "partitions"))?.cast_into()?,
            session.clone(),
            gather.clone(),
            request.max_records != 0 && request.max_bytes > 0 && !is_last,
        );
        let fetching = Bound::new(py, fetching)?;
        if is_last {
            let sessions = self.share.getattr(intern!(py, "sessions"))?;
            sessions.call_method1(intern!(py, "close"), (session,))?;
        } else if !request.is_renewal {
            // which asks for no records, and hears of no partition's trouble
            if let Err(error) = self.fetch(session, &fetching, &gather) {
                kafka_error_in(py, error)?;
                PyShareFetching::end(&fetching, Vec::new())?;
            }
        }
        if !gather.borrow().pending() {
            return Ok(PyShareFetching::answer(&fetching)?
                .into_bound(py)
                .into_any());
        }
        let later = Bound::new(py, PyLater::default())?;
        let answer = fetching.getattr(intern!(py, "_answer"))?.unbind();
        PyGather::promise(&gather, later.clone().unbind(), answer)?;
        let waiting = session.borrow().fetches.clone_ref(py);
        waiting.bind(py).set_item(&fetching, py.None())?;
        let done = fetching.getattr(intern!(py, "_done"))?.unbind();
        PyLater::add_done_callback(&later, done)?;
        Ok(later.into_any())
    }

    fn fetch(
        &self,
        session: &Bound<'py, PyShareSession>,
        fetching: &Bound<'py, PyShareFetching>,
        gather: &Bound<'py, PyGather>,
    ) -> PyResult<()> {
        let py = self.context.py();
        let (first, partitions) = {
            let held = session.borrow();
            (held.inner.rotation(), held.inner.len())
        };
        let Sifted {
            found,
            refused,
            hidden,
        } = self.sifted(session, first)?;
        let waits = partitions > refused.as_ref().map_or(0, PyDictMethods::len);
        fetching.borrow_mut().refused = refused.map(Bound::unbind);
        let request = &self.request;
        let room = self.room()?;
        let limits = Limits {
            min_bytes: request.min_bytes.min(room),
            max_bytes: request.max_bytes.min(room),
            max_records: request.max_records,
            batch_size: request.batch_size,
            record_limit: request.acquire_mode == RECORD_LIMIT,
        };
        let exchange = self.context.getattr(intern!(py, "connection"))?;
        let exchange: Option<Bound<'py, PyExchange>> = exchange.cast_into().ok();
        let session = session.clone().unbind();
        let exchange = exchange.map(Bound::unbind);
        let look = PyShareLook::of(session, limits, first, found, hidden, exchange);
        let look = Bound::new(py, look)?;
        let max_wait_ms = if waits { request.max_wait_ms } else { 0 };
        if let Some(fetched) = PyShareLook::begin(&look, max_wait_ms)? {
            return PyShareFetching::end(fetching, fetched);
        }
        let part = Py::new(py, PyGather::lasting_part(gather, py.None()))?;
        fetching.borrow_mut().part = Some(part);
        let timeouts = self.share.getattr(intern!(py, "timeouts"))?.cast_into()?;
        let ended = fetching.clone().into_any();
        let fetch = PyWaitingShareFetch::new(look.unbind(), timeouts.unbind(), ended.unbind());
        let fetch = Bound::new(py, fetch)?;
        PyWaitingShareFetch::wait(&fetch, max_wait_ms)?;
        let mut held = fetching.borrow_mut();
        if held.part.is_some() {
            held.fetch = Some(fetch.unbind());
        }
        Ok(())
    }

    fn sifted(&self, session: &Bound<'py, PyShareSession>, first: u64) -> PyResult<Sifted<'py>> {
        let py = self.context.py();
        let refuses_all = self.request.max_bytes < 0 && self.request.max_records != 0;
        let is_open = self.broker.getattr(intern!(py, "authorizer"))?.is_none();
        if is_open && !refuses_all && session.borrow().inner.is_known() {
            return Ok(Sifted::default());
        }
        let asked = (self.context, session, first, refuses_all);
        let sifted = self.handler.call_method1(intern!(py, "_sift"), asked)?;
        let (found, refused, hidden): (_, Bound<'py, PyDict>, Bound<'py, PyDict>) =
            sifted.extract()?;
        let hidden = hidden.keys().iter();
        let hidden: PyResult<_> = hidden.map(|each| partition_id(&each)).collect();
        Ok(Sifted {
            found,
            refused: Some(refused),
            hidden: hidden?,
        })
    }

    /// Bytes of records that the answer may carry.
    fn room(&self) -> PyResult<i64> {
        let py = self.context.py();
        let most: i64 = self
            .broker
            .getattr(intern!(py, "config"))?
            .getattr(intern!(py, "fetch_max_bytes"))?
            .extract()?;
        let throttles = self.broker.getattr(intern!(py, "throttles"))?;
        if !throttles.getattr(intern!(py, "on"))?.is_truthy()? {
            return Ok(most);
        }
        let room = self.context.call_method0(intern!(py, "records_room"))?;
        Ok(most.min(room.extract()?))
    }
}

#[pymethods]
impl PyShareFetch {
    #[new]
    #[pyo3(signature = (check, may_read, *_args))]
    fn new(check: Py<PyAny>, may_read: Py<PyAny>, _args: &Bound<'_, PyTuple>) -> Self {
        Self { check, may_read }
    }

    fn __call__<'py>(
        handler: &Bound<'py, Self>,
        context: &Bound<'py, PyAny>,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = context.py();
        let group_id = message.getattr(intern!(py, "group_id"))?;
        let check = handler.borrow().check.clone_ref(py);
        check.bind(py).call1((context, group_id))?;
        let broker = context.getattr(intern!(py, "broker"))?;
        let asked = Asked {
            handler,
            context,
            share: broker.getattr(intern!(py, "share"))?,
            broker,
            request: Request::read(message)?,
        };
        match asked.session() {
            Ok(session) => asked.begin(&session),
            Err(error) => {
                let refused = (message, kafka_error_in(py, error)?);
                handler.call_method1(intern!(py, "_refuse"), refused)
            }
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.check)?;
        visit.call(&self.may_read)
    }
}
