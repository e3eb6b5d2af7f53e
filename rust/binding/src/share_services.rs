//! Broker services that requests of share groups need, looked up once.

use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::collected::Refers;
use crate::exchange::PyExchange;
use crate::leaders::{PyLeaders, PySessions};
use crate::python;
use crate::session::PyShareSession;
use crate::testing::calls_by_name;
use crate::waits::PyTimeouts;

/// The share services of a broker.
pub(crate) struct ShareServices {
    /// `sharecore.broker.coordinators.share.ShareServices`.
    pub(crate) share: Py<PyAny>,
    pub(crate) leaders: Py<PyLeaders>,
    pub(crate) sessions: Py<PySessions>,
    pub(crate) timeouts: Py<PyTimeouts>,
    pub(crate) cluster: Py<PyAny>,
}

impl ShareServices {
    pub(crate) fn of(broker: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = broker.py();
        let share = broker.getattr(intern!(py, python::SHARE))?;
        Ok(Self {
            leaders: share.getattr(intern!(py, python::PARTITIONS))?.extract()?,
            sessions: share.getattr(intern!(py, python::SESSIONS))?.extract()?,
            timeouts: share.getattr(intern!(py, python::TIMEOUTS))?.extract()?,
            cluster: broker.getattr(intern!(py, python::CLUSTER))?.unbind(),
            share: share.unbind(),
        })
    }

    /// Ends a session.
    pub(crate) fn close(&self, session: &Bound<'_, PyShareSession>) -> PyResult<()> {
        let py = session.py();
        let close = intern!(py, python::CLOSE);
        self.sessions
            .bind(py)
            .call_method1(close, (session,))
            .map(|_| ())
    }

    /// Returns the session that a request continues; usually the one that its connection used last.
    pub(crate) fn resume<'py>(
        &self,
        connection: &Bound<'py, PyAny>,
        group_id: Option<&str>,
        member_id: Option<&str>,
        epoch: i32,
    ) -> PyResult<Bound<'py, PyShareSession>> {
        let py = connection.py();
        let exchange = connection.cast::<PyExchange>().ok();
        let last = exchange.and_then(|exchange| exchange.borrow().share_session(py));
        if let (Some(last), Some(group_id), Some(member_id)) = (last, group_id, member_id)
            && !calls_by_name()
            && last.borrow().is_of(py, group_id, member_id)?
        {
            PySessions::continue_session(&last, epoch)?;
            return Ok(last);
        }
        let name = |id: Option<&str>| id.map(|id| PyString::new(py, id)).into_pyobject(py);
        let (group_id, member_id) = (name(group_id)?, name(member_id)?);
        let sessions = self.sessions.bind(py);
        let session = PySessions::find(sessions, &group_id, &member_id, epoch)?;
        if let Some(exchange) = exchange {
            let before = exchange.borrow_mut().keep_share_session(&session);
            drop(before);
        }
        Ok(session)
    }
}

impl Refers for ShareServices {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.share.show(visit)?;
        self.leaders.show(visit)?;
        self.sessions.show(visit)?;
        self.timeouts.show(visit)?;
        self.cluster.show(visit)
    }
}
