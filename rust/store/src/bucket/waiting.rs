//! Since when the oldest commit has waited for the bucket, for metrics.

use std::collections::VecDeque;

/// The smallest distance between times, so that an hour without the bucket takes little memory.
const APART_MS: u64 = 100;
/// Beyond this many, every second one is dropped.
const MARKS_MAX: usize = 1024;

/// When frames were committed. Errs early: the reported wait may be longer than the actual one.
#[derive(Default)]
pub(super) struct Waiting {
    /// Frames below, and when the first one not covered by an earlier mark was seen.
    marks: VecDeque<(u64, u64)>,
    /// How often every second mark was dropped; each time the distance doubles.
    halved: u32,
}

impl Waiting {
    /// All frames below `committed` are committed, and all below `confirmed` are in the bucket.
    pub(super) fn note(&mut self, committed: u64, confirmed: u64, now_ms: u64) {
        while self
            .marks
            .front()
            .is_some_and(|(frame, _)| *frame <= confirmed)
        {
            self.marks.pop_front();
        }
        if self.marks.is_empty() {
            self.halved = 0;
        }
        let apart_ms = APART_MS << self.halved.min(32);
        match self.marks.back_mut() {
            Some((frame, _)) if *frame >= committed => {}
            Some((frame, ms)) if now_ms < *ms + apart_ms => *frame = committed,
            _ if committed <= confirmed => {}
            _ => self.marks.push_back((committed, now_ms)),
        }
        if self.marks.len() > MARKS_MAX {
            self.halved += 1;
            let mut marks = std::mem::take(&mut self.marks).into_iter();
            while let Some((frame, ms)) = marks.next() {
                let frame = marks.next().map_or(frame, |(frame, _)| frame);
                self.marks.push_back((frame, ms));
            }
        }
    }

    /// Since when the oldest frame has waited; None if all are in the bucket.
    pub(super) fn since_ms(&self) -> Option<u64> {
        self.marks.front().map(|(_, ms)| *ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_commit_counts_while_newer_ones_come_and_older_ones_are_confirmed() {
        let mut waiting = Waiting::default();
        waiting.note(1, 1, 0);
        assert_eq!(waiting.since_ms(), None);
        for (committed, now_ms) in [(5, 10), (6, 50), (9, 200), (9, 300), (20, 400)] {
            waiting.note(committed, 1, now_ms);
            assert_eq!(waiting.since_ms(), Some(10));
        }
        waiting.note(20, 5, 500);
        assert_eq!(waiting.since_ms(), Some(10), "frame 5 is not there");
        waiting.note(20, 6, 500);
        assert_eq!(waiting.since_ms(), Some(200));
        waiting.note(20, 9, 500);
        assert_eq!(waiting.since_ms(), Some(400));
        waiting.note(20, 20, 500);
        assert_eq!(waiting.since_ms(), None);
    }

    #[test]
    fn a_day_without_the_bucket_takes_little_memory() {
        let mut waiting = Waiting::default();
        for second in 1..=86_400 {
            waiting.note(second, 0, second * 1000);
        }
        assert!(waiting.marks.len() <= MARKS_MAX);
        assert_eq!(waiting.since_ms(), Some(1000));
        waiting.note(86_401, 43_200, 86_401_000);
        let since_ms = waiting.since_ms().unwrap();
        assert!(
            since_ms <= 43_200_000,
            "{since_ms}: never later than it was"
        );
        assert!(since_ms > 42_000_000, "{since_ms}");
    }
}
