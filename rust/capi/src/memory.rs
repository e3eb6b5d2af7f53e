//! The caller's memory: pointers are checked as far as possible, then used as slices.

use std::ffi::c_char;

use crate::status::{Failure, SharecoreStatus};

fn checked<T>(pointer: *const T, count: usize, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::new(
            SharecoreStatus::BadPointer,
            format_args!("{what} is null"),
        ));
    }
    if !pointer.is_aligned() {
        return Err(Failure::new(
            SharecoreStatus::BadPointer,
            format_args!("{what} is not aligned"),
        ));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::new(
            SharecoreStatus::BadArgument,
            format_args!("{what} cannot have {count} elements"),
        ));
    }
    Ok(())
}

/// An array of the caller; null for empty.
///
/// # Safety
/// `pointer` must be null or point to `count` elements that do not change during the call.
pub(crate) unsafe fn array<'a, T>(
    pointer: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    checked(pointer, count, what)?;
    // SAFETY: checked above as far as possible; the rest is promised by the caller
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// The name of a member.
///
/// # Safety
/// As for [`array`].
pub(crate) unsafe fn name<'a>(pointer: *const c_char, length: usize) -> Result<&'a str, Failure> {
    // SAFETY: promised by the caller
    let bytes = unsafe { array(pointer.cast::<u8>(), length, "member") }?;
    std::str::from_utf8(bytes)
        .map_err(|_| Failure::new(SharecoreStatus::BadArgument, "member is not UTF-8"))
}

/// A struct of the caller.
///
/// # Safety
/// `pointer` must be null or point to a value that does not change during the call.
pub(crate) unsafe fn one<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    checked(pointer, 1, what)?;
    // SAFETY: not null and aligned; the rest is promised by the caller
    Ok(unsafe { &*pointer })
}

/// The destination of a result. Checked before the work begins, so that no result is lost.
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// # Safety
    /// `pointer` must be null or writable until the call ends.
    pub(crate) unsafe fn new(pointer: *mut T, what: &str) -> Result<Self, Failure> {
        checked(pointer, 1, what).map(|()| Self(pointer))
    }

    pub(crate) fn put(&self, value: T) {
        // SAFETY: checked in `new`; the destination is plain data or uninitialized
        unsafe { self.0.write(value) }
    }
}

/// The destination of a list: an array with its capacity, and its count.
pub(crate) struct List<T> {
    out: *mut T,
    capacity: usize,
    count: Place<usize>,
}

impl<T> List<T> {
    /// # Safety
    /// `out` must point to `capacity` writable elements, `count` must be null or writable, until the call ends.
    pub(crate) unsafe fn new(
        out: *mut T,
        capacity: usize,
        count: *mut usize,
    ) -> Result<Self, Failure> {
        if capacity > 0 {
            checked(out, capacity, "out")?;
        }
        // SAFETY: promised by the caller
        let count = unsafe { Place::new(count, "count") }?;
        count.put(0);
        Ok(Self {
            out,
            capacity,
            count,
        })
    }

    /// Copies what fits; the count is the total.
    pub(crate) fn put(&self, items: impl ExactSizeIterator<Item = T>) -> Result<(), Failure> {
        let count = items.len();
        self.count.put(count);
        for (index, item) in items.take(self.capacity).enumerate() {
            // SAFETY: `index` is below the capacity that the caller gave
            unsafe { self.out.add(index).write(item) }
        }
        if count > self.capacity {
            let capacity = self.capacity;
            return Err(Failure::new(
                SharecoreStatus::TooSmall,
                format_args!("the array holds {capacity} elements, {count} are needed"),
            ));
        }
        Ok(())
    }
}
