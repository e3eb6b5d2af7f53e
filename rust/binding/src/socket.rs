//! `Socket`: the transport of a plaintext connection.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use sharecore_net::{Mark, Output, Ready, Received, SendJob, Socket};

use crate::collected::collected;
use crate::cork::{is_corked, send_later};
use crate::exchange::PyExchange;
use crate::python;
use crate::sockets::PySockets;

/// Read at most this many times from one connection before others are served.
const READS_AT_ONCE: usize = 4;
/// Above this size, corked responses are sent at once instead of at the end of the turn.
const CORKED_BYTES_MAX: usize = 64 << 10;

/// What keeps a buffer's bytes where they are.
enum Owner {
    Bytes {
        _bytes: Py<PyBytes>,
    },
    /// Part of a bytes object.
    View {
        _view: PyBuffer<u8>,
    },
}

/// A buffer to send, by this thread or by another one.
pub(crate) struct Chunk {
    start: *const u8,
    size: usize,
    _owner: Owner,
}

// SAFETY: `start` points into memory that the owner keeps, and that nobody changes. Another thread only reads it: jobs come back
// to the thread of the sockets, which drops them with the interpreter's lock
unsafe impl Send for Chunk {}
// SAFETY: as above; a chunk is never changed
unsafe impl Sync for Chunk {}

impl Chunk {
    fn of(part: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = part.cast::<PyBytes>() {
            let content = bytes.as_bytes();
            return Ok(Self {
                start: content.as_ptr(),
                size: content.len(),
                _owner: Owner::Bytes {
                    _bytes: bytes.clone().unbind(),
                },
            });
        }
        let view = PyBuffer::<u8>::get(part)?;
        if !view.is_c_contiguous() {
            return Err(PyValueError::new_err("only contiguous buffers can be sent"));
        }
        if !view.readonly() {
            // Python may change it before it is sent
            return Self::of(&PyBytes::new(part.py(), &view.to_vec(part.py())?));
        }
        Ok(Self {
            start: view.buf_ptr().cast(),
            size: view.len_bytes(),
            _owner: Owner::View { _view: view },
        })
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        if self.size == 0 {
            return &[]; // the pointer of an empty view may be null
        }
        // SAFETY: the owner keeps `size` bytes at `start`; bytes to be sent are not modified
        unsafe { std::slice::from_raw_parts(self.start, self.size) }
    }
}

/// A connection's responses on their way through another thread.
pub(crate) type SocketJob = SendJob<Py<PySocket>, Chunk>;

/// The transport of one connection, with the interface of asyncio transports.
#[pyclass(name = "Socket", module = "sharecore._core")]
pub(crate) struct PySocket {
    /// None once the connection is closed.
    stream: Option<Socket>,
    output: Output<Chunk>,
    protocol: Option<Py<PyExchange>>,
    sockets: Py<PySockets>,
    key: usize,
    is_closing: bool,
    is_paused: bool,
    /// True if it is queued for sending at the end of the turn.
    is_dirty: bool,
}

impl PySocket {
    pub(crate) fn new(
        stream: Socket,
        protocol: &Bound<'_, PyExchange>,
        sockets: &Bound<'_, PySockets>,
        key: usize,
    ) -> Self {
        Self {
            stream: Some(stream),
            output: Output::new(usize::MAX),
            protocol: Some(protocol.clone().unbind()),
            sockets: sockets.clone().unbind(),
            key,
            is_closing: false,
            is_paused: false,
            is_dirty: false,
        }
    }

    /// Records what the poller reported; returns true if there are bytes to send now.
    pub(crate) fn note(&mut self, ready: &Ready) -> bool {
        if let Some(stream) = &mut self.stream {
            stream.note(ready.readable, ready.writable, ready.ended);
        }
        ready.writable && self.output.bytes() > 0
    }

    /// Receives and handles bytes from the client; returns true if there are more.
    pub(crate) fn read(socket: &Bound<'_, Self>) -> PyResult<bool> {
        let py = socket.py();
        for _ in 0..READS_AT_ONCE {
            let protocol = {
                let held = socket.borrow();
                match &held.protocol {
                    Some(protocol) if !held.is_closing && !held.is_paused => protocol.clone_ref(py),
                    _ => return Ok(false),
                }
            };
            let protocol = protocol.bind(py);
            let (start, size) = PyExchange::room(protocol);
            let received = {
                let mut held = socket.borrow_mut();
                let Some(stream) = &mut held.stream else {
                    return Ok(false);
                };
                // SAFETY: the exchange provides `size` writable bytes, and no other code reads them before `have_read` reports
                // how many are filled
                let room = unsafe {
                    std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), size)
                };
                stream.receive(room)
            };
            match received {
                Ok(Received::Bytes { count, more }) => {
                    PyExchange::have_read(protocol, count)?;
                    if !more {
                        return Ok(false);
                    }
                }
                Ok(Received::Nothing) => return Ok(false),
                Ok(Received::End) => {
                    Self::close(socket)?;
                    return Ok(false);
                }
                Err(error) => {
                    Self::lose(socket, Some(error))?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Sends buffers in order: now, or at the end of the turn.
    pub(crate) fn write_all(socket: &Bound<'_, Self>, parts: &Bound<'_, PyList>) -> PyResult<()> {
        let (waits, is_new) = {
            let mut held = socket.borrow_mut();
            if held.stream.is_none() {
                return Ok(());
            }
            for part in parts.iter() {
                let chunk = Chunk::of(&part)?;
                let size = chunk.size;
                held.output.push(chunk, size);
            }
            let waits = is_corked() && held.output.bytes() < CORKED_BYTES_MAX;
            let is_dirty = waits && std::mem::replace(&mut held.is_dirty, true);
            (waits, waits && !is_dirty)
        };
        if is_new {
            send_later(socket);
        }
        if waits { Ok(()) } else { Self::flush(socket) }
    }

    pub(crate) fn sockets(socket: &Bound<'_, Self>) -> Py<PySockets> {
        socket.borrow().sockets.clone_ref(socket.py())
    }

    /// Hands what is to be sent to another thread; None if there is nothing to hand over now.
    pub(crate) fn send_job(socket: &Bound<'_, Self>) -> Option<SocketJob> {
        let mut held = socket.borrow_mut();
        let held = &mut *held;
        let stream = held.stream.as_mut()?;
        let job = SendJob::new(socket.clone().unbind(), stream, &mut held.output)?;
        held.is_dirty = false;
        Some(job)
    }

    /// Takes back what another thread has sent, perhaps in part, and sends what was written meanwhile.
    pub(crate) fn returned(socket: &Bound<'_, Self>, job: SocketJob) -> PyResult<()> {
        let settled = {
            let mut held = socket.borrow_mut();
            let held = &mut *held;
            let Some(stream) = &mut held.stream else {
                return Ok(());
            };
            job.settle(stream, &mut held.output)
        };
        if let Err(error) = settled {
            return Self::lose(socket, Some(error));
        }
        Self::flush(socket)?;
        let protocol = {
            let held = socket.borrow();
            held.protocol.as_ref().map(|it| it.clone_ref(socket.py()))
        };
        match protocol {
            Some(protocol) => PyExchange::unread_left(protocol.bind(socket.py())),
            None => Ok(()),
        }
    }

    /// Sends as much as the client accepts.
    pub(crate) fn flush(socket: &Bound<'_, Self>) -> PyResult<()> {
        let py = socket.py();
        let sent = {
            let mut held = socket.borrow_mut();
            let held = &mut *held;
            held.is_dirty = false;
            let Some(stream) = &mut held.stream else {
                return Ok(());
            };
            if held.output.is_away() {
                held.sockets.borrow(py).expect();
            }
            held.output.send(stream)
        };
        if let Err(error) = sent {
            return Self::lose(socket, Some(error));
        }
        let (passed, protocol, is_over) = {
            let mut held = socket.borrow_mut();
            let passed = held.output.passed();
            let protocol = passed.and_then(|_| held.protocol.as_ref().map(|it| it.clone_ref(py)));
            let is_over = held.is_closing && held.output.bytes() == 0;
            (passed, protocol, is_over)
        };
        if is_over {
            return Self::lose(socket, None);
        }
        match (passed, protocol) {
            (Some(Mark::High), Some(protocol)) => PyExchange::pause_writing(protocol.bind(py)),
            (Some(Mark::Low), Some(protocol)) => PyExchange::resume_writing(protocol.bind(py)),
            _ => Ok(()),
        }
    }

    /// Runs work for the connection. If it raises or panics, only this connection is closed and the result is None; anything
    /// but an `Exception` is raised again.
    pub(crate) fn guarded<T>(
        socket: &Bound<'_, Self>,
        work: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        // State that a panic leaves inconsistent belongs to the connection, which is closed
        let error = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => return Ok(Some(done)),
            Ok(Err(error)) => error,
            Err(_) => PyRuntimeError::new_err("the broker panicked while serving a connection"),
        };
        Self::fail(socket, error).map(|()| None)
    }

    /// Closes the connection at once; its protocol is notified in another turn of the loop.
    pub(crate) fn lose(socket: &Bound<'_, Self>, error: Option<io::Error>) -> PyResult<()> {
        let py = socket.py();
        let (protocol, sockets) = {
            let mut held = socket.borrow_mut();
            held.is_closing = true;
            let Some(stream) = held.stream.take() else {
                return Ok(());
            };
            held.output.clear();
            let mut sockets = held.sockets.borrow_mut(py);
            sockets.remove(held.key, &stream);
            drop(sockets);
            (held.protocol.take(), held.sockets.clone_ref(py))
        };
        let Some(protocol) = protocol else {
            return Ok(());
        };
        let lost = protocol.getattr(py, python::CONNECTION_LOST)?;
        let error = error.map(|error| PyErr::from(error).into_value(py));
        let event_loop = sockets.borrow(py).event_loop(py);
        event_loop.call_method1(py, python::CALL_SOON, (lost, error))?;
        Ok(())
    }

    /// Logs what the protocol raised and closes the connection; anything but an `Exception` is raised again.
    pub(crate) fn fail(socket: &Bound<'_, Self>, error: PyErr) -> PyResult<()> {
        let py = socket.py();
        Self::lose(socket, None)?;
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let event_loop = {
            let held = socket.borrow();
            let sockets = held.sockets.borrow(py);
            sockets.event_loop(py)
        };
        let report = PyDict::new(py);
        report.set_item("message", "a connection failed while reading")?;
        report.set_item("exception", error.into_value(py))?;
        report.set_item("transport", socket)?;
        event_loop.call_method1(py, python::CALL_EXCEPTION_HANDLER, (report,))?;
        Ok(())
    }

    /// Tries to send, and returns the number of bytes that remain.
    pub(crate) fn unsent_bytes(socket: &Bound<'_, Self>) -> PyResult<usize> {
        let sent = {
            let mut held = socket.borrow_mut();
            let held = &mut *held;
            match &mut held.stream {
                Some(_) if held.output.is_away() => {
                    held.sockets.borrow(socket.py()).expect();
                    Ok(())
                }
                Some(stream) if held.is_dirty => held.output.send(stream),
                _ => Ok(()),
            }
        };
        if let Err(error) = sent {
            Self::lose(socket, Some(error))?;
        }
        Ok(socket.borrow().output.bytes())
    }
}

#[pymethods]
impl PySocket {
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn write(socket: &Bound<'_, Self>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::write_all(socket, &PyList::new(socket.py(), [data])?)
    }

    fn writelines(socket: &Bound<'_, Self>, parts: &Bound<'_, PyList>) -> PyResult<()> {
        Self::write_all(socket, parts)
    }

    fn get_write_buffer_size(socket: &Bound<'_, Self>) -> PyResult<usize> {
        Self::unsent_bytes(socket)
    }

    #[pyo3(signature = (high))]
    fn set_write_buffer_limits(&mut self, high: usize) {
        self.output.set_high(high);
    }

    pub(crate) fn pause_reading(&mut self) {
        self.is_paused = true;
    }

    pub(crate) fn resume_reading(socket: &Bound<'_, Self>) -> PyResult<()> {
        let sockets = {
            let mut held = socket.borrow_mut();
            held.is_paused = false;
            match &held.stream {
                // The poller reported it while reading was paused
                Some(stream) if stream.is_readable() => held.sockets.clone_ref(socket.py()),
                _ => return Ok(()),
            }
        };
        PySockets::read_again(sockets.bind(socket.py()), socket)
    }

    /// Closes the connection once everything is sent; reads nothing more.
    fn close(socket: &Bound<'_, Self>) -> PyResult<()> {
        {
            let mut held = socket.borrow_mut();
            if std::mem::replace(&mut held.is_closing, true) {
                return Ok(());
            }
        }
        Self::flush(socket)
    }

    /// Closes the connection at once.
    fn abort(socket: &Bound<'_, Self>) -> PyResult<()> {
        Self::lose(socket, None)
    }

    /// The descriptor; -1 once the connection is closed.
    fn fileno(&self) -> RawFd {
        self.stream.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Returns the default: a plaintext connection has no `ssl_object`, and the rest is known since it was accepted.
    #[staticmethod]
    #[pyo3(signature = (_name, default = None))]
    fn get_extra_info(_name: &str, default: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
        default
    }
}

collected!(PySocket { protocol, sockets } cut { protocol });
