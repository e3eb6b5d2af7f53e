//! Decodes requests: to Python objects, or to structs for handlers written in Rust.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use sharecore_wire::Input;
use sharecore_wire::typed::Message;
use sharecore_wire::typed::produce::ProduceRequest;
use sharecore_wire::typed::share_acknowledge::ShareAcknowledgeRequest;
use sharecore_wire::typed::share_fetch::ShareFetchRequest;

use crate::acknowledging::PyShareAcknowledge;
use crate::collected::Refers;
use crate::large::entries_of_large;
use crate::layout::PyLayout;
use crate::produce::PyProduce;
use crate::share_fetch::PyShareFetch;
use crate::stop::Stop;

/// The handler for one version of an API.
pub(crate) enum Handle {
    Python(Py<PyAny>),
    Produce(Py<PyProduce>),
    ShareFetch(Py<PyShareFetch>),
    ShareAcknowledge(Py<PyShareAcknowledge>),
}

impl Handle {
    /// Returns the handler for the requests of a layout; a Rust handler accepts only its own struct.
    pub(crate) fn of(handle: &Bound<'_, PyAny>, request: &PyLayout) -> PyResult<Self> {
        let (handle, fits) = if let Ok(produce) = handle.cast::<PyProduce>() {
            let handle = Handle::Produce(produce.clone().unbind());
            (handle, request.is_of::<ProduceRequest>())
        } else if let Ok(fetch) = handle.cast::<PyShareFetch>() {
            let handle = Handle::ShareFetch(fetch.clone().unbind());
            (handle, request.is_of::<ShareFetchRequest>())
        } else if let Ok(acknowledge) = handle.cast::<PyShareAcknowledge>() {
            let handle = Handle::ShareAcknowledge(acknowledge.clone().unbind());
            (handle, request.is_of::<ShareAcknowledgeRequest>())
        } else {
            (Handle::Python(handle.clone().unbind()), true)
        };
        if fits {
            Ok(handle)
        } else {
            let text = "the schema is not the one that the handler reads";
            Err(PyValueError::new_err(text))
        }
    }

    /// The handler, if its large requests are decoded in a thread.
    fn reads_apart<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Handle::Python(handle) => Some(handle.bind(py).clone()),
            Handle::Produce(handle) => Some(handle.bind(py).clone().into_any()),
            Handle::ShareFetch(_) | Handle::ShareAcknowledge(_) => None,
        }
    }
}

impl Refers for Handle {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Handle::Python(handle) => handle.show(visit),
            Handle::Produce(handle) => handle.show(visit),
            Handle::ShareFetch(handle) => handle.show(visit),
            Handle::ShareAcknowledge(handle) => handle.show(visit),
        }
    }
}

/// A decoded request for the handler of its route.
pub(crate) enum Read<'a, 'h, 'py> {
    Python(&'h Py<PyAny>, Bound<'py, PyAny>),
    /// A request with many entries, to be decoded in a thread: its handler, its position in the frame, and the number of
    /// entries.
    Large(Bound<'py, PyAny>, usize, usize),
    Produce(&'h Py<PyProduce>, ProduceRequest<'a>),
    ShareFetch(&'h Py<PyShareFetch>, ShareFetchRequest<'a>),
    ShareAcknowledge(&'h Py<PyShareAcknowledge>, ShareAcknowledgeRequest<'a>),
}

impl<'a, 'h, 'py> Read<'a, 'h, 'py> {
    /// Decodes the request after its header; `input` is positioned before the header's tagged fields.
    pub(crate) fn of(
        py: Python<'py>,
        handle: &'h Handle,
        layout: &PyLayout,
        input: &mut Input<'a>,
        entries_max: usize,
    ) -> Result<Self, Stop> {
        let large = entries_of_large(layout, input, entries_max)?;
        if let Some((at, entries)) = large
            && let Some(handle) = handle.reads_apart(py)
        {
            return Ok(Read::Large(handle, at, entries));
        }
        if layout.fields().flexible {
            input.skip_tagged_fields()?;
        }
        let version = layout.version();
        Ok(match handle {
            Handle::Python(handle) => Read::Python(handle, layout.message(py, input)?),
            Handle::Produce(handle) => {
                Read::Produce(handle, ProduceRequest::decode(version, input)?)
            }
            Handle::ShareFetch(handle) => {
                Read::ShareFetch(handle, ShareFetchRequest::decode(version, input)?)
            }
            Handle::ShareAcknowledge(handle) => {
                Read::ShareAcknowledge(handle, ShareAcknowledgeRequest::decode(version, input)?)
            }
        })
    }
}
