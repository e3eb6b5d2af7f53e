//! Message schemas: decodes bytes to named tuples and encodes dicts to bytes.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyList, PyString, PyTuple, PyType};
use sharecore_wire::typed::Message;
use sharecore_wire::typed::produce::ProduceResponse;
use sharecore_wire::typed::share_acknowledge::ShareAcknowledgeResponse;
use sharecore_wire::typed::share_fetch::ShareFetchResponse;
use sharecore_wire::{Build, Field, Input, Kind, Layout, read, response_head};

use crate::parts::Parts;
use crate::produced::PyProduced;
use crate::rest::Rest;
use crate::share_answer::PyShareAnswer;
use crate::stop::Stop;
use crate::uuids;
use crate::write::write_record;

/// The Python side of a struct; `Layout::id` is its index in the list.
pub(crate) struct Class {
    /// The tuple class to create; None for a plain tuple.
    made: Option<Py<PyType>>,
    pub(crate) names: Vec<Py<PyString>>,
    pub(crate) defaults: Vec<Py<PyAny>>,
}

/// Responses that a Rust struct encodes.
#[derive(Clone, Copy)]
pub(crate) enum Answers {
    Produce,
    ShareFetch,
    ShareAcknowledge,
}

/// The schema of one version of a message.
#[pyclass(name = "Layout", module = "sharecore._core", frozen)]
pub(crate) struct PyLayout {
    layout: Layout,
    classes: Vec<Class>,
    name: String,
    version: i16,
    answers: Option<Answers>,
}

#[pymethods]
impl PyLayout {
    /// `spec`: (class or None, flexible, fields); each field (name, kind, array, nullable, tag or None, default,
    /// spec or None).
    #[new]
    fn new(spec: &Bound<'_, PyAny>, name: String, version: i16) -> PyResult<Self> {
        let mut classes = Vec::new();
        let layout = layout(spec, &mut classes)?;
        let mut made = PyLayout {
            layout,
            classes,
            name,
            version,
            answers: None,
        };
        let known = [
            (made.is_of::<ProduceResponse>(), Answers::Produce),
            (made.is_of::<ShareFetchResponse>(), Answers::ShareFetch),
            (
                made.is_of::<ShareAcknowledgeResponse>(),
                Answers::ShareAcknowledge,
            ),
        ];
        made.answers = known
            .into_iter()
            .find_map(|(is_it, answers)| is_it.then_some(answers));
        Ok(made)
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        offset: usize,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let mut input = Input::new(data, offset);
        let value = self.message(py, &mut input).map_err(Stop::into_error)?;
        Ok((value, input.at()))
    }

    /// Like `read`, but for a worker thread: releases the interpreter now and then.
    fn read_apart<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyBytes>,
        offset: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut input = Input::new(data.as_bytes(), offset);
        let mut build = Objects::<'_, '_, true> {
            py,
            classes: &self.classes,
            rest: Rest::default(),
        };
        read(&self.layout, &mut input, &mut build).map_err(Stop::into_error)
    }

    /// Like `write_response`, but for a worker thread: releases the interpreter now and then.
    fn write_response_apart<'py>(
        &self,
        correlation_id: i32,
        tagged_header: bool,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let head = response_head(correlation_id, tagged_header);
        if let Ok(produced) = message.cast::<PyProduced>() {
            return produced.borrow().frame_apart(message.py(), self, head);
        }
        let mut out = Parts::shared(head).resting();
        write_record(&self.layout, &self.classes, message, &mut out)?;
        out.into_frame(message.py())
    }

    fn write<'py>(&self, message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Parts::joined(Vec::new());
        write_record(&self.layout, &self.classes, message, &mut out)?;
        Ok(PyBytes::new(message.py(), out.last()))
    }

    /// Encodes a response with its size and header as buffers to send in order.
    #[pyo3(name = "write_response")]
    pub(crate) fn frame<'py>(
        &self,
        correlation_id: i32,
        tagged_header: bool,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let head = response_head(correlation_id, tagged_header);
        if let Ok(produced) = message.cast::<PyProduced>() {
            return produced.borrow().frame(message.py(), self, head);
        }
        if let Ok(answer) = message.cast::<PyShareAnswer>() {
            return answer.borrow().frame(message.py(), self, head);
        }
        let mut out = Parts::shared(head);
        write_record(&self.layout, &self.classes, message, &mut out)?;
        out.into_frame(message.py())
    }
}

impl PyLayout {
    pub(crate) fn fields(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn version(&self) -> i16 {
        self.version
    }

    /// The response type, if a Rust struct encodes it.
    pub(crate) fn answers(&self) -> Option<Answers> {
        self.answers
    }

    /// True if the Rust struct `M` decodes and encodes this message.
    pub(crate) fn is_of<'a, M: Message<'a>>(&self) -> bool {
        self.name == M::NAME && M::layout(self.version).is_some_and(|own| own.is_like(&self.layout))
    }

    /// The error for a response object of another message.
    pub(crate) fn refuse_answer(&self) -> PyErr {
        let (name, version) = (&self.name, self.version);
        PyTypeError::new_err(format!(
            "{name} version {version} cannot encode this response"
        ))
    }

    /// Decodes the message at `input`.
    pub(crate) fn message<'py>(
        &self,
        py: Python<'py>,
        input: &mut Input<'_>,
    ) -> Result<Bound<'py, PyAny>, Stop> {
        let classes = &self.classes;
        let rest = Rest::default();
        let mut build = Objects::<'_, '_, false> { py, classes, rest };
        read(&self.layout, input, &mut build)
    }
}

fn layout(spec: &Bound<'_, PyAny>, classes: &mut Vec<Class>) -> PyResult<Layout> {
    let (made, flexible, fields): (Option<Py<PyType>>, bool, Bound<'_, PyTuple>) =
        spec.extract()?;
    let id = classes.len();
    if let Some(class) = &made
        && !class.bind(spec.py()).is_subclass_of::<PyTuple>()?
    {
        return Err(PyTypeError::new_err(
            "the class of a struct must be a subclass of tuple",
        ));
    }
    classes.push(Class {
        made,
        names: Vec::new(),
        defaults: Vec::new(),
    });
    let mut read = Vec::with_capacity(fields.len());
    for field in fields.iter() {
        let (name, kind, array, nullable, tag, default, inner): FieldSpec<'_> = field.extract()?;
        let inner = inner.map(|spec| layout(&spec, classes)).transpose()?;
        let kind = Kind::named(&kind).filter(|kind| (*kind == Kind::Struct) == inner.is_some());
        let kind =
            kind.ok_or_else(|| PyValueError::new_err(format!("{name}: unknown kind of field")))?;
        classes[id]
            .names
            .push(PyString::intern(spec.py(), &name).unbind());
        classes[id].defaults.push(default);
        read.push(Field {
            name,
            kind,
            array,
            nullable,
            tag,
            layout: inner,
        });
    }
    Ok(Layout::new(id, flexible, read))
}

type FieldSpec<'py> = (
    String,
    String,
    bool,
    bool,
    Option<u32>,
    Py<PyAny>,
    Option<Bound<'py, PyAny>>,
);

/// Builds Python objects; with `APART`, in a worker thread.
struct Objects<'a, 'py, const APART: bool> {
    py: Python<'py>,
    classes: &'a [Class],
    /// Used in a worker thread only.
    rest: Rest,
}

impl<const APART: bool> Objects<'_, '_, APART> {
    fn step(&mut self) {
        if APART {
            self.rest.step(self.py);
        }
    }
}

impl<'py, const APART: bool> Build<'_> for Objects<'_, 'py, APART> {
    type Value = Bound<'py, PyAny>;
    type Error = Stop;

    fn int(&mut self, value: i64) -> Result<Self::Value, Stop> {
        self.step();
        let Ok(value) = value.into_pyobject(self.py);
        Ok(value.into_any())
    }

    fn uint64(&mut self, value: u64) -> Result<Self::Value, Stop> {
        let Ok(value) = value.into_pyobject(self.py);
        Ok(value.into_any())
    }

    fn float64(&mut self, value: f64) -> Result<Self::Value, Stop> {
        Ok(PyFloat::new(self.py, value).into_any())
    }

    fn boolean(&mut self, value: bool) -> Result<Self::Value, Stop> {
        Ok(PyBool::new(self.py, value).to_owned().into_any())
    }

    fn uuid(&mut self, value: [u8; 16]) -> Result<Self::Value, Stop> {
        Ok(uuids::object(self.py, value)?)
    }

    fn string(&mut self, value: &str) -> Result<Self::Value, Stop> {
        self.step();
        Ok(PyString::new(self.py, value).into_any())
    }

    fn bytes(&mut self, value: &[u8]) -> Result<Self::Value, Stop> {
        Ok(PyBytes::new(self.py, value).into_any())
    }

    fn array(&mut self, values: Vec<Self::Value>) -> Result<Self::Value, Stop> {
        Ok(PyList::new(self.py, values)?.into_any())
    }

    fn record(&mut self, layout: &Layout, values: Vec<Self::Value>) -> Result<Self::Value, Stop> {
        self.step();
        let values = PyTuple::new(self.py, values)?;
        match &self.classes[layout.id].made {
            Some(class) => Ok(named(class.bind(self.py), values)?),
            None => Ok(values.into_any()),
        }
    }

    fn null(&mut self) -> Result<Self::Value, Stop> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn default(&mut self, layout: &Layout, field: usize) -> Result<Self::Value, Stop> {
        Ok(self.classes[layout.id].defaults[field]
            .bind(self.py)
            .clone())
    }
}

/// `tuple.__new__(class, values)` without the Python call, which would cost more than the object.
pub(crate) fn named<'py>(
    class: &Bound<'py, PyType>,
    values: Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let arguments = PyTuple::new(py, [values])?;
    // SAFETY: the `tp_new` of tuple is a `newfunc`. It receives a subtype of tuple (checked by `layout`), a tuple of arguments
    // and no keywords, and returns a new reference, or null with an exception set.
    unsafe {
        let slot =
            pyo3::ffi::PyType_GetSlot(&raw mut pyo3::ffi::PyTuple_Type, pyo3::ffi::Py_tp_new);
        let new: pyo3::ffi::newfunc = std::mem::transmute(slot);
        let made = new(
            class.as_type_ptr(),
            arguments.as_ptr(),
            std::ptr::null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}
