//! A slab: values under small numbers that are reused. It grows by chunks, so that values never move and no chunk is
//! half empty.

/// Initial capacity for freed numbers.
const ROOM: usize = 16;

/// Values under small numbers, in chunks of `CHUNK`.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T, const CHUNK: usize> {
    /// Arrays, so that one comparison proves a number in bounds.
    chunks: Vec<Box<[T; CHUNK]>>,
    free: Vec<u32>,
    next: u32,
    /// The number of pinned values.
    pinned: u32,
}

impl<T, const CHUNK: usize> Default for Slab<T, CHUNK> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
            next: 0,
            pinned: 0,
        }
    }
}

impl<T: Default, const CHUNK: usize> Slab<T, CHUNK> {
    /// Stores a value; freed numbers are reused, latest first.
    #[allow(
        clippy::inline_always,
        reason = "passed through memory, a value would be copied in other sizes than it was written: a store-forwarding stall"
    )]
    #[inline(always)]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        debug_assert!(
            (self.pinned.saturating_sub(1)..self.next).contains(&index),
            "an unused or pinned number"
        );
        self[index] = value;
        index
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        let index = self.next;
        assert!(index < u32::MAX, "the last number means none");
        self.next += 1;
        if index as usize / CHUNK == self.chunks.len() {
            let chunk = std::array::from_fn(|_| T::default());
            self.chunks.push(Box::new(chunk));
        }
        assert!(
            (index as usize) < CHUNK * self.chunks.len(),
            "a number without a place"
        );
        index
    }

    /// Stores a value permanently, under one of the first numbers.
    pub(crate) fn pin(&mut self, value: T) -> u32 {
        debug_assert_eq!(self.next, self.pinned, "others have come before");
        self.pinned += 1;
        let index = self.insert(value);
        assert_eq!(index + 1, self.pinned, "the first numbers are pinned");
        index
    }
}

impl<T, const CHUNK: usize> Slab<T, CHUNK> {
    /// Frees a number; its value stays until the number is reused.
    #[inline]
    pub(crate) fn free(&mut self, index: u32) {
        debug_assert!(
            (self.pinned..self.next).contains(&index),
            "an unused or pinned number"
        );
        debug_assert!(
            self.free.len() < (self.next - self.pinned) as usize,
            "more is freed than was given"
        );
        if self.free.capacity() == 0 {
            self.free.reserve(ROOM);
        }
        self.free.push(index);
        if self.chunks.len() > 1 && self.free.len() == (self.next - self.pinned) as usize {
            // all is free: start over, which releases the memory of a burst
            self.free.clear();
            self.free.shrink_to(ROOM);
            self.chunks.truncate(1);
            self.next = self.pinned;
        }
    }

    /// The numbers of matching values in order, freed numbers included. Matches are unpredictable, so they are
    /// collected without branches, several at a time.
    pub(crate) fn find_all(&self, wanted: impl Fn(&T) -> bool) -> impl Iterator<Item = u32> {
        const { assert!(CHUNK <= u32::BITS as usize, "a bit for each") };
        let chunks = (0..self.next).step_by(CHUNK).zip(&self.chunks);
        chunks.flat_map(move |(first, chunk)| {
            let used = chunk.len().min((self.next - first) as usize);
            let marked = chunk[..used].iter().enumerate();
            let mut found = marked.fold(0_u32, |found, (at, value)| {
                found | u32::from(wanted(value)) << at
            });
            std::iter::from_fn(move || {
                let at = found.trailing_zeros();
                let any = found != 0;
                found &= found.wrapping_sub(1);
                any.then_some(first + at)
            })
        })
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        (index < self.next).then(|| &self[index])
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.len() * size_of::<[T; CHUNK]>()
            + self.chunks.capacity() * size_of::<Box<[T; CHUNK]>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

impl<T, const CHUNK: usize> std::ops::Index<u32> for Slab<T, CHUNK> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

impl<T, const CHUNK: usize> std::ops::IndexMut<u32> for Slab<T, CHUNK> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}
