//! `WaitingShareFetch` and `Timeouts`: share fetches that wait for records, and their deadlines.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::intern;
use pyo3::prelude::*;
use sharecore_share::{Deadlines, Due};

use crate::clock::Clock;
use crate::collected::collected;
use crate::completion::Named;
use crate::fetching::PyShareFetching;
use crate::leader::PyLeader;
use crate::look::{Fetched, PyShareLook};
use crate::python;

/// Replaces a timer.
pub(crate) fn ring<'py>(
    before: Option<Py<PyAny>>,
    call_later: &Bound<'py, PyAny>,
    delay_ms: i64,
    callback: &Bound<'py, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = call_later.py();
    if let Some(before) = before {
        before.call_method0(py, intern!(py, python::CANCEL))?;
    }
    let delay_ms = i32::try_from(delay_ms).unwrap_or(i32::MAX);
    let arguments = (f64::from(delay_ms) / 1000.0, callback);
    Ok(call_later.call1(arguments)?.unbind())
}

/// Deadlines of waiting fetches.
#[pyclass(name = "Timeouts", module = "sharecore._core")]
pub(crate) struct PyTimeouts {
    clock: Clock,
    call_later: Py<PyAny>,
    fetches: Deadlines<Py<PyWaitingShareFetch>>,
    timer: Option<Py<PyAny>>,
}

impl PyTimeouts {
    fn now_ms(timeouts: &Bound<'_, Self>) -> PyResult<i64> {
        let clock = timeouts.borrow().clock.clone_ref(timeouts.py());
        clock.ms(timeouts.py())
    }

    fn call_later<'py>(timeouts: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        timeouts.borrow().call_later.bind(timeouts.py()).clone()
    }

    fn set(
        timeouts: &Bound<'_, Self>,
        fetch: Py<PyWaitingShareFetch>,
        wait_ms: i64,
    ) -> PyResult<Due> {
        let now_ms = Self::now_ms(timeouts)?;
        let due_ms = now_ms.saturating_add(wait_ms);
        let due = timeouts.borrow_mut().fetches.add(due_ms, fetch);
        Self::arm(timeouts, now_ms)?;
        Ok(due)
    }

    /// Schedules `_over` no later than the first deadline.
    fn arm(timeouts: &Bound<'_, Self>, now_ms: i64) -> PyResult<()> {
        let (delay_ms, before) = {
            let mut held = timeouts.borrow_mut();
            let Some(delay_ms) = held.fetches.arm(now_ms) else {
                return Ok(());
            };
            (delay_ms, held.timer.take())
        };
        let over = timeouts.getattr(intern!(timeouts.py(), python::OWN_OVER))?;
        let timer = ring(before, &Self::call_later(timeouts), delay_ms, &over)?;
        timeouts.borrow_mut().timer = Some(timer);
        Ok(())
    }

    fn forget(&mut self, due: Due) -> Option<Py<PyWaitingShareFetch>> {
        self.fetches.remove(due)
    }
}

#[pymethods]
impl PyTimeouts {
    #[new]
    fn new(now_ms: &Bound<'_, PyAny>, call_later: Py<PyAny>) -> PyResult<Self> {
        Ok(Self {
            clock: Clock::of(now_ms)?,
            call_later,
            fetches: Deadlines::default(),
            timer: None,
        })
    }

    /// Ends the fetches whose deadline has passed.
    fn _over(timeouts: &Bound<'_, Self>) -> PyResult<()> {
        let py = timeouts.py();
        let now_ms = Self::now_ms(timeouts)?;
        let over = {
            let mut held = timeouts.borrow_mut();
            held.timer = None;
            held.fetches.over(now_ms)
        };
        Self::arm(timeouts, now_ms)?;
        for fetch in over {
            let fetch = fetch.bind(py);
            match PyWaitingShareFetch::time_is_over(fetch) {
                Ok(()) => {}
                Err(error) => {
                    Named::Callable(fetch.clone().into_any().unbind()).failed(py, error)?;
                }
            }
        }
        Ok(())
    }
}

collected!(PyTimeouts { clock, call_later, timer, fetches } cut { fetches, timer });

/// Retries a fetch until it has enough records or its deadline has passed.
#[pyclass(name = "WaitingShareFetch", module = "sharecore._core")]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is about something else"
)]
pub(crate) struct PyWaitingShareFetch {
    look: Py<PyShareLook>,
    timeouts: Py<PyTimeouts>,
    /// A `ShareFetching`, or a callable that receives the result.
    ended: Py<PyAny>,
    due: Option<Due>,
    is_late: bool,
    #[pyo3(get)]
    waiting: bool,
    /// True if a retry is scheduled for leaders that have loaded.
    has_loaded: bool,
    /// True if it must not acquire before its acknowledgements have ended.
    holds: bool,
}

impl PyWaitingShareFetch {
    fn look_of<'py>(fetch: &Bound<'py, Self>) -> Bound<'py, PyShareLook> {
        fetch.borrow().look.bind(fetch.py()).clone()
    }

    fn time_is_over(fetch: &Bound<'_, Self>) -> PyResult<()> {
        {
            let mut held = fetch.borrow_mut();
            held.due = None;
            held.is_late = true;
        }
        Self::again(fetch).map(|_| ())
    }

    /// Retries once the records being read from disk are in memory.
    fn read_on(fetch: &Bound<'_, Self>) -> PyResult<()> {
        let py = fetch.py();
        for partition in PyShareLook::reading(&Self::look_of(fetch))? {
            let again = fetch.getattr(intern!(py, python::AGAIN))?;
            partition.call_method1(intern!(py, python::WHEN_READ), (again,))?;
        }
        Ok(())
    }

    /// Holds the fetch until its acknowledgements have ended or its deadline has passed.
    pub(crate) fn hold(&mut self) {
        self.holds = true;
    }

    /// Releases a held fetch after its acknowledgements have ended.
    pub(crate) fn release_hold(fetch: &Bound<'_, Self>) -> PyResult<()> {
        fetch.borrow_mut().holds = false;
        match Self::again(fetch) {
            Err(error) => {
                Named::Callable(fetch.clone().into_any().unbind()).failed(fetch.py(), error)
            }
            Ok(_) => Ok(()),
        }
    }

    /// Retries after a partition may have received records.
    pub(crate) fn offer(fetch: &Bound<'_, Self>, leader: &Bound<'_, PyLeader>) -> PyResult<()> {
        if Self::look_of(fetch).borrow().sees(leader) {
            Self::again(fetch)?;
        }
        Ok(())
    }

    /// Handles the loss of a partition of the session.
    pub(crate) fn lose(fetch: &Bound<'_, Self>, leader: &Bound<'_, PyLeader>) -> PyResult<()> {
        let waits = fetch.borrow().waiting;
        if waits && let Some(found) = PyShareLook::fail(&Self::look_of(fetch), leader)? {
            Self::end(fetch, found)?;
        }
        Ok(())
    }
}

#[pymethods]
impl PyWaitingShareFetch {
    #[new]
    pub(crate) fn new(look: Py<PyShareLook>, timeouts: Py<PyTimeouts>, ended: Py<PyAny>) -> Self {
        Self {
            look,
            timeouts,
            ended,
            due: None,
            is_late: false,
            waiting: false,
            has_loaded: false,
            holds: false,
        }
    }

    pub(crate) fn wait(fetch: &Bound<'_, Self>, max_wait_ms: i64) -> PyResult<()> {
        let py = fetch.py();
        let is_late = max_wait_ms <= 0;
        let timeouts = {
            let mut held = fetch.borrow_mut();
            held.is_late = is_late;
            held.waiting = true;
            held.timeouts.clone_ref(py)
        };
        if !is_late {
            let due = PyTimeouts::set(timeouts.bind(py), fetch.clone().unbind(), max_wait_ms)?;
            fetch.borrow_mut().due = Some(due);
        }
        PyShareLook::watch(&Self::look_of(fetch), fetch)?;
        PyShareLook::wait_for_readers(&Self::look_of(fetch), fetch)?;
        PyShareLook::wait_for_bounds(&Self::look_of(fetch), fetch)?;
        if is_late {
            Self::read_on(fetch)
        } else {
            Ok(())
        }
    }

    pub(crate) fn again(fetch: &Bound<'_, Self>) -> PyResult<bool> {
        let (waits, is_late, holds) = {
            let held = fetch.borrow();
            (held.waiting, held.is_late, held.holds)
        };
        if !waits {
            return Ok(true);
        }
        if holds && !is_late {
            return Ok(false);
        }
        let look = Self::look_of(fetch);
        if let Some(found) = PyShareLook::look(&look, is_late)? {
            return Self::end(fetch, found).map(|()| true);
        }
        PyShareLook::wait_for_readers(&look, fetch)?;
        PyShareLook::wait_for_bounds(&look, fetch)?;
        if is_late {
            Self::read_on(fetch)?;
        }
        Ok(false)
    }

    /// Retries after room for the response became available.
    fn _readers_have_read(fetch: &Bound<'_, Self>) -> PyResult<()> {
        Self::look_of(fetch).borrow_mut().readers_have_read();
        Self::again(fetch).map(|_| ())
    }

    pub(crate) fn end(fetch: &Bound<'_, Self>, fetched: Fetched) -> PyResult<()> {
        if !fetch.borrow().waiting {
            return Ok(());
        }
        Self::cancel(fetch);
        let py = fetch.py();
        let ended = fetch.borrow().ended.clone_ref(py).into_bound(py);
        match ended.cast::<PyShareFetching>() {
            Ok(fetching) => PyShareFetching::end(fetching, fetched),
            Err(_) => ended.call1((fetched,)).map(|_| ()),
        }
    }

    pub(crate) fn cancel(fetch: &Bound<'_, Self>) {
        let py = fetch.py();
        let (due, timeouts) = {
            let mut held = fetch.borrow_mut();
            if !held.waiting {
                return;
            }
            held.waiting = false;
            (held.due.take(), held.timeouts.clone_ref(py))
        };
        let forgotten = due.and_then(|due| timeouts.borrow_mut(py).forget(due));
        drop(forgotten);
        PyShareLook::unwatch(&Self::look_of(fetch), fetch);
    }

    /// Schedules one retry for all leaders that finish loading in this turn, which may be thousands.
    fn _loaded(fetch: &Bound<'_, Self>) -> PyResult<()> {
        let py = fetch.py();
        let timeouts = {
            let mut held = fetch.borrow_mut();
            if held.has_loaded {
                return Ok(());
            }
            held.has_loaded = true;
            held.timeouts.clone_ref(py)
        };
        let look = fetch.getattr(intern!(py, python::OWN_LOOK_AT_LOADED))?;
        ring(None, &PyTimeouts::call_later(timeouts.bind(py)), 0, &look)?;
        Ok(())
    }

    fn _look_at_loaded(fetch: &Bound<'_, Self>) -> PyResult<()> {
        fetch.borrow_mut().has_loaded = false;
        Self::again(fetch).map(|_| ())
    }
}

collected!(PyWaitingShareFetch {
    look,
    timeouts,
    ended
});
