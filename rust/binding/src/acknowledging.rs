//! `acknowledgements`: what a request acknowledges, by partition.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// The acknowledge type that renews a lock; those above it there are not.
const RENEW: u8 = 4;

/// (topic id, partition), its batches, whether they may stand as they are. The last counts of a partition that is named
/// twice.
#[pyfunction]
pub(crate) fn acknowledgements<'py>(
    topics: &Bound<'py, PyAny>,
    may_renew: bool,
    no_topic: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let py = topics.py();
    let mut asked: Vec<(Bound<'py, PyTuple>, Bound<'py, PyAny>)> = Vec::new();
    for topic in topics.try_iter()? {
        let topic = topic?;
        let mut id = topic.getattr(intern!(py, "topic_id"))?;
        if id.is_none() {
            id = no_topic.clone();
        }
        for partition in topic.getattr(intern!(py, "partitions"))?.try_iter()? {
            let partition = partition?;
            let index = partition.getattr(intern!(py, "partition_index"))?;
            let batches = partition.getattr(intern!(py, "acknowledgement_batches"))?;
            asked.push((PyTuple::new(py, [id.clone(), index])?, batches));
        }
    }
    if asked.len() > 1 {
        let last = PyDict::new(py);
        for (name, batches) in asked.drain(..) {
            last.set_item(name, batches)?;
        }
        for (name, batches) in last {
            asked.push((name.cast_into()?, batches));
        }
    }
    let read = asked.into_iter().map(|(name, batches)| {
        let sound = are_sound(&batches, may_renew)?;
        (name, batches, sound).into_pyobject(py)
    });
    read.collect()
}

/// Whether types are known and of the right number, and batches ascend.
fn are_sound(batches: &Bound<'_, PyAny>, may_renew: bool) -> PyResult<bool> {
    let most = if may_renew { RENEW } else { RENEW - 1 };
    let mut end = -1;
    for batch in batches.cast::<PyList>()?.iter() {
        let (first, last, types): (i64, i64, Bound<'_, PyBytes>) = batch.extract()?;
        let types = types.as_bytes();
        let count = types.len();
        let fits = count == 1
            || i64::try_from(count).is_ok_and(|count| last.checked_sub(first) == Some(count - 1));
        if first < end || last < first || !fits || types.iter().any(|each| *each > most) {
            return Ok(false);
        }
        end = last;
    }
    Ok(true)
}
