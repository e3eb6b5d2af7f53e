//! `Rules`: a group's settings for order, back-off, delivery times and expiry.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sharecore_engine::{Backoff, Key, Order, Rules, Spec};

/// The rules of a managed share partition.
#[pyclass(name = "Rules", module = "sharecore._core", frozen)]
pub(crate) struct PyRules(pub(crate) Rules);

#[pymethods]
impl PyRules {
    #[new]
    #[pyo3(signature = (*, backoff_ms = 0, backoff_max_ms = 300_000, multiplier = 2.0, jitter = 0.0, on_release = true,
                        on_timeout = true, max_waiting = 16_000, ordering = "none", run_max = 1, deliver_at_header = "",
                        ttl_ms = None, ttl_header = "", expired_letters = false, key_header = ""))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        backoff_ms: i64,
        backoff_max_ms: i64,
        multiplier: f64,
        jitter: f64,
        on_release: bool,
        on_timeout: bool,
        max_waiting: i64,
        ordering: &str,
        run_max: i64,
        deliver_at_header: &str,
        ttl_ms: Option<i64>,
        ttl_header: &str,
        expired_letters: bool,
        key_header: &str,
    ) -> PyResult<Self> {
        let is_number =
            multiplier >= 1.0 && multiplier.is_finite() && (0.0..=1.0).contains(&jitter);
        if backoff_ms < 0
            || backoff_max_ms < backoff_ms
            || max_waiting <= 0
            || run_max <= 0
            || !is_number
        {
            return Err(PyValueError::new_err(
                "the first wait must be at least 0 and at most backoff_max_ms, multiplier at least 1, jitter from 0 to 1, \
                 max_waiting and run_max positive",
            ));
        }
        let order = match ordering {
            "none" | "key" => Order::None,
            "partition" => Order::Partition,
            _ => {
                let text = format!("unknown ordering {ordering:?}: use none, partition or key");
                return Err(PyValueError::new_err(text));
            }
        };
        let backoff = Backoff {
            first_ms: backoff_ms,
            max_ms: backoff_max_ms,
            multiplier,
            jitter,
            on_release,
            on_timeout,
        };
        if ttl_ms.is_some_and(|ttl_ms| ttl_ms < 0) {
            return Err(PyValueError::new_err("ttl_ms must be at least 0"));
        }
        let key = (ordering == "key").then(|| match key_header {
            "" => Key::Own,
            name => Key::Header(name.into()),
        });
        let looks = key.is_some()
            || !deliver_at_header.is_empty()
            || !ttl_header.is_empty()
            || ttl_ms.is_some();
        let spec = Spec {
            id: 0,
            deliver_at_header: deliver_at_header.into(),
            ttl_ms,
            ttl_header: ttl_header.into(),
            key,
        };
        Ok(Self(Rules {
            order,
            run_max,
            backoff,
            max_waiting,
            spec: looks.then(|| Arc::new(spec)),
            expired_letters,
        }))
    }

    #[getter]
    fn on_release(&self) -> bool {
        self.0.backoff.on_release
    }

    #[getter]
    fn on_timeout(&self) -> bool {
        self.0.backoff.on_timeout
    }

    #[getter]
    fn ordering(&self) -> &'static str {
        let spec = self.0.spec.as_ref();
        match self.0.order {
            Order::None if spec.is_some_and(|spec| spec.key.is_some()) => "key",
            Order::None => "none",
            Order::Partition => "partition",
        }
    }

    #[getter]
    fn run_max(&self) -> i64 {
        self.0.run_max
    }

    #[getter]
    fn max_waiting(&self) -> i64 {
        self.0.max_waiting
    }

    #[getter]
    fn looks_at_records(&self) -> bool {
        self.0.spec.is_some()
    }

    /// True if records must be inspected again when these rules replace `before`.
    fn looks_otherwise(&self, before: &Bound<'_, Self>) -> bool {
        self.0.spec != before.get().0.spec
    }

    #[getter]
    fn expired_letters(&self) -> bool {
        self.0.expired_letters
    }

    fn wait_ms(&self, first: i64, delivery_count: u16) -> i64 {
        self.0.backoff.wait_ms(first, delivery_count)
    }
}
