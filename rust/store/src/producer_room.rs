//! Bounds the memory for the producers of all logs.
//!
//! Clients choose their producer IDs. If there are too many, the log with the most loses the longest idle ones: filling
//! one log takes nothing from the others.

/// Approximate memory of a producer in one log, with all its remembered batches.
pub(crate) const PRODUCER_BYTES: usize = 350;

/// How many producers may be remembered, and how many more may be added before the next count.
#[derive(Debug)]
pub(crate) struct ProducerRoom {
    max: usize,
    left: usize,
}

impl ProducerRoom {
    pub(crate) fn new(bytes_max: usize) -> Self {
        const { assert!(PRODUCER_BYTES > 0) };
        let max = (bytes_max / PRODUCER_BYTES).max(1);
        Self { max, left: max }
    }

    /// Adds one; returns whether all must be counted.
    pub(crate) fn take(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// How many each log may keep, given the counts per log; `None` if all may stay.
    ///
    /// Frees an eighth of the room, so that not every further producer triggers work.
    pub(crate) fn share(&self, counts: &mut [usize]) -> Option<usize> {
        let total: usize = counts.iter().sum();
        if total < self.max {
            return None;
        }
        counts.sort_unstable();
        let mut room = self.max - self.max / 8;
        for (place, count) in counts.iter().enumerate() {
            let share = room / (counts.len() - place);
            if *count > share {
                debug_assert!(share <= self.max, "more than allowed");
                return Some(share);
            }
            debug_assert!(
                *count <= room,
                "logs with few producers leave room to others"
            );
            room -= count;
        }
        None
    }

    /// Sets the current total. Producers with open transactions stay, so it may exceed the limit.
    pub(crate) fn counted(&mut self, total: usize) {
        self.left = match self.max.saturating_sub(total) {
            0 => (self.max / 8).max(1),
            left => left,
        };
        assert!(self.left > 0, "the next one would never be counted");
    }
}

/// The highest of the `surplus` lowest values, with IDs as tie-breakers.
pub(crate) fn oldest(mut seen: Vec<(i64, i64)>, surplus: usize) -> Option<(i64, i64)> {
    let last = surplus.min(seen.len()).checked_sub(1)?;
    Some(*seen.select_nth_unstable(last).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_with_few_producers_keep_them() {
        let room = ProducerRoom::new(800 * PRODUCER_BYTES);
        assert_eq!(room.share(&mut [300, 299, 200]), None);
        assert_eq!(room.share(&mut [10, 790]), Some(690));
        assert_eq!(room.share(&mut [500, 10, 500]), Some(345));
        assert_eq!(room.share(&mut [800]), Some(700));
    }

    #[test]
    fn all_are_counted_when_the_room_is_used_up() {
        let mut room = ProducerRoom::new(16 * PRODUCER_BYTES);
        assert_eq!((0..16).filter(|_| room.take()).count(), 1);
        room.counted(14);
        assert_eq!((room.take(), room.take()), (false, true));
        room.counted(20); // only open transactions
        assert_eq!((room.take(), room.take()), (false, true));
    }

    #[test]
    fn as_many_go_as_are_too_many_also_of_one_moment() {
        assert_eq!(
            oldest(vec![(5, 3), (5, 1), (5, 2), (4, 9)], 2),
            Some((5, 1))
        );
        assert_eq!(oldest(vec![], 2), None);
        assert_eq!(oldest(vec![(1, 1)], 0), None);
    }
}
