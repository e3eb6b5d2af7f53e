//! Lists of tuples to and from what the engine takes, without a detour over generic sequences.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use sharecore_engine::{OffsetRange, RecordState, StateBatch};
use smallvec::SmallVec;

/// First offset, last offset, state, delivery count.
pub(crate) type StateTuple = (i64, i64, u8, u16);

pub(crate) fn tuple(batch: &StateBatch) -> StateTuple {
    (
        batch.first,
        batch.last,
        batch.state.id(),
        batch.delivery_count,
    )
}

pub(crate) fn state_batches(tuples: Vec<StateTuple>) -> PyResult<Vec<StateBatch>> {
    tuples
        .into_iter()
        .map(|(first, last, state, delivery_count)| {
            let state = RecordState::from_id(state).ok_or_else(|| {
                PyValueError::new_err(format!("{state} is no record state; 0, 1, 2 and 4 are"))
            })?;
            Ok(StateBatch {
                first,
                last,
                state,
                delivery_count,
            })
        })
        .collect()
}

/// Calls `each` with every item of a list or, more slowly, of anything iterable.
fn for_each<'py>(
    items: &Bound<'py, PyAny>,
    mut each: impl FnMut(&Bound<'py, PyTuple>) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(list) = items.cast::<PyList>() {
        for item in list.iter() {
            each(item.cast::<PyTuple>()?)?;
        }
    } else {
        for item in items.try_iter()? {
            each(item?.cast::<PyTuple>()?)?;
        }
    }
    Ok(())
}

/// Record batches: (base offset, last offset), ascending.
pub(crate) fn ranges(items: &Bound<'_, PyAny>) -> PyResult<SmallVec<[OffsetRange; 16]>> {
    let mut ranges: SmallVec<[OffsetRange; 16]> = SmallVec::new();
    for_each(items, |item| {
        let (first, last) = item.extract()?;
        let after = ranges.last().map_or(0, |before| before.last + 1);
        if first < after || last < first || last == i64::MAX {
            return Err(PyValueError::new_err(format!(
                "record batch {first}-{last} cannot follow offset {}",
                after - 1
            )));
        }
        ranges.push(OffsetRange::new(first, last));
        Ok(())
    })?;
    Ok(ranges)
}

/// First offset, last offset, acknowledge types.
type AckTuple<'py> = (i64, i64, Bound<'py, PyBytes>);

/// Acknowledgements: (first offset, last offset, acknowledge types).
pub(crate) fn acknowledgements<'py>(
    items: &Bound<'py, PyAny>,
) -> PyResult<SmallVec<[AckTuple<'py>; 8]>> {
    let mut batches = SmallVec::new();
    for_each(items, |item| {
        batches.push(item.extract()?);
        Ok(())
    })?;
    Ok(batches)
}
