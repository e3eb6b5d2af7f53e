//! `sharecore._core.java_hash`: Java's string hash, which maps keys to partitions of a coordinator's topic.

use pyo3::prelude::*;

#[pyfunction]
pub(crate) fn java_hash(units: &[u8], before: i32) -> i32 {
    sharecore_wire::java_hash(units, before)
}
