//! Caches UUIDs: the same few recur in every request, and converting `uuid.UUID` is slow in both directions.

use std::sync::{Mutex, PoisonError};

use crate::python;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

type Bytes = [u8; 16];
use sharecore_share::IdMap;
pub(crate) use sharecore_share::PartitionId;

/// Maximum number of entries per direction; a full cache is cleared.
const REMEMBERED_MAX: usize = 4096;

#[derive(Default)]
struct Known {
    objects: IdMap<Bytes, Py<PyAny>>,
    /// By the address of an object; the cache keeps the object, so the address stays valid.
    bytes: IdMap<usize, (Py<PyAny>, Bytes)>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ZERO: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Gives access to the cache. The lock is never held while Python runs, because another thread could then wait for it.
fn known<T>(look: impl FnOnce(&mut Known) -> T) -> T {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    look(known.get_or_insert_default())
}

/// Returns the `uuid.UUID`; None for all zeros.
pub(crate) fn object(py: Python<'_>, bytes: Bytes) -> PyResult<Bound<'_, PyAny>> {
    if bytes == [0; 16] {
        return Ok(py.None().into_bound(py));
    }
    if let Some(found) = known(|known| known.objects.get(&bytes).map(|found| found.clone_ref(py))) {
        return Ok(found.into_bound(py));
    }
    let class = CLASS.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("uuid")?.getattr(python::UUID)?.unbind())
    })?;
    let arguments = PyDict::new(py);
    arguments.set_item("bytes", bytes.as_slice())?;
    let made = class.bind(py).call((), Some(&arguments))?;
    let gone = known(|known| {
        let full = known.objects.len() >= REMEMBERED_MAX;
        let gone = full.then(|| std::mem::take(&mut known.objects));
        known.objects.insert(bytes, made.clone().unbind());
        gone
    });
    drop(gone);
    Ok(made)
}

/// Returns the `uuid.UUID` of all zeros.
pub(crate) fn zero(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let zero = ZERO.get_or_try_init(py, || {
        let zero = PyDict::new(py);
        zero.set_item("int", 0)?;
        let class = py.import("uuid")?.getattr(python::UUID)?;
        Ok::<_, PyErr>(class.call((), Some(&zero))?.unbind())
    })?;
    Ok(zero.bind(py).clone())
}

/// Returns the bytes of a `uuid.UUID` or None.
pub(crate) fn bytes(value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if value.is_none() {
        return Ok([0; 16]);
    }
    let address = value.as_ptr() as usize;
    if let Some(found) = known(|known| known.bytes.get(&address).map(|(_, bytes)| *bytes)) {
        return Ok(found);
    }
    let bytes: Bytes = value.getattr(python::BYTES)?.extract()?;
    let gone = known(|known| {
        let full = known.bytes.len() >= REMEMBERED_MAX;
        let gone = full.then(|| std::mem::take(&mut known.bytes));
        known.bytes.insert(address, (value.clone().unbind(), bytes));
        gone
    });
    drop(gone);
    Ok(bytes)
}

/// Reads a partition id from a tuple of `uuid.UUID` and partition.
pub(crate) fn partition_id(tuple: &Bound<'_, PyAny>) -> PyResult<PartitionId> {
    let tuple = tuple.cast::<PyTuple>()?;
    let topic_id = tuple.get_borrowed_item(0)?;
    Ok((bytes(&topic_id)?, tuple.get_borrowed_item(1)?.extract()?))
}

/// Creates the tuple of `uuid.UUID` and partition.
pub(crate) fn partition_tuple(py: Python<'_>, id: PartitionId) -> PyResult<Bound<'_, PyTuple>> {
    let (topic_id, index) = id;
    let mut topic_id = object(py, topic_id)?;
    if topic_id.is_none() {
        topic_id = zero(py)?;
    }
    (topic_id, index).into_pyobject(py)
}
