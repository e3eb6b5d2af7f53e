//! A call that is made until it has a definite answer, and how long to wait before the next attempt.

use crate::call::{Answer, Call, What};

const PAUSE_MIN_MS: u64 = 50;
const PAUSE_MAX_MS: u64 = 5000;

/// Return how long to wait after so many failures; `salt` spreads callers that failed together.
pub(crate) fn pause_ms(failures: u32, salt: u64) -> u64 {
    let pause = PAUSE_MIN_MS << failures.saturating_sub(1).min(10);
    let pause = pause.min(PAUSE_MAX_MS);
    // between half of it and all of it
    pause / 2 + salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (pause / 2 + 1)
}

/// One call at a time, made again until its answer is definite. Only for calls that may be carried out twice.
#[derive(Debug, Clone, Default)]
pub struct Retried {
    what: Option<What>,
    call: Option<u64>,
    due_ms: u64,
    failures: u32,
    error: Option<String>,
}

impl Retried {
    /// Return one that has begun a call.
    pub fn begun(what: What) -> Self {
        Self {
            what: Some(what),
            ..Self::default()
        }
    }

    /// Whether the call waits for this answer.
    pub fn waits_for(&self, id: u64) -> bool {
        self.call == Some(id)
    }

    /// Begin a call. The one before must have ended.
    pub fn begin(&mut self, what: What) {
        assert!(self.what.is_none(), "a call has no answer yet");
        self.what = Some(what);
        self.due_ms = 0;
    }

    /// Whether no call is under way.
    pub fn is_idle(&self) -> bool {
        self.what.is_none()
    }

    /// Return why the newest attempt failed; None once one has succeeded.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Return when the next attempt is due; None where none is, or it waits for an answer.
    pub fn due_ms(&self) -> Option<u64> {
        let waits = self.what.is_some() && self.call.is_none();
        waits.then_some(self.due_ms)
    }

    /// Append the call if it is due. `id` is the last one that was given to a call.
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

    /// Take an answer: None where it is to another call, or says nothing, and the call is made again; else what was
    /// asked and the answer.
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
