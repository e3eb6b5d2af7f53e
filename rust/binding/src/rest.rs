//! `Rest`: long work in a thread that lets the event loop run in between.

use std::thread::sleep;
use std::time::Duration;

use pyo3::prelude::*;

/// A step takes less than a microsecond: the event loop waits for the interpreter's lock for a fraction of a millisecond.
const STEPS: usize = 250;
/// A thread that only yields would mostly have the lock again before another thread has woken up.
const REST: Duration = Duration::from_micros(200);

/// Gives up the interpreter's lock for a moment after a number of steps.
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
