//! Applies acknowledgements to a share-partition leader.
//!
//! No object stays borrowed while Python code runs: Python may call back into the same object.

use pyo3::prelude::*;
use sharecore_engine::AckBatch;

use crate::codes::INVALID_RECORD_STATE;
use crate::error::{kafka_error, kafka_error_in};
use crate::leader::PyLeader;
use crate::state_write::PyWrite;

/// The acknowledge type of an offset without a record.
const GAP: u8 = 0;

/// Number of offsets acknowledged as gaps.
fn gaps(batches: &[AckBatch<'_>]) -> i64 {
    let is_gap = |kind: &&u8| **kind == GAP;
    let each = batches.iter().map(|batch| match batch.types {
        [GAP] => batch.last.saturating_sub(batch.first).saturating_add(1),
        types => types.iter().filter(is_gap).count() as i64,
    });
    each.fold(0, i64::saturating_add)
}

impl PyLeader {
    /// Accepts, releases, rejects or renews records of a member; returns the state change to persist, if any.
    pub(crate) fn settle(
        leader: &Bound<'_, Self>,
        member: &str,
        batches: &[AckBatch<'_>],
    ) -> PyResult<Option<Py<PyWrite>>> {
        let py = leader.py();
        let Some(engine) = Self::engine(leader) else {
            return Err(PyErr::from_value(Self::no_engine(leader)));
        };
        let now_ms = Self::now_ms(leader)?;
        leader.borrow_mut().used_ms = now_ms;
        let answer = engine.get().settle(py, now_ms, member, batches);
        let is_armed = leader.borrow().timer.is_some();
        if is_armed {
            // Renewed locks run for the current lock timeout, which may be shorter than that of earlier locks
            Self::arm_for_locks(leader, now_ms)?;
        }
        let write = match answer {
            Ok(write) => write,
            Err(error) => {
                let error = kafka_error_in(py, error)?;
                Self::check_engine(leader, &error)?;
                return Err(PyErr::from_value(error));
            }
        };
        let passes_over = write.is_none() && leader.borrow().writes.has_failed();
        if passes_over {
            let start_offset: i64 = engine.get().start_offset(py)?;
            let passed = leader.borrow().writes.pass_over(batches, start_offset);
            passed.map_err(|why| kafka_error(py, INVALID_RECORD_STATE, &why.to_string()))?;
        }
        let counts = leader.borrow().bounds.is_some();
        let write = write.map(|mut write| {
            if counts {
                write.blameless = gaps(batches);
            }
            Py::new(py, write)
        });
        write.transpose()
    }
}
