//! Who is notified when a share partition's leader may have something to acquire, or has ended.
//!
//! No borrow of an object is held while Python runs, which may come back to the same object.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySet};

use crate::leader::PyLeader;
use crate::python;
use crate::session::PyShareSession;
use crate::testing::calls_by_name;

impl PyLeader {
    fn interested<'py>(leader: &Bound<'py, Self>) -> Bound<'py, PyDict> {
        leader.borrow().interested.bind(leader.py()).clone()
    }

    fn holders<'py>(leader: &Bound<'py, Self>) -> Bound<'py, PySet> {
        leader.borrow().holders.bind(leader.py()).clone()
    }

    /// Has a session told, once, when there may be something to acquire, or when the leader has ended.
    pub(crate) fn tell(
        leader: &Bound<'_, Self>,
        session: &Bound<'_, PyShareSession>,
    ) -> PyResult<()> {
        Self::holders(leader).discard(session)?;
        Self::interested(leader).set_item(session, leader.py().None())
    }

    /// Has a session told when the leader has ended.
    pub(crate) fn tell_end(
        leader: &Bound<'_, Self>,
        session: &Bound<'_, PyShareSession>,
    ) -> PyResult<()> {
        if Self::interested(leader).contains(session)? {
            return Ok(());
        }
        Self::holders(leader).add(session)
    }

    /// Takes that back.
    pub(crate) fn tell_no_more(
        leader: &Bound<'_, Self>,
        session: &Bound<'_, PyShareSession>,
    ) -> PyResult<()> {
        let interested = Self::interested(leader);
        if interested.contains(session)? {
            interested.del_item(session)?;
        }
        Self::holders(leader).discard(session).map(|_| ())
    }

    pub(crate) fn tell_all(leader: &Bound<'_, Self>) -> PyResult<()> {
        let py = leader.py();
        let interested = Self::interested(leader);
        let mut left = interested.len();
        while left > 0
            && !interested.is_empty()
            && leader
                .getattr(intern!(py, python::FETCHABLE))?
                .is_truthy()?
        {
            let Some((session, _)) = interested.iter().next() else {
                return Ok(());
            };
            interested.del_item(&session)?;
            PyShareSession::told(session.cast()?, leader)?;
            left -= 1;
        }
        Ok(())
    }

    /// As `wake`, where somebody wants to know.
    pub(crate) fn wake_interested(leader: &Bound<'_, Self>) -> PyResult<()> {
        if Self::interested(leader).is_empty() {
            Ok(())
        } else if calls_by_name() {
            leader.call_method0(python::WAKE).map(|_| ())
        } else {
            Self::wake(leader)
        }
    }
}
