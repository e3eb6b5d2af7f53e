//! What a read of the store found, as Python's bytes.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_store::{Intact, Refusal, Slice, Store, Want};

use crate::store::refused;

/// Whole batches, and the first and last offset of each.
pub(crate) type Read<'py> = (Bound<'py, PyBytes>, Vec<(i64, i64)>);

/// A slice as Python has it; other threads run Python while the disk is read.
pub(crate) fn copied(py: Python<'_>, slice: Slice) -> PyResult<Read<'_>> {
    let mut intact = None;
    let bytes = PyBytes::new_with(py, slice.size, |out| {
        let copy = if slice.is_in_memory() {
            slice.copy_to(out)
        } else {
            py.detach(|| slice.copy_to(out))
        };
        intact = Some(copy.map_err(|refusal| refused(py, &refusal))?);
        Ok(())
    })?;
    Ok(without_rest(bytes, slice.batches, intact))
}

/// The batches that count.
fn without_rest(
    bytes: Bound<'_, PyBytes>,
    mut batches: Vec<(i64, i64)>,
    intact: Option<Intact>,
) -> Read<'_> {
    match intact {
        Some(intact) if intact.batches < batches.len() => {
            batches.truncate(intact.batches);
            let whole = PyBytes::new(bytes.py(), &bytes.as_bytes()[..intact.bytes]);
            (whole, batches)
        }
        _ => (bytes, batches),
    }
}

/// What is copied out of files at once, however well they are cached: more takes so long that others notice.
const AT_ONCE_BYTES_MAX: usize = 256 << 10;

/// A slice as Python has it; `None` when the disk would have to be waited for, or too much to be copied from its files.
pub(crate) fn copied_cached(py: Python<'_>, slice: Slice) -> PyResult<Option<Read<'_>>> {
    if slice.file_bytes() > AT_ONCE_BYTES_MAX {
        return Ok(None);
    }
    let mut intact = None;
    let bytes = PyBytes::new_with(py, slice.size, |out| {
        intact = slice
            .copy_cached(out)
            .map_err(|refusal| refused(py, &refusal))?;
        Ok(())
    })?;
    Ok(intact.map(|intact| without_rest(bytes, slice.batches, Some(intact))))
}

/// Bytes of all that threads fill now.
static READING: AtomicU64 = AtomicU64::new(0);

/// How much is being read, or has been and was not asked for yet.
pub(crate) fn reading_bytes() -> u64 {
    READING.load(Ordering::Relaxed)
}

/// A bytes object that a thread fills.
struct Room {
    bytes: Py<PyBytes>,
    start: *mut u8,
    size: usize,
    /// How that ended; nobody but the thread looks at the bytes before.
    outcome: OnceLock<Result<Intact, Refusal>>,
}

// SAFETY: `start` points into `bytes`, which lives as long as this. It is written through by the one job that `begin` makes,
// before `outcome` is set, and given out by `Reading::result` alone, once that is.
unsafe impl Send for Room {}
// SAFETY: as above.
unsafe impl Sync for Room {}

impl Room {
    fn new(py: Python<'_>, size: usize) -> PyResult<Self> {
        let length = ffi::Py_ssize_t::try_from(size)?;
        // SAFETY: null asks for a bytes object whose content is left as it is; it is a new reference, or null with an exception.
        let bytes = unsafe {
            let made = ffi::PyBytes_FromStringAndSize(std::ptr::null(), length);
            Bound::from_owned_ptr_or_err(py, made)?
        };
        let bytes = bytes.cast_into::<PyBytes>()?;
        // SAFETY: it is a bytes object.
        let start = unsafe { ffi::PyBytes_AsString(bytes.as_ptr()) };
        READING.fetch_add(size as u64, Ordering::Relaxed);
        Ok(Self {
            bytes: bytes.unbind(),
            start: start.cast(),
            size,
            outcome: OnceLock::new(),
        })
    }

    fn fill(&self, slice: &Slice) -> Result<Intact, Refusal> {
        // SAFETY: so many bytes are there, and nobody else looks at them now.
        let out = unsafe {
            std::slice::from_raw_parts_mut(self.start.cast::<MaybeUninit<u8>>(), self.size)
        };
        slice.fill(out)?;
        // SAFETY: all of them have been written.
        let filled = unsafe { std::slice::from_raw_parts(self.start, self.size) };
        slice.check(filled)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        READING.fetch_sub(self.size as u64, Ordering::Relaxed);
    }
}

/// What a thread reads, without the interpreter.
#[pyclass(name = "Reading", module = "sharecore._core", frozen)]
pub(crate) struct PyReading {
    room: Arc<Room>,
    batches: Vec<(i64, i64)>,
}

/// Has a thread of the store read; where the disk has to tell first where the batches lie, it only learns that.
pub(crate) fn begin(
    py: Python<'_>,
    store: &Store,
    log: u64,
    offset: i64,
    want: Want,
) -> PyResult<(u64, Option<PyReading>)> {
    let slice = store.read_cached(log, offset, want);
    let Some(slice) = slice.map_err(|refusal| refused(py, &refusal))? else {
        return Ok((store.look_up_apart(log, offset, want), None));
    };
    let room = Arc::new(Room::new(py, slice.size)?);
    let reading = PyReading {
        room: Arc::clone(&room),
        batches: slice.batches.clone(),
    };
    let job = move || {
        let outcome = room.fill(&slice);
        let _ = room.outcome.set(outcome);
    };
    Ok((store.read_apart(job), Some(reading)))
}

#[pymethods]
impl PyReading {
    /// Bytes that are read.
    #[getter]
    fn size(&self) -> usize {
        self.room.size
    }

    /// What was read.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Read<'py>> {
        match self.room.outcome.get() {
            Some(Ok(intact)) => {
                let bytes = self.room.bytes.bind(py).clone();
                Ok(without_rest(bytes, self.batches.clone(), Some(*intact)))
            }
            Some(Err(refusal)) => Err(refused(py, refusal)),
            None => {
                let unread = Refusal::Storage("a read has not ended well".into());
                Err(refused(py, &unread))
            }
        }
    }
}

pub(crate) fn wanted(
    max_bytes: i64,
    limit: Option<i64>,
    at_least_one: bool,
    max_records: i64,
) -> Want {
    Want {
        max_bytes: usize::try_from(max_bytes).unwrap_or(0),
        max_records,
        limit,
        at_least_one,
    }
}

/// The batches that count, and the last offset of them.
pub(crate) fn bytes_of(slice: &Slice) -> Result<(Vec<u8>, Option<i64>), Refusal> {
    let mut bytes = vec![0; slice.size];
    let intact = slice.copy_to(&mut bytes)?;
    bytes.truncate(intact.bytes);
    let last = slice.batches[..intact.batches].last();
    Ok((bytes, last.map(|(_, last)| *last)))
}
