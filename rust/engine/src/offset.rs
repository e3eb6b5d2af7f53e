//! Offsets of a log and closed ranges of them.

/// An offset in a log.
pub type Offset = i64;

/// The highest valid offset: a window after it still has an end, and an offset after that.
pub(crate) const OFFSET_MAX: Offset = Offset::MAX - 2;

const _: () = assert!(
    OFFSET_MAX < Offset::MAX - 1,
    "a window has an end, and an offset behind it"
);

/// The offset after a valid one. It cannot overflow, and a check would cost a branch wherever runs meet.
pub(crate) fn after(offset: Offset) -> Offset {
    debug_assert!(offset <= OFFSET_MAX + 1, "no record has this offset");
    offset.wrapping_add(1)
}

/// The offset before a valid one, as [`after`].
pub(crate) fn before(offset: Offset) -> Offset {
    debug_assert!(offset >= 0, "no record has this offset");
    offset.wrapping_sub(1)
}

/// The offsets `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetRange {
    /// The lowest offset.
    pub first: Offset,
    /// The highest offset, included.
    pub last: Offset,
}

impl OffsetRange {
    /// The range `first..=last`.
    pub fn new(first: Offset, last: Offset) -> Self {
        Self { first, last }
    }

    /// The number of offsets; 0 for an empty range.
    pub fn count(self) -> i64 {
        (self.last - self.first + 1).max(0)
    }

    /// The number of offsets of a non-empty range.
    pub(crate) fn length(self) -> i64 {
        debug_assert!(!self.is_empty(), "a range of something");
        let length = after(self.last).wrapping_sub(self.first);
        debug_assert!(length > 0, "more offsets than there can be: {self:?}");
        length
    }

    /// Whether the range is empty.
    pub fn is_empty(self) -> bool {
        self.last < self.first
    }

    /// The intersection; may be empty.
    #[must_use]
    pub fn clip(self, other: Self) -> Self {
        Self::new(self.first.max(other.first), self.last.min(other.last))
    }
}
