//! Dispatches received frames and sends their responses: which request is dispatched next, which waits, and in which order
//! responses leave.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sharecore_wire::{Next, Pause, PipelineState, SIZE_BYTES, SMALL_BYTES, charged};
use smallvec::SmallVec;

use crate::budget::PyMemoryBudget;
use crate::completion::Completion;
use crate::dispatch::PyDispatch;
use crate::exchange::PyExchange;
use crate::python;
use crate::slot::{Answer, PyPending, PySlot, disconnect_reason};
use crate::unsent::size_of;
use crate::waiting::PyLater;

/// Dispatch at most this many requests of one connection before others are served.
const DISPATCHED_AT_ONCE: usize = 8;

/// Bytes of a received frame that the budget counts before it is dispatched.
pub(crate) fn charged_of(frame: &Py<PyBytes>, py: Python<'_>) -> usize {
    charged(frame.as_bytes(py).len())
}

impl PyExchange {
    /// Releases the memory of requests that are answered or dropped.
    pub(crate) fn free(
        exchange: &Bound<'_, Self>,
        sizes: impl IntoIterator<Item = usize, IntoIter: ExactSizeIterator>,
    ) -> PyResult<()> {
        let sizes = sizes.into_iter();
        let (budget, owner) = {
            let held = exchange.borrow();
            if held.closed || sizes.len() == 0 {
                return Ok(());
            }
            (held.budget.clone_ref(exchange.py()), held.owner())
        };
        PyMemoryBudget::give(budget.bind(exchange.py()), &owner, sizes)
    }

    fn slot(
        exchange: &Bound<'_, Self>,
        frame_bytes: usize,
        is_alone: bool,
        answer: Answer,
    ) -> PyResult<Py<PySlot>> {
        let py = exchange.py();
        let answer_bytes = match &answer {
            Answer::Ready(Some(parts)) => size_of(parts.bind(py))? as u64,
            _ => 0,
        };
        let mut held = exchange.borrow_mut();
        if 0 < frame_bytes && frame_bytes <= SMALL_BYTES {
            let owner = held.owner();
            held.budget.borrow_mut(py).take(&owner, frame_bytes);
        }
        held.outgoing.ready += answer_bytes;
        held.pipeline.begin(is_alone);
        let slot = PySlot {
            exchange: exchange.clone().unbind(),
            frame_bytes,
            is_parked: false,
            is_alone,
            answer,
            answer_bytes,
        };
        let slot = Py::new(py, slot)?;
        held.slots.push_back(slot.clone_ref(py));
        Ok(slot)
    }

    /// Counts a response that is ready before those in front of it.
    pub(crate) fn note_ready(exchange: &Bound<'_, Self>, bytes: u64) -> PyResult<()> {
        exchange.borrow_mut().outgoing.ready += bytes;
        Self::recount(exchange)
    }

    /// Parks a large request that waits for its response.
    fn park(exchange: &Bound<'_, Self>, slot: &Py<PySlot>, size: usize) -> PyResult<()> {
        let py = exchange.py();
        let (budget, owner) = {
            let held = exchange.borrow();
            (held.budget.clone_ref(py), held.owner())
        };
        let is_parked = PyMemoryBudget::park(budget.bind(py), &owner, size)?;
        slot.borrow_mut(py).is_parked = is_parked;
        let now = Self::now_ms(exchange)?;
        exchange.borrow_mut().intake.waits_since = Some((now, is_parked, size));
        Ok(())
    }

    /// Dispatches received requests while the pipeline has room.
    pub(crate) fn pump_backlog(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        for _ in 0..DISPATCHED_AT_ONCE {
            let (frame, is_pipelined, next) = {
                let held = exchange.borrow();
                let Some(frame) = held.backlog.front() else {
                    return Ok(());
                };
                let is_pipelined = held.pipeline.is_pipelined(frame.as_bytes(py));
                let next = held.pipeline.next(is_pipelined, held.state(py));
                (frame.clone_ref(py), is_pipelined, next)
            };
            let waits = match next {
                _ if exchange.borrow().closed => true,
                Next::Wait => true,
                Next::IfRead => Self::waits_for_readers(exchange)?,
                Next::Dispatch => false,
            };
            if waits {
                return Ok(());
            }
            {
                let mut held = exchange.borrow_mut();
                held.backlog.pop_front();
                held.has_asked = true;
                held.handling = charged_of(&frame, py);
            }
            Self::dispatch_frame(exchange, frame.into_bound(py), !is_pipelined)?;
        }
        if exchange.borrow().backlog.is_empty() {
            return Ok(());
        }
        Self::pump_soon(exchange)
    }

    fn state(&self, py: Python<'_>) -> PipelineState {
        PipelineState {
            waiting: self.slots.len(),
            is_crowded: !self.slots.is_empty() && self.budget.borrow(py).is_crowded(),
            has_unsent: !self.unsent.is_empty(),
            has_unread: self.outgoing.counted > 0,
        }
    }

    /// True if so many requests wait for their responses that no other is dispatched.
    pub(crate) fn is_full(&self, py: Python<'_>) -> bool {
        let now = self.state(py);
        self.pipeline.is_full(now.waiting, now.is_crowded)
    }

    fn dispatch_frame(
        exchange: &Bound<'_, Self>,
        frame: Bound<'_, PyBytes>,
        is_alone: bool,
    ) -> PyResult<()> {
        let py = exchange.py();
        let size = frame.as_bytes().len() + SIZE_BYTES;
        let dispatch = exchange.borrow().dispatch(py);
        let handled = match dispatch {
            Some(dispatch) => PyDispatch::serve(&dispatch, exchange.as_any(), &frame),
            None => Self::ask(exchange, &frame),
        };
        // A handler that completes later has its own reference
        drop(frame);
        let charged = std::mem::take(&mut exchange.borrow_mut().handling);
        let freed = |exchange| {
            if charged > 0 {
                Self::free(exchange, [charged])
            } else {
                Ok(())
            }
        };
        let answer = match handled {
            Ok(answer) => answer,
            Err(error) => {
                freed(exchange)?;
                let reason = disconnect_reason(py, error)?;
                return Self::close_after_answers(exchange, reason);
            }
        };
        if exchange.borrow().closed {
            if let Answer::Pending(future, _) = answer {
                future.call_method0(py, intern!(py, python::CANCEL))?;
            }
            return Ok(());
        }
        if let Answer::Pending(future, _) = &answer {
            let future = future.bind(py).clone();
            let slot = Self::slot(exchange, size, is_alone, answer)?;
            if is_alone && size > SMALL_BYTES {
                Self::park(exchange, &slot, size)?;
            }
            return match future.cast::<PyLater>() {
                Ok(later) => PyLater::when_done(later, Completion::Slot(slot)),
                Err(_) => future
                    .call_method1(python::ADD_DONE_CALLBACK, (slot,))
                    .map(|_| ()),
            };
        }
        let waits = !exchange.borrow().slots.is_empty();
        if waits {
            Self::slot(exchange, size, is_alone, answer)?;
            return if exchange.borrow().outgoing.ready > 0 {
                Self::recount(exchange)
            } else {
                Ok(())
            };
        }
        freed(exchange)?;
        match answer {
            Answer::Ready(Some(parts)) => Self::write(exchange, parts.bind(py)),
            _ => Ok(()),
        }
    }

    /// Calls a Python `on_frame`.
    fn ask(exchange: &Bound<'_, Self>, frame: &Bound<'_, PyBytes>) -> PyResult<Answer> {
        let py = exchange.py();
        let on_frame = exchange.borrow().on_frame(py);
        let answer = on_frame.call1(py, (exchange, frame))?.into_bound(py);
        if let Ok(pending) = answer.cast::<PyPending>() {
            let (future, finish) = pending.borrow_mut().take(py)?;
            return Ok(Answer::Pending(future, finish));
        }
        Ok(Answer::Ready(answer.extract()?))
    }

    /// Sends the responses that are next in order, together.
    pub(crate) fn answer_in_order(exchange: &Bound<'_, Self>) -> PyResult<()> {
        let py = exchange.py();
        let mut written: Option<Bound<'_, PyList>> = None;
        let mut freed: SmallVec<[usize; 4]> = SmallVec::new();
        let mut closes = None;
        loop {
            let next = {
                let mut held = exchange.borrow_mut();
                let ready = held
                    .slots
                    .front()
                    .is_some_and(|first| first.borrow(py).answer.is_known());
                if ready { held.slots.pop_front() } else { None }
            };
            let Some(slot) = next else { break };
            let mut slot = slot.borrow_mut(py);
            {
                let mut held = exchange.borrow_mut();
                held.outgoing.ready -= slot.answer_bytes;
                held.pipeline.end(slot.is_alone);
                if slot.is_alone {
                    held.intake.waits_since = None;
                }
                if slot.is_parked {
                    let owner = held.owner();
                    held.budget
                        .borrow_mut(py)
                        .give_parked(&owner, slot.frame_bytes);
                } else if slot.frame_bytes > 0 {
                    freed.push(slot.frame_bytes);
                }
            }
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
                Answer::Ready(None) | Answer::Pending(..) | Answer::Finishing => {}
            }
        }
        Self::free(exchange, freed)?;
        if let Some(parts) = written {
            Self::write(exchange, &parts)?;
        }
        if let Some(reason) = closes {
            Self::close(exchange, &reason)?;
        }
        let (backlog, paused) = {
            let held = exchange.borrow();
            (
                !held.backlog.is_empty(),
                held.pipeline.is_paused(Pause::Pipeline),
            )
        };
        if backlog {
            Self::pump_soon(exchange)?;
        } else if paused {
            Self::pump(exchange)?;
        }
        Ok(())
    }

    /// After an invalid request: still answers earlier requests, then closes; reads nothing more.
    fn close_after_answers(exchange: &Bound<'_, Self>, reason: String) -> PyResult<()> {
        Self::drop_backlog(exchange)?;
        let waits = !exchange.borrow().slots.is_empty();
        if !waits {
            return Self::close(exchange, &reason);
        }
        Self::slot(exchange, 0, false, Answer::Close(reason))?;
        Self::pause_for(exchange, Pause::Closing)
    }
}
