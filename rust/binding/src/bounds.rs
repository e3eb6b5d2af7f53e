//! `GroupBounds`: the delivery bounds of a share group at this broker, and the fetches that wait for them.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use std::collections::VecDeque;

use pyo3::intern;
use pyo3::prelude::*;
use sharecore_bounds::{Allowance, Bounds, Breaker, BreakerRules, BreakerState, Rate, Weights};
use sharecore_share::{Alarm, Limits, next_ready};

use crate::collected::collected;
use crate::completion::Named;
use crate::gather::{Leaders, Order, PyPartitionFetch, gather};
use crate::leader::PyLeader;
use crate::python;
use crate::state_write::PyWrite;
use crate::waits::{PyWaitingShareFetch, ring};

/// Below this many leaders, fenced ones are not pruned.
const LEADERS_MIN: usize = 64;

#[pyclass(name = "GroupBounds", module = "sharecore._core")]
pub(crate) struct PyGroupBounds {
    inner: Bounds,
    now_ms: Py<PyAny>,
    call_later: Py<PyAny>,
    /// Called when the breaker opens.
    broken: Py<PyAny>,
    leaders: Vec<Py<PyLeader>>,
    /// Prune fenced leaders once there are this many.
    leaders_max: usize,
    /// Longest waiting first.
    waiting: VecDeque<Py<PyWaitingShareFetch>>,
    alarm: Alarm,
    timer: Option<Py<PyAny>>,
}

/// Ready partitions, in order.
struct Chosen<'py>(VecDeque<Bound<'py, PyLeader>>);

impl<'py> Order<'py> for Chosen<'py> {
    fn next(&mut self) -> Option<Bound<'py, PyLeader>> {
        self.0.pop_front()
    }

    fn empty(&mut self, _: &Bound<'py, PyLeader>) -> PyResult<()> {
        Ok(()) // the next look finds that out
    }

    fn failed(&mut self, _: Bound<'py, PyLeader>) {}
}

/// The partitions of one topic.
struct Topic<'py> {
    name: String,
    partitions: VecDeque<Bound<'py, PyLeader>>,
    /// Approximate number of offsets waiting in them.
    waiting: i64,
}

impl PyGroupBounds {
    fn now_ms(bounds: &Bound<'_, Self>) -> PyResult<i64> {
        let py = bounds.py();
        let now_ms = bounds.borrow().now_ms.clone_ref(py);
        now_ms.call0(py)?.extract(py)
    }

    /// Number of records acquired at this broker, by one member or by all.
    fn held(bounds: &Bound<'_, Self>, member: Option<&str>) -> PyResult<i64> {
        let py = bounds.py();
        let leaders: Vec<_> = {
            let held = bounds.borrow();
            let leaders = held.leaders.iter();
            leaders.map(|leader| leader.bind(py).clone()).collect()
        };
        let mut sum = 0;
        for leader in &leaders {
            if let Some(engine) = PyLeader::engine(leader) {
                sum += match member {
                    Some(member) => engine.get().held_by(py, member)?,
                    None => engine.get().leased(py)?,
                };
            }
        }
        Ok(sum)
    }

    /// Returns how many of the wanted records a member's fetch may acquire; 0 means that it must wait.
    fn allow(bounds: &Bound<'_, Self>, member: &str, wanted: i64) -> PyResult<Allowance> {
        let bounds_members = bounds.borrow().inner.member_max.is_some();
        let held = if bounds_members {
            Self::held(bounds, Some(member))?
        } else {
            0
        };
        let now_ms = Self::now_ms(bounds)?;
        let is_broken = bounds.borrow().inner.is_broken(now_ms);
        let leased = if is_broken {
            Self::held(bounds, None)?
        } else {
            0
        };
        let inner = &mut bounds.borrow_mut().inner;
        Ok(inner.allow(now_ms, wanted, held, leased))
    }

    /// Like `gather`, within the bounds of the group; returns None if the fetch must wait until the bounds allow more.
    pub(crate) fn gather<'py>(
        bounds: &Bound<'py, Self>,
        look: &mut impl Order<'py>,
        member: &str,
        limits: &Limits,
    ) -> PyResult<Option<Vec<Py<PyPartitionFetch>>>> {
        let allowed = Self::allow(bounds, member, limits.max_records)?;
        if allowed.records <= 0 {
            return Ok(None);
        }
        let limits = Limits {
            max_records: allowed.records,
            record_limit: limits.record_limit || allowed.exact,
            ..*limits
        };
        let has_weights = bounds.borrow().inner.weights.is_some();
        let found = if has_weights {
            Self::weighted(bounds, look, member, limits)?
        } else {
            gather(look, member, &limits)?
        };
        bounds.borrow_mut().inner.took(count(&found));
        Ok(Some(found))
    }

    /// Divides a fetch among the ready topics by weight; partitions of a topic keep the order of the session.
    fn weighted<'py>(
        bounds: &Bound<'py, Self>,
        look: &mut impl Order<'py>,
        member: &str,
        mut limits: Limits,
    ) -> PyResult<Vec<Py<PyPartitionFetch>>> {
        let py = bounds.py();
        let mut topics = by_topic(look)?;
        // Small topics first, so that their unused share goes to the others
        topics.sort_by_key(|topic| topic.waiting);
        let mut results = Vec::new();
        let mut taken = Vec::new();
        while !topics.is_empty() && limits.max_records > 0 && limits.max_bytes > 0 {
            let names: Vec<_> = topics.iter().map(|topic| topic.name.as_str()).collect();
            let quota = {
                let held = bounds.borrow();
                let weights = held.inner.weights.as_ref();
                weights.map_or(limits.max_records, |weights| {
                    weights.quotas(&names, limits.max_records)[0]
                })
            };
            let topic = topics.remove(0);
            let (mut records, mut bytes) = (0, 0);
            if quota > 0 {
                let part = i128::from(limits.max_bytes) * i128::from(quota);
                let part = (part / i128::from(limits.max_records)) as i64;
                let of_topic = Limits {
                    max_bytes: part.max(1),
                    max_records: quota,
                    ..limits
                };
                let mut found = gather(&mut Chosen(topic.partitions), member, &of_topic)?;
                records = count(&found);
                bytes = found.iter().map(|each| each.get().size(py)).sum();
                results.append(&mut found);
            }
            limits.max_records -= records;
            limits.max_bytes -= bytes;
            taken.push((topic.name, records, records < quota));
        }
        // Topics that the fetch did not reach keep a claim to their share
        taken.extend(topics.into_iter().map(|topic| (topic.name, 0, false)));
        if let Some(weights) = &mut bounds.borrow_mut().inner.weights {
            weights.took(&taken);
        }
        Ok(results)
    }

    /// Retries the fetch once the bounds allow more.
    pub(crate) fn wait(
        bounds: &Bound<'_, Self>,
        fetch: &Bound<'_, PyWaitingShareFetch>,
    ) -> PyResult<()> {
        {
            let mut held = bounds.borrow_mut();
            if !held.waiting.iter().any(|each| each.is(fetch)) {
                held.waiting.push_back(fetch.clone().unbind());
            }
        }
        Self::arm(bounds)
    }

    pub(crate) fn stop_waiting(&mut self, fetch: &Bound<'_, PyWaitingShareFetch>) {
        self.waiting.retain(|each| !each.is(fetch));
    }

    /// Retries a fetch; it waits again if it still gets nothing.
    fn look_again(fetch: &Bound<'_, PyWaitingShareFetch>) -> PyResult<()> {
        match PyWaitingShareFetch::again(fetch) {
            Err(error) => {
                Named::Callable(fetch.clone().into_any().unbind()).failed(fetch.py(), error)
            }
            Ok(_) => Ok(()),
        }
    }

    /// Counts records that a durable change has ended, for the breaker.
    pub(crate) fn ended(bounds: &Bound<'_, Self>, write: &PyWrite, now_ms: i64) -> PyResult<()> {
        let (counted, broken) = {
            let mut held = bounds.borrow_mut();
            let Some(breaker) = &mut held.inner.breaker else {
                return Ok(());
            };
            let (ended, returned) = write.outcome();
            let Some(counted) = breaker.ended(now_ms, ended, returned) else {
                return Ok(());
            };
            (counted, held.broken.clone_ref(bounds.py()))
        };
        broken.call1(bounds.py(), (counted.given_up, counted.all()))?;
        Self::arm(bounds)
    }

    /// Schedules the waiting fetches for when the rate or the breaker allows more.
    fn arm(bounds: &Bound<'_, Self>) -> PyResult<()> {
        let py = bounds.py();
        let now_ms = Self::now_ms(bounds)?;
        let (delay_ms, before, call_later) = {
            let mut held = bounds.borrow_mut();
            let Some(due_ms) = held.inner.due_ms(now_ms) else {
                return Ok(());
            };
            if held.waiting.is_empty() {
                return Ok(());
            }
            let Some(delay_ms) = held.alarm.set(due_ms, now_ms) else {
                return Ok(());
            };
            (delay_ms, held.timer.take(), held.call_later.clone_ref(py))
        };
        let again = bounds.getattr(intern!(py, python::OWN_DUE))?;
        let timer = ring(before, call_later.bind(py), delay_ms.max(1), &again)?;
        bounds.borrow_mut().timer = Some(timer);
        Ok(())
    }
}

/// Groups the ready partitions by topic.
fn by_topic<'py>(look: &mut impl Order<'py>) -> PyResult<Vec<Topic<'py>>> {
    let mut topics: Vec<Topic<'py>> = Vec::new();
    let mut leaders = Leaders {
        order: look,
        member: "",
        fetched: Vec::new(),
    };
    while let Some(partition) = next_ready(&mut leaders)? {
        let py = partition.py();
        let log = partition.getattr(intern!(py, python::LOG))?;
        let name: String = log.getattr(intern!(py, python::TOPIC))?.extract()?;
        let end = PyLeader::end_of(&partition)?;
        let waiting = match PyLeader::engine(&partition) {
            Some(engine) => end - engine.get().next_fetch_offset(py)?,
            None => 0,
        };
        let at = topics.iter().position(|topic| topic.name == name);
        let topic = if let Some(at) = at {
            &mut topics[at]
        } else {
            topics.push(Topic {
                name,
                partitions: VecDeque::new(),
                waiting: 0,
            });
            let last = topics.len() - 1;
            &mut topics[last]
        };
        topic.waiting = topic.waiting.saturating_add(waiting);
        topic.partitions.push_back(partition);
    }
    Ok(topics)
}

/// Number of records that the fetches acquired.
fn count(found: &[Py<PyPartitionFetch>]) -> i64 {
    let acquired = found.iter().flat_map(|each| &each.get().acquired);
    acquired.map(|each| each.last - each.first + 1).sum()
}

#[pymethods]
impl PyGroupBounds {
    #[new]
    fn new(now_ms: Py<PyAny>, call_later: Py<PyAny>, broken: Py<PyAny>) -> Self {
        Self {
            inner: Bounds::default(),
            now_ms,
            call_later,
            broken,
            leaders: Vec::new(),
            leaders_max: LEADERS_MIN,
            waiting: VecDeque::new(),
            alarm: Alarm::default(),
            timer: None,
        }
    }

    fn configure(
        bounds: &Bound<'_, Self>,
        records_per_second: i64,
        member_max: i64,
        weights: Vec<(String, i64)>,
        breaker: (i64, i64, i64, i64),
    ) -> PyResult<()> {
        let now_ms = Self::now_ms(bounds)?;
        {
            let inner = &mut bounds.borrow_mut().inner;
            match &mut inner.rate {
                _ if records_per_second <= 0 => inner.rate = None,
                Some(rate) => rate.set(records_per_second, now_ms),
                none => *none = Some(Rate::new(records_per_second, now_ms)),
            }
            inner.member_max = (member_max > 0).then_some(member_max);
            inner.weights = (!weights.is_empty()).then(|| Weights::new(weights));
            let (percent, window_ms, min_records, pause_ms) = breaker;
            let rules = BreakerRules {
                percent,
                window_ms,
                min_records,
                pause_ms,
            };
            match &mut inner.breaker {
                _ if percent <= 0 => inner.breaker = None,
                Some(breaker) => breaker.set(rules),
                none => *none = Some(Breaker::new(rules)),
            }
        }
        Self::more(bounds)
    }

    /// Includes a share partition in the group's count of acquired records.
    fn add(&mut self, leader: Py<PyLeader>, py: Python<'_>) {
        if self.leaders.len() >= self.leaders_max {
            self.leaders.retain(|each| each.borrow(py).error.is_none());
            self.leaders_max = LEADERS_MIN.max(2 * self.leaders.len());
        }
        self.leaders.push(leader);
    }

    /// Number of fetches that wait for the rate, for their member's bound, and for the breaker.
    fn held_back(bounds: &Bound<'_, Self>) -> PyResult<(usize, usize, usize)> {
        let now_ms = Self::now_ms(bounds)?;
        let mut held = bounds.borrow_mut();
        let waiting = held.waiting.len();
        Ok(if held.inner.is_broken(now_ms) {
            (0, 0, waiting)
        } else if held.inner.due_ms(now_ms).is_some() {
            (waiting, 0, 0)
        } else {
            (0, waiting, 0)
        })
    }

    /// State of the breaker (0: closed, 1: half open, 2: open), the time at which an open one lets records through again, and
    /// how often it has opened; None without a breaker.
    fn breaker(bounds: &Bound<'_, Self>) -> PyResult<Option<(u8, Option<i64>, u64)>> {
        let now_ms = Self::now_ms(bounds)?;
        let held = bounds.borrow();
        let breaker = held.inner.breaker.as_ref();
        Ok(breaker.map(|breaker| {
            let state = match breaker.state(now_ms) {
                BreakerState::Closed => 0,
                BreakerState::HalfOpen => 1,
                BreakerState::Open => 2,
            };
            (state, breaker.due_ms(now_ms), breaker.opened())
        }))
    }

    /// Retries all waiting fetches after records were released or the bounds changed.
    pub(crate) fn more(bounds: &Bound<'_, Self>) -> PyResult<()> {
        let py = bounds.py();
        let waiting = std::mem::take(&mut bounds.borrow_mut().waiting);
        for fetch in waiting {
            Self::look_again(fetch.bind(py))?;
        }
        Ok(())
    }

    /// Retries waiting fetches while the rate allows it.
    fn _due(bounds: &Bound<'_, Self>) -> PyResult<()> {
        {
            let mut held = bounds.borrow_mut();
            held.timer = None;
            held.alarm.off();
        }
        let now_ms = Self::now_ms(bounds)?;
        let mut left = bounds.borrow().waiting.len();
        while left > 0 {
            left -= 1;
            let fetch = {
                let mut held = bounds.borrow_mut();
                if held.inner.due_ms(now_ms).is_some() {
                    break;
                }
                held.waiting.pop_front()
            };
            if let Some(fetch) = fetch {
                Self::look_again(fetch.bind(bounds.py()))?;
            }
        }
        Self::arm(bounds)
    }
}

collected!(PyGroupBounds { now_ms, call_later, broken, leaders, waiting, timer } cut { leaders, waiting, timer });
