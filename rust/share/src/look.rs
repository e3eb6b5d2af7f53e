//! When a share fetch is answered, and what it waits for.

use crate::Limits;
use crate::planted::{Bug, is_planted};

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
        seen.acquired && !is_planted(Bug::EnoughIgnored)
    }

    /// Whether an expired fetch still waits for records that a thread is reading for it: they are already acquired.
    pub fn waits_for_disk(&self, seen: Seen) -> bool {
        seen.partitions == 0 && self.wants_records()
    }
}

/// What a look consults, and acquires from.
pub trait Sight {
    /// The records and errors that a look brought.
    type Found;
    /// An error that ends the request.
    type Error;

    /// Read or change the wait state of the fetch.
    fn state<R>(&mut self, work: impl FnOnce(&mut Look) -> R) -> R;
    /// Return the bytes that the response may hold; `None`: any number.
    fn room(&mut self) -> Option<u64>;
    /// Whether the partitions have so many readable bytes together.
    fn has_bytes(&mut self, bytes: i64) -> Result<bool, Self::Error>;
    /// Acquire records, and collect the errors of partitions.
    fn gather(&mut self) -> Result<(Self::Found, Seen), Self::Error>;
    /// Whether a thread reads records for this fetch.
    fn is_reading(&mut self) -> Result<bool, Self::Error>;
}

/// Look once; return what the response brings, or `None` if the fetch goes on waiting.
///
/// `is_late`: its time is over, so that it waits only for disk reads. Else it waits for records, of `min_bytes` if the request
/// asks for more than one.
pub fn look<S: Sight>(sight: &mut S, is_late: bool) -> Result<Option<S::Found>, S::Error> {
    if let Some(room) = sight.room()
        && !sight.state(|look| look.has_room(room))
    {
        return Ok(None);
    }
    if is_late {
        let (found, seen) = sight.gather()?;
        let may_wait = sight.state(|look| look.waits_for_disk(seen));
        let waits = may_wait && sight.is_reading()?;
        return Ok((!waits).then_some(found));
    }
    let least_bytes = sight.state(|look| look.least_bytes());
    if let Some(least_bytes) = least_bytes
        && !sight.has_bytes(least_bytes)?
    {
        return Ok(None);
    }
    let (found, seen) = sight.gather()?;
    let is_enough = sight.state(|look| look.is_enough(seen));
    Ok(is_enough.then_some(found))
}

/// Return what can be acquired now, and the errors of partitions: one of them has failed, which ends the wait.
///
/// A fetch that was held may never have looked, so its room is unknown until here.
pub fn last_look<S: Sight>(sight: &mut S) -> Result<S::Found, S::Error> {
    if let Some(room) = sight.room() {
        sight.state(|look| look.has_room(room));
    }
    let (found, _) = sight.gather()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fetch with fixed results; it counts acquisitions.
    struct Fixed {
        look: Look,
        room: Option<u64>,
        bytes: i64,
        seen: Seen,
        is_reading: bool,
        gathered: usize,
    }

    impl Sight for Fixed {
        type Found = ();
        type Error = ();

        fn state<R>(&mut self, work: impl FnOnce(&mut Look) -> R) -> R {
            work(&mut self.look)
        }

        fn room(&mut self) -> Option<u64> {
            self.room
        }

        fn has_bytes(&mut self, bytes: i64) -> Result<bool, ()> {
            Ok(self.bytes >= bytes)
        }

        fn gather(&mut self) -> Result<((), Seen), ()> {
            self.gathered += 1;
            Ok(((), self.seen))
        }

        fn is_reading(&mut self) -> Result<bool, ()> {
            Ok(self.is_reading)
        }
    }

    fn fixed() -> Fixed {
        Fixed {
            look: Look::new(Limits {
                min_bytes: 100,
                ..LIMITS
            }),
            room: Some(1 << 20),
            bytes: 500,
            seen: RECORDS,
            is_reading: false,
            gathered: 0,
        }
    }

    /// True if the fetch is answered; true if it has acquired.
    fn looked(change: impl FnOnce(&mut Fixed), is_late: bool) -> (bool, bool) {
        let mut fixed = fixed();
        change(&mut fixed);
        let found = look(&mut fixed, is_late).expect("nothing fails");
        (found.is_some(), fixed.gathered > 0)
    }

    #[test]
    fn a_fetch_is_answered_once_it_has_enough() {
        assert_eq!(looked(|_| {}, false), (true, true));
        assert_eq!(looked(|it| it.bytes = 99, false), (false, false));
        assert_eq!(looked(|it| it.seen = NOTHING, false), (false, true));
        assert_eq!(looked(|it| it.seen = AN_ERROR, false), (false, true));
        // Without memory for the response nothing is acquired, even after the deadline
        for is_late in [false, true] {
            assert_eq!(looked(|it| it.room = Some(0), is_late), (false, false));
        }
        assert_eq!(looked(|it| it.room = None, false), (true, true));
    }

    #[test]
    fn a_late_fetch_waits_for_the_disk_alone() {
        assert_eq!(looked(|it| it.bytes = 0, true), (true, true));
        assert_eq!(looked(|it| it.seen = NOTHING, true), (true, true));
        let reading = |it: &mut Fixed| (it.seen, it.is_reading) = (NOTHING, true);
        assert_eq!(looked(reading, true), (false, true));
        assert_eq!(looked(|it| it.is_reading = true, true), (true, true));
    }

    #[test]
    fn a_partition_that_fails_before_the_first_look_does_not_lift_the_bound_of_memory() {
        for (room, expected) in [(Some(5), Some(5)), (Some(0), None), (None, Some(1_000))] {
            let mut fixed = Fixed { room, ..fixed() };
            last_look(&mut fixed).expect("nothing fails");
            assert_eq!(fixed.gathered, 1);
            let limits = fixed.look.begin();
            assert_eq!(limits.map(|limits| limits.max_bytes), expected);
        }
    }

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
