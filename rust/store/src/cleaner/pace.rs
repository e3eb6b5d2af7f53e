//! The rate of a pass, and when it must end.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{error::Refusal, store::Shared};

/// The longest sleep before checking whether the store is closing.
const NAP: Duration = Duration::from_millis(100);

pub(crate) struct Pace<'a> {
    shared: &'a Shared,
    bytes_per_second: f64,
    since: Instant,
    bytes: u64,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(shared: &'a Shared, bytes_per_second: f64) -> Self {
        Self {
            shared,
            bytes_per_second,
            since: Instant::now(),
            bytes: 0,
        }
    }

    /// Counts bytes read or written, and waits as the rate requires.
    pub(crate) fn moved(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.bytes += bytes as u64;
        loop {
            self.goes_on()?;
            #[allow(
                clippy::cast_precision_loss,
                reason = "a sleep need not be exact to the nanosecond"
            )]
            let due = self.bytes as f64 / self.bytes_per_second;
            let ahead = due - self.since.elapsed().as_secs_f64();
            if ahead <= 0.0 {
                break;
            }
            let nap = Duration::try_from_secs_f64(ahead).map_or(NAP, |ahead| ahead.min(NAP));
            thread::sleep(nap);
        }
        // unused time is not saved up
        if self.since.elapsed() > Duration::from_secs(1) {
            (self.since, self.bytes) = (Instant::now(), 0);
        }
        Ok(())
    }

    fn goes_on(&self) -> Result<(), Refusal> {
        if self.shared.is_leaving() {
            return Err(Refusal::Storage("the store is being closed".into()));
        }
        Ok(())
    }
}
