//! `sharecore._core.Record`: one record as a Python object.

use crate::python;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

pub(crate) type Header = (String, Option<Box<[u8]>>);

/// One record, acquired or created by an application.
#[pyclass(name = "Record", module = "sharecore._core", frozen, generic)]
pub(crate) struct PyRecord {
    #[pyo3(get)]
    pub(crate) topic: Py<PyString>,
    #[pyo3(get)]
    pub(crate) partition: i32,
    #[pyo3(get)]
    pub(crate) offset: i64,
    #[pyo3(get)]
    pub(crate) timestamp: i64,
    pub(crate) log_append_time: bool,
    #[pyo3(get)]
    pub(crate) key: Option<Py<PyAny>>,
    #[pyo3(get)]
    pub(crate) value: Option<Py<PyAny>>,
    #[pyo3(get)]
    pub(crate) serialized_key_size: i32,
    #[pyo3(get)]
    pub(crate) serialized_value_size: i32,
    pub(crate) headers: Option<Box<[Header]>>,
    #[pyo3(get)]
    pub(crate) delivery_count: i16,
    #[pyo3(get)]
    pub(crate) leader_epoch: i32,
    /// The acquisition it belongs to; None if an application created it.
    #[pyo3(get)]
    pub(crate) lease: Py<PyAny>,
    #[pyo3(get)]
    pub(crate) position: usize,
}

/// Default size of a key or value; -1 for anything but bytes.
fn size_of(py: Python<'_>, content: Option<&Py<PyAny>>) -> i32 {
    let bytes = content.and_then(|content| content.bind(py).cast::<PyBytes>().ok());
    bytes.map_or(-1, |bytes| {
        i32::try_from(bytes.as_bytes().len()).unwrap_or(i32::MAX)
    })
}

fn same(py: Python<'_>, one: Option<&Py<PyAny>>, other: Option<&Py<PyAny>>) -> PyResult<bool> {
    match (one, other) {
        (Some(one), Some(other)) => one.bind(py).eq(other.bind(py)),
        (one, other) => Ok(one.is_none() && other.is_none()),
    }
}

#[pymethods]
impl PyRecord {
    #[new]
    #[pyo3(signature = (
        *,
        topic="",
        partition=0,
        offset=0,
        key=None,
        value=None,
        headers=Vec::new(),
        timestamp=-1,
        timestamp_type=0,
        delivery_count=1,
        leader_epoch=-1,
        serialized_key_size=None,
        serialized_value_size=None,
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        topic: &str,
        partition: i32,
        offset: i64,
        key: Option<Py<PyAny>>,
        value: Option<Py<PyAny>>,
        headers: Vec<(String, Option<PyBackedBytes>)>,
        timestamp: i64,
        timestamp_type: i32,
        delivery_count: i16,
        leader_epoch: i32,
        serialized_key_size: Option<i32>,
        serialized_value_size: Option<i32>,
    ) -> PyResult<Self> {
        if !(0..=1).contains(&timestamp_type) {
            return Err(PyValueError::new_err(format!(
                "timestamp_type={timestamp_type}: pass 0 (the producer's clock) or 1 (the broker's)"
            )));
        }
        let headers: Box<[Header]> = headers
            .into_iter()
            .map(|(name, value)| (name, value.map(|bytes| Box::from(&*bytes))))
            .collect();
        Ok(Self {
            topic: PyString::new(py, topic).unbind(),
            partition,
            offset,
            timestamp,
            log_append_time: timestamp_type == 1,
            serialized_key_size: serialized_key_size.unwrap_or_else(|| size_of(py, key.as_ref())),
            serialized_value_size: serialized_value_size
                .unwrap_or_else(|| size_of(py, value.as_ref())),
            key,
            value,
            headers: (!headers.is_empty()).then_some(headers),
            delivery_count,
            leader_epoch,
            lease: py.None(),
            position: 0,
        })
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let headers = self.headers.as_deref().unwrap_or_default().iter();
        PyList::new(
            py,
            headers
                .map(|(name, value)| (name, value.as_deref().map(|bytes| PyBytes::new(py, bytes)))),
        )
    }

    #[getter]
    fn timestamp_type(&self) -> i32 {
        i32::from(self.log_append_time)
    }

    fn replace(&self, py: Python<'_>, key: Option<Py<PyAny>>, value: Option<Py<PyAny>>) -> Self {
        Self {
            topic: self.topic.clone_ref(py),
            key,
            value,
            headers: self.headers.clone(),
            lease: self.lease.clone_ref(py),
            ..*self
        }
    }

    /// A pickle keeps everything but the lease, which belongs to a consumer of this process.
    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("topic", &self.topic)?;
        named.set_item("partition", self.partition)?;
        named.set_item("offset", self.offset)?;
        named.set_item("key", &self.key)?;
        named.set_item("value", &self.value)?;
        named.set_item("headers", self.headers(py)?)?;
        named.set_item("timestamp", self.timestamp)?;
        named.set_item("timestamp_type", self.timestamp_type())?;
        named.set_item("delivery_count", self.delivery_count)?;
        named.set_item("leader_epoch", self.leader_epoch)?;
        named.set_item("serialized_key_size", self.serialized_key_size)?;
        named.set_item("serialized_value_size", self.serialized_value_size)?;
        Ok((PyTuple::empty(py), named))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let deepcopy = py.import("copy")?.getattr(python::DEEPCOPY)?;
        let copied = |content: &Option<Py<PyAny>>| match content {
            Some(content) => Ok::<_, PyErr>(Some(deepcopy.call1((content, memo))?.unbind())),
            None => Ok(None),
        };
        Ok(self.replace(py, copied(&self.key)?, copied(&self.value)?))
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        let placed = self.partition == other.partition
            && self.offset == other.offset
            && self.delivery_count == other.delivery_count
            && self.timestamp == other.timestamp
            && self.log_append_time == other.log_append_time
            && self.leader_epoch == other.leader_epoch
            && self.headers == other.headers;
        Ok(placed
            && self.topic.bind(py).as_any().eq(&other.topic)?
            && same(py, self.key.as_ref(), other.key.as_ref())?
            && same(py, self.value.as_ref(), other.value.as_ref())?)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        (&self.topic, self.partition, self.offset)
            .into_pyobject(py)?
            .hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = |content: &Option<Py<PyAny>>| match content {
            Some(content) => Ok::<_, PyErr>(content.bind(py).repr()?.to_string()),
            None => Ok("None".to_owned()),
        };
        Ok(format!(
            "Record({}-{}@{}, key={}, value={}, delivery_count={})",
            self.topic,
            self.partition,
            self.offset,
            shown(&self.key)?,
            shown(&self.value)?,
            self.delivery_count
        ))
    }
}
