//! Subscriptions of share sessions to leaders: a session is notified when records may be acquirable or the leader has ended.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::intern;
use pyo3::prelude::*;

use crate::leader::PyLeader;
use crate::python;
use crate::session::PyShareSession;
use crate::testing::calls_by_name;

/// Sessions by address.
pub(crate) type Interest = sharecore_share::Interest<usize, Py<PyShareSession>>;

impl PyLeader {
    /// Notifies the session once, when records may be acquirable or the leader has ended.
    pub(crate) fn subscribe(leader: &Bound<'_, Self>, session: &Bound<'_, PyShareSession>) {
        let (key, session) = (session.as_ptr() as usize, session.clone().unbind());
        leader.borrow_mut().interest.subscribe(key, session);
    }

    /// Notifies the session when the leader has ended.
    pub(crate) fn subscribe_end(leader: &Bound<'_, Self>, session: &Bound<'_, PyShareSession>) {
        let (key, session) = (session.as_ptr() as usize, session.clone().unbind());
        leader.borrow_mut().interest.subscribe_end(key, session);
    }

    /// Unsubscribes the session.
    pub(crate) fn unsubscribe(leader: &Bound<'_, Self>, session: &Bound<'_, PyShareSession>) {
        let key = session.as_ptr() as usize;
        let before = leader.borrow_mut().interest.unsubscribe(key);
        drop(before);
    }

    pub(crate) fn notify_all(leader: &Bound<'_, Self>) -> PyResult<()> {
        let py = leader.py();
        let left = leader.borrow().interest.waiting();
        for _ in 0..left {
            let fetchable = if calls_by_name() {
                let fetchable = leader.getattr(intern!(py, python::FETCHABLE))?;
                fetchable.is_truthy()?
            } else {
                Self::fetchable(leader)?
            };
            if !fetchable {
                break;
            }
            let next = leader.borrow_mut().interest.take_next();
            let Some(session) = next else {
                break;
            };
            PyShareSession::notified(session.bind(py), leader)?;
        }
        Ok(())
    }

    /// Like `wake`, if any session waits.
    pub(crate) fn wake_interested(leader: &Bound<'_, Self>) -> PyResult<()> {
        let is_awaited = leader.borrow().interest.waiting() > 0;
        if !is_awaited {
            Ok(())
        } else if calls_by_name() {
            leader.call_method0(python::WAKE).map(|_| ())
        } else {
            Self::wake(leader)
        }
    }
}
