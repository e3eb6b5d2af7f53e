//! `sharecore._core.survey_store`: finds the intact parts of a damaged store, and copies them to a new one.

use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_store::{salvage, survey};

type Problem = (String, u64, String);
type Kept = (u64, i64, i64, u64, u64, bool);
type Entry<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);
type Findings<'py> = (
    Vec<Problem>,
    Vec<Kept>,
    Vec<(u64, i64, i64)>,
    Vec<Entry<'py>>,
    bool,
    Option<(String, u64, u64)>,
);

/// Surveys `path`; with `to`, salvages it.
#[pyfunction]
#[pyo3(signature = (path, progress, to = None))]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn survey_store(
    py: Python<'_>,
    path: PathBuf,
    progress: Py<PyAny>,
    to: Option<PathBuf>,
) -> PyResult<Findings<'_>> {
    let mut failed = None;
    let found = py.detach(|| {
        let mut report = |done: u64, total: u64| {
            Python::attach(|py| {
                if failed.is_none() {
                    failed = progress.call1(py, (done, total)).err();
                }
            });
        };
        match &to {
            Some(to) => salvage(&path, to, &mut report),
            None => survey(&path, &mut report),
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let found = found.map_err(|error| PyOSError::new_err(error.to_string()))?;
    let problems = found.problems.into_iter();
    let kept = found.kept.into_iter();
    let lost = found.lost.into_iter();
    let entries = found.catalog.iter();
    Ok((
        problems
            .map(|p| (p.path.display().to_string(), p.at, p.what))
            .collect(),
        kept.map(|k| (k.log, k.start, k.end, k.batches, k.bytes, k.is_orphan))
            .collect(),
        lost.map(|l| (l.log, l.first, l.last)).collect(),
        entries
            .map(|(key, value)| (PyBytes::new(py, key), PyBytes::new(py, value)))
            .collect(),
        found.history_lost,
        found
            .torn
            .map(|torn| (torn.path.display().to_string(), torn.at, torn.bytes)),
    ))
}
