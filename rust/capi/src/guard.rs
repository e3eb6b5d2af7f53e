//! Keeps panics from crossing the boundary.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sharecore_engine::Engine;
use sharecore_guard::{Failed, said};

use crate::handle::{self, SharecorePartition};
use crate::status::{Failure, SharecoreStatus, ended};

/// Runs a call that uses no partition.
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> SharecoreStatus {
    // state left half done by the closure belongs to the caller
    let answer = catch_unwind(AssertUnwindSafe(work));
    ended(answer.unwrap_or_else(|panic| Err(Failed::Now(said(&*panic).into()).into())))
}

/// Runs a call with its partition locked; a panic disables the partition, and every later call fails with POISONED.
pub(crate) fn with(
    partition: SharecorePartition,
    work: impl FnOnce(&mut Engine) -> Result<(), Failure>,
) -> SharecoreStatus {
    guarded(|| handle::find(partition)?.with(|engine| work(engine))?)
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        Self::new(SharecoreStatus::Poisoned, failed)
    }
}

#[cfg(test)]
mod tests {
    use sharecore_engine::{Config, Partition};

    use super::*;
    use crate::status::sharecore_last_error;

    fn message() -> String {
        let mut out = [0_u8; 200];
        let length = unsafe { sharecore_last_error(out.as_mut_ptr().cast(), out.len()) };
        String::from_utf8_lossy(&out[..length - 1]).into_owned()
    }

    #[test]
    fn a_partition_in_which_the_engine_failed_only_lets_itself_be_freed() {
        let made = Partition::new(Config::default(), 0, &[]).expect("empty state");
        let partition = handle::insert(made).expect("a number");
        assert_eq!(with(partition, |_| Ok(())), SharecoreStatus::Ok);
        assert_eq!(
            with(partition, |partition| panic!("{} runs", partition.runs())),
            SharecoreStatus::Poisoned
        );
        assert!(message().starts_with("the engine failed: 0 runs; "));
        assert_eq!(with(partition, |_| Ok(())), SharecoreStatus::Poisoned);
        assert!(message().contains("earlier call"));
        assert_eq!(guarded(|| handle::remove(partition)), SharecoreStatus::Ok);
        assert_eq!(
            guarded(|| handle::remove(partition)),
            SharecoreStatus::BadPartition
        );
    }
}
