//! `Exchange`: requests of one connection in, their answers out in the same order. `sharecore.network.Connection` is one.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use pyo3::{PyTraverseError, PyVisit};
use sharecore_wire::{Framer, SIZE_BYTES};

use crate::budget::PyMemoryBudget;
use crate::slot::{Answer, PyPending, PySlot, told_to_disconnect};
use crate::stop::Stop;
use crate::unsent::Unsent;
use crate::waiting::PyLater;

/// Why nothing is read: too many requests wait for their answers, memory is exhausted, the client does not read,
/// the connection is about to close, the client has used more than its quota, records of a request are being checked.
const PIPELINE: u8 = 1;
const MEMORY: u8 = 2;
const WRITE: u8 = 4;
const CLOSING: u8 = 8;
const THROTTLE: u8 = 16;
pub(crate) const CHECK: u8 = 32;
/// Nothing is handed on either, of what has been read.
const NOT_HANDED_ON: u8 = WRITE | THROTTLE | CHECK;

/// The hot half of a connection.
#[pyclass(name = "Exchange", module = "sharecore._core", subclass)]
pub(crate) struct PyExchange {
    /// What frames go to, called with the connection and the frame.
    #[pyo3(get, set)]
    on_frame: Py<PyAny>,
    #[pyo3(get, set)]
    closed: bool,
    #[pyo3(get)]
    held_bytes: i64,
    #[pyo3(get, set)]
    frame_bytes_max: usize,
    #[pyo3(get, set, name = "_beyond_budget")]
    beyond_budget: bool,
    #[pyo3(get, set, name = "_transport")]
    transport: Option<Py<PyAny>>,
    budget: Py<PyMemoryBudget>,
    now: Py<PyAny>,
    active_at: f64,
    pipeline_max: usize,
    framer: Framer,
    slots: VecDeque<Py<PySlot>>,
    backlog: VecDeque<Py<PyBytes>>,
    unsent: Unsent,
    paused: u8,
    pumping: bool,
}

impl PyExchange {
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the answer of this slot is the next to leave.
    pub(crate) fn begins_with(&self, slot: &Bound<'_, PySlot>) -> bool {
        self.slots.front().is_some_and(|first| first.is(slot))
    }

    /// The transport, unless it is closing.
    fn open_transport<'py>(exchange: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = exchange.py();
        let transport = exchange
            .borrow()
            .transport
            .as_ref()
            .map(|it| it.clone_ref(py));
        let Some(transport) = transport else {
            return Ok(None);
        };
        let transport = transport.into_bound(py);
        let is_closing = transport.call_method0("is_closing")?.is_truthy()?;
        Ok((!is_closing).then_some(transport))
    }

    /// So many bytes of requests are answered, or will not be.
    fn free(exchange: &Bound<'_, Self>, size: usize) -> PyResult<()> {
        let budget = {
            let mut held = exchange.borrow_mut();
            if held.closed || size == 0 {
                return Ok(());
            }
            held.held_bytes -= size as i64;
            held.budget.clone_ref(exchange.py())
        };
        PyMemoryBudget::release(budget.bind(exchange.py()), size as i64)
    }

    fn write(exchange: &Bound<'_, Self>, parts: &Bound<'_, PyList>) -> PyResult<()> {
        let Some(transport) = Self::open_transport(exchange)? else {
            return Ok(());
        };
        let scheduled = {
            let unsent = &mut exchange.borrow_mut().unsent;
            unsent.take(parts)?.then_some(unsent.is_scheduled)
        };
        match scheduled {
            None => {
                Self::mark_active(exchange)?;
                give(&transport, parts)
            }
            Some(false) => Self::send(exchange),
            Some(true) => Ok(()),
        }
    }

    fn mark_active(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        let now = exchange.borrow().now.clone_ref(py);
        let now = now.call0(py)?.extract(py)?;
        exchange.borrow_mut().active_at = now;
        Ok(())
    }

    fn slot(
        exchange: &Bound<'_, Self>,
        frame_bytes: usize,
        answer: Answer,
    ) -> PyResult<Py<PySlot>> {
        let slot = PySlot {
            exchange: exchange.clone().unbind(),
            frame_bytes,
            answer,
        };
        let slot = Py::new(exchange.py(), slot)?;
        let kept = slot.clone_ref(exchange.py());
        exchange.borrow_mut().slots.push_back(kept);
        Ok(slot)
    }

    /// Sends the next part of what is left, or all of it.
    fn send_some(exchange: &Bound<'_, Self>, all: bool) -> PyResult<()> {
        let Some(transport) = Self::open_transport(exchange)? else {
            exchange.borrow_mut().unsent.clear();
            return Ok(());
        };
        let parts = exchange.borrow_mut().unsent.next(exchange.py(), all)?;
        if parts.is_empty() {
            return Ok(());
        }
        Self::mark_active(exchange)?;
        give(&transport, &parts)
    }

    /// Hands on what has been read, as far as the pipeline has room.
    fn pump_backlog(exchange: &Bound<'_, Self>) -> PyResult<()> {
        loop {
            let frame = {
                let mut held = exchange.borrow_mut();
                if held.slots.len() >= held.pipeline_max
                    || held.paused & NOT_HANDED_ON != 0
                    || !held.unsent.is_empty()
                {
                    return Ok(());
                }
                held.backlog.pop_front()
            };
            match frame {
                Some(frame) => Self::hand_on(exchange, frame.bind(exchange.py()))?,
                None => return Ok(()),
            }
        }
    }

    fn hand_on(exchange: &Bound<'_, Self>, frame: &Bound<'_, PyBytes>) -> PyResult<()> {
        let py = exchange.py();
        let size = frame.as_bytes().len() + SIZE_BYTES;
        let on_frame = exchange.borrow().on_frame.clone_ref(py);
        let answer = match on_frame.call1(py, (exchange, frame)) {
            Ok(answer) => answer.into_bound(py),
            Err(error) => {
                let reason = told_to_disconnect(py, error)?;
                Self::free(exchange, size)?;
                return Self::close_after_answers(exchange, reason);
            }
        };
        if let Ok(pending) = answer.cast::<PyPending>() {
            let PyPending { future, finish } = pending.get();
            let waited = Answer::Pending(future.clone_ref(py), finish.clone_ref(py));
            let slot = Self::slot(exchange, size, waited)?;
            return match future.bind(py).cast::<PyLater>() {
                Ok(later) => PyLater::add_done_callback(later, slot.into_any()),
                Err(_) => future
                    .call_method1(py, "add_done_callback", (slot,))
                    .map(|_| ()),
            };
        }
        let parts: Option<Bound<'_, PyList>> = answer.extract()?;
        let waits = !exchange.borrow().slots.is_empty();
        if waits {
            let ready = Answer::Ready(parts.map(Bound::unbind));
            return Self::slot(exchange, size, ready).map(|_| ());
        }
        Self::free(exchange, size)?;
        match parts {
            Some(parts) => Self::write(exchange, &parts),
            None => Ok(()),
        }
    }

    /// Writes the answers that are next, together.
    pub(crate) fn answer_in_order(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        let mut written: Option<Bound<'_, PyList>> = None;
        let mut freed = 0;
        let mut closes = None;
        loop {
            let next = {
                let mut held = exchange.borrow_mut();
                let ready = held
                    .slots
                    .front()
                    .is_some_and(|first| !matches!(first.borrow(py).answer, Answer::Pending(..)));
                if ready { held.slots.pop_front() } else { None }
            };
            let Some(slot) = next else { break };
            let mut slot = slot.borrow_mut(py);
            freed += slot.frame_bytes;
            match std::mem::replace(&mut slot.answer, Answer::Ready(None)) {
                Answer::Ready(Some(parts)) => match &written {
                    None => written = Some(parts.into_bound(py)),
                    Some(before) => {
                        for part in parts.bind(py).iter() {
                            before.append(part)?;
                        }
                    }
                },
                Answer::Close(reason) => {
                    closes = Some(reason);
                    break;
                }
                Answer::Ready(None) | Answer::Pending(..) => {}
            }
        }
        Self::free(exchange, freed)?;
        if let Some(parts) = written {
            Self::write(exchange, &parts)?;
        }
        if let Some(reason) = closes {
            exchange.call_method1("close", (reason,))?;
        }
        let (backlog, paused) = {
            let held = exchange.borrow();
            (!held.backlog.is_empty(), held.paused & PIPELINE != 0)
        };
        if backlog {
            exchange.call_method0("_pump_soon")?;
        } else if paused {
            Self::pump(exchange)?;
        }
        Ok(())
    }

    /// A request is bad: those before it are still answered, nothing after it is read.
    fn close_after_answers(exchange: &Bound<'_, Self>, reason: String) -> PyResult<()> {
        Self::drop_backlog(exchange)?;
        let waits = !exchange.borrow().slots.is_empty();
        if !waits {
            exchange.call_method1("close", (reason,))?;
            return Ok(());
        }
        Self::slot(exchange, 0, Answer::Close(reason))?;
        Self::pause(exchange, CLOSING)
    }
}

/// Has a transport send buffers one after the other.
fn give(transport: &Bound<'_, PyAny>, parts: &Bound<'_, PyList>) -> PyResult<()> {
    if parts.len() == 1 {
        transport.call_method1("write", (parts.get_item(0)?,))?;
    } else {
        transport.call_method1("writelines", (parts,))?;
    }
    Ok(())
}

#[pymethods]
impl PyExchange {
    /// `server`: `on_frame`, `now`, `budget` and `limits` are taken from it.
    #[new]
    #[pyo3(signature = (server, *_args, **_rest))]
    fn new(
        server: &Bound<'_, PyAny>,
        _args: &Bound<'_, pyo3::types::PyTuple>,
        _rest: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> PyResult<Self> {
        let limits = server.getattr("limits")?;
        let now = server.getattr("now")?;
        Ok(Self {
            on_frame: server.getattr("on_frame")?.unbind(),
            closed: false,
            held_bytes: 0,
            frame_bytes_max: limits.getattr("frame_bytes_max")?.extract()?,
            beyond_budget: false,
            transport: None,
            budget: server.getattr("budget")?.extract()?,
            active_at: now.call0()?.extract()?,
            now: now.unbind(),
            pipeline_max: limits.getattr("pipeline_max")?.extract()?,
            framer: Framer::default(),
            slots: VecDeque::new(),
            backlog: VecDeque::new(),
            unsent: Unsent::new(limits.getattr("send_buffer_bytes")?.extract()?),
            paused: 0,
            pumping: false,
        })
    }

    #[getter]
    fn in_flight(&self) -> usize {
        self.slots.len()
    }

    fn idle_since(&self) -> Option<f64> {
        self.slots.is_empty().then_some(self.active_at)
    }

    fn data_received(exchange: &Bound<'_, Self>, data: &[u8]) -> PyResult<()> {
        let py = exchange.py();
        Self::mark_active(exchange)?;
        let fed = {
            let mut held = exchange.borrow_mut();
            let held = &mut *held;
            held.held_bytes += data.len() as i64;
            held.budget.borrow_mut(py).add(data.len() as i64);
            let backlog = &mut held.backlog;
            held.framer
                .feed(data, held.frame_bytes_max, |frame| -> Result<(), Stop> {
                    backlog.push_back(PyBytes::new(py, frame).unbind());
                    Ok(())
                })
        };
        if let Err(stop) = fed {
            let reason = stop.into_error().value(py).str()?.to_string();
            exchange.call_method1("close", (reason,))?;
            return Ok(());
        }
        Self::pump(exchange)?;
        let waits = {
            let mut held = exchange.borrow_mut();
            // who holds nothing may go on: small requests get through whatever others keep back
            if held.held_bytes == 0 {
                held.beyond_budget = false;
            }
            let exhausted = held.budget.borrow(py).is_exhausted();
            held.held_bytes != 0 && exhausted && !held.beyond_budget && held.paused & MEMORY == 0
        };
        if waits {
            Self::pause(exchange, MEMORY)?;
            exchange.call_method0("_wait_for_room")?;
        }
        Ok(())
    }

    fn pause_writing(exchange: &Bound<'_, Self>) -> PyResult<()> {
        Self::pause(exchange, WRITE)
    }

    fn resume_writing(exchange: &Bound<'_, Self>) -> PyResult<()> {
        Self::resume(exchange, WRITE)?;
        let stopped = {
            let unsent = &exchange.borrow().unsent;
            !unsent.is_empty() && !unsent.is_scheduled
        };
        if stopped {
            Self::send(exchange)?;
        }
        Self::pump(exchange)
    }

    /// Sends some of what is left, and the rest in later turns of the event loop, between which others are served; waits while
    /// the client does not read.
    #[pyo3(name = "_send")]
    fn send(exchange: &Bound<'_, Self>) -> PyResult<()> {
        {
            let mut held = exchange.borrow_mut();
            held.unsent.is_scheduled = false;
            if held.paused & WRITE != 0 {
                return Ok(());
            }
        }
        Self::send_some(exchange, false)?;
        if exchange.borrow().unsent.is_empty() {
            return Self::pump(exchange);
        }
        exchange.borrow_mut().unsent.is_scheduled = true;
        exchange.call_method0("_send_soon").map(|_| ())
    }

    /// Sends all that is left at once.
    #[pyo3(name = "_send_rest")]
    fn send_rest(exchange: &Bound<'_, Self>) -> PyResult<()> {
        Self::send_some(exchange, true)
    }

    #[pyo3(name = "_pump")]
    fn pump(exchange: &Bound<'_, Self>) -> PyResult<()> {
        {
            let mut held = exchange.borrow_mut();
            if held.pumping {
                return Ok(());
            }
            held.pumping = true;
        }
        let pumped = Self::pump_backlog(exchange);
        let (full, empty) = {
            let mut held = exchange.borrow_mut();
            held.pumping = false;
            (
                held.slots.len() >= held.pipeline_max,
                held.backlog.is_empty(),
            )
        };
        pumped?;
        if full {
            Self::pause(exchange, PIPELINE)?;
        } else if empty {
            Self::resume(exchange, PIPELINE)?;
        }
        Ok(())
    }

    #[pyo3(name = "_pause")]
    pub(crate) fn pause(exchange: &Bound<'_, Self>, reason: u8) -> PyResult<()> {
        let was_reading = exchange.borrow().paused == 0;
        if was_reading && let Some(transport) = Self::open_transport(exchange)? {
            transport.call_method0("pause_reading")?;
        }
        exchange.borrow_mut().paused |= reason;
        Ok(())
    }

    #[pyo3(name = "_resume")]
    pub(crate) fn resume(exchange: &Bound<'_, Self>, reason: u8) -> PyResult<()> {
        let goes_on = {
            let mut held = exchange.borrow_mut();
            if held.paused & reason == 0 {
                return Ok(());
            }
            held.paused &= !reason;
            held.paused == 0
        };
        if goes_on && let Some(transport) = Self::open_transport(exchange)? {
            transport.call_method0("resume_reading")?;
        }
        Ok(())
    }

    #[pyo3(name = "_drop_backlog")]
    fn drop_backlog(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let dropped = std::mem::take(&mut exchange.borrow_mut().backlog);
        let sizes = dropped.iter();
        let size = sizes.map(|frame| frame.as_bytes(exchange.py()).len() + SIZE_BYTES);
        Self::free(exchange, size.sum())
    }

    /// The client has gone: gives back what is held, and returns the futures that nobody waits for any more.
    #[pyo3(name = "_end")]
    fn end(exchange: &Bound<'_, Self>) -> PyResult<Vec<Py<PyAny>>> {
        let py = exchange.py();
        let (slots, size, budget) = {
            let mut held = exchange.borrow_mut();
            held.closed = true;
            held.backlog.clear();
            held.unsent.clear();
            let size = std::mem::take(&mut held.held_bytes);
            let slots = std::mem::take(&mut held.slots);
            (slots, size, held.budget.clone_ref(py))
        };
        PyMemoryBudget::release(budget.bind(py), size)?;
        let waiting = slots
            .iter()
            .filter_map(|slot| match &slot.borrow(py).answer {
                Answer::Pending(future, _) => Some(future.clone_ref(py)),
                Answer::Ready(_) | Answer::Close(_) => None,
            });
        Ok(waiting.collect())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.on_frame)?;
        visit.call(&self.transport)?;
        visit.call(&self.budget)?;
        visit.call(&self.now)?;
        self.slots.iter().try_for_each(|slot| visit.call(slot))
    }

    fn __clear__(&mut self) {
        self.transport = None;
        self.slots.clear();
    }
}
