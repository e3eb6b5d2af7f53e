//! `Exchange`: the requests of one connection and their responses, in the same order. `sharecore.network.Connection` extends
//! it.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::collections::VecDeque;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sharecore_wire::{Outgoing, Pause, Pipeline, Unsent};

use crate::answers::PyAnswerBudget;
use crate::budget::PyMemoryBudget;
use crate::client_transport::ClientTransport;
use crate::clock::Clock;
use crate::collected::collected;
use crate::cork::corked;
use crate::dispatch::PyDispatch;
use crate::intake::Intake;
use crate::pipeline::charged_of;
use crate::python;
use crate::session::PyShareSession;
use crate::slot::{Answer, PySlot};
use crate::unsent::{self, size_of};

/// The hot path of a connection.
#[pyclass(name = "Exchange", module = "sharecore._core", subclass)]
pub(crate) struct PyExchange {
    /// Called with the connection and each frame.
    on_frame: Py<PyAny>,
    /// Set if `on_frame` is a dispatch's own method, which is then called without Python.
    dispatch: Option<Py<PyDispatch>>,
    #[pyo3(get, set)]
    pub(crate) closed: bool,
    transport: Option<ClientTransport>,
    pub(crate) budget: Py<PyMemoryBudget>,
    pub(crate) answers: Py<PyAnswerBudget>,
    pub(crate) clock: Clock,
    /// When the last byte passed in either direction.
    pub(crate) active_at: i64,
    pub(crate) pipeline: Pipeline,
    pub(crate) intake: Intake,
    pub(crate) slots: VecDeque<Py<PySlot>>,
    pub(crate) backlog: VecDeque<Py<PyBytes>>,
    /// Bytes of the frame being handled; 0 if small, since small frames are not counted.
    pub(crate) handling: usize,
    pub(crate) unsent: Unsent<Py<PyBytes>>,
    pub(crate) outgoing: Outgoing,
    /// True once the client has sent a whole request.
    #[pyo3(get)]
    pub(crate) has_asked: bool,
    pumping: bool,
    /// The share session of the last request that had one.
    share_session: Option<Py<PyShareSession>>,
}

impl PyExchange {
    pub(crate) fn share_session<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyShareSession>> {
        let session = self.share_session.as_ref();
        session.map(|session| session.bind(py).clone())
    }

    /// Stores the share session of a request; returns the previous one.
    pub(crate) fn keep_share_session(
        &mut self,
        session: &Bound<'_, PyShareSession>,
    ) -> Option<Py<PyShareSession>> {
        self.share_session.replace(session.clone().unbind())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The dispatch to call directly, if frames go straight to one.
    pub(crate) fn dispatch<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyDispatch>> {
        let dispatch = self.dispatch.as_ref();
        dispatch.map(|dispatch| dispatch.bind(py).clone())
    }

    /// The principal or address that is charged for the client's memory.
    pub(crate) fn owner(&self) -> Arc<str> {
        Arc::clone(&self.intake.owner)
    }

    /// True if this slot's response is the next to send.
    pub(crate) fn begins_with(&self, slot: &Bound<'_, PySlot>) -> bool {
        self.slots.front().is_some_and(|first| first.is(slot))
    }

    /// The transport, even if it is closing.
    pub(crate) fn any_transport(exchange: &Bound<'_, Self>) -> Option<ClientTransport> {
        let held = exchange.borrow();
        let transport = held.transport.as_ref();
        transport.map(|transport| transport.clone_ref(exchange.py()))
    }

    /// The transport, unless it is closing.
    pub(crate) fn open_transport(exchange: &Bound<'_, Self>) -> PyResult<Option<ClientTransport>> {
        let py = exchange.py();
        let transport = Self::any_transport(exchange);
        match transport {
            Some(transport) if !transport.is_closing(py)? => Ok(Some(transport)),
            _ => Ok(None),
        }
    }

    pub(crate) fn write(exchange: &Bound<'_, Self>, parts: &Bound<'_, PyList>) -> PyResult<()> {
        let Some(transport) = Self::open_transport(exchange)? else {
            return Ok(());
        };
        let size = size_of(parts)?;
        let (is_kept, is_scheduled) = {
            let mut held = exchange.borrow_mut();
            let is_kept = !held.unsent.passes(size);
            if is_kept {
                unsent::push(&mut held.unsent, parts)?;
            } else {
                held.outgoing.write(size, size);
            }
            (is_kept, held.unsent.is_scheduled)
        };
        if !is_kept {
            Self::mark_active(exchange)?;
            transport.write(parts)?;
            if exchange.borrow().outgoing.is_noteworthy() {
                Self::recount(exchange)?;
            }
            return Ok(());
        }
        if is_scheduled {
            Self::recount(exchange)
        } else {
            Self::send(exchange)
        }
    }

    /// Closes the connection because handling raised `error`: an `Exception` is logged, anything else is raised again.
    pub(crate) fn fail(exchange: &Bound<'_, Self>, error: PyErr) -> PyResult<()> {
        let py = exchange.py();
        let transport = Self::any_transport(exchange);
        match transport {
            Some(transport) => transport.fail(py, error),
            None => Err(error),
        }
    }

    /// Closes the connection, giving the reason.
    pub(crate) fn close(exchange: &Bound<'_, Self>, reason: &str) -> PyResult<()> {
        exchange.call_method1(python::CLOSE, (reason,)).map(|_| ())
    }

    /// Dispatches requests in a later turn of the event loop.
    pub(crate) fn pump_soon(exchange: &Bound<'_, Self>) -> PyResult<()> {
        exchange.call_method0(python::OWN_PUMP_SOON).map(|_| ())
    }

    /// Asks the server to free memory that idle clients hold.
    pub(crate) fn seek_room(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let seek = intern!(exchange.py(), python::OWN_WAIT_FOR_ROOM);
        exchange.call_method0(seek).map(|_| ())
    }

    /// Pauses reading for a reason.
    pub(crate) fn pause_for(exchange: &Bound<'_, Self>, reason: Pause) -> PyResult<()> {
        Self::pause(exchange, reason as u8)
    }

    /// Removes a reason for the pause; reading resumes once there is none.
    pub(crate) fn resume_after(exchange: &Bound<'_, Self>, reason: Pause) -> PyResult<()> {
        Self::resume(exchange, reason as u8)
    }

    /// Sends the next part of the unsent bytes, or all of them.
    fn send_some(exchange: &Bound<'_, Self>, all: bool) -> PyResult<()> {
        let Some(transport) = Self::open_transport(exchange)? else {
            exchange.borrow_mut().unsent.clear();
            return Ok(());
        };
        let parts = {
            let mut held = exchange.borrow_mut();
            let held = &mut *held;
            unsent::next(exchange.py(), &mut held.unsent, all, &mut held.outgoing)?
        };
        if parts.is_empty() {
            return Ok(());
        }
        Self::mark_active(exchange)?;
        transport.write(&parts)?;
        Self::recount(exchange)
    }

    pub(crate) fn pump(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        {
            let mut held = exchange.borrow_mut();
            if held.pumping || held.closed {
                return Ok(());
            }
            held.pumping = true;
        }
        let pumped = Self::pump_backlog(exchange);
        let (is_full, begun) = {
            let mut held = exchange.borrow_mut();
            held.pumping = false;
            let is_full = !held.backlog.is_empty() || held.is_full(py);
            (is_full, !is_full && held.intake.has_begun())
        };
        pumped?;
        if begun {
            Self::ask_for_room(exchange)?;
        }
        if is_full {
            Self::pause_for(exchange, Pause::Pipeline)
        } else {
            Self::resume_after(exchange, Pause::Pipeline)
        }
    }
}

#[pymethods]
impl PyExchange {
    /// `server` provides `on_frame`, `monotonic_ms`, `budget` and `limits`.
    #[new]
    #[pyo3(signature = (server, *_args, **_rest))]
    fn new(
        server: &Bound<'_, PyAny>,
        _args: &Bound<'_, pyo3::types::PyTuple>,
        _rest: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> PyResult<Self> {
        let limits = server.getattr(python::LIMITS)?;
        let clock = Clock::of(&server.getattr(python::MONOTONIC_MS)?)?;
        let on_frame = server.getattr(python::ON_FRAME)?;
        Ok(Self {
            dispatch: PyDispatch::behind(&on_frame),
            on_frame: on_frame.unbind(),
            closed: false,
            transport: None,
            budget: server.getattr(python::BUDGET)?.extract()?,
            answers: server.getattr(python::ANSWERS)?.extract()?,
            active_at: clock.ms(server.py())?,
            clock,
            pipeline: Pipeline::new(
                limits.getattr(python::PIPELINE_MAX)?.extract()?,
                limits.getattr(python::PIPELINED)?.extract()?,
            ),
            intake: Intake::new(
                server.getattr(python::SCRATCH)?.cast_into()?,
                limits.getattr(python::FRAME_BYTES_MAX)?.extract()?,
            )?,
            slots: VecDeque::new(),
            backlog: VecDeque::new(),
            handling: 0,
            unsent: Unsent::new(limits.getattr(python::SEND_BUFFER_BYTES)?.extract()?),
            outgoing: Outgoing::default(),
            has_asked: false,
            pumping: false,
            share_session: None,
        })
    }

    #[getter(_transport)]
    fn get_transport(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.transport
            .as_ref()
            .map(|transport| transport.as_any(py))
    }

    #[setter(_transport)]
    fn set_transport(&mut self, transport: Option<&Bound<'_, PyAny>>) {
        self.transport = transport.map(ClientTransport::of);
    }

    #[getter]
    pub(crate) fn on_frame(&self, py: Python<'_>) -> Py<PyAny> {
        self.on_frame.clone_ref(py)
    }

    #[setter]
    fn set_on_frame(&mut self, on_frame: &Bound<'_, PyAny>) {
        self.dispatch = PyDispatch::behind(on_frame);
        self.on_frame = on_frame.clone().unbind();
    }

    #[getter]
    fn in_flight(&self) -> usize {
        self.slots.len()
    }

    fn idle_since(&self) -> Option<i64> {
        self.slots.is_empty().then_some(self.active_at)
    }

    pub(crate) fn pause_writing(exchange: &Bound<'_, Self>) -> PyResult<()> {
        Self::pause_for(exchange, Pause::Write)?;
        Self::recount(exchange)
    }

    pub(crate) fn resume_writing(exchange: &Bound<'_, Self>) -> PyResult<()> {
        Self::resume_after(exchange, Pause::Write)?;
        Self::recount(exchange)?;
        let stopped = {
            let unsent = &exchange.borrow().unsent;
            !unsent.is_empty() && !unsent.is_scheduled
        };
        if stopped {
            Self::send(exchange)?;
        }
        Self::pump(exchange)
    }

    /// Sends part of the unsent bytes and schedules the rest for later turns, so that other clients are served in between;
    /// stops while the client does not read.
    #[pyo3(name = "_send")]
    fn send(exchange: &Bound<'_, Self>) -> PyResult<()> {
        {
            let mut held = exchange.borrow_mut();
            held.unsent.is_scheduled = false;
            if held.pipeline.is_paused(Pause::Write) {
                return Ok(());
            }
        }
        Self::send_some(exchange, false)?;
        if exchange.borrow().unsent.is_empty() {
            return Self::pump(exchange);
        }
        exchange.borrow_mut().unsent.is_scheduled = true;
        exchange.call_method0(python::OWN_SEND_SOON).map(|_| ())
    }

    /// Sends all unsent bytes at once.
    #[pyo3(name = "_send_rest")]
    fn send_rest(exchange: &Bound<'_, Self>) -> PyResult<()> {
        Self::send_some(exchange, true)
    }

    /// Dispatches the backlog as one turn, whose responses are sent together.
    #[pyo3(name = "_pump")]
    fn pump_corked(exchange: &Bound<'_, Self>) -> PyResult<()> {
        corked(exchange.py(), || Self::pump(exchange))
    }

    #[pyo3(name = "_pause")]
    fn pause(exchange: &Bound<'_, Self>, reasons: u8) -> PyResult<()> {
        let was_reading = exchange.borrow().pipeline.reads();
        if was_reading && let Some(transport) = Self::open_transport(exchange)? {
            transport.pause_reading(exchange.py())?;
        }
        exchange.borrow_mut().pipeline.pause(reasons);
        Ok(())
    }

    #[pyo3(name = "_resume")]
    fn resume(exchange: &Bound<'_, Self>, reasons: u8) -> PyResult<()> {
        let starts = exchange.borrow_mut().pipeline.resume(reasons);
        if starts && let Some(transport) = Self::open_transport(exchange)? {
            transport.resume_reading(exchange.py())?;
        }
        Ok(())
    }

    #[pyo3(name = "_drop_backlog")]
    pub(crate) fn drop_backlog(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        let dropped = std::mem::take(&mut exchange.borrow_mut().backlog);
        let sizes: Vec<_> = dropped.iter().map(|frame| charged_of(frame, py)).collect();
        Self::free(exchange, sizes)
    }

    /// Ends the exchange: releases its memory and returns the futures to cancel.
    #[pyo3(name = "_end")]
    fn end(exchange: &Bound<'_, Self>) -> PyResult<Vec<Py<PyAny>>> {
        let py = exchange.py();
        Self::give_up(exchange)?;
        let session = exchange.borrow_mut().share_session.take();
        drop(session);
        let slots = {
            let mut held = exchange.borrow_mut();
            held.closed = true;
            held.forget();
            held.handling = 0;
            held.unsent.clear();
            held.outgoing.ready = 0;
            std::mem::take(&mut held.slots)
        };
        Self::recount(exchange)?;
        let waiting = slots
            .iter()
            .filter_map(|slot| match &slot.borrow(py).answer {
                Answer::Pending(future, _) => Some(future.clone_ref(py)),
                Answer::Finishing | Answer::Ready(_) | Answer::Close(_) => None,
            });
        Ok(waiting.collect())
    }

    /// Resumes after clients have read enough for the next response to be created.
    fn _readers_have_read(exchange: &Bound<'_, Self>) -> PyResult<()> {
        exchange.borrow_mut().outgoing.waits_for_readers = false;
        Self::pump_corked(exchange)
    }

    #[getter]
    fn get_owner(&self) -> &str {
        &self.intake.owner
    }

    #[getter]
    fn get_frame_bytes_max(&self) -> usize {
        self.intake.frame_bytes_max
    }

    #[setter]
    fn set_frame_bytes_max(&mut self, bytes_max: usize) {
        self.intake.frame_bytes_max = bytes_max;
    }

    #[getter]
    fn held_bytes(&self, py: Python<'_>) -> usize {
        let parked = self.slots.iter().map(|slot| slot.borrow(py));
        let parked = parked.filter(|slot| slot.is_parked);
        self.held(py).iter().sum::<usize>() + parked.map(|slot| slot.frame_bytes).sum::<usize>()
    }

    /// Bytes received and bytes still missing of the request that is being read.
    #[getter]
    fn partial(&self) -> Option<(usize, usize)> {
        let partial = self.intake.partial.as_ref();
        partial.map(|partial| (partial.filled, partial.size - partial.filled))
    }

    /// For a large request that waits for its response: start of the wait, whether it is parked, and its size.
    #[getter]
    fn waits_since(&self) -> Option<(i64, bool, usize)> {
        self.intake.waits_since
    }

    fn enter(
        exchange: &Bound<'_, Self>,
        budget: &Bound<'_, PyMemoryBudget>,
        owner: &str,
    ) -> PyResult<()> {
        Self::move_to(exchange, budget, owner)
    }

    fn get_buffer<'py>(
        exchange: &Bound<'py, Self>,
        _size_hint: isize,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::buffer(exchange)
    }

    fn buffer_updated(exchange: &Bound<'_, Self>, count: usize) -> PyResult<()> {
        Self::have_read(exchange, count)
    }

    fn data_received(exchange: &Bound<'_, Self>, data: &[u8]) -> PyResult<()> {
        Self::take_in(exchange, data)
    }

    fn _recount(exchange: &Bound<'_, Self>) -> PyResult<()> {
        Self::recount(exchange)
    }

    /// Bytes of responses that the client had not read when they were last counted.
    #[getter]
    fn unread_bytes(&self) -> u64 {
        self.outgoing.counted
    }

    /// Bytes of records that the next response may carry; 0 if it must wait until clients have read.
    pub(crate) fn answer_room(&self, py: Python<'_>) -> u64 {
        self.answers.borrow(py).room(&self.intake.owner)
    }

    /// Adds to (or subtracts from) the bytes of responses that are being built elsewhere.
    fn hold_answer_bytes(exchange: &Bound<'_, Self>, change: i64) -> PyResult<()> {
        exchange.borrow_mut().outgoing.hold(change);
        Self::recount(exchange)
    }

    /// Calls `room` once there is room for a response.
    pub(crate) fn when_answer_room(exchange: &Bound<'_, Self>, room: Py<PyAny>) -> PyResult<()> {
        let py = exchange.py();
        {
            let held = exchange.borrow();
            held.answers.borrow_mut(py).wait(&held.intake.owner, room);
        }
        Self::seek_room(exchange)
    }
}

collected!(PyExchange { on_frame, dispatch, share_session, transport, budget, answers, clock, slots } cut { transport, share_session, slots });
