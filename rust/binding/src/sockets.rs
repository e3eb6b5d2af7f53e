//! `Sockets`: the plaintext connections of an event loop's thread. One callback of the loop reads, frames, handles and writes
//! for all ready connections, without a Python call for each.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use sharecore_net::{Poller, Ready, Senders, Socket};

use crate::collected::collected;
use crate::cork::corked;
use crate::error::keep_first;
use crate::exchange::PyExchange;
use crate::python;
use crate::socket::{Chunk, PySocket};
use crate::store_events::PyStoreEvents;

/// Serve at most this many connections before the event loop does something else.
const READY_AT_ONCE: usize = 1024;

/// The connections of a thread and their poller.
#[pyclass(name = "Sockets", module = "sharecore._core")]
pub(crate) struct PySockets {
    poller: Poller,
    event_loop: Py<PyAny>,
    open: Vec<Option<Py<PySocket>>>,
    free: Vec<usize>,
    /// Connections with more to read than one turn allows.
    again: Vec<Py<PySocket>>,
    is_scheduled: bool,
    ready: Vec<Ready>,
    /// Of the store that commits at the end of a turn.
    commits: Option<Py<PyStoreEvents>>,
    /// None once closed.
    senders: Option<Senders<Py<PySocket>, Chunk>>,
}

impl PySockets {
    /// Schedules another read of a socket for the next turn.
    pub(crate) fn read_again(
        sockets: &Bound<'_, Self>,
        socket: &Bound<'_, PySocket>,
    ) -> PyResult<()> {
        let schedules = {
            let mut held = sockets.borrow_mut();
            held.again.push(socket.clone().unbind());
            !std::mem::replace(&mut held.is_scheduled, true)
        };
        if !schedules {
            return Ok(());
        }
        let turn = sockets.getattr(python::OWN_TURN_AGAIN)?;
        let event_loop = sockets.borrow().event_loop.clone_ref(sockets.py());
        event_loop.call_method1(sockets.py(), python::CALL_SOON, (turn,))?;
        Ok(())
    }

    fn serve(sockets: &Bound<'_, Self>, socket: &Bound<'_, PySocket>) -> PyResult<()> {
        match PySocket::guarded(socket, || PySocket::read(socket))? {
            Some(true) => Self::read_again(sockets, socket),
            Some(false) | None => Ok(()),
        }
    }

    /// Serves ready connections, and has their writes committed.
    fn serve_all(
        sockets: &Bound<'_, Self>,
        again: Vec<Py<PySocket>>,
        ready: &[Ready],
    ) -> PyResult<()> {
        let py = sockets.py();
        let commits = sockets
            .borrow()
            .commits
            .as_ref()
            .map(|it| it.bind(py).clone());
        let clients = ready.len() + again.len();
        let mut failed = Ok(());
        let serve = || {
            // An error of one connection must not stop the others: readiness is reported only once
            let returned = Self::take_back(sockets, &mut failed);
            for socket in again {
                keep_first(&mut failed, Self::serve(sockets, socket.bind(py)));
            }
            for each in ready {
                keep_first(&mut failed, Self::serve_ready(sockets, each));
            }
            clients + returned
        };
        let committed = if let Some(events) = commits {
            PyStoreEvents::turn(&events, clients, || Ok(serve()))
        } else {
            serve();
            Ok(())
        };
        failed.and(committed)
    }

    fn serve_ready(sockets: &Bound<'_, Self>, ready: &Ready) -> PyResult<()> {
        let py = sockets.py();
        let socket = match sockets.borrow().open.get(ready.key) {
            Some(Some(socket)) => socket.clone_ref(py).into_bound(py),
            _ => return Ok(()),
        };
        let mut failed = Ok(());
        if socket.borrow_mut().note(ready) {
            let sent = PySocket::guarded(&socket, || PySocket::flush(&socket));
            failed = sent.map(|_| ());
        }
        if ready.readable {
            failed = failed.and(Self::serve(sockets, &socket));
        }
        failed
    }

    /// Removes a closed connection.
    pub(crate) fn remove(&mut self, key: usize, stream: &Socket) {
        // Fails if the operating system has already dropped it, which is harmless
        let _ = self.poller.remove(stream);
        self.open[key] = None;
        self.free.push(key);
    }

    pub(crate) fn event_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    /// Has another thread send what sockets have to send, if one has time for it; returns the sockets that the caller must
    /// flush.
    pub(crate) fn hand_over(
        sockets: &Bound<'_, Self>,
        dirty: Vec<Py<PySocket>>,
    ) -> Vec<Py<PySocket>> {
        let py = sockets.py();
        let mut held = sockets.borrow_mut();
        let senders = held.senders.as_mut();
        let Some(senders) = senders.filter(|senders| senders.has_room()) else {
            return dirty;
        };
        let (ours, others): (Vec<_>, Vec<_>) = dirty
            .into_iter()
            .partition(|socket| PySocket::sockets(socket.bind(py)).is(sockets));
        let (mut batch, mut rest) = (Vec::with_capacity(ours.len()), others);
        for socket in ours {
            match PySocket::send_job(socket.bind(py)) {
                Some(job) => batch.push(job),
                // Its flush notices a passed mark, or that the connection is to be closed
                None => rest.push(socket),
            }
        }
        if !batch.is_empty() {
            senders.send(batch);
        }
        rest
    }

    /// Takes sockets back as soon as other threads have sent for them.
    pub(crate) fn expect(&self) {
        if let Some(senders) = &self.senders {
            senders.expect();
        }
    }

    /// Takes sockets back whose responses other threads have sent, and handles the results; returns how many.
    fn take_back(sockets: &Bound<'_, Self>, failed: &mut PyResult<()>) -> usize {
        let returned = match &mut sockets.borrow_mut().senders {
            Some(senders) => senders.sent(),
            None => return 0,
        };
        let mut count = 0;
        for job in returned {
            count += 1;
            let socket = job.of.clone_ref(sockets.py());
            let socket = socket.bind(sockets.py());
            let settled = PySocket::guarded(socket, || PySocket::returned(socket, job));
            keep_first(failed, settled.map(|_| ()));
        }
        count
    }

    fn insert(&mut self, key: usize, socket: Py<PySocket>) {
        if key == self.open.len() {
            self.open.push(Some(socket));
        } else {
            self.open[key] = Some(socket);
        }
    }
}

#[pymethods]
impl PySockets {
    /// `threads` is how many threads may do the system's calls for sockets, this one included.
    #[new]
    #[pyo3(signature = (event_loop, *, threads = 1))]
    fn new(event_loop: Py<PyAny>, threads: usize) -> PyResult<Self> {
        let poller = Poller::new(READY_AT_ONCE)?;
        let senders = Senders::new(threads.saturating_sub(1), &poller)?;
        Ok(Self {
            poller,
            event_loop,
            open: Vec::new(),
            free: Vec::new(),
            again: Vec::new(),
            is_scheduled: false,
            ready: Vec::new(),
            commits: None,
            senders: Some(senders),
        })
    }

    /// Has small turns end with a commit of a store's writes.
    fn commit_with(&mut self, events: Option<Py<PyStoreEvents>>) {
        self.commits = events;
    }

    /// Ends the other threads. What they still had to send is lost, so connections are closed before.
    fn close(&mut self) {
        self.senders = None;
    }

    fn fileno(&self) -> RawFd {
        self.poller.as_raw_fd()
    }

    fn __len__(&self) -> usize {
        self.open.iter().flatten().count()
    }

    /// Takes over a connected socket and connects it to its protocol.
    fn open(
        sockets: &Bound<'_, Self>,
        descriptor: RawFd,
        protocol: &Bound<'_, PyExchange>,
    ) -> PyResult<Py<PySocket>> {
        let py = sockets.py();
        if descriptor < 0 {
            return Err(PyOSError::new_err("a closed socket"));
        }
        // SAFETY: the caller has detached the descriptor from its socket object
        let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let stream = Socket::new(owned)?;
        let socket = {
            let mut held = sockets.borrow_mut();
            let key = held.free.pop().unwrap_or(held.open.len());
            if let Err(error) = held.poller.add(&stream, key) {
                if key < held.open.len() {
                    held.free.push(key);
                }
                return Err(error.into());
            }
            let made = PySocket::new(stream, protocol, sockets, key);
            let made = Py::new(py, made)?;
            held.insert(key, made.clone_ref(py));
            made
        };
        // A connection whose start failed must not be served
        if let Err(error) = protocol.call_method1(python::CONNECTION_MADE, (socket.clone_ref(py),))
        {
            PySocket::lose(socket.bind(py), None)?;
            return Err(error);
        }
        Ok(socket)
    }

    /// Serves the connections that had more to read.
    fn _turn_again(sockets: &Bound<'_, Self>) -> PyResult<()> {
        sockets.borrow_mut().is_scheduled = false;
        Self::turn(sockets)
    }

    /// Serves every ready connection; called by the event loop when `fileno()` is readable.
    fn turn(sockets: &Bound<'_, Self>) -> PyResult<()> {
        let py = sockets.py();
        let (ready, again) = {
            let mut held = sockets.borrow_mut();
            let mut ready = std::mem::take(&mut held.ready);
            ready.clear();
            held.poller.ready(&mut ready)?;
            (ready, std::mem::take(&mut held.again))
        };
        let served = corked(py, || Self::serve_all(sockets, again, &ready));
        sockets.borrow_mut().ready = ready;
        served
    }
}

collected!(PySockets { event_loop, open, again, commits } cut { open, again, commits });
