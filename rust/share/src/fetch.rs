//! The parameters of a `ShareFetch`, and which requests are refused before a fetch.

use std::borrow::Cow;
use std::fmt;

use sharecore_wire::typed::share_fetch::ShareFetchRequest;

use crate::epoch::{FINAL_EPOCH, INITIAL_EPOCH};

/// The acquire mode `record_limit` (KIP-1206); the highest one.
const RECORD_LIMIT: i8 = 1;

/// Why a request is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub Cow<'static, str>);

impl fmt::Display for Invalid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

/// Limits of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Minimum bytes for a response before `max_wait`.
    pub min_bytes: i64,
    /// Maximum bytes of records.
    pub max_bytes: i64,
    /// Records.
    pub max_records: i64,
    /// Maximum offsets of an acquired batch.
    pub batch_size: i64,
    /// Whether the number of records is a strict limit.
    pub record_limit: bool,
}

/// The parameters of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "a request says as much")]
pub struct Wanted {
    /// Its session epoch.
    pub epoch: i32,
    /// Whether it has acknowledgements.
    pub acknowledges: bool,
    /// Whether its acknowledgements may renew locks; it gets no records if so.
    pub renews: bool,
    /// Its `max_wait`.
    pub max_wait_ms: i64,
    limits: Limits,
    mode: i8,
}

impl Wanted {
    /// Reads a request.
    ///
    /// A request refused here does not change the session.
    pub fn of(request: &ShareFetchRequest<'_>) -> Result<Self, Invalid> {
        let mut partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
        let wanted = Self {
            epoch: request.share_session_epoch,
            acknowledges: partitions.any(|each| !each.acknowledgement_batches.is_empty()),
            renews: request.is_renew_ack,
            max_wait_ms: request.max_wait_ms.into(),
            limits: Limits {
                min_bytes: request.min_bytes.into(),
                max_bytes: request.max_bytes.into(),
                max_records: request.max_records.into(),
                batch_size: request.batch_size.into(),
                record_limit: request.share_acquire_mode == RECORD_LIMIT,
            },
            mode: request.share_acquire_mode,
        };
        let asks = [
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
            request.max_records,
        ];
        if wanted.renews && asks.iter().any(|asked| *asked > 0) {
            let text = "a request that renews locks must not ask for records";
            return Err(Invalid(Cow::Borrowed(text)));
        }
        if wanted.is_first() && wanted.acknowledges {
            let text = "the first request of a session acknowledges nothing";
            return Err(Invalid(Cow::Borrowed(text)));
        }
        Ok(wanted)
    }

    /// Whether it opens a share session.
    pub fn is_first(&self) -> bool {
        self.epoch == INITIAL_EPOCH
    }

    /// Whether it ends its session.
    pub fn is_last(&self) -> bool {
        self.epoch == FINAL_EPOCH
    }

    /// Refuse an unknown acquire mode if the session has partitions to fetch; the session epoch has advanced by then.
    pub fn check_mode(&self, session_is_empty: bool) -> Result<(), Invalid> {
        if self.is_last() || session_is_empty || (0..=RECORD_LIMIT).contains(&self.mode) {
            return Ok(());
        }
        let text = format!("there is no acquire mode {}", self.mode);
        Err(Invalid(Cow::Owned(text)))
    }

    /// Whether the response may contain records.
    pub fn fetches(&self) -> bool {
        // one that renews gets no partition's errors either
        !self.is_last() && !self.renews
    }

    /// Whether the response names partitions that no earlier response has named.
    pub fn names_new(&self) -> bool {
        self.limits.max_records != 0 && self.limits.max_bytes > 0 && !self.is_last()
    }

    /// Return how long it waits for records if this many partitions are refused: not at all if all are.
    pub fn wait_ms(&self, partitions: usize, refused: usize) -> i64 {
        debug_assert!(refused <= partitions, "others are refused");
        if partitions > refused {
            self.max_wait_ms
        } else {
            0
        }
    }

    /// Whether a limit is negative.
    pub fn refuses_all(&self) -> bool {
        self.limits.max_bytes < 0 && self.limits.max_records != 0
    }

    /// Return its limits, given the bytes that a response may hold.
    pub fn limits(&self, room: i64) -> Limits {
        debug_assert!(room >= 0, "less than no room");
        Limits {
            min_bytes: self.limits.min_bytes.min(room),
            max_bytes: self.limits.max_bytes.min(room),
            ..self.limits
        }
    }
}

#[cfg(test)]
mod tests {
    use sharecore_wire::typed::share_fetch::{AcknowledgementBatch, FetchPartition, FetchTopic};

    use super::*;

    fn request() -> ShareFetchRequest<'static> {
        ShareFetchRequest {
            share_session_epoch: 3,
            max_wait_ms: 500,
            min_bytes: 1,
            max_bytes: 1000,
            max_records: 10,
            batch_size: 10,
            ..ShareFetchRequest::default()
        }
    }

    fn topics(batches: &[AcknowledgementBatch<'static>]) -> Vec<FetchTopic<'static>> {
        let partition = FetchPartition {
            partition_index: 0,
            acknowledgement_batches: batches.to_vec(),
        };
        vec![FetchTopic {
            topic_id: [1; 16],
            partitions: vec![FetchPartition::default(), partition],
        }]
    }

    fn refused(request: &ShareFetchRequest<'_>) -> String {
        Wanted::of(request).expect_err("refused").to_string()
    }

    #[test]
    fn who_renews_asks_for_nothing() {
        let asks_for_nothing = ShareFetchRequest {
            is_renew_ack: true,
            max_wait_ms: 0,
            min_bytes: -1,
            max_bytes: 0,
            max_records: 0,
            ..request()
        };
        let wanted = Wanted::of(&asks_for_nothing).expect("a request that asks for nothing");
        assert!(!wanted.fetches());
        for field in 0..4 {
            let mut asks = asks_for_nothing.clone();
            *[
                &mut asks.max_wait_ms,
                &mut asks.min_bytes,
                &mut asks.max_bytes,
                &mut asks.max_records,
            ][field] = 1;
            let text = "a request that renews locks must not ask for records";
            assert_eq!(refused(&asks), text);
        }
    }

    #[test]
    fn the_first_request_acknowledges_nothing() {
        let first = ShareFetchRequest {
            share_session_epoch: INITIAL_EPOCH,
            topics: topics(&[]),
            ..request()
        };
        let wanted = Wanted::of(&first).expect("a first request");
        assert!(wanted.is_first() && !wanted.acknowledges);
        let acknowledges = ShareFetchRequest {
            topics: topics(&[AcknowledgementBatch::default()]),
            ..first
        };
        let text = "the first request of a session acknowledges nothing";
        assert_eq!(refused(&acknowledges), text);
        let later = ShareFetchRequest {
            share_session_epoch: 1,
            ..acknowledges
        };
        assert!(Wanted::of(&later).expect("a later request").acknowledges);
    }

    #[test]
    fn an_acquire_mode_counts_where_there_is_something_to_fetch() {
        for (mode, is_known) in [(-1, false), (0, true), (1, true), (2, false)] {
            let asked = ShareFetchRequest {
                share_acquire_mode: mode,
                ..request()
            };
            let wanted = Wanted::of(&asked).expect("a request");
            assert_eq!(wanted.check_mode(false).is_ok(), is_known);
            assert!(wanted.check_mode(true).is_ok());
            assert_eq!(wanted.limits(1).record_limit, mode == 1);
            let last = ShareFetchRequest {
                share_session_epoch: FINAL_EPOCH,
                ..asked
            };
            let last = Wanted::of(&last).expect("a last request");
            assert!(last.check_mode(false).is_ok());
        }
    }

    #[test]
    fn the_request_decides_what_is_returned() {
        let flags = |max_bytes, max_records, epoch| {
            let asked = ShareFetchRequest {
                max_bytes,
                max_records,
                share_session_epoch: epoch,
                ..request()
            };
            let wanted = Wanted::of(&asked).expect("a request");
            (wanted.fetches(), wanted.names_new(), wanted.refuses_all())
        };
        assert_eq!(flags(1000, 10, 3), (true, true, false));
        assert_eq!(flags(1000, 0, 3), (true, false, false));
        assert_eq!(flags(0, 10, 3), (true, false, false));
        assert_eq!(flags(-1, 10, 3), (true, false, true));
        assert_eq!(flags(-1, 0, 3), (true, false, false));
        assert_eq!(flags(1000, 10, FINAL_EPOCH), (false, false, false));
    }

    #[test]
    fn nobody_waits_for_partitions_that_are_refused() {
        let wanted = Wanted::of(&request()).expect("a request");
        assert_eq!(wanted.wait_ms(2, 1), 500);
        assert_eq!(wanted.wait_ms(2, 2), 0);
        assert_eq!(wanted.wait_ms(0, 0), 0);
    }

    #[test]
    fn an_answer_has_room_for_so_much() {
        let wanted = Wanted::of(&request()).expect("a request");
        let limits = wanted.limits(700);
        assert_eq!((limits.min_bytes, limits.max_bytes), (1, 700));
        let limits = wanted.limits(0);
        assert_eq!((limits.min_bytes, limits.max_bytes), (0, 0));
        assert_eq!(wanted.limits(i64::MAX).max_bytes, 1000);
        assert_eq!((limits.max_records, limits.batch_size), (10, 10));
    }
}
