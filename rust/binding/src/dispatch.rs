//! `Dispatch`: passes a request frame to its handler and encodes the response. `sharecore.broker.requests.dispatch` creates
//! one.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::cell::OnceCell;
use std::sync::Arc;

use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyList, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use sharecore_share::IdMap;
use sharecore_wire::{Header, Input, read_header};

use crate::checks::PyChecks;
use crate::collected::{Refers, collected};
use crate::finishing::Finishing;
use crate::incoming_request::IncomingRequest;
use crate::large::PyWritten;
use crate::layout::PyLayout;
use crate::produce::PyProduce;
use crate::produced::PyProduced;
use crate::python;
use crate::reading::{Handle, Read};
use crate::share_answer::PyShareAnswer;
use crate::share_fetch::PyShareFetch;
use crate::share_services::ShareServices;
use crate::slot::{Answer, Finish, PyPending, disconnect};
use crate::waiting::PyLater;

static ENSURE_FUTURE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// One version of an API.
pub(crate) struct Route {
    request: Py<PyLayout>,
    response: Py<PyLayout>,
    tagged_header: bool,
    /// The codec, for Python code that encodes a response itself.
    messages: Py<PyAny>,
    handle: Handle,
}

/// Pending responses share the route, so the references that it owns are visited once, here.
impl Refers for Route {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.messages.show(visit)?;
        self.handle.show(visit)
    }
}

/// Python functions for rare cases: the first use of a version, errors, and large requests.
struct Hooks {
    /// Adds a version of an API; returns False for an unsupported version of `ApiVersions`.
    learn: Py<PyAny>,
    /// Answers an unsupported version of `ApiVersions`.
    unsupported: Py<PyAny>,
    /// Logs a request.
    note: Py<PyAny>,
    /// Creates the meter of a request.
    meter: Py<PyAny>,
    /// Checks the field names of a response.
    check: Py<PyAny>,
    /// Logs a response that cannot be encoded, and raises.
    unwritable: Py<PyAny>,
    /// Builds the response for a request that failed as a whole.
    refusal: Py<PyAny>,
    /// Handles a request with many entries.
    handle_apart: Py<PyAny>,
}

impl Refers for Hooks {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let all = [
            &self.learn,
            &self.unsupported,
            &self.note,
            &self.meter,
            &self.check,
            &self.unwritable,
            &self.refusal,
            &self.handle_apart,
        ];
        all.into_iter().try_for_each(|hook| hook.show(visit))
    }
}

/// Decodes requests, calls their handlers and encodes the responses.
#[pyclass(name = "Dispatch", module = "sharecore._core")]
pub(crate) struct PyDispatch {
    pub(crate) broker: Py<PyAny>,
    /// `RequestContext`, a tuple class.
    pub(crate) context: Py<PyType>,
    check_names: bool,
    log_requests: bool,
    /// A request with more entries is malformed.
    entries_max: usize,
    routes: IdMap<(i16, i16), Arc<Route>>,
    hooks: Arc<Hooks>,
    /// The checks that the broker needs; None if it does not publish them.
    pub(crate) checks: Option<Py<PyChecks>>,
    pub(crate) share: Option<Arc<ShareServices>>,
}

/// What is needed to encode a response.
pub(crate) struct Ending<'a, 'py> {
    pub(crate) dispatch: &'a Bound<'py, PyDispatch>,
    pub(crate) route: &'a Route,
    pub(crate) correlation_id: i32,
    pub(crate) meter: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Ending<'_, 'py> {
    fn hooks(&self) -> Arc<Hooks> {
        Arc::clone(&self.dispatch.borrow().hooks)
    }

    /// Encodes a response, which is a dict or an object that encodes itself.
    pub(crate) fn encode(
        &self,
        message: &Bound<'py, PyAny>,
        context: &dyn Fn() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let messages = self.route.messages.bind(message.py());
        let check_names = self.dispatch.borrow().check_names;
        if check_names && message.is_instance_of::<PyDict>() {
            let arguments = (messages, context()?, message);
            self.hooks().check.bind(message.py()).call1(arguments)?;
        }
        self.written(message).or_else(|error| {
            if !error.is_instance_of::<PyException>(message.py()) {
                return Err(error);
            }
            let arguments = (context()?, error.into_value(message.py()));
            let raised = self
                .hooks()
                .unwritable
                .bind(message.py())
                .call1(arguments)?;
            Ok(raised.cast_into()?)
        })
    }

    fn written(&self, message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = message.py();
        let layout = self.route.response.get();
        let written = message.cast::<PyWritten>();
        let (message, parts) = if let Ok(written) = &written {
            written.get().parts(py)
        } else {
            let parts = layout.frame(self.correlation_id, self.route.tagged_header, message)?;
            (message, parts)
        };
        let Some(meter) = self.meter else {
            return Ok(parts);
        };
        let messages = self.route.messages.bind(message.py());
        let settled = meter.call_method1(python::SETTLE, (messages, message, parts))?;
        Ok(settled.cast_into()?)
    }

    /// Encodes the response for a request that failed as a whole.
    pub(crate) fn refuse(
        &self,
        error: PyErr,
        context: &dyn Fn() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = self.dispatch.py();
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let messages = self.route.messages.bind(py);
        let arguments = (messages, context()?, error.into_value(py));
        let message = self.hooks().refusal.bind(py).call1(arguments)?;
        self.encode(&message, context)
    }
}

impl PyDispatch {
    fn route(
        dispatch: &Bound<'_, Self>,
        header: &Header<'_>,
    ) -> PyResult<Result<Arc<Route>, Py<PyAny>>> {
        let key = (header.api_key, header.api_version);
        let known = || dispatch.borrow().routes.get(&key).cloned();
        if let Some(route) = known() {
            return Ok(Ok(route));
        }
        let (py, hooks) = (dispatch.py(), Arc::clone(&dispatch.borrow().hooks));
        if !hooks.learn.bind(py).call1(key)?.is_truthy()? {
            let answer = hooks.unsupported.bind(py).call1((header.correlation_id,))?;
            return Ok(Err(answer.unbind()));
        }
        let route = known().ok_or_else(|| PyRuntimeError::new_err("the API was not added"))?;
        Ok(Ok(route))
    }

    /// Calls the handler; returns None if the request gets no response.
    fn handled<'py>(
        route: &Route,
        incoming: &IncomingRequest<'_, 'py>,
        request: Read<'_, '_, 'py>,
        frame: &Bound<'py, PyBytes>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = incoming.connection.py();
        let answer = match request {
            Read::Python(handle, message) => {
                handle.bind(py).call1((incoming.context()?, message))?
            }
            Read::Large(handle, at, entries) => {
                let messages = route.messages.bind(py);
                let arguments = (incoming.context()?, messages, handle, frame, at, entries);
                let hooks = Arc::clone(&incoming.dispatch.borrow().hooks);
                hooks.handle_apart.bind(py).call1(arguments)?
            }
            Read::Produce(produce, request) => {
                return PyProduce::handle(produce.bind(py), incoming, &request, frame);
            }
            Read::ShareFetch(fetch, request) => {
                PyShareFetch::handle(fetch.bind(py), incoming, &request)?
            }
            Read::ShareAcknowledge(acknowledge, request) => {
                acknowledge.get().handle(incoming, &request)?
            }
        };
        Ok((!answer.is_none()).then_some(answer))
    }

    /// Returns the dispatch whose method `on_frame` is, if it is one.
    pub(crate) fn behind(on_frame: &Bound<'_, PyAny>) -> Option<Py<Self>> {
        let method = on_frame.cast::<PyCFunction>().ok()?;
        let name: String = method.getattr(python::DUNDER_NAME).ok()?.extract().ok()?;
        let dispatch = method
            .getattr(python::DUNDER_SELF)
            .ok()?
            .cast_into::<Self>()
            .ok()?;
        (name == "on_frame").then(|| dispatch.unbind())
    }

    /// Answers one request frame.
    pub(crate) fn serve<'py>(
        dispatch: &Bound<'py, Self>,
        connection: &Bound<'py, PyAny>,
        frame: &Bound<'py, PyBytes>,
    ) -> PyResult<Answer> {
        let py = dispatch.py();
        let bytes = frame.as_bytes();
        let mut input = Input::new(bytes, 0);
        let header = read_header(&mut input).map_err(|error| malformed(py, &error.to_string()))?;
        let route = match Self::route(dispatch, &header)? {
            Ok(route) => route,
            Err(answer) => return Ok(Answer::Ready(answer.extract(py)?)),
        };
        let incoming = IncomingRequest {
            dispatch,
            connection,
            header,
            context: OnceCell::new(),
        };
        let entries_max = dispatch.borrow().entries_max;
        let (handle, layout) = (&route.handle, route.request.get());
        let request = Read::of(py, handle, layout, &mut input, entries_max);
        let request = request.map_err(|stop| stop.into_end(py))?;
        if dispatch.borrow().log_requests {
            let hooks = Arc::clone(&dispatch.borrow().hooks);
            let arguments = (incoming.context()?, bytes.len());
            hooks.note.bind(py).call1(arguments)?;
        }
        let meter = if incoming.is_metered()? {
            let hooks = Arc::clone(&dispatch.borrow().hooks);
            let arguments = (incoming.context()?, bytes.len());
            Some(hooks.meter.bind(py).call1(arguments)?)
        } else {
            None
        };
        let context = || incoming.context();
        let ending = Ending {
            dispatch,
            route: &route,
            correlation_id: incoming.header.correlation_id,
            meter: meter.as_ref(),
        };
        let answer = match Self::handled(&route, &incoming, request, frame) {
            Ok(Some(answer)) => answer,
            Ok(None) => {
                if let Some(meter) = &meter {
                    let nothing = (route.messages.bind(py), py.None(), PyList::empty(py));
                    meter.call_method1(python::SETTLE, nothing)?;
                }
                return Ok(Answer::Ready(None));
            }
            Err(error) => {
                return Ok(Answer::Ready(Some(
                    ending.refuse(error, &context)?.unbind(),
                )));
            }
        };
        let is_there = answer.is_exact_instance_of::<PyDict>()
            || answer.is_exact_instance_of::<PyProduced>()
            || answer.is_exact_instance_of::<PyShareAnswer>();
        if is_there {
            return Ok(Answer::Ready(Some(
                ending.encode(&answer, &context)?.unbind(),
            )));
        }
        let future = future_of(answer)?;
        if let Some(meter) = &meter {
            meter.call_method0(python::REST)?;
        }
        let finishing = Finishing {
            dispatch: dispatch.clone().unbind(),
            route: Arc::clone(&route),
            context: incoming.later_context(),
            correlation_id: incoming.header.correlation_id,
            meter: meter.map(Bound::unbind),
        };
        let finish = Finish::Frame(Box::new(finishing));
        Ok(Answer::Pending(future.unbind(), finish))
    }
}

/// The exception that closes a connection whose bytes are not a valid request.
pub(crate) fn malformed(py: Python<'_>, reason: &str) -> PyErr {
    disconnect(py, &format!("malformed request: {reason}")).unwrap_or_else(|error| error)
}

/// Wraps an awaitable in a future.
fn future_of(answer: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if answer.is_instance_of::<PyLater>() {
        return Ok(answer);
    }
    let py = answer.py();
    let ensure = ENSURE_FUTURE.get_or_try_init(py, || {
        let module = py.import("asyncio")?;
        Ok::<_, PyErr>(module.getattr(python::ENSURE_FUTURE)?.unbind())
    })?;
    ensure.bind(py).call1((answer,))
}

#[pymethods]
impl PyDispatch {
    #[new]
    #[pyo3(signature = (broker, context, check_names, log_requests, entries_max, *, learn, unsupported, note, meter, check,
                        unwritable, refusal, handle_apart))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        broker: Bound<'_, PyAny>,
        context: Bound<'_, PyType>,
        check_names: bool,
        log_requests: bool,
        entries_max: usize,
        learn: Py<PyAny>,
        unsupported: Py<PyAny>,
        note: Py<PyAny>,
        meter: Py<PyAny>,
        check: Py<PyAny>,
        unwritable: Py<PyAny>,
        refusal: Py<PyAny>,
        handle_apart: Py<PyAny>,
    ) -> PyResult<Self> {
        let hooks = Hooks {
            learn,
            unsupported,
            note,
            meter,
            check,
            unwritable,
            refusal,
            handle_apart,
        };
        let checks = broker.getattr(python::CHECKS).ok();
        let checks = checks.and_then(|checks| checks.extract().ok());
        if !context.is_subclass_of::<PyTuple>()? {
            return Err(PyValueError::new_err(
                "the context class must be a subclass of tuple",
            ));
        }
        Ok(Self {
            broker: broker.unbind(),
            context: context.unbind(),
            check_names,
            log_requests,
            entries_max,
            routes: IdMap::default(),
            hooks: Arc::new(hooks),
            checks,
            share: None,
        })
    }

    /// Adds the handler of one API version.
    #[pyo3(signature = (api_key, api_version, messages, handle))]
    fn add(
        &mut self,
        api_key: i16,
        api_version: i16,
        messages: &Bound<'_, PyAny>,
        handle: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let request: Py<PyLayout> = messages.getattr(python::REQUEST_LAYOUT)?.extract()?;
        let handle = Handle::of(handle, request.get())?;
        let route = Route {
            request,
            response: messages.getattr(python::RESPONSE_LAYOUT)?.extract()?,
            tagged_header: messages.getattr(python::TAGGED_HEADER)?.extract()?,
            messages: messages.clone().unbind(),
            handle,
        };
        self.routes.insert((api_key, api_version), Arc::new(route));
        Ok(())
    }

    /// Answers one request frame.
    fn on_frame<'py>(
        dispatch: &Bound<'py, Self>,
        connection: &Bound<'py, PyAny>,
        frame: &Bound<'py, PyBytes>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let py = dispatch.py();
        match Self::serve(dispatch, connection, frame)? {
            Answer::Pending(future, finish) => {
                let pending = PyPending::of(future, finish);
                Ok(Some(Py::new(py, pending)?.into_any()))
            }
            Answer::Ready(parts) => Ok(parts.map(Py::into_any)),
            Answer::Finishing | Answer::Close(_) => Ok(None),
        }
    }
}

collected!(PyDispatch { broker, share, routes, hooks } cut { routes, share });
