//! Results of appends, and events of a store since the last drain, as Python tuples.

use std::path::PathBuf;

use pyo3::prelude::*;
use sharecore_store::Refusal;

use crate::store::refused;

/// Start, high watermark, last stable offset, end.
pub(crate) type Offsets = (i64, i64, i64, i64);
/// Log, first and last offset, file, byte.
type Damage = (u64, i64, i64, PathBuf, u64);
pub(crate) type Appended = (i64, i64, i64, i64, u64);
pub(crate) type Drained = (
    Vec<(u64, Option<String>)>,
    Vec<(u64, Offsets)>,
    Vec<u64>,
    Vec<Damage>,
);

pub(crate) fn as_tuple(offsets: sharecore_store::Offsets) -> Offsets {
    (
        offsets.start,
        offsets.high_watermark,
        offsets.last_stable,
        offsets.end,
    )
}

pub(crate) fn as_tuples(drained: sharecore_store::Drained) -> Drained {
    let outcomes = drained.outcomes.into_iter();
    let moved = drained.moved.into_iter();
    let damaged = drained.damaged.into_iter();
    (
        outcomes.map(|o| (o.sequence, o.error)).collect(),
        moved
            .map(|(log, offsets)| (log, as_tuple(offsets)))
            .collect(),
        drained.read,
        damaged
            .map(|each| (each.log, each.offsets.0, each.offsets.1, each.path, each.at))
            .collect(),
    )
}

pub(crate) fn appended(
    py: Python<'_>,
    result: Result<sharecore_store::Appended, Refusal>,
) -> PyResult<Appended> {
    let a = result.map_err(|refusal| refused(py, &refusal))?;
    let (base, last, time) = (a.base_offset, a.last_offset, a.append_time_ms);
    Ok((base, last, time, a.start_offset, a.sequence))
}
