//! Collects the responses written during a turn of the event loop and sends them at its end.

use std::cell::{Cell, RefCell};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::completion::call_logged;
use crate::python;
use crate::socket::PySocket;
use crate::sockets::PySockets;
use crate::staging::PyStaging;

/// With fewer sockets to flush, waking another thread takes longer than it saves.
const HANDED_OVER_MIN: usize = 64;

thread_local! {
    static CORK: Cork = const {
        Cork {
            depth: Cell::new(0),
            dirty: RefCell::new(Vec::new()),
            kept: RefCell::new(Vec::new()),
            stages: Cell::new(false),
            staged: RefCell::new(Vec::new()),
        }
    };
}

/// Sockets with unsent responses of the current turn; each is flushed with one system call.
struct Cork {
    depth: Cell<u32>,
    dirty: RefCell<Vec<Py<PySocket>>>,
    /// Those that were not handed over, as no thread was free or they cannot send now; flushed at the end of the turn, too.
    kept: RefCell<Vec<Py<PySocket>>>,
    /// Whether the end of the turn appends the records that coordinators have staged.
    stages: Cell<bool>,
    staged: RefCell<Vec<Py<PyStaging>>>,
}

/// Ends a turn when dropped.
struct Turn;

impl Turn {
    fn begin() -> Self {
        CORK.with(|cork| cork.depth.set(cork.depth.get() + 1));
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        CORK.with(|cork| cork.depth.set(cork.depth.get() - 1));
    }
}

pub(crate) fn is_corked() -> bool {
    CORK.with(|cork| cork.depth.get() > 0)
}

/// Runs `work` and then sends the responses that it wrote.
pub(crate) fn corked<R>(py: Python<'_>, work: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    let done = {
        let _turn = Turn::begin();
        work()
    };
    let mut flushed = Ok(());
    if !is_corked() {
        // A flush may resume work that writes to other sockets
        loop {
            let dirty = take_dirty();
            let mut kept = CORK.with(|cork| std::mem::take(&mut *cork.kept.borrow_mut()));
            kept.extend(hand_over(py, dirty));
            if kept.is_empty() {
                break;
            }
            for socket in kept {
                // A failing socket must not keep back the responses of others
                let socket = socket.bind(py);
                let sent = PySocket::guarded(socket, || PySocket::flush(socket));
                flushed = flushed.and(sent.map(|_| ()));
            }
        }
    }
    done.and_then(|done| flushed.map(|()| done))
}

fn take_dirty() -> Vec<Py<PySocket>> {
    CORK.with(|cork| std::mem::take(&mut *cork.dirty.borrow_mut()))
}

/// Sends a socket's responses at the end of the turn, or before it by another thread.
pub(crate) fn send_later(socket: &Bound<'_, PySocket>) {
    let dirty = socket.clone().unbind();
    let count = CORK.with(|cork| {
        let mut all = cork.dirty.borrow_mut();
        all.push(dirty);
        all.len()
    });
    if count >= HANDED_OVER_MIN {
        let kept = hand_over(socket.py(), take_dirty());
        CORK.with(|cork| cork.kept.borrow_mut().extend(kept));
    }
}

/// Has another thread send the responses of many sockets; returns the sockets that this one has to flush.
fn hand_over(py: Python<'_>, dirty: Vec<Py<PySocket>>) -> Vec<Py<PySocket>> {
    if dirty.len() < HANDED_OVER_MIN {
        return dirty;
    }
    let sockets = PySocket::sockets(dirty[0].bind(py));
    PySockets::hand_over(sockets.bind(py), dirty)
}

/// Ends a turn's staging when dropped.
struct Stages;

impl Drop for Stages {
    fn drop(&mut self) {
        CORK.with(|cork| cork.stages.set(false));
    }
}

/// Runs `work`, and then appends what coordinators have staged meanwhile.
pub(crate) fn staging<R>(py: Python<'_>, work: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    let done = {
        CORK.with(|cork| cork.stages.set(true));
        let _stages = Stages;
        work()
    };
    for staging in CORK.with(|cork| std::mem::take(&mut *cork.staged.borrow_mut())) {
        // One that fails must not keep back the records of others
        let flush = staging.bind(py).getattr(intern!(py, python::FLUSH))?;
        call_logged(&flush, &PyTuple::empty(py))?;
    }
    done
}

/// Has the end of the turn append what a coordinator stages; false if it does not, as no turn is running that would.
pub(crate) fn append_later(staging: &Bound<'_, PyStaging>) -> bool {
    CORK.with(|cork| {
        let stages = cork.stages.get();
        if stages {
            cork.staged.borrow_mut().push(staging.clone().unbind());
        }
        stages
    })
}
