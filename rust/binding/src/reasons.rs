//! `WaitingReasons`: why records of a share partition are not delivered.

use pyo3::prelude::*;
use sharecore_engine::Waiting;

use crate::partition::Keys;

/// See `_core.pyi`.
#[pyclass(name = "WaitingReasons", module = "sharecore._core", frozen, get_all)]
pub(crate) struct PyWaitingReasons {
    backoff: i64,
    delivery: i64,
    unread: i64,
    backoff_due_ms: Option<i64>,
    delivery_due_ms: Option<i64>,
    leased: i64,
    kept: i64,
    units: i64,
    is_full: bool,
    is_in_line: bool,
    keys: Option<Keys>,
}

impl PyWaitingReasons {
    pub(crate) fn of(found: Waiting) -> Self {
        Self {
            backoff: found.backoff,
            delivery: found.delivery,
            unread: found.unread,
            backoff_due_ms: found.backoff_due_ms,
            delivery_due_ms: found.delivery_due_ms,
            leased: found.leased,
            kept: found.kept,
            units: found.units,
            is_full: found.is_full,
            is_in_line: found.is_in_line,
            keys: found
                .keys
                .map(|keys| (keys.behind, keys.keys, keys.largest)),
        }
    }
}
