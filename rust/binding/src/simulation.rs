//! `sharecore._core.MemoryDisk`: an in-memory disk for simulations.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_store::{MemoryDisk, Operation};

#[pyclass(name = "MemoryDisk", module = "sharecore._core", frozen)]
pub(crate) struct PyMemoryDisk(MemoryDisk);

fn named(name: &str) -> PyResult<Operation> {
    match name {
        "open" => Ok(Operation::Open),
        "write" => Ok(Operation::Write),
        "sync" => Ok(Operation::Sync),
        "rename" => Ok(Operation::Rename),
        "read" => Ok(Operation::Read),
        other => Err(PyValueError::new_err(format!(
            "unknown operation {other:?}: use 'open', 'write', 'sync', 'rename' or 'read'"
        ))),
    }
}

#[pymethods]
impl PyMemoryDisk {
    #[new]
    #[allow(clippy::needless_pass_by_value)]
    fn new(path: PathBuf, seed: u64) -> Self {
        Self(MemoryDisk::mount(&path, seed))
    }

    fn unmount(&self) {
        self.0.unmount();
    }

    #[pyo3(signature = (operation, errno, *, skip = 0, times = 1))]
    fn fail(&self, operation: &str, errno: i32, skip: u64, times: u64) -> PyResult<()> {
        self.0.fail(named(operation)?, errno, skip, times);
        Ok(())
    }

    #[pyo3(signature = (*, skip = 0, times = 1))]
    fn lie(&self, skip: u64, times: u64) {
        self.0.lie(skip, times);
    }

    #[pyo3(signature = (*, skip = 0, times = 1))]
    fn misdirect(&self, skip: u64, times: u64) {
        self.0.misdirect(skip, times);
    }

    fn set_rot(&self, per_mille: u64) {
        self.0.set_rot(per_mille);
    }

    #[getter]
    fn harmed(&self) -> u64 {
        self.0.harmed()
    }

    fn files<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        let files = self.0.files().into_iter();
        files
            .map(|(name, bytes)| (name, PyBytes::new(py, &bytes)))
            .collect()
    }

    fn replace(&self, files: Vec<(String, Vec<u8>)>) {
        self.0.replace(files);
    }

    fn heal(&self) {
        self.0.heal();
    }

    fn end_after(&self, changes: u64) {
        self.0.end_after(changes);
    }

    #[getter]
    fn is_gone(&self) -> bool {
        self.0.is_gone()
    }

    fn set_capacity(&self, bytes: u64) {
        self.0.set_capacity(bytes);
    }

    fn set_cold(&self, per_mille: u64) {
        self.0.set_cold(per_mille);
    }

    #[getter]
    fn used_bytes(&self) -> u64 {
        self.0.used()
    }

    #[getter]
    fn operations(&self) -> u64 {
        self.0.operations()
    }

    fn crash(&self) {
        self.0.crash();
    }

    fn restart(&self) {
        self.0.restart();
    }
}
