//! What of the answers on a connection is not sent yet: a large one goes by parts, a turn of the event loop each, so that others
//! are served in between.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PySlice};

use crate::answers::Outgoing;

/// Bytes that are to be sent, in their order.
pub(crate) struct Unsent {
    /// So many are sent at a time.
    bytes_max: usize,
    left: VecDeque<Py<PyBytes>>,
    /// Of all that is left, with what is sent of the first.
    bytes: u64,
    /// Of the first of them.
    sent: usize,
    /// Whether a later turn of the event loop sends more.
    pub(crate) is_scheduled: bool,
}

impl Unsent {
    /// A negative number of bytes is any.
    pub(crate) fn new(bytes_max: i64) -> Self {
        Self {
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            left: VecDeque::new(),
            bytes: 0,
            sent: 0,
            is_scheduled: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.left.clear();
        self.bytes = 0;
        self.sent = 0;
    }

    /// Takes an answer; false where nothing is left before it and it is small enough to be sent as it is.
    pub(crate) fn take(&mut self, parts: &Bound<'_, PyList>, size: usize) -> PyResult<bool> {
        if self.is_empty() && size <= self.bytes_max {
            return Ok(false);
        }
        for part in parts.iter() {
            self.left.push_back(part.cast_into::<PyBytes>()?.unbind());
        }
        self.bytes += size as u64;
        Ok(true)
    }

    /// What is sent next; nothing where nothing is left.
    pub(crate) fn next<'py>(
        &mut self,
        py: Python<'py>,
        all: bool,
        outgoing: &mut Outgoing,
    ) -> PyResult<Bound<'py, PyList>> {
        let parts = PyList::empty(py);
        let mut room = if all { usize::MAX } else { self.bytes_max };
        while room > 0
            && let Some(first) = self.left.front()
        {
            let first = first.bind(py);
            let (from, end) = (self.sent, first.as_bytes().len());
            let to = end.min(from.saturating_add(room));
            room -= to - from;
            if from == 0 && to == end {
                parts.append(first)?;
            } else {
                let range = PySlice::new(py, from as isize, to as isize, 1);
                parts.append(PyMemoryView::from(first)?.get_item(range)?)?;
            }
            self.sent = to;
            if to == end {
                // its last part is with the transport, and with that all of it
                outgoing.write(end, end);
                self.bytes -= end as u64;
                self.left.pop_front();
                self.sent = 0;
            }
        }
        Ok(parts)
    }
}

/// The bytes of an answer.
pub(crate) fn size_of(parts: &Bound<'_, PyList>) -> PyResult<usize> {
    let mut size = 0;
    for part in parts.iter() {
        size += part.cast::<PyBytes>()?.as_bytes().len();
    }
    Ok(size)
}
