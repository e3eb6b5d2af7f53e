//! `Produced`: the response to a Produce request, complete once the appended records are durable.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sharecore_produce::Answer;
use sharecore_wire::typed::Message;

use crate::layout::{Answers, PyLayout};
use crate::parts::Parts;
use crate::waiting::PyLater;

/// The response to a Produce request.
#[pyclass(name = "Produced", module = "sharecore._core")]
#[derive(Default)]
pub(crate) struct PyProduced {
    pub(crate) answer: Answer,
    /// Completed with the response, if anyone waits.
    pub(crate) later: Option<Py<PyLater>>,
}

fn write(answer: &Answer, layout: &PyLayout, out: &mut Parts) -> PyResult<()> {
    let Some(Answers::Produce) = layout.answers() else {
        return Err(layout.refuse_answer());
    };
    let written = answer.message().encode(layout.version(), out.buffer());
    written.map_err(|unfit| PyTypeError::new_err(unfit.to_string()))
}

impl PyProduced {
    /// Records the end of one append; the last one completes the response.
    pub(crate) fn end(produced: &Bound<'_, Self>, place: usize, error_code: i16) -> PyResult<()> {
        let later = {
            let mut held = produced.borrow_mut();
            if !held.answer.end(place, error_code) {
                return Ok(());
            }
            held.later.take()
        };
        match later {
            Some(later) => {
                let whole = produced.clone().into_any().unbind();
                PyLater::set_result(later.bind(produced.py()), whole)
            }
            None => Ok(()),
        }
    }

    /// Encodes the response.
    pub(crate) fn frame<'py>(
        &self,
        py: Python<'py>,
        layout: &PyLayout,
        begun: Vec<u8>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut out = Parts::joined(begun);
        write(&self.answer, layout, &mut out)?;
        out.into_frame(py)
    }

    /// Encodes the response in a thread, without holding the interpreter.
    pub(crate) fn frame_apart<'py>(
        &self,
        py: Python<'py>,
        layout: &PyLayout,
        begun: Vec<u8>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut out = Parts::joined(begun);
        let answer = &self.answer;
        py.detach(|| write(answer, layout, &mut out))?;
        out.into_frame(py)
    }
}

#[pymethods]
impl PyProduced {
    /// Sets the throttle time and returns the same response.
    fn throttled(produced: &Bound<'_, Self>, throttle_time_ms: i64) -> Py<Self> {
        produced.borrow_mut().answer.throttle_time_ms = throttle_time_ms;
        produced.clone().unbind()
    }
}
