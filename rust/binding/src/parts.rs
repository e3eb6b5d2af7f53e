//! Encodes a message into as few buffers as possible without copying large byte strings.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::rest::Rest;

/// Maximum size of a response without its records: a request that repeats one name many times could ask for more.
const BYTES_MAX: usize = 128 << 20;

/// Byte strings of at least this size are sent without a copy.
const COPY_BYTES_MAX: usize = 64 * 1024;

enum Part {
    Own(Vec<u8>),
    Theirs(Py<PyBytes>),
}

/// Buffers to send in order.
pub(crate) struct Parts {
    done: Vec<Part>,
    last: Vec<u8>,
    share: bool,
    rest: Option<Rest>,
    /// Bytes that do not count toward `BYTES_MAX`.
    free: usize,
}

impl Parts {
    /// Encodes into one buffer.
    pub(crate) fn joined(begun: Vec<u8>) -> Self {
        Parts {
            done: Vec::new(),
            last: begun,
            share: false,
            rest: None,
            free: 0,
        }
    }

    /// Releases the interpreter now and then while encoding.
    pub(crate) fn resting(self) -> Self {
        Parts {
            rest: Some(Rest::default()),
            ..self
        }
    }

    /// Called before each struct is encoded.
    pub(crate) fn step(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.share && self.last.len() > BYTES_MAX + self.free {
            return Err(PyOverflowError::new_err("the response exceeds 128 MiB"));
        }
        if let Some(rest) = &mut self.rest {
            rest.step(py);
        }
        Ok(())
    }

    /// Encodes large byte strings as buffers of their own.
    pub(crate) fn shared(begun: Vec<u8>) -> Self {
        Parts {
            share: true,
            ..Parts::joined(begun)
        }
    }

    /// The buffer to append to.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.last
    }

    /// The bytes appended since the last large part.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    /// Appends bytes.
    pub(crate) fn bytes(&mut self, bytes: &Bound<'_, PyBytes>) {
        let content = bytes.as_bytes();
        if self.share && content.len() >= COPY_BYTES_MAX {
            self.done.push(Part::Own(std::mem::take(&mut self.last)));
            self.free = 0;
            self.done.push(Part::Theirs(bytes.clone().unbind()));
        } else {
            self.free += content.len();
            self.last.extend_from_slice(content);
        }
    }

    /// Returns the buffers, with the total size in the first four bytes.
    pub(crate) fn into_frame(mut self, py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        self.done.push(Part::Own(self.last));
        let size = self.done.iter().map(|part| match part {
            Part::Own(own) => own.len(),
            Part::Theirs(theirs) => theirs.as_bytes(py).len(),
        });
        let size = i32::try_from(size.sum::<usize>() - 4)
            .map_err(|_| PyOverflowError::new_err("the message exceeds 2 GiB"))?;
        let buffers = PyList::empty(py);
        for (number, part) in self.done.into_iter().enumerate() {
            match part {
                Part::Own(mut own) => {
                    if number == 0 {
                        own[..4].copy_from_slice(&size.to_be_bytes());
                    }
                    if !own.is_empty() {
                        buffers.append(PyBytes::new(py, &own))?;
                    }
                }
                Part::Theirs(theirs) => buffers.append(theirs)?,
            }
        }
        Ok(buffers)
    }
}
