//! `IncomingRequest`: a request's header, connection and context, for its handler.

use std::cell::OnceCell;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use sharecore_wire::Header;

use crate::checks::{QUOTAS, RIGHTS};
use crate::dispatch::PyDispatch;
use crate::exchange::PyExchange;
use crate::layout::named;
use crate::python;
use crate::share_services::ShareServices;

/// A request's header, connection and context; its body is passed separately.
pub(crate) struct IncomingRequest<'a, 'py> {
    pub(crate) dispatch: &'a Bound<'py, PyDispatch>,
    pub(crate) connection: &'a Bound<'py, PyAny>,
    pub(crate) header: Header<'a>,
    pub(crate) context: OnceCell<Bound<'py, PyAny>>,
}

impl<'py> IncomingRequest<'_, 'py> {
    pub(crate) fn api_version(&self) -> i16 {
        self.header.api_version
    }

    pub(crate) fn py(&self) -> Python<'py> {
        self.connection.py()
    }

    pub(crate) fn connection(&self) -> &Bound<'py, PyAny> {
        self.connection
    }

    /// The name of the listener that accepted the client's connection.
    pub(crate) fn listener(&self) -> PyResult<Bound<'py, PyAny>> {
        self.connection
            .getattr(intern!(self.py(), python::LISTENER))
    }

    pub(crate) fn broker(&self) -> Bound<'py, PyAny> {
        self.dispatch.borrow().broker.bind(self.py()).clone()
    }

    /// True if at least one of `checks` must be made.
    pub(crate) fn needs(&self, checks: u8) -> bool {
        let held = self.dispatch.borrow();
        let published = held.checks.as_ref();
        published.is_none_or(|published| published.get().needs(checks))
    }

    /// True if any client quota is set.
    pub(crate) fn is_metered(&self) -> PyResult<bool> {
        if !self.needs(QUOTAS) {
            return Ok(false);
        }
        let py = self.py();
        let throttles = self.broker().getattr(intern!(py, python::THROTTLES))?;
        throttles.getattr(intern!(py, python::ON))?.is_truthy()
    }

    /// True if no authorizer is configured.
    pub(crate) fn is_open(&self) -> PyResult<bool> {
        if !self.needs(RIGHTS) {
            return Ok(true);
        }
        let authorizer = intern!(self.py(), python::AUTHORIZER);
        Ok(self.broker().getattr(authorizer)?.is_none())
    }

    pub(crate) fn share(&self) -> PyResult<Arc<ShareServices>> {
        if let Some(share) = &self.dispatch.borrow().share {
            return Ok(Arc::clone(share));
        }
        let share = Arc::new(ShareServices::of(&self.broker())?);
        self.dispatch.borrow_mut().share = Some(Arc::clone(&share));
        Ok(share)
    }

    /// The connection, unless it is a test's stand-in.
    pub(crate) fn exchange(&self) -> Option<Bound<'py, PyExchange>> {
        self.connection.cast::<PyExchange>().ok().cloned()
    }

    /// The `RequestContext`, created on first use.
    pub(crate) fn context(&self) -> PyResult<Bound<'py, PyAny>> {
        if let Some(context) = self.context.get() {
            return Ok(context.clone());
        }
        let made = context_of(self.dispatch, self.connection, &self.header)?;
        Ok(self.context.get_or_init(|| made).clone())
    }

    /// Keeps what is needed to create the context after the request is gone.
    pub(crate) fn later_context(&self) -> LaterContext {
        match self.context.get() {
            Some(context) => LaterContext::Made(context.clone().unbind()),
            None => LaterContext::Of {
                connection: self.connection.clone().unbind(),
                api_key: self.header.api_key,
                api_version: self.header.api_version,
                client_id: self.header.client_id.map(Box::from),
            },
        }
    }
}

/// Creates the `RequestContext` of a request.
pub(crate) fn context_of<'py>(
    dispatch: &Bound<'py, PyDispatch>,
    connection: &Bound<'py, PyAny>,
    header: &Header<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = dispatch.py();
    let (class, broker) = {
        let held = dispatch.borrow();
        (held.context.clone_ref(py), held.broker.clone_ref(py))
    };
    let values = (
        broker,
        connection,
        header.api_key,
        header.api_version,
        header.correlation_id,
        header.client_id,
    );
    named(class.bind(py), values.into_pyobject(py)?)
}

/// The context of a request that is answered later; created on demand, since few responses need one.
pub(crate) enum LaterContext {
    Made(Py<PyAny>),
    Of {
        connection: Py<PyAny>,
        api_key: i16,
        api_version: i16,
        client_id: Option<Box<str>>,
    },
}
