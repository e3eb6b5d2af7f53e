//! Result codes and messages.

use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt;

use sharecore_engine::{Refusal, RefusalKind};

/// The result of a call. Positive codes are Kafka's error codes; negative ones mean a bug in the caller or the library.
/// After anything but OK and TOO_SMALL the partition is unchanged, except that renewals before a refused
/// acknowledgement are kept.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharecoreStatus {
    /// Success.
    Ok = 0,
    /// Refused: the request is invalid (Kafka's INVALID_REQUEST).
    InvalidRequest = 42,
    /// Refused: the records' state does not allow it (Kafka's INVALID_RECORD_STATE).
    InvalidRecordState = 121,
    /// A required pointer is null, or misaligned.
    BadPointer = -1,
    /// The partition was freed or never created.
    BadPartition = -2,
    /// An invalid argument: a name that is not UTF-8, a limit of zero, ranges out of order.
    BadArgument = -3,
    /// Success, but the array is too small: it has the first elements, the count is the total.
    TooSmall = -4,
    /// The engine failed in this call or an earlier one; the partition can only be freed.
    Poisoned = -5,
    /// An invariant of the engine is broken.
    Broken = -6,
}

/// Why a call failed.
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

/// Stores the message for `sharecore_last_error`.
pub(crate) fn ended(answer: Result<(), Failure>) -> SharecoreStatus {
    match answer {
        Ok(()) => SharecoreStatus::Ok,
        Err(Failure { status, message }) => {
            // a call from the destructor of another thread local is too late to store a message
            let _ = LAST_ERROR.try_with(|last| last.replace(message));
            status
        }
    }
}

/// The message of this thread's last failed call, truncated to fit and zero-terminated.
///
/// Returns the size of the whole message with its zero; 1 if no call has failed. `out` may be null for `capacity` 0.
///
/// # Safety
/// `out` must point to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_last_error(out: *mut c_char, capacity: usize) -> usize {
    let copied = LAST_ERROR.try_with(|last| {
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
    copied.unwrap_or(1)
}
