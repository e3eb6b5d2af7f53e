//! Copies slices that the store has found into Python bytes.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_store::{Intact, ReadFrom, Refusal, Slice, Store, Want, WholeRead};

use crate::store::refused;

/// Complete batches, with the first and last offset of each.
pub(crate) type Read<'py> = (Bound<'py, PyBytes>, Vec<(i64, i64)>);

/// Copies a slice; releases the interpreter while the disk is read.
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

/// Cuts off batches that are not intact.
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

/// Maximum size to copy from files at once, even if they are cached: larger copies delay other clients.
const AT_ONCE_BYTES_MAX: usize = 256 << 10;

/// Copies a slice without waiting; None if that needs a disk read or a large copy from files.
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

/// Total size of all buffers that threads are filling.
static READING: AtomicU64 = AtomicU64::new(0);

/// Bytes being read, or read and not collected yet.
pub(crate) fn reading_bytes() -> u64 {
    READING.load(Ordering::Relaxed)
}

/// A bytes object that a thread fills.
struct Room {
    bytes: Py<PyBytes>,
    start: *mut u8,
    size: usize,
    /// The result; before it is set, only the thread accesses the bytes.
    outcome: OnceLock<Result<Intact, Refusal>>,
}

// SAFETY: `start` points into `bytes`, which lives as long as this struct. Only the job created by `begin` writes through it,
// before `outcome` is set; only `Reading::result` hands the bytes out, after it is set.
unsafe impl Send for Room {}
// SAFETY: as above.
unsafe impl Sync for Room {}

impl Room {
    fn new(py: Python<'_>, size: usize) -> PyResult<Self> {
        let length = ffi::Py_ssize_t::try_from(size)?;
        // SAFETY: a null pointer requests uninitialized content; the result is a new reference, or null with an exception set.
        let bytes = unsafe {
            let made = ffi::PyBytes_FromStringAndSize(std::ptr::null(), length);
            Bound::from_owned_ptr_or_err(py, made)?
        };
        let bytes = bytes.cast_into::<PyBytes>()?;
        // SAFETY: `bytes` is a bytes object.
        let start = unsafe { ffi::PyBytes_AsString(bytes.as_ptr()) };
        READING.fetch_add(size as u64, Ordering::Relaxed);
        Ok(Self {
            bytes: bytes.unbind(),
            start: start.cast(),
            size,
            outcome: OnceLock::new(),
        })
    }

    /// Returns None if that needs the bucket, and `from` is the disk.
    fn fill(&self, slice: &Slice, from: ReadFrom) -> Result<Option<Intact>, Refusal> {
        // SAFETY: the buffer has `size` bytes, and no other code accesses them now.
        let out = unsafe {
            std::slice::from_raw_parts_mut(self.start.cast::<MaybeUninit<u8>>(), self.size)
        };
        if !slice.fill(from, out)? {
            return Ok(None);
        }
        // SAFETY: `fill` has initialized all bytes.
        let filled = unsafe { std::slice::from_raw_parts(self.start, self.size) };
        slice.check(filled).map(Some)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        READING.fetch_sub(self.size as u64, Ordering::Relaxed);
    }
}

/// A read by a thread that does not need the interpreter.
#[pyclass(name = "Reading", module = "sharecore._core", frozen)]
pub(crate) struct PyReading(Kind);

enum Kind {
    /// The batches are located.
    Located {
        room: Arc<Room>,
        batches: Vec<(i64, i64)>,
    },
    /// The thread locates them.
    Whole {
        bytes_max: usize,
        found: Arc<OnceLock<Result<WholeRead, Refusal>>>,
    },
}

/// Starts a read in a thread of the store that locates the batches, too.
fn begin_whole(store: &Store, log: u64, offset: i64, want: Want) -> (u64, Option<PyReading>) {
    let found = Arc::new(OnceLock::new());
    let reading = PyReading(Kind::Whole {
        bytes_max: want.max_bytes,
        found: Arc::clone(&found),
    });
    let done = move |read| {
        let _ = found.set(read);
    };
    (
        store.read_whole_apart(log, offset, want, done),
        Some(reading),
    )
}

/// Starts a read in a thread of the store. If the batches' positions must first be read from disk, the thread only does that
/// and there is no `Reading`, unless it is to read them as a `whole`.
pub(crate) fn begin(
    py: Python<'_>,
    store: &Store,
    log: u64,
    offset: i64,
    want: Want,
    whole: bool,
) -> PyResult<(u64, Option<PyReading>)> {
    if whole {
        return Ok(begin_whole(store, log, offset, want));
    }
    let slice = store.read_cached(log, offset, want);
    let Some(slice) = slice.map_err(|refusal| refused(py, &refusal))? else {
        return Ok((store.look_up_apart(log, offset, want), None));
    };
    let room = Arc::new(Room::new(py, slice.size)?);
    let reading = PyReading(Kind::Located {
        room: Arc::clone(&room),
        batches: slice.batches.clone(),
    });
    let from = slice.source();
    // its pieces may leave the disk before a thread has time for it
    let job = move |from| match room.fill(&slice, from).transpose() {
        Some(outcome) => {
            let _ = room.outcome.set(outcome);
            true
        }
        None => false,
    };
    Ok((store.read_apart_from(from, job), Some(reading)))
}

#[pymethods]
impl PyReading {
    /// Bytes to read.
    #[getter]
    fn size(&self) -> usize {
        match &self.0 {
            Kind::Located { room, .. } => room.size,
            Kind::Whole { bytes_max, .. } => *bytes_max,
        }
    }

    /// Returns the batches once the read has ended.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Read<'py>> {
        let unread = Refusal::Storage("a read did not complete".into());
        let read = match &self.0 {
            Kind::Located { room, batches } => match room.outcome.get() {
                Some(Ok(intact)) => Ok((room.bytes.bind(py).clone(), batches, *intact)),
                Some(Err(refusal)) => Err(refusal),
                None => Err(&unread),
            },
            Kind::Whole { found, .. } => match found.get() {
                Some(Ok((bytes, batches, intact))) => {
                    Ok((PyBytes::new(py, bytes), batches, *intact))
                }
                Some(Err(refusal)) => Err(refusal),
                None => Err(&unread),
            },
        };
        let (bytes, batches, intact) = read.map_err(|refusal| refused(py, refusal))?;
        Ok(without_rest(bytes, batches.clone(), Some(intact)))
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

/// Returns the intact batches of a slice and their last offset.
pub(crate) fn bytes_of(slice: &Slice) -> Result<(Vec<u8>, Option<i64>), Refusal> {
    let mut bytes = vec![0; slice.size];
    let intact = slice.copy_to(&mut bytes)?;
    bytes.truncate(intact.bytes);
    let last = slice.batches[..intact.batches].last();
    Ok((bytes, last.map(|(_, last)| *last)))
}
