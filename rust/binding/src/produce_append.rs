//! One batch of a Produce request: checked, admitted to its transaction, appended.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};
use sharecore_produce::{Appended, Refused};
use sharecore_store::{Incoming, Refusal};

use crate::collected::Refers;
use crate::completion::Completion;
use crate::error::kafka_error_in;
use crate::log_offsets;
use crate::produce_refused::{by_the_broker, refuse};
use crate::produced::PyProduced;
use crate::tickets::PyStoredLog;

/// A log and its handle in the store.
pub(crate) struct Target {
    pub(crate) log: Py<PyAny>,
    pub(crate) stored: Py<PyStoredLog>,
}

impl Refers for Target {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.log.show(visit)
    }
}

impl Target {
    pub(crate) fn of(log: Bound<'_, PyAny>) -> PyResult<Self> {
        let stored = log_offsets::stored(&log);
        let stored = stored.ok_or_else(|| PyTypeError::new_err("the log is in no store"))?;
        let log = log.unbind();
        Ok(Self { log, stored })
    }
}

/// What the broker needs to decide whether a batch may join its producer's transaction.
pub(crate) struct Transaction {
    pub(crate) context: Py<PyAny>,
    pub(crate) records: Py<PyBytes>,
    pub(crate) transactional_id: Option<String>,
}

/// A batch that is about to be appended.
pub(crate) struct ProducedBatch {
    pub(crate) target: Arc<Target>,
    transaction: Option<Transaction>,
    now_ms: i64,
    /// The records, checked so far.
    pub(crate) incoming: Result<Incoming, Refusal>,
}

impl ProducedBatch {
    pub(crate) fn new(
        target: Arc<Target>,
        transaction: Option<Transaction>,
        records: &[u8],
        now_ms: i64,
    ) -> Self {
        let stored = target.stored.get();
        let incoming = stored.store.get().0.receive(stored.id, records, now_ms);
        Self {
            target,
            transaction,
            now_ms,
            incoming,
        }
    }

    /// Checks the records within the limit of `work`; returns True once the check is complete.
    pub(crate) fn check(&mut self, work: &mut usize) -> bool {
        let Ok(incoming) = &mut self.incoming else {
            return true;
        };
        if !incoming.begins_within(*work) {
            return false;
        }
        incoming.check(work).unwrap_or_else(|refusal| {
            self.incoming = Err(refusal);
            true
        })
    }

    /// Appends the batch after its check; its result is recorded in `produced`.
    pub(crate) fn append<'py>(
        self,
        admit: &Bound<'py, PyAny>,
        produced: &Bound<'py, PyProduced>,
        place: usize,
    ) -> PyResult<()> {
        let py = produced.py();
        let log = self.target.log.bind(py);
        if let Some(transaction) = &self.transaction {
            let arguments = (
                &transaction.context,
                log,
                &transaction.records,
                transaction.transactional_id.as_deref(),
                self.now_ms,
            );
            if let Err(error) = admit.call1(arguments) {
                let refused = by_the_broker(&kafka_error_in(py, error)?)?;
                return refuse(produced, place, refused, Some(log));
            }
        }
        let stored = self.target.stored.get();
        let store = &stored.store.get().0;
        let appended = self
            .incoming
            .and_then(|incoming| store.append_checked(stored.id, incoming));
        let appended = match appended {
            Ok(appended) => appended,
            Err(refusal) => {
                return refuse(produced, place, Refused::ByTheStore(refusal), Some(log));
            }
        };
        log_offsets::appended(log, appended.last_offset)?;
        let response = Appended {
            base_offset: appended.base_offset,
            append_time_ms: appended.append_time_ms,
            log_start_offset: appended.start_offset,
        };
        // Must precede the end of the write
        produced.borrow_mut().answer.append(place, response);
        let waiter = Completion::Batch(produced.clone().unbind(), place);
        let mut tickets = stored.tickets.borrow_mut(py);
        if tickets.wait(appended.sequence, waiter).is_some() {
            produced.borrow_mut().answer.end(place, 0);
        }
        Ok(())
    }
}
