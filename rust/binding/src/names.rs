//! `sharecore._core.matching`: names that an expression matches.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regex_lite::RegexBuilder;

/// About how many bytes a compiled expression may take: a hostile one is refused.
const COMPILED_MAX: usize = 1 << 20;

#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn matching(expression: &str, names: Vec<String>) -> PyResult<Vec<String>> {
    let whole = RegexBuilder::new(&format!("^(?:{expression})$"))
        .size_limit(COMPILED_MAX)
        .build()
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(names
        .into_iter()
        .filter(|name| whole.is_match(name))
        .collect())
}
