//! `sharecore._core.bench_trace`: measures how fast the engine replays a trace, with no Python in the timed part.

use std::fs::File;
use std::io::{self, BufReader};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sharecore_trace::{Timing, bench, read};

/// Replays the trace at `path` `warmup` times unmeasured, then `runs` times measured.
#[pyfunction]
pub(crate) fn bench_trace(
    py: Python<'_>,
    path: String,
    runs: usize,
    warmup: usize,
) -> PyResult<Bound<'_, PyDict>> {
    if runs == 0 {
        return Err(PyValueError::new_err("runs must be positive"));
    }
    let timing = py.detach(|| -> io::Result<Timing> {
        let operations = read(BufReader::new(File::open(path)?))?;
        Ok(bench(&operations, warmup, runs))
    })?;
    let report = PyDict::new(py);
    report.set_item("ops", timing.ops)?;
    report.set_item("records", timing.records)?;
    report.set_item("runs", timing.runs.len())?;
    report.set_item("ms_median", timing.median().as_secs_f64() * 1e3)?;
    report.set_item("ops_per_s", timing.per_second(timing.ops as i64))?;
    report.set_item("records_per_s", timing.per_second(timing.records))?;
    Ok(report)
}
