//! Unaligned numbers.

/// An eight-byte number without alignment: beside four-byte fields it leaves no gap.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unaligned([u8; 8]);

impl From<u64> for Unaligned {
    fn from(number: u64) -> Self {
        Self(number.to_ne_bytes())
    }
}

impl From<Unaligned> for u64 {
    fn from(number: Unaligned) -> Self {
        Self::from_ne_bytes(number.0)
    }
}

impl From<i64> for Unaligned {
    fn from(number: i64) -> Self {
        Self(number.to_ne_bytes())
    }
}

impl From<Unaligned> for i64 {
    fn from(number: Unaligned) -> Self {
        Self::from_ne_bytes(number.0)
    }
}

impl std::fmt::Debug for Unaligned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        i64::from(*self).fmt(f)
    }
}
