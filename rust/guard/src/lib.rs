//! A share partition behind a lock. A panic in the engine ends the partition: what it left half done is never used again.
#![forbid(unsafe_code)]

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
};

use sharecore_engine::Engine;

/// A partition for several threads; calls wait for each other.
#[derive(Debug)]
pub struct Guarded(Mutex<Engine>);

/// The engine failed, in this call or an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// In this call, which said this.
    Now(String),
    /// In an earlier one.
    Before,
}

impl Guarded {
    /// Puts a partition behind a lock.
    pub fn new(partition: impl Into<Engine>) -> Self {
        Self(Mutex::new(partition.into()))
    }

    /// Works on the partition; a panic in it is reported once as [`Failed::Now`], and every later call is refused.
    pub fn with<R>(&self, work: impl FnOnce(&mut Engine) -> R) -> Result<R, Failed> {
        // what a panic leaves half done stays behind the lock, which is poisoned then
        let answer = catch_unwind(AssertUnwindSafe(|| match self.0.lock() {
            Ok(mut held) => Ok(work(&mut held)),
            Err(_) => Err(Failed::Before),
        }));
        answer.unwrap_or_else(|panic| Err(Failed::Now(said(&*panic).into())))
    }
}

/// The message of a panic.
pub fn said(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(what) => write!(f, "the engine failed: {what}"),
            Self::Before => f.write_str("the engine failed in an earlier call"),
        }?;
        f.write_str("; drop the partition and load it from what was persisted")
    }
}

impl std::error::Error for Failed {}

#[cfg(test)]
mod tests {
    use sharecore_engine::{Config, Partition};

    use super::*;

    #[test]
    fn after_a_panic_every_call_is_refused() {
        let made = Partition::new(Config::default(), 7, &[]).expect("empty state");
        let guarded = Guarded::new(made);
        assert_eq!(guarded.with(|partition| partition.start_offset()), Ok(7));
        let failed = guarded.with(|partition| panic!("{} runs", partition.runs()));
        let failed: Failed = failed.map(|(): ()| ()).expect_err("a panic");
        assert_eq!(failed, Failed::Now("0 runs".into()));
        assert!(
            failed
                .to_string()
                .starts_with("the engine failed: 0 runs; drop")
        );
        for _ in 0..2 {
            let refused = guarded.with(|partition| partition.start_offset());
            assert_eq!(refused, Err(Failed::Before));
        }
    }
}
