//! How a call ended, and the words for it.

use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt;

use sharecore_engine::{Refusal, RefusalKind};

/// How a call ended. What is positive has Kafka's error codes; what is negative means a defect of the caller or of the
/// library. After anything but OK and TOO_SMALL the partition is as it was before the call, save that
/// renewals in front of what an acknowledgement was refused for stand.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharecoreStatus {
    /// Done.
    Ok = 0,
    /// Refused: the request makes no sense (Kafka's INVALID_REQUEST).
    InvalidRequest = 42,
    /// Refused: the records are not in a state that allows it (Kafka's INVALID_RECORD_STATE).
    InvalidRecordState = 121,
    /// A pointer is null that must not be, or points where its type cannot lie.
    BadPointer = -1,
    /// The partition was freed or never made.
    BadPartition = -2,
    /// An argument that no request can hold: a name that is not UTF-8, a limit of zero, ranges out of order.
    BadArgument = -3,
    /// Done, but the array is too small: its first elements are there, the count tells how many there are.
    TooSmall = -4,
    /// The engine failed in this call or an earlier one; the partition can only be freed.
    Poisoned = -5,
    /// An invariant of the engine is broken.
    Broken = -6,
}

/// Why a call did not end well.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: SharecoreStatus,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(status: SharecoreStatus, message: impl fmt::Display) -> Self {
        Self {
            status,
            message: message.to_string(),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.kind() {
            RefusalKind::InvalidRecordState => SharecoreStatus::InvalidRecordState,
            RefusalKind::InvalidRequest => SharecoreStatus::InvalidRequest,
        };
        Self::new(status, refusal)
    }
}

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the message for `sharecore_last_error`.
pub(crate) fn ended(answer: Result<(), Failure>) -> SharecoreStatus {
    match answer {
        Ok(()) => SharecoreStatus::Ok,
        Err(Failure { status, message }) => {
            // a call from the destructor of another thread local comes too late to leave a message
            let _ = LAST_ERROR.try_with(|last| last.replace(message));
            status
        }
    }
}

/// The message of this thread's last call that did not end with OK: copied, as much of it as fits, with a zero behind it.
///
/// Returns the bytes that the whole message takes, the zero included; 1 when nothing has failed yet. `out` may be null
/// when `capacity` is 0.
///
/// # Safety
/// `out` must point to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_last_error(out: *mut c_char, capacity: usize) -> usize {
    let told = LAST_ERROR.try_with(|last| {
        let last = last.borrow();
        if !out.is_null() && capacity > 0 {
            let mut fits = last.len().min(capacity - 1);
            while !last.is_char_boundary(fits) {
                fits -= 1;
            }
            // SAFETY: `fits` bytes and the zero are within the caller's `capacity`
            unsafe {
                out.copy_from_nonoverlapping(last.as_ptr().cast(), fits);
                out.add(fits).write(0);
            }
        }
        last.len() + 1
    });
    told.unwrap_or(1)
}
