//! `ShareFetch`: handles `ShareFetch` requests; `sharecore.broker.handlers.share.records` creates one.
//!
//! Python decides about rights, and finds leaders of partitions that are not in the session yet. No object stays borrowed while
//! Python code runs: Python may call back into the same object.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sharecore_share::{Claim, IdSet, Invalid, Wanted};
use sharecore_wire::typed::share_fetch::ShareFetchRequest;

use crate::acknowledging::acknowledge;
use crate::checks::{FEATURES, LEADERS, LEASES, RIGHTS};
use crate::codes::INVALID_REQUEST;
use crate::collected::collected;
use crate::completion::Completion;
use crate::error::{kafka_error, kafka_error_in};
use crate::fetching::PyShareFetching;
use crate::gathering::{Answerer, PyGather};
use crate::incoming_request;
use crate::leader::PyLeader;
use crate::look::PyShareLook;
use crate::python;
use crate::session::PyShareSession;
use crate::share_services::ShareServices;
use crate::uuids::{PartitionId, partition_id, partition_tuple};
use crate::waiting::PyLater;
use crate::waits::PyWaitingShareFetch;

fn invalid(py: Python<'_>, invalid: &Invalid) -> PyErr {
    kafka_error(py, INVALID_REQUEST, &invalid.to_string())
}

/// A request and its decoded options.
struct Request<'m, 'a> {
    message: &'m ShareFetchRequest<'a>,
    wanted: Wanted,
}

impl<'m, 'a> Request<'m, 'a> {
    fn claims(&self) -> impl Iterator<Item = Claim<'m, 'a>> + use<'m, 'a> {
        self.message.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| Claim {
                id: (topic.topic_id, partition.partition_index),
                batches: &partition.acknowledgement_batches,
            })
        })
    }

    /// Adds partitions to the session and removes others; changes nothing if the session would become too large.
    fn change(&self, session: &Bound<'_, PyShareSession>, share: &ShareServices) -> PyResult<()> {
        let py = session.py();
        let new: Vec<_> = {
            let held = session.borrow();
            let ids = self.claims().map(|claim| claim.id);
            ids.filter(|id| !held.inner.contains(id)).collect()
        };
        if !new.is_empty() {
            let sessions = share.sessions.bind(py);
            sessions.call_method1(intern!(py, python::ADMIT), (session, new.len()))?;
            let inner = &mut session.borrow_mut().inner;
            for id in new {
                inner.add(id);
            }
        }
        if self.wanted.is_first() {
            return Ok(()); // there is nothing to forget yet
        }
        for topic in &self.message.forgotten_topics_data {
            let gone = topic.partitions.iter();
            let gone: Vec<_> = gone.map(|index| (topic.topic_id, *index)).collect();
            PyShareSession::forget_all(session, &gone);
        }
        Ok(())
    }
}

/// Session partitions excluded from this fetch: leaders to load first, refused and skipped partitions.
#[derive(Default)]
struct Excluded<'py> {
    found: Vec<Py<PyLeader>>,
    refused: Option<Bound<'py, PyDict>>,
    hidden: IdSet<PartitionId>,
}

/// Handler of `ShareFetch` requests.
#[pyclass(name = "ShareFetch", module = "sharecore._core")]
pub(crate) struct PyShareFetch {
    check: Py<PyAny>,
    may_read: Py<PyAny>,
    /// Opens a session.
    open: Py<PyAny>,
    /// Builds the response for a request that is refused as a whole.
    refuse: Py<PyAny>,
    /// Returns the session partitions to exclude from a fetch.
    exclude: Py<PyAny>,
}

/// A request with its handler and services.
struct FetchRequest<'h, 'f, 'm, 'a, 'py> {
    handler: &'h Bound<'py, PyShareFetch>,
    incoming: &'h incoming_request::IncomingRequest<'f, 'py>,
    share: Arc<ShareServices>,
    request: Request<'m, 'a>,
}

impl<'py> FetchRequest<'_, '_, '_, '_, 'py> {
    /// Returns the session after applying the request's changes.
    fn session(&self) -> PyResult<Bound<'py, PyShareSession>> {
        let py = self.incoming.py();
        let request = &self.request;
        let (group_id, member_id) = (request.message.group_id, request.message.member_id);
        let sessions = self.share.sessions.bind(py);
        let session = if request.wanted.is_first() {
            let count = request.claims().count();
            sessions.call_method1(intern!(py, python::CHECK_SIZE), (count,))?;
            let ids = request.claims().map(|claim| partition_tuple(py, claim.id));
            let partitions = ids.collect::<PyResult<Vec<_>>>()?;
            let arguments = (self.incoming.context()?, group_id, member_id, partitions);
            let open = self.handler.borrow().open.clone_ref(py);
            open.bind(py)
                .call1(arguments)?
                .cast_into::<PyShareSession>()?
        } else {
            let epoch = request.wanted.epoch;
            let connection = self.incoming.connection();
            self.share.resume(connection, group_id, member_id, epoch)?
        };
        if let Err(error) = request.change(&session, &self.share) {
            if request.wanted.is_first() {
                self.share.close(&session)?;
            }
            return Err(error);
        }
        let is_empty = session.borrow().inner.is_empty();
        let checked = request.wanted.check_mode(is_empty);
        checked.map_err(|error| invalid(py, &error))?;
        Ok(session)
    }

    fn begin(&self, session: &Bound<'py, PyShareSession>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.incoming.py();
        let request = &self.request;
        let gather = Bound::new(py, PyGather::default())?;
        let wanted = &request.wanted;
        if wanted.acknowledges {
            let may_read = self.handler.borrow().may_read.clone_ref(py);
            acknowledge(
                self.incoming,
                may_read.bind(py),
                session,
                request.claims(),
                wanted.renews,
                &gather,
            )?;
        }
        let listener = self.incoming.listener()?;
        let fetching = PyShareFetching::new(
            &self.share,
            listener,
            session.clone(),
            gather.clone(),
            wanted.names_new(),
            (self.incoming.needs(LEADERS), self.incoming.needs(LEASES)),
        );
        let fetching = Bound::new(py, fetching)?;
        if wanted.is_last() {
            self.share.close(session)?;
        } else if wanted.fetches()
            && let Err(error) = self.fetch(session, &fetching, &gather)
        {
            kafka_error_in(py, error)?;
            PyShareFetching::end(&fetching, Vec::new())?;
        }
        if !gather.borrow().pending() {
            return Ok(PyShareFetching::answer(&fetching)?
                .into_bound(py)
                .into_any());
        }
        let later = Bound::new(py, PyLater::default())?;
        let answerer = Answerer::Fetched(fetching.clone().unbind());
        PyGather::answer(&gather, later.clone().unbind(), answerer)?;
        let waiting = session.borrow().fetches.clone_ref(py);
        waiting.bind(py).set_item(&fetching, py.None())?;
        PyLater::when_done(&later, Completion::Fetch(fetching.unbind()))?;
        Ok(later.into_any())
    }

    fn fetch(
        &self,
        session: &Bound<'py, PyShareSession>,
        fetching: &Bound<'py, PyShareFetching>,
        gather: &Bound<'py, PyGather>,
    ) -> PyResult<()> {
        let py = self.incoming.py();
        let (first, partitions) = {
            let held = session.borrow();
            (held.inner.rotation(), held.inner.len())
        };
        let Excluded {
            found,
            refused,
            hidden,
        } = self.excluded(session, first)?;
        let refusals = refused.as_ref().map_or(0, PyDictMethods::len);
        fetching.borrow_mut().refused = refused.map(Bound::unbind);
        let limits = self.request.wanted.limits(self.room()?);
        let exchange = self.incoming.exchange().map(Bound::unbind);
        let of = session.clone().unbind();
        let look = PyShareLook::of(of, limits, first, found, hidden, exchange);
        let look = Bound::new(py, look)?;
        let max_wait_ms = self.request.wanted.wait_ms(partitions, refusals);
        PyShareLook::load(&look)?;
        // Pending acknowledgements may release records, and more records may become due before the response can leave. Decided
        // only here, because the calls to Python above may have completed them
        let holds = gather.borrow().pending()
            && session.borrow().has_rules(py)
            && !look.borrow().is_late_at_once(max_wait_ms);
        if !holds && let Some(fetched) = PyShareLook::begin(&look, max_wait_ms)? {
            return PyShareFetching::end(fetching, fetched);
        }
        let part = PyGather::lasting_part(gather, py.None());
        fetching.borrow_mut().part = Some(part);
        let timeouts = self.share.timeouts.clone_ref(py);
        let ended = fetching.clone().into_any();
        let fetch = PyWaitingShareFetch::new(look.unbind(), timeouts, ended.unbind());
        let fetch = Bound::new(py, fetch)?;
        if holds {
            PyGather::hold(gather, &fetch);
        }
        PyWaitingShareFetch::wait(&fetch, max_wait_ms)?;
        let mut held = fetching.borrow_mut();
        if held.part.is_some() {
            held.fetch = Some(fetch.unbind());
        }
        Ok(())
    }

    fn excluded(
        &self,
        session: &Bound<'py, PyShareSession>,
        first: u64,
    ) -> PyResult<Excluded<'py>> {
        let py = self.incoming.py();
        let refuses_all = self.request.wanted.refuses_all();
        if self.incoming.is_open()? && !refuses_all && session.borrow().inner.is_known() {
            return Ok(Excluded::default());
        }
        let arguments = (self.incoming.context()?, session, first, refuses_all);
        let exclude = self.handler.borrow().exclude.clone_ref(py);
        let excluded = exclude.bind(py).call1(arguments)?;
        let (found, refused, hidden): (_, Bound<'py, PyDict>, Bound<'py, PyDict>) =
            excluded.extract()?;
        let hidden = hidden.keys().iter();
        let hidden: PyResult<_> = hidden.map(|each| partition_id(&each)).collect();
        Ok(Excluded {
            found,
            refused: Some(refused),
            hidden: hidden?,
        })
    }

    /// Bytes of records that the response may carry.
    fn room(&self) -> PyResult<i64> {
        let py = self.incoming.py();
        let broker = self.incoming.broker();
        let most: i64 = broker
            .getattr(intern!(py, python::CONFIG))?
            .getattr(intern!(py, python::FETCH_MAX_BYTES))?
            .extract()?;
        if !self.incoming.is_metered()? {
            return Ok(most);
        }
        let context = self.incoming.context()?;
        let room = context.call_method0(intern!(py, python::RECORDS_ROOM))?;
        Ok(most.min(room.extract()?))
    }
}

impl PyShareFetch {
    /// Returns the response, or a `Later` that completes with it.
    pub(crate) fn handle<'py>(
        handler: &Bound<'py, Self>,
        incoming: &incoming_request::IncomingRequest<'_, 'py>,
        message: &ShareFetchRequest<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = incoming.py();
        if incoming.needs(RIGHTS | FEATURES) {
            let check = handler.borrow().check.clone_ref(py);
            check
                .bind(py)
                .call1((incoming.context()?, message.group_id))?;
        }
        let begun = Wanted::of(message).map_err(|error| invalid(py, &error));
        let begun = begun.and_then(|wanted| {
            let fetch = FetchRequest {
                handler,
                incoming,
                share: incoming.share()?,
                request: Request { message, wanted },
            };
            let session = fetch.session()?;
            Ok((fetch, session))
        });
        match begun {
            Ok((fetch, session)) => fetch.begin(&session),
            Err(error) => {
                let refused = (message.max_wait_ms, kafka_error_in(py, error)?);
                let refuse = handler.borrow().refuse.clone_ref(py);
                refuse.bind(py).call1(refused)
            }
        }
    }
}

#[pymethods]
impl PyShareFetch {
    #[new]
    fn new(
        check: Py<PyAny>,
        may_read: Py<PyAny>,
        open: Py<PyAny>,
        refuse: Py<PyAny>,
        exclude: Py<PyAny>,
    ) -> Self {
        Self {
            check,
            may_read,
            open,
            refuse,
            exclude,
        }
    }
}

collected!(PyShareFetch {
    check,
    may_read,
    open,
    refuse,
    exclude
});
