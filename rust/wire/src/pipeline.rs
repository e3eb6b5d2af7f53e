//! Which request of a connection is dispatched next, and when reading pauses.

use crate::{SIZE_BYTES, SMALL_BYTES};

/// Why a connection does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Pause {
    /// Too many requests wait for their responses.
    Pipeline = 1,
    /// Memory is exhausted.
    Memory = 2,
    /// The client does not read.
    Write = 4,
    /// The connection is about to close.
    Closing = 8,
    /// The client has used more than its quota.
    Throttle = 16,
    /// The records of a request are being checked.
    Check = 32,
}

/// While paused for one of these, requests that were read are not dispatched either.
const NOT_DISPATCHED: u8 = Pause::Write as u8 | Pause::Throttle as u8 | Pause::Check as u8;

/// Return the bytes that a frame counts before it is dispatched: none if it is small.
pub fn charged(frame_bytes: usize) -> usize {
    let size = frame_bytes + SIZE_BYTES;
    if size > SMALL_BYTES { size } else { 0 }
}

/// How a connection stands when its next request may be dispatched.
#[derive(Clone, Copy, Debug)]
pub struct PipelineState {
    /// Requests that wait for their responses.
    pub waiting: usize,
    /// Whether small requests of all connections take too much memory.
    pub is_crowded: bool,
    /// Whether responses are left to send.
    pub has_unsent: bool,
    /// Whether the client keeps responses in memory by not reading them.
    pub has_unread: bool,
}

/// What to do with the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Leave it where it is.
    Wait,
    /// Dispatch it once clients have read enough responses.
    IfRead,
    /// Dispatch it.
    Dispatch,
}

/// The order of requests and responses of one connection.
#[derive(Debug)]
pub struct Pipeline {
    max: usize,
    /// APIs whose requests are dispatched while others wait for their responses; `None`: all.
    apis: Option<u128>,
    /// Waiting requests of other APIs.
    alone: usize,
    paused: u8,
}

impl Pipeline {
    /// `max`: requests that wait for their responses at a time; `apis`: bits of API keys whose requests need not wait for
    /// others, `None`: all.
    pub fn new(max: usize, apis: Option<u128>) -> Self {
        Self {
            max,
            apis,
            alone: 0,
            paused: 0,
        }
    }

    /// Whether a request may be dispatched while others wait for their responses.
    pub fn is_pipelined(&self, frame: &[u8]) -> bool {
        let Some(apis) = self.apis else {
            return true;
        };
        match frame.first_chunk().map(|key| i16::from_be_bytes(*key)) {
            Some(key @ 0..128) => apis >> key & 1 == 1,
            _ => false,
        }
    }

    /// Whether so many requests wait that no other is dispatched.
    pub fn is_full(&self, waiting: usize, is_crowded: bool) -> bool {
        waiting >= self.max || waiting > 0 && is_crowded
    }

    /// Decide about the next request.
    pub fn next(&self, is_pipelined: bool, now: PipelineState) -> Next {
        let waits = self.is_full(now.waiting, now.is_crowded)
            || self.paused & NOT_DISPATCHED != 0
            || now.has_unsent
            || !is_pipelined && self.alone > 0;
        if waits {
            Next::Wait
        } else if !is_pipelined || now.has_unread {
            Next::IfRead
        } else {
            Next::Dispatch
        }
    }

    /// Note that a request waits for its response.
    pub fn begin(&mut self, is_alone: bool) {
        self.alone += usize::from(is_alone);
    }

    /// Note that a request has its response.
    pub fn end(&mut self, is_alone: bool) {
        debug_assert!(!is_alone || self.alone > 0, "it did not wait");
        self.alone -= usize::from(is_alone);
    }

    /// Whether reading is paused for a reason.
    pub fn is_paused(&self, reason: Pause) -> bool {
        self.paused & reason as u8 != 0
    }

    /// Whether nothing is paused.
    pub fn reads(&self) -> bool {
        self.paused == 0
    }

    /// Pause for reasons, by their bits.
    pub fn pause(&mut self, reasons: u8) {
        self.paused |= reasons;
    }

    /// Resume after reasons, by their bits; true if reading starts again.
    pub fn resume(&mut self, reasons: u8) -> bool {
        let was_paused = self.paused & reasons != 0;
        self.paused &= !reasons;
        was_paused && self.reads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: PipelineState = PipelineState {
        waiting: 0,
        is_crowded: false,
        has_unsent: false,
        has_unread: false,
    };

    fn waiting(waiting: usize) -> PipelineState {
        PipelineState { waiting, ..IDLE }
    }

    #[test]
    fn some_apis_need_not_wait_for_others() {
        let pipeline = Pipeline::new(4, Some(1 << 0 | 1 << 78));
        let frame = |key: i16| key.to_be_bytes();
        for (key, is_pipelined) in [(0, true), (1, false), (78, true), (127, false), (-1, false)] {
            assert_eq!(pipeline.is_pipelined(&frame(key)), is_pipelined, "{key}");
        }
        assert!(!pipeline.is_pipelined(&frame(128)));
        assert!(!pipeline.is_pipelined(&[0]));
        assert!(Pipeline::new(4, None).is_pipelined(&[]));
    }

    #[test]
    fn a_request_waits_for_what_is_in_its_way() {
        let mut pipeline = Pipeline::new(2, None);
        let crowded = |count| PipelineState {
            is_crowded: true,
            ..waiting(count)
        };
        assert_eq!(pipeline.next(true, IDLE), Next::Dispatch);
        assert_eq!(pipeline.next(true, waiting(1)), Next::Dispatch);
        assert_eq!(pipeline.next(true, waiting(2)), Next::Wait);
        // one request always fits
        assert_eq!(pipeline.next(true, crowded(0)), Next::Dispatch);
        assert_eq!(pipeline.next(true, crowded(1)), Next::Wait);
        let unsent = PipelineState {
            has_unsent: true,
            ..IDLE
        };
        assert_eq!(pipeline.next(true, unsent), Next::Wait);
        pipeline.begin(true);
        assert_eq!(pipeline.next(false, waiting(1)), Next::Wait);
        assert_eq!(pipeline.next(true, waiting(1)), Next::Dispatch);
        pipeline.end(true);
        assert_eq!(pipeline.next(false, IDLE), Next::IfRead);
        let unread = PipelineState {
            has_unread: true,
            ..IDLE
        };
        assert_eq!(pipeline.next(true, unread), Next::IfRead);
    }

    #[test]
    fn requests_that_were_read_are_dispatched_during_some_pauses() {
        for (reason, dispatches) in [
            (Pause::Pipeline, true),
            (Pause::Memory, true),
            (Pause::Write, false),
            (Pause::Closing, true),
            (Pause::Throttle, false),
            (Pause::Check, false),
        ] {
            let mut pipeline = Pipeline::new(2, None);
            pipeline.pause(reason as u8);
            assert!(pipeline.is_paused(reason) && !pipeline.reads());
            let next = pipeline.next(true, IDLE);
            assert_eq!(next == Next::Dispatch, dispatches, "{reason:?}");
        }
    }

    #[test]
    fn reading_starts_again_after_the_last_pause() {
        let mut pipeline = Pipeline::new(2, None);
        pipeline.pause(Pause::Memory as u8);
        pipeline.pause(Pause::Write as u8);
        assert!(!pipeline.resume(Pause::Check as u8));
        assert!(!pipeline.resume(Pause::Write as u8));
        assert!(pipeline.resume(Pause::Memory as u8));
        assert!(!pipeline.resume(Pause::Memory as u8), "it reads already");
    }

    #[test]
    fn small_frames_are_not_charged() {
        assert_eq!(charged(SMALL_BYTES - SIZE_BYTES), 0);
        assert_eq!(charged(SMALL_BYTES), SMALL_BYTES + SIZE_BYTES);
    }
}
