//! `Checks`: which checks the broker currently needs. Python publishes them, so that a request that needs none makes no Python
//! call.

use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::prelude::*;

/// An authorizer is configured.
pub(crate) const RIGHTS: u8 = 1;
/// Share groups may be disabled.
pub(crate) const FEATURES: u8 = 2;
/// A client quota is set.
pub(crate) const QUOTAS: u8 = 4;
/// Another broker may lead a partition.
pub(crate) const LEADERS: u8 = 8;
/// The broker may have to stop leasing records.
pub(crate) const LEASES: u8 = 16;

/// The checks that need a call to Python; all of them until the broker publishes.
#[pyclass(name = "Checks", module = "sharecore._core", frozen)]
pub(crate) struct PyChecks(AtomicU8);

impl PyChecks {
    /// True if at least one of `checks` must be made.
    pub(crate) fn needs(&self, checks: u8) -> bool {
        self.0.load(Ordering::Relaxed) & checks != 0
    }
}

#[pymethods]
impl PyChecks {
    #[new]
    fn new() -> Self {
        Self(AtomicU8::new(u8::MAX))
    }

    /// Publishes which checks are needed from now on.
    #[pyo3(signature = (*, rights, features, quotas, leaders, leases))]
    #[allow(clippy::fn_params_excessive_bools, reason = "Python names them")]
    fn publish(&self, rights: bool, features: bool, quotas: bool, leaders: bool, leases: bool) {
        let each = [
            (rights, RIGHTS),
            (features, FEATURES),
            (quotas, QUOTAS),
            (leaders, LEADERS),
            (leases, LEASES),
        ];
        let bits = each.into_iter().filter(|(needed, _)| *needed);
        let bits = bits.fold(0, |bits, (_, bit)| bits | bit);
        self.0.store(bits, Ordering::Relaxed);
    }
}
