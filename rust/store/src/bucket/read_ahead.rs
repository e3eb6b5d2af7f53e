//! How many objects of the journal are read at a time: many small ones, few large ones.

/// The most objects read at a time.
const OBJECTS_MAX: u64 = 64;
/// The size that all objects read at a time should have together.
const BYTES: u64 = 32 << 20;

/// How many objects to read at a time, by the size of those read so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadAhead {
    /// A running average.
    object_bytes: u64,
}

impl Default for ReadAhead {
    fn default() -> Self {
        // as large as usual objects may be
        Self {
            object_bytes: 4 << 20,
        }
    }
}

impl ReadAhead {
    /// Take the size of an object into account.
    pub(super) fn note(&mut self, bytes: usize) {
        self.object_bytes = (self.object_bytes * 7 + bytes as u64) / 8;
    }

    /// Return how many objects to read next.
    pub(super) fn objects(self) -> u64 {
        (BYTES / self.object_bytes.max(1)).clamp(1, OBJECTS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{OBJECTS_MAX, ReadAhead};

    #[test]
    fn many_small_objects_are_read_at_a_time_and_few_large_ones() {
        let mut ahead = ReadAhead::default();
        assert_eq!(ahead.objects(), 8);
        for _ in 0..40 {
            ahead.note(1000);
        }
        assert_eq!(ahead.objects(), OBJECTS_MAX);
        for _ in 0..40 {
            ahead.note(8 << 20);
        }
        assert_eq!(ahead.objects(), 4);
        for _ in 0..40 {
            ahead.note(1 << 30);
        }
        assert_eq!(ahead.objects(), 1);
    }
}
