//! A bucket that answers nothing any more once somebody has asked to stop.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::call::{Answer, Bucket, What};

/// A bucket, until a flag is set: then no request is made, and whoever retries does not wait.
pub struct Until<'a> {
    bucket: &'a mut dyn Bucket,
    is_over: &'a AtomicBool,
}

impl<'a> Until<'a> {
    /// Use a bucket until `is_over`.
    pub fn new(bucket: &'a mut dyn Bucket, is_over: &'a AtomicBool) -> Self {
        Self { bucket, is_over }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl Bucket for Until<'_> {
    fn ask(&mut self, what: What) -> Answer {
        if self.is_over() {
            return Answer::Unknown("it was stopped".into());
        }
        self.bucket.ask(what)
    }

    fn ask_all(&mut self, whats: Vec<What>) -> Vec<Answer> {
        if self.is_over() {
            return whats.into_iter().map(|what| self.ask(what)).collect();
        }
        self.bucket.ask_all(whats)
    }

    fn pause(&mut self, time: Duration) {
        if !self.is_over() {
            self.bucket.pause(time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBucket;

    #[test]
    fn nothing_is_asked_once_it_is_over() {
        let (mut bucket, is_over) = (MemoryBucket::default(), AtomicBool::new(false));
        let mut until = Until::new(&mut bucket, &is_over);
        let what = What::Put {
            name: "nodes/1".into(),
            body: b"1".to_vec().into(),
        };
        assert_eq!(until.ask(what.clone()), Answer::Done);
        is_over.store(true, Ordering::Relaxed);
        assert!(matches!(until.ask(what.clone()), Answer::Unknown(_)));
        assert_eq!(until.ask_all(vec![what.clone(), what]).len(), 2);
        // it would take longer than any test may
        until.pause(Duration::from_secs(1_000_000));
    }
}
