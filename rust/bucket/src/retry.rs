//! A call that is repeated until it has a definite answer, with a growing delay.

use crate::call::{Answer, Call, What};

const PAUSE_MIN_MS: u64 = 50;
const PAUSE_MAX_MS: u64 = 5000;

/// Return the delay after this many failures; `salt` spreads callers that failed together.
pub(crate) fn pause_ms(failures: u32, salt: u64) -> u64 {
    let pause = PAUSE_MIN_MS << failures.saturating_sub(1).min(10);
    let pause = pause.min(PAUSE_MAX_MS);
    // between half and all of it
    pause / 2 + salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (pause / 2 + 1)
}

/// One call at a time, repeated until its answer is definite. Only for idempotent calls.
#[derive(Debug, Clone, Default)]
pub struct Retried {
    what: Option<What>,
    call: Option<u64>,
    due_ms: u64,
    failures: u32,
    error: Option<String>,
}

impl Retried {
    /// Create one with a call in progress.
    pub fn begun(what: What) -> Self {
        Self {
            what: Some(what),
            ..Self::default()
        }
    }

    /// Whether this is the answer to the current call.
    pub fn waits_for(&self, id: u64) -> bool {
        self.call == Some(id)
    }

    /// Start a call. The previous one must have ended.
    pub fn begin(&mut self, what: What) {
        assert!(self.what.is_none(), "a call has no answer yet");
        self.what = Some(what);
        self.due_ms = 0;
    }

    /// Whether no call is in progress.
    pub fn is_idle(&self) -> bool {
        self.what.is_none()
    }

    /// Return why the last attempt failed; None after a success.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Return when the next attempt is due; None if idle or waiting for an answer.
    pub fn due_ms(&self) -> Option<u64> {
        let waits = self.what.is_some() && self.call.is_none();
        waits.then_some(self.due_ms)
    }

    /// Append the call if it is due. `id`: the last call ID used.
    pub fn calls(&mut self, now_ms: u64, id: &mut u64, calls: &mut Vec<Call>) {
        if let Some(what) = &self.what
            && self.call.is_none()
            && self.due_ms <= now_ms
        {
            *id += 1;
            self.call = Some(*id);
            calls.push(Call {
                id: *id,
                what: what.clone(),
            });
        }
    }

    /// Handle an answer; return the call and its answer, or None if the answer is for another call or not definite, in
    /// which case the call is repeated.
    pub fn answer(&mut self, id: u64, answer: Answer, now_ms: u64) -> Option<(What, Answer)> {
        if self.call != Some(id) {
            return None;
        }
        self.call = None;
        if let Answer::Unknown(why) = answer {
            self.failures += 1;
            self.due_ms = now_ms + pause_ms(self.failures, id);
            self.error = Some(why);
            return None;
        }
        self.failures = 0;
        self.error = None;
        self.what.take().map(|what| (what, answer))
    }
}
