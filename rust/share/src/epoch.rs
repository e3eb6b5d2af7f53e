//! Share-session epochs: each request carries the next epoch, so that none is processed twice or out of order.

use std::fmt;

use crate::planted::{Bug, is_planted};

/// The epoch of a request that opens a session.
pub const INITIAL_EPOCH: i32 = 0;
/// The epoch of a request that ends a session.
pub const FINAL_EPOCH: i32 = -1;

/// Return the next epoch; it wraps around to 1, because 0 opens a session.
pub fn next_epoch(epoch: i32) -> i32 {
    debug_assert!(epoch >= INITIAL_EPOCH, "none follows the last request");
    epoch.checked_add(1).unwrap_or(1)
}

/// A request with an unexpected session epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The expected epoch.
    pub expected: i32,
    /// The request's epoch.
    pub found: i32,
}

impl fmt::Display for Unexpected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unexpected { expected, found } = self;
        write!(out, "expected epoch {expected}, the request has {found}")
    }
}

impl std::error::Error for Unexpected {}

/// Return the epoch that a session expects after a request; it expected `expected` before.
pub(crate) fn following(expected: i32, found: i32) -> Result<i32, Unexpected> {
    if found == FINAL_EPOCH {
        return Ok(expected);
    }
    let repeats = is_planted(Bug::EpochRepeats) && next_epoch(found.max(0)) == expected;
    if found == INITIAL_EPOCH || found != expected && !repeats {
        return Err(Unexpected { expected, found });
    }
    let next = next_epoch(found);
    debug_assert!(
        next > INITIAL_EPOCH,
        "no request opens a session anew by going on"
    );
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    #[test]
    fn a_request_goes_on_with_the_epoch_that_is_expected() {
        let mut session: Session<u8, ()> = Session::default();
        for (epoch, goes_on, then) in [
            (0, false, 1),
            (2, false, 1),
            (1, true, 2),
            (1, false, 2),
            (FINAL_EPOCH, true, 2),
            (2, true, 3),
            (-2, false, 3),
        ] {
            assert_eq!(session.resume(epoch).is_ok(), goes_on, "{epoch}");
            assert_eq!(session.epoch, then, "{epoch}");
        }
        let refused = session.resume(7).unwrap_err();
        assert_eq!(refused.to_string(), "expected epoch 3, the request has 7");
        session.epoch = i32::MAX;
        assert_eq!(session.resume(i32::MAX), Ok(()));
        assert_eq!(session.epoch, 1);
    }
}
