//! When a share fetch is answered, and what it waits for.

use crate::Limits;

/// The result of one look of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Partitions for the response.
    pub partitions: usize,
    /// Whether records were acquired.
    pub acquired: bool,
}

/// The wait state of a fetch.
#[derive(Debug)]
pub struct Look {
    limits: Limits,
    /// Bytes that the response may hold.
    room: i64,
    /// Whether the response lacks memory, and whether a notification is pending.
    is_starved: bool,
    waits_for_readers: bool,
    is_gathering: bool,
}

impl Look {
    /// Create a fetch with these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            room: i64::MAX,
            is_starved: false,
            waits_for_readers: false,
            is_gathering: false,
        }
    }

    /// Whether it asks for records.
    pub fn wants_records(&self) -> bool {
        self.limits.max_bytes > 0 && self.limits.max_records > 0
    }

    /// Whether its first look is final: there is no time to wait, or nothing to wait for.
    pub fn is_late_at_once(&self, max_wait_ms: i64) -> bool {
        max_wait_ms <= 0 || !self.wants_records()
    }

    /// Set the bytes that the response may hold; false if the fetch must wait until clients have read their responses.
    pub fn has_room(&mut self, bytes: u64) -> bool {
        debug_assert!(!self.is_gathering, "room changes while it is taken");
        self.room = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.is_starved = self.room == 0 && self.wants_records();
        !self.is_starved
    }

    /// Whether to subscribe to free response memory: once per wait.
    pub fn asks_for_room(&mut self) -> bool {
        let asks = self.is_starved && !self.waits_for_readers;
        self.waits_for_readers |= asks;
        debug_assert!(
            !self.is_starved || self.waits_for_readers,
            "nobody would say that there is room"
        );
        asks
    }

    /// Note that response memory is free.
    pub fn readers_have_read(&mut self) {
        self.waits_for_readers = false;
    }

    /// Return the minimum bytes before records are acquired.
    pub fn least_bytes(&self) -> Option<i64> {
        let enough = self.limits.min_bytes.min(self.limits.max_bytes);
        (self.limits.min_bytes > 1).then_some(enough.min(self.room))
    }

    /// Return the limits for acquiring now; None if the fetch wants no records or has no room for them.
    pub fn begin(&mut self) -> Option<Limits> {
        debug_assert!(!self.is_gathering, "a fetch acquires once at a time");
        self.is_gathering = self.wants_records() && !self.is_starved;
        self.is_gathering.then(|| Limits {
            max_bytes: self.limits.max_bytes.min(self.room),
            ..self.limits
        })
    }

    /// Note that records were acquired.
    pub fn end(&mut self) {
        self.is_gathering = false;
    }

    /// Whether it is acquiring records; a partition that fails meanwhile returns its error with its records.
    pub fn is_gathering(&self) -> bool {
        self.is_gathering
    }

    /// Whether a fetch that waited is answered with the current look.
    pub fn is_enough(&self, seen: Seen) -> bool {
        debug_assert!(seen.partitions > 0 || !seen.acquired, "of a partition");
        seen.acquired
    }

    /// Whether an expired fetch still waits for records that a thread is reading for it: they are already acquired.
    pub fn waits_for_disk(&self, seen: Seen) -> bool {
        seen.partitions == 0 && self.wants_records()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        min_bytes: 1,
        max_bytes: 1_000,
        max_records: 10,
        batch_size: 10,
        record_limit: false,
    };
    const NOTHING: Seen = Seen {
        partitions: 0,
        acquired: false,
    };
    const AN_ERROR: Seen = Seen {
        partitions: 1,
        acquired: false,
    };
    const RECORDS: Seen = Seen {
        partitions: 1,
        acquired: true,
    };

    #[test]
    fn who_wants_no_records_or_has_no_time_is_late_at_once() {
        let late = |max_bytes, max_records, max_wait_ms| {
            let limits = Limits {
                max_bytes,
                max_records,
                ..LIMITS
            };
            Look::new(limits).is_late_at_once(max_wait_ms)
        };
        assert!(!late(1_000, 10, 1));
        assert!(late(1_000, 10, 0));
        assert!(late(0, 10, 1));
        assert!(late(1_000, 0, 1));
        assert!(late(-1, 10, 1));
    }

    #[test]
    fn only_records_end_a_wait_before_its_time() {
        let look = Look::new(LIMITS);
        assert!(look.is_enough(RECORDS));
        assert!(!look.is_enough(AN_ERROR));
        assert!(!look.is_enough(NOTHING));
    }

    #[test]
    fn a_wait_that_is_over_goes_on_for_what_is_being_read() {
        let look = Look::new(LIMITS);
        assert!(look.waits_for_disk(NOTHING));
        assert!(!look.waits_for_disk(AN_ERROR));
        assert!(!look.waits_for_disk(RECORDS));
        let wants_none = Look::new(Limits {
            max_records: 0,
            ..LIMITS
        });
        assert!(!wants_none.waits_for_disk(NOTHING));
    }

    #[test]
    fn a_fetch_without_room_asks_for_it_once() {
        let mut look = Look::new(LIMITS);
        assert!(!look.asks_for_room());
        assert!(!look.has_room(0));
        assert!(look.asks_for_room());
        assert!(!look.asks_for_room());
        look.readers_have_read();
        assert!(!look.has_room(0));
        assert_eq!(look.begin(), None, "a partition has failed meanwhile");
        assert!(look.asks_for_room());
        assert!(look.has_room(5));
        assert!(!look.asks_for_room());
        assert_eq!(look.begin().map(|limits| limits.max_bytes), Some(5));
        assert!(look.is_gathering());
        look.end();
        assert!(!look.is_gathering());
    }

    #[test]
    fn who_wants_no_records_needs_no_room_for_them() {
        let mut look = Look::new(Limits {
            max_bytes: 0,
            ..LIMITS
        });
        assert!(look.has_room(0));
        assert_eq!(look.begin(), None);
        assert!(!look.is_gathering());
    }

    #[test]
    fn less_than_was_asked_for_is_not_acquired_unless_there_is_no_room_for_more() {
        let mut look = Look::new(LIMITS);
        assert_eq!(look.least_bytes(), None);
        look = Look::new(Limits {
            min_bytes: 600,
            ..LIMITS
        });
        assert_eq!(look.least_bytes(), Some(600));
        assert!(look.has_room(500));
        assert_eq!(look.least_bytes(), Some(500));
        look = Look::new(Limits {
            min_bytes: 2_000,
            ..LIMITS
        });
        assert_eq!(look.least_bytes(), Some(1_000));
    }
}
