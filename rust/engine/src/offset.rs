//! Offsets of a log and closed ranges of them.

/// An offset in a log.
pub type Offset = i64;

/// The highest offset that a record may have: a window behind it still has an end, and an offset behind that.
pub(crate) const OFFSET_MAX: Offset = Offset::MAX - 2;

const _: () = assert!(
    OFFSET_MAX < Offset::MAX - 1,
    "a window has an end, and an offset behind it"
);

/// The offset after one that a record may have. This cannot wrap, and to ask whether it does would cost a branch wherever
/// runs meet.
pub(crate) fn after(offset: Offset) -> Offset {
    debug_assert!(offset <= OFFSET_MAX + 1, "no record has this offset");
    offset.wrapping_add(1)
}

/// The offset before one that a record may have, as [`after`].
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

    /// How many offsets the range holds; 0 for an empty one.
    pub fn count(self) -> i64 {
        (self.last - self.first + 1).max(0)
    }

    /// How many offsets a range holds that is not empty.
    pub(crate) fn length(self) -> i64 {
        debug_assert!(!self.is_empty(), "a range of something");
        let length = after(self.last).wrapping_sub(self.first);
        debug_assert!(length > 0, "more offsets than there can be: {self:?}");
        length
    }

    /// Whether nothing lies in the range.
    pub fn is_empty(self) -> bool {
        self.last < self.first
    }

    /// The offsets in both ranges; may be empty.
    #[must_use]
    pub fn clip(self, other: Self) -> Self {
        Self::new(self.first.max(other.first), self.last.min(other.last))
    }
}
