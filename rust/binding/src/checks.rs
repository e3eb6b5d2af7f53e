//! `Checks`: what the broker may refuse at the moment, published by Python, so that a request with nothing to check asks nothing.

use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::prelude::*;

/// Somebody has an authorizer to ask.
pub(crate) const RIGHTS: u8 = 1;
/// Share groups are not served.
pub(crate) const FEATURES: u8 = 2;
/// Some client has a quota.
pub(crate) const QUOTAS: u8 = 4;
/// Another broker may lead a partition.
pub(crate) const LEADERS: u8 = 8;

/// What has to be asked of Python; until the broker publishes it, everything.
#[pyclass(name = "Checks", module = "sharecore._core", frozen)]
pub(crate) struct PyChecks(AtomicU8);

impl PyChecks {
    /// Whether one of these has to be asked.
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

    /// Says what has to be asked from now on.
    #[pyo3(signature = (*, rights, features, quotas, leaders))]
    #[allow(clippy::fn_params_excessive_bools, reason = "Python names them")]
    fn publish(&self, rights: bool, features: bool, quotas: bool, leaders: bool) {
        let each = [
            (rights, RIGHTS),
            (features, FEATURES),
            (quotas, QUOTAS),
            (leaders, LEADERS),
        ];
        let bits = each.into_iter().filter(|(needed, _)| *needed);
        let bits = bits.fold(0, |bits, (_, bit)| bits | bit);
        self.0.store(bits, Ordering::Relaxed);
    }
}
