//! A slab: values under small numbers that are used again. It grows by chunks, so that nothing is ever moved or half
//! empty.

const CHUNK: usize = 256;
/// Room in the first chunk to begin with, and for numbers that are freed.
const ROOM: usize = 16;

/// Values under small numbers.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
    next: u32,
    /// How many of the first numbers stay.
    pinned: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
            next: 0,
            pinned: 0,
        }
    }
}

impl<T> Slab<T> {
    /// Keeps a value; a number that was freed is used again, latest first.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self[index] = value;
            return index;
        }
        let index = self.next;
        self.next += 1;
        let at = index as usize / CHUNK;
        if at == self.chunks.len() {
            // the first chunk grows as it needs: most partitions hold little
            let capacity = if at == 0 { ROOM } else { CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        self.chunks[at].push(value);
        index
    }

    /// Keeps a value for good, under one of the first numbers.
    pub(crate) fn pin(&mut self, value: T) -> u32 {
        debug_assert_eq!(self.next, self.pinned, "others have come before");
        self.pinned += 1;
        self.insert(value)
    }

    /// Frees a number; its value stays until the number is used again.
    #[inline]
    pub(crate) fn free(&mut self, index: u32) {
        if self.free.capacity() == 0 {
            self.free.reserve(ROOM);
        }
        self.free.push(index);
        if self.chunks.len() > 1 && self.free.len() == (self.next - self.pinned) as usize {
            // everything is free: start over, which releases the memory of a burst
            self.free.clear();
            self.free.shrink_to(CHUNK);
            self.chunks.truncate(1);
            self.chunks[0].truncate(self.pinned as usize);
            self.next = self.pinned;
        }
    }

    /// All values under their numbers, those under freed numbers included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(self.chunks.iter().flatten())
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.chunks
            .get(index as usize / CHUNK)?
            .get(index as usize % CHUNK)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks
            .iter()
            .map(|chunk| chunk.capacity() * size_of::<T>())
            .sum::<usize>()
            + self.chunks.capacity() * size_of::<Vec<T>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}
