//! Appends a batch of staged records to its log.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use sharecore_store::LocalRecord;

use crate::completion::{Completion, Ended};
use crate::error::kafka_error_in;
use crate::log_offsets;
use crate::python;
use crate::staged_batch::PyStagedBatch;
use crate::staging::PyStaging;
use crate::store::refused;
use crate::testing::calls_by_name;
use crate::tickets::PyStoredLog;
use crate::waiting::PyTicket;
use crate::written::lingers;

/// Key and value of a record, as Python objects.
pub(crate) type Pair = (Option<PyBackedBytes>, Option<PyBackedBytes>);

/// Borrows the records for the store.
pub(crate) fn pairs(records: &[Pair]) -> Vec<LocalRecord<'_>> {
    let records = records.iter();
    records
        .map(|(key, value)| (key.as_deref(), value.as_deref()))
        .collect()
}

impl PyStaging {
    /// Appends a batch to its log.
    pub(crate) fn send(
        staging: &Bound<'_, Self>,
        batch: &Bound<'_, PyStagedBatch>,
    ) -> PyResult<()> {
        let py = staging.py();
        let number = batch.borrow().number;
        let log = {
            let mut held = staging.borrow_mut();
            held.inner.send(number);
            held.log.clone_ref(py).into_bound(py)
        };
        let (records, placed) = {
            let held = batch.borrow();
            let placed = held.placed.iter();
            let placed = placed.map(|(number, call)| (*number, call.clone_ref(py)));
            let placed = placed.collect::<Vec<_>>();
            (held.records.bind(py).clone(), placed)
        };
        let pieces = if records.len() == 1 {
            vec![records.into_any()]
        } else {
            let pieces = staging.call_method1(intern!(py, python::OWN_CUT), (records,))?;
            pieces.try_iter()?.collect::<PyResult<Vec<_>>>()?
        };
        let lingers = Self::lingers(batch, &log)?;
        batch.borrow_mut().error = None;
        staging
            .borrow_mut()
            .inner
            .begin_appends(number, pieces.len());
        if let [piece] = &pieces[..]
            && placed.is_empty()
            && let Some(stored) = Self::stored(&log)
        {
            return Self::append_stored(batch, stored.get(), &log, piece, lingers);
        }
        let how = PyDict::new(py);
        how.set_item(intern!(py, python::LINGERS), lingers)?;
        {
            let held = batch.borrow();
            how.set_item(intern!(py, python::NOW_MS), held.now_ms)?;
            how.set_item(intern!(py, python::PRODUCER), &held.producer)?;
        }
        let mut first = 0;
        for (number, piece) in pieces.iter().enumerate() {
            let arguments = (piece,);
            let appended =
                match log.call_method(intern!(py, python::APPEND_LOCAL), arguments, Some(&how)) {
                    Ok(appended) => appended,
                    Err(error) => {
                        let error = kafka_error_in(py, error)?.unbind();
                        return PyStagedBatch::append_ended(
                            batch,
                            Some(error),
                            pieces.len() - number,
                        );
                    }
                };
            let following = first + piece.len()?;
            for (index, call) in &placed {
                if (first..following).contains(index) {
                    let base: usize = appended
                        .getattr(intern!(py, python::BASE_OFFSET))?
                        .extract()?;
                    call.call1(py, (base + index - first,))?;
                }
            }
            first = following;
            let ticket = appended.getattr(intern!(py, python::TICKET))?;
            if let Ok(ticket) = ticket.cast::<PyTicket>() {
                let ended = Completion::Append(batch.clone().unbind());
                PyTicket::when_done(ticket, ended)?;
            } else {
                ticket.call_method1(intern!(py, python::ADD_DONE_CALLBACK), (batch,))?;
            }
        }
        Ok(())
    }

    /// The log's handle in the store; None for other logs, and if a test replaces methods.
    fn stored<'py>(log: &Bound<'py, PyAny>) -> Option<Bound<'py, PyStoredLog>> {
        if calls_by_name() {
            return None;
        }
        log_offsets::stored(log).map(|stored| stored.into_bound(log.py()))
    }

    /// Appends all records of a batch to a log in the store.
    fn append_stored(
        batch: &Bound<'_, PyStagedBatch>,
        stored: &PyStoredLog,
        log: &Bound<'_, PyAny>,
        records: &Bound<'_, PyAny>,
        lingers: bool,
    ) -> PyResult<()> {
        let py = batch.py();
        let (producer, now_ms) = {
            let held = batch.borrow();
            let producer = held.producer.as_ref();
            let producer = producer.map(|producer| producer.extract(py));
            (producer.transpose()?, held.now_ms)
        };
        let records: Vec<Pair> = records.extract()?;
        let (pairs, store) = (pairs(&records), &stored.store.get().0);
        let appended = match store.append_local(stored.id, &pairs, producer, now_ms, lingers) {
            Ok(appended) => appended,
            Err(refusal) => {
                let error = kafka_error_in(py, refused(py, &refusal))?;
                return PyStagedBatch::append_ended(batch, Some(error.unbind()), 1);
            }
        };
        log_offsets::appended(log, appended.last_offset)?;
        let waiter = Completion::Append(batch.clone().unbind());
        let tickets = stored.tickets.bind(py);
        let refused = tickets.borrow_mut().wait(appended.sequence, waiter);
        // The write has already ended
        refused.map_or(Ok(()), |waiter| waiter.end(py, Ended::Write(None)))
    }

    /// True if no waiter of the batch needs it soon; `log` is asked to hurry if that changes later.
    ///
    /// The completions are taken out meanwhile, because asking may run Python; nothing is added to a batch that is sent.
    fn lingers(batch: &Bound<'_, PyStagedBatch>, log: &Bound<'_, PyAny>) -> PyResult<bool> {
        let waiting = std::mem::take(&mut batch.borrow_mut().waiting);
        let lingers = lingers(&waiting, log);
        batch.borrow_mut().waiting.splice(..0, waiting);
        lingers
    }
}
