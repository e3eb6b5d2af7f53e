//! `Rest`: lets the event loop run while a thread does long work with the interpreter attached.

use std::thread::sleep;
use std::time::Duration;

use pyo3::prelude::*;

/// A step takes less than a microsecond, so the event loop waits a fraction of a millisecond for the interpreter.
const STEPS: usize = 250;
/// A thread that only yields would usually get the interpreter back before another thread has woken up.
const REST: Duration = Duration::from_micros(200);

/// Releases the interpreter for a moment after a number of steps.
#[derive(Default)]
pub(crate) struct Rest {
    steps: usize,
}

impl Rest {
    pub(crate) fn step(&mut self, py: Python<'_>) {
        self.steps += 1;
        if self.steps == STEPS {
            self.steps = 0;
            py.detach(|| sleep(REST));
        }
    }
}
