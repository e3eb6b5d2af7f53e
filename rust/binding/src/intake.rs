//! Reads requests from a connection. A large request is read directly into its own buffer, once the memory budget has room for
//! it.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use sharecore_wire::{Cutter, Pause, Piece, SIZE_BYTES, SMALL_BYTES};

use crate::answers::PyAnswerBudget;
use crate::budget::PyMemoryBudget;
use crate::exchange::PyExchange;
use crate::pipeline::charged_of;
use crate::python;

/// Read at most this much of a large request at a time; other clients are served in between.
const READ_BYTES_MAX: usize = 256 << 10;

/// `PyBUF_WRITE`.
const WRITABLE: std::ffi::c_int = 0x200;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A request that has room and is still being received.
pub(crate) struct Partial {
    bytes: Py<PyBytes>,
    start: *mut u8,
    pub(crate) size: usize,
    pub(crate) filled: usize,
}

// SAFETY: `start` points into `bytes`, which lives as long as this struct, and is only used while attached to the interpreter.
unsafe impl Send for Partial {}
// SAFETY: as above.
unsafe impl Sync for Partial {}

impl Partial {
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
        Ok(Self {
            bytes: bytes.unbind(),
            start: start.cast(),
            size,
            filled: 0,
        })
    }

    /// Copies the start of `chunk` into the buffer and advances `chunk`.
    fn fill(&mut self, chunk: &mut &[u8]) {
        let count = (self.size - self.filled).min(chunk.len());
        // SAFETY: `count` bytes are left after `filled`, and no other code has seen the object yet.
        unsafe {
            std::ptr::copy_nonoverlapping(chunk.as_ptr(), self.start.add(self.filled), count);
        }
        self.filled += count;
        *chunk = &chunk[count..];
    }

    fn is_whole(&self) -> bool {
        self.filled == self.size
    }

    /// Where the next bytes go, and the maximum number to read.
    fn room(&self) -> (*mut u8, usize) {
        let count = (self.size - self.filled).min(READ_BYTES_MAX);
        // SAFETY: `count` bytes are left after `filled`
        (unsafe { self.start.add(self.filled) }, count)
    }

    /// A writable view of the next bytes.
    fn rest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (start, count) = self.room();
        let count = ffi::Py_ssize_t::try_from(count)?;
        // SAFETY: `count` bytes are left. The reader writes through the view before it reports how much it has read; the bytes
        // are released only after that, or when the connection is lost.
        unsafe {
            let view = ffi::PyMemoryView_FromMemory(start.cast(), count, WRITABLE);
            Bound::from_owned_ptr_or_err(py, view)
        }
    }
}

/// A request that waits for room: its size, and the bytes received so far, including any that follow it.
struct Begun {
    size: usize,
    bytes: Vec<u8>,
    /// True once room was requested.
    has_asked: bool,
}

/// The receiving side of a connection.
pub(crate) struct Intake {
    pub(crate) owner: Arc<str>,
    /// The connection's key in the budget.
    who: u64,
    pub(crate) frame_bytes_max: usize,
    cutter: Cutter,
    /// A buffer shared by all connections for small requests; no data stays in it between reads.
    scratch: Py<PyMemoryView>,
    scratch_start: *mut u8,
    scratch_bytes: usize,
    reads_partial: bool,
    pub(crate) partial: Option<Partial>,
    begun: Option<Begun>,
    /// For a large request that waits for its response: start of the wait, whether it is parked, and its size.
    pub(crate) waits_since: Option<(i64, bool, usize)>,
}

// SAFETY: `scratch_start` points into the buffer of `scratch`, which lives as long as this struct, and is only used while
// attached to the interpreter.
unsafe impl Send for Intake {}
// SAFETY: as above.
unsafe impl Sync for Intake {}

impl Intake {
    /// `scratch` must view a writable buffer that is never resized.
    pub(crate) fn new(scratch: Bound<'_, PyMemoryView>, frame_bytes_max: usize) -> PyResult<Self> {
        let obj = scratch.getattr(python::OBJ)?;
        let bytes = obj.cast::<pyo3::types::PyByteArray>()?;
        Ok(Self {
            owner: Arc::from(""),
            who: NEXT.fetch_add(1, Ordering::Relaxed),
            frame_bytes_max,
            cutter: Cutter::default(),
            scratch_start: bytes.data(),
            scratch_bytes: bytes.len(),
            scratch: scratch.unbind(),
            reads_partial: false,
            partial: None,
            begun: None,
            waits_since: None,
        })
    }

    /// True if a request has started and room for it was not requested yet.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.as_ref().is_some_and(|begun| !begun.has_asked)
    }
}

impl PyExchange {
    pub(crate) fn now_ms(exchange: &Bound<'_, Self>) -> PyResult<i64> {
        let clock = exchange.borrow().clock.clone_ref(exchange.py());
        clock.ms(exchange.py())
    }

    pub(crate) fn mark_active(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let now = Self::now_ms(exchange)?;
        exchange.borrow_mut().active_at = now;
        Ok(())
    }

    /// Processes bytes received from the client.
    pub(crate) fn take_in(exchange: &Bound<'_, Self>, chunk: &[u8]) -> PyResult<()> {
        Self::mark_active(exchange)?;
        let cut = exchange.borrow_mut().cut(exchange, chunk)?;
        if let Err(reason) = cut {
            return Self::close(exchange, &reason);
        }
        Self::pump(exchange)?;
        let waits = {
            let begun = &exchange.borrow().intake.begun;
            begun.as_ref().is_some_and(|begun| begun.has_asked)
        };
        if waits {
            Self::wait_for_room(exchange)?;
        }
        Ok(())
    }

    /// Appends whole frames to the backlog; returns an error if the byte stream is invalid.
    fn cut(
        &mut self,
        exchange: &Bound<'_, Self>,
        mut chunk: &[u8],
    ) -> PyResult<Result<(), String>> {
        let py = exchange.py();
        if let Some(begun) = &mut self.intake.begun {
            begun.bytes.extend_from_slice(chunk);
            return Ok(Ok(()));
        }
        if let Some(partial) = &mut self.intake.partial {
            partial.fill(&mut chunk);
            self.complete(py);
        }
        loop {
            let most = self.intake.frame_bytes_max;
            match self.intake.cutter.cut(&mut chunk, most) {
                Err(error) => return Ok(Err(error.to_string())),
                Ok(None) => return Ok(Ok(())),
                Ok(Some(Piece::Frame(frame))) => {
                    let size = frame.len() + SIZE_BYTES;
                    if size > SMALL_BYTES {
                        let owner = self.owner();
                        self.budget.borrow_mut(py).take(&owner, size);
                    }
                    self.backlog.push_back(PyBytes::new(py, frame).unbind());
                }
                Ok(Some(Piece::Start { size, bytes })) => {
                    let (owner, who) = (self.owner(), self.intake.who);
                    // Bytes after a request that cannot be dispatched stay in the client's socket
                    let asks = self.backlog.is_empty();
                    let total = size + SIZE_BYTES;
                    if asks && self.budget.borrow_mut(py).ask(&owner, who, total, exchange) {
                        let mut partial = Partial::new(py, size)?;
                        partial.fill(&mut { bytes });
                        self.intake.partial = Some(partial);
                    } else {
                        self.intake.begun = Some(Begun {
                            size,
                            bytes: bytes.to_vec(),
                            has_asked: asks,
                        });
                    }
                }
            }
        }
    }

    /// Moves the request being read to the backlog once it is complete.
    fn complete(&mut self, py: Python<'_>) {
        if let Some(partial) = self.intake.partial.take_if(|partial| partial.is_whole()) {
            let total = partial.size + SIZE_BYTES;
            if total <= SMALL_BYTES {
                // It counts again if it must wait for its response
                let owner = self.owner();
                self.budget.borrow_mut(py).give_small(&owner, total);
            }
            self.backlog.push_back(partial.bytes);
        }
    }

    /// Requests room for the request that has started.
    pub(crate) fn ask_for_room(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        let is_admitted = {
            let mut held = exchange.borrow_mut();
            let (owner, who) = (held.owner(), held.intake.who);
            let Some(begun) = &mut held.intake.begun else {
                return Ok(());
            };
            begun.has_asked = true;
            let total = begun.size + SIZE_BYTES;
            let mut budget = held.budget.borrow_mut(py);
            budget.ask(&owner, who, total, exchange)
        };
        if is_admitted {
            Self::admitted(exchange)
        } else {
            Self::wait_for_room(exchange)
        }
    }

    fn wait_for_room(exchange: &Bound<'_, Self>) -> PyResult<()> {
        if exchange.borrow().pipeline.is_paused(Pause::Memory) {
            return Ok(());
        }
        Self::pause_for(exchange, Pause::Memory)?;
        Self::seek_room(exchange)
    }

    /// Continues reading the request that was waiting for room.
    pub(crate) fn admitted(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        let begun = {
            let mut held = exchange.borrow_mut();
            let Some(begun) = held.intake.begun.take() else {
                return Ok(());
            };
            held.intake.partial = Some(Partial::new(py, begun.size)?);
            begun
        };
        Self::take_in(exchange, &begun.bytes)?;
        Self::resume_after(exchange, Pause::Memory)
    }

    /// Sizes of the requests that the budget counts for this connection, without parked ones.
    pub(crate) fn held(&self, py: Python<'_>) -> Vec<usize> {
        let backlog = self.backlog.iter().map(|frame| charged_of(frame, py));
        let partial = self.intake.partial.iter();
        let slots = self.slots.iter().map(|slot| slot.borrow(py));
        let mut sizes: Vec<_> = backlog
            .chain(partial.map(|partial| partial.size + SIZE_BYTES))
            .chain(
                slots
                    .filter(|slot| !slot.is_parked)
                    .map(|slot| slot.frame_bytes),
            )
            .collect();
        sizes.push(self.handling);
        sizes
    }

    /// Releases everything that the connection holds of the budget.
    pub(crate) fn give_up(exchange: &Bound<'_, Self>) -> PyResult<Vec<usize>> {
        let py = exchange.py();
        let (budget, owner, sizes) = {
            let mut held = exchange.borrow_mut();
            let held = &mut *held;
            let owner = held.owner();
            let sizes = held.held(py);
            let mut budget = held.budget.borrow_mut(py);
            for slot in &held.slots {
                let mut slot = slot.borrow_mut(py);
                if std::mem::take(&mut slot.is_parked) {
                    budget.give_parked(&owner, slot.frame_bytes);
                }
            }
            if let Some(begun) = &mut held.intake.begun
                && std::mem::take(&mut begun.has_asked)
            {
                budget.withdraw(&owner, held.intake.who);
            }
            (held.budget.clone_ref(py), owner, sizes)
        };
        PyMemoryBudget::give(budget.bind(py), &owner, sizes.iter().copied())?;
        Ok(sizes)
    }

    /// Drops received bytes that were not dispatched.
    pub(crate) fn forget(&mut self) {
        self.backlog.clear();
        self.intake.partial = None;
        self.intake.begun = None;
    }

    /// Charges the client's memory to `budget` and `owner` from now on.
    pub(crate) fn move_to(
        exchange: &Bound<'_, Self>,
        budget: &Bound<'_, PyMemoryBudget>,
        owner: &str,
    ) -> PyResult<()> {
        let py = exchange.py();
        let sizes = Self::give_up(exchange)?;
        let (answers, before, owner, counted) = {
            let mut held = exchange.borrow_mut();
            let before = std::mem::replace(&mut held.intake.owner, Arc::from(owner));
            held.budget = budget.clone().unbind();
            (
                held.answers.clone_ref(py),
                before,
                held.owner(),
                held.outgoing.counted,
            )
        };
        for size in sizes {
            budget.borrow_mut().take(&owner, size);
        }
        PyAnswerBudget::change(answers.bind(py), &before, counted, 0)?;
        PyAnswerBudget::change(answers.bind(py), &owner, 0, counted)
    }

    /// The buffer that the transport reads into.
    pub(crate) fn buffer<'py>(exchange: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = exchange.py();
        let mut held = exchange.borrow_mut();
        let intake = &mut held.intake;
        intake.reads_partial = intake.partial.is_some();
        match &intake.partial {
            Some(partial) => partial.rest(py),
            None => Ok(intake.scratch.bind(py).clone().into_any()),
        }
    }

    /// Where the next received bytes go, and how many fit.
    pub(crate) fn room(exchange: &Bound<'_, Self>) -> (*mut u8, usize) {
        let mut held = exchange.borrow_mut();
        let intake = &mut held.intake;
        intake.reads_partial = intake.partial.is_some();
        match &intake.partial {
            Some(partial) => partial.room(),
            None => (intake.scratch_start, intake.scratch_bytes),
        }
    }

    /// Processes `count` bytes that the transport has read into the buffer.
    pub(crate) fn have_read(exchange: &Bound<'_, Self>, count: usize) -> PyResult<()> {
        let py = exchange.py();
        let chunk = {
            let mut held = exchange.borrow_mut();
            let held = &mut *held;
            let intake = &mut held.intake;
            if intake.reads_partial {
                if let Some(partial) = &mut intake.partial {
                    partial.filled += count;
                }
                held.complete(py);
                None
            } else {
                let count = count.min(intake.scratch_bytes);
                // SAFETY: the transport has just written `count` bytes of the scratch buffer, and reads into it again only
                // after this function returns.
                Some(unsafe { std::slice::from_raw_parts(intake.scratch_start, count) })
            }
        };
        Self::take_in(exchange, chunk.unwrap_or_default())
    }
}
