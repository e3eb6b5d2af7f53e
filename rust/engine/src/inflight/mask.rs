//! One bit for each run of a leaf.

/// A set of runs by their index in a leaf. Valid for leaves of up to 64 runs: an oversized leaf is recounted when it is
/// split. Shifts wrap, as a range check would cost more than the shift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mask(u64);

impl Mask {
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The first run from `from`.
    pub(super) fn next(self, from: usize) -> Option<usize> {
        let rest = self.from(from).0;
        (rest != 0).then(|| from + rest.trailing_zeros() as usize)
    }

    /// The runs before `at`.
    pub(super) fn before(self, at: usize) -> Self {
        Self(self.0 & !Self::high(at))
    }

    /// The runs from `at`, counted from there.
    pub(super) fn from(self, at: usize) -> Self {
        Self(self.0.wrapping_shr(at as u32))
    }

    /// These runs, and those of `others` counted from `at`.
    pub(super) fn and_at(self, at: usize, others: Self) -> Self {
        Self(self.0 | others.0.wrapping_shl(at as u32))
    }

    /// This set after a run is inserted before the one at `at`.
    pub(super) fn inserted(self, at: usize, belongs: bool) -> Self {
        self.before(at)
            .and_at(at, belongs.into())
            .and_at(at + 1, self.from(at))
    }

    /// This set after the run at `at` is removed.
    pub(super) fn removed(self, at: usize) -> Self {
        self.before(at).and_at(at, self.from(at).from(1))
    }

    /// This set with or without the run at `at`.
    pub(super) fn with(self, at: usize, belongs: bool) -> Self {
        let bit = 1_u64.wrapping_shl(at as u32);
        Self(self.0 & !bit).and_at(at, belongs.into())
    }

    /// This set after the run at `at` is cut: the piece belongs or not; the parts left at its `head` and `tail` are
    /// unchanged.
    pub(super) fn cut(self, at: usize, head: bool, tail: bool, belongs: bool) -> Self {
        let was = self.from(at).0 & 1 != 0;
        let (part, end) = (usize::from(head), usize::from(head) + usize::from(tail));
        let parts = Self(u64::from(head & was))
            .and_at(end, (tail & was).into())
            .and_at(part, belongs.into());
        self.before(at)
            .and_at(at, parts)
            .and_at(at + end + 1, self.from(at).from(1))
    }

    fn high(at: usize) -> u64 {
        u64::MAX.wrapping_shl(at as u32)
    }
}

impl From<bool> for Mask {
    /// The first run, or nothing.
    fn from(belongs: bool) -> Self {
        Self(belongs.into())
    }
}

impl FromIterator<bool> for Mask {
    fn from_iter<I: IntoIterator<Item = bool>>(belongs: I) -> Self {
        let bits = belongs.into_iter().take(u64::BITS as usize);
        Self(
            bits.enumerate()
                .fold(0, |mask, (at, belongs)| mask | u64::from(belongs) << at),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_list_up_to_a_full_leaf() {
        for len in [0, 1, 2, 31, 62, 63, 64_usize] {
            let list: Vec<bool> = (0..len).map(|at| at % 5 == 0 || at % 7 == 3).collect();
            let mask: Mask = list.iter().copied().collect();
            for at in 0..len {
                let next = (at..len).find(|&at| list[at]);
                assert_eq!(mask.next(at), next, "from {at} of {len}");
                let parts = mask.before(at).and_at(at, mask.from(at));
                assert_eq!(parts, mask, "parted at {at} of {len}");
                let mut less = list.clone();
                less.remove(at);
                assert_eq!(mask.removed(at), less.into_iter().collect());
                for belongs in [false, true] {
                    let mut other = list.clone();
                    other[at] = belongs;
                    assert_eq!(mask.with(at, belongs), other.into_iter().collect());
                    for (head, tail) in [(true, false), (false, true), (true, true)] {
                        let (was, mut cut) = (list[at], list.clone());
                        let left = [(head, was), (true, belongs), (tail, was)];
                        cut.splice(
                            at..=at,
                            left.iter().filter(|part| part.0).map(|part| part.1),
                        );
                        if cut.len() <= 64 {
                            assert_eq!(
                                mask.cut(at, head, tail, belongs),
                                cut.into_iter().collect()
                            );
                        }
                    }
                }
            }
            for (at, belongs) in (0..=len).flat_map(|at| [(at, false), (at, true)]) {
                if len < 64 {
                    let mut more = list.clone();
                    more.insert(at, belongs);
                    assert_eq!(mask.inserted(at, belongs), more.into_iter().collect());
                }
            }
        }
    }
}
