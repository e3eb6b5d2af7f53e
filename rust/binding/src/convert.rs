//! Converts lists of tuples to and from engine types, without generic sequence access.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use sharecore_engine::{AckBatch, Acquired, OffsetRange, RecordState, StateBatch};
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

/// First offset, last offset, delivery count.
pub(crate) fn span(acquired: &Acquired) -> (i64, i64, u16) {
    (acquired.first, acquired.last, acquired.delivery_count)
}

/// Calls `each` with every item of a list or, more slowly, of any iterable.
fn for_each<'py>(
    items: &Bound<'py, PyAny>,
    mut each: impl FnMut(Bound<'py, PyTuple>) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(list) = items.cast::<PyList>() {
        for item in list.iter() {
            each(item.cast_into::<PyTuple>()?)?;
        }
    } else {
        for item in items.try_iter()? {
            each(item?.cast_into::<PyTuple>()?)?;
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
        if last - first > i64::from(i32::MAX) {
            return Err(PyValueError::new_err(format!(
                "record batch {first}-{last} is too long: it spans more than 2147483647 offsets"
            )));
        }
        ranges.push(OffsetRange::new(first, last));
        Ok(())
    })?;
    Ok(ranges)
}

/// State batches: (first offset, last offset, state, delivery count).
pub(crate) struct StateBatches(pub(crate) Vec<StateBatch>);

impl<'py> FromPyObject<'_, 'py> for StateBatches {
    type Error = PyErr;

    fn extract(items: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let mut batches = Vec::with_capacity(items.len().unwrap_or(0));
        for_each(&items, |item| {
            batches.push(state_batch(&item)?);
            Ok(())
        })?;
        Ok(Self(batches))
    }
}

fn state_batch(item: &Bound<'_, PyTuple>) -> PyResult<StateBatch> {
    let (first, last, state, delivery_count): StateTuple = item.extract()?;
    let state = RecordState::from_id(state).ok_or_else(|| {
        PyValueError::new_err(format!(
            "unknown record state {state}; expected 0, 1, 2 or 4"
        ))
    })?;
    Ok(StateBatch {
        first,
        last,
        state,
        delivery_count,
    })
}

/// State batches with the tuples that they were read from.
pub(crate) struct KeptStateBatches<'py> {
    pub(crate) batches: Vec<StateBatch>,
    tuples: Vec<Bound<'py, PyTuple>>,
    next: usize,
}

impl<'py> KeptStateBatches<'py> {
    /// Returns the tuple that `batch` was read from, if both the calls and the tuples are in ascending order.
    pub(crate) fn tuple(&mut self, batch: &StateBatch) -> Option<Bound<'py, PyTuple>> {
        let before = |other: &&StateBatch| other.first < batch.first;
        self.next += self.batches[self.next..].iter().take_while(before).count();
        (self.batches.get(self.next) == Some(batch)).then(|| self.tuples[self.next].clone())
    }
}

impl<'py> FromPyObject<'_, 'py> for KeptStateBatches<'py> {
    type Error = PyErr;

    fn extract(items: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let count = items.len().unwrap_or(0);
        let (mut batches, mut tuples) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for_each(&items, |item| {
            batches.push(state_batch(&item)?);
            tuples.push(item);
            Ok(())
        })?;
        Ok(Self {
            batches,
            tuples,
            next: 0,
        })
    }
}

/// Acknowledgements for Python: (first offset, last offset, acknowledge types).
pub(crate) fn tuples<'py>(
    py: Python<'py>,
    batches: &[AckBatch<'_>],
) -> PyResult<Bound<'py, PyList>> {
    let tuples = batches.iter();
    let tuples = tuples.map(|each| (each.first, each.last, PyBytes::new(py, each.types)));
    PyList::new(py, tuples.collect::<Vec<_>>())
}

/// Acknowledgements as Python objects: (first offset, last offset, acknowledge types).
pub(crate) struct Acknowledgements<'py>(SmallVec<[(i64, i64, Bound<'py, PyBytes>); 8]>);

impl Acknowledgements<'_> {
    /// Borrows them for the engine.
    pub(crate) fn batches(&self) -> SmallVec<[AckBatch<'_>; 8]> {
        let batches = self.0.iter().map(|(first, last, types)| AckBatch {
            first: *first,
            last: *last,
            types: types.as_bytes(),
        });
        batches.collect()
    }
}

/// Reads acknowledgements: (first offset, last offset, acknowledge types).
pub(crate) fn acknowledgements<'py>(items: &Bound<'py, PyAny>) -> PyResult<Acknowledgements<'py>> {
    let mut batches = SmallVec::new();
    for_each(items, |item| {
        batches.push(item.extract()?);
        Ok(())
    })?;
    Ok(Acknowledgements(batches))
}
