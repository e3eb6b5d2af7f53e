//! First batches of transactions that were announced to a log and not appended yet (KIP-890).
//!
//! A transaction coordinator may refuse a batch for a while, and accept a later one before the first is retried. A log
//! that does not know the producer accepts any first sequence number: it would append the second batch, and then never
//! the first. So the lowest announced number must come first.

use std::collections::HashMap;

use crate::{batch::Header, error::Refusal, producer_room::oldest};

#[derive(Debug, Clone, Copy)]
struct Announced {
    epoch: i16,
    lowest_sequence: i32,
    from_zero: bool,
    seen_ms: i64,
}

/// Announced first sequence numbers, by producer ID.
#[derive(Debug, Default)]
pub(crate) struct Announcements(HashMap<i64, Announced>);

impl Announcements {
    /// Announces a producer's batch; `from_zero` if its first one must have sequence 0. Returns whether the producer
    /// had no announcement yet.
    pub(crate) fn announce(
        &mut self,
        (id, epoch): (i64, i16),
        sequence: i32,
        from_zero: bool,
        now_ms: i64,
    ) -> bool {
        let before = self.0.len();
        let announced = self.0.entry(id).or_insert(Announced {
            epoch,
            lowest_sequence: sequence,
            from_zero,
            seen_ms: now_ms,
        });
        if epoch > announced.epoch {
            announced.epoch = epoch;
            announced.lowest_sequence = sequence;
        } else if epoch == announced.epoch {
            announced.lowest_sequence = announced.lowest_sequence.min(sequence);
        }
        debug_assert!(
            announced.epoch > epoch || announced.lowest_sequence <= sequence,
            "a batch before this one would be the first"
        );
        self.0.len() > before
    }

    /// Whether a batch may be the first; `unknown` if the log has no sequence of its producer.
    pub(crate) fn check(&self, header: &Header, unknown: bool) -> Result<(), Refusal> {
        let Some(announced) = self.0.get(&header.producer_id) else {
            return Ok(());
        };
        let (id, first) = (header.producer_id, header.base_sequence);
        if announced.from_zero && unknown && first != 0 {
            return Err(Refusal::OutOfOrderSequence(format!(
                "producer {id} begins with sequence {first}"
            )));
        }
        if first > announced.lowest_sequence {
            return Err(Refusal::OutOfOrderSequence(format!(
                "producer {id} sent sequence {first} ahead of {}",
                announced.lowest_sequence
            )));
        }
        Ok(())
    }

    /// The producer's transaction has begun in the log, or ended.
    pub(crate) fn forget(&mut self, id: i64) {
        self.0.remove(&id);
    }

    /// Drops announcements older than `before_ms`.
    pub(crate) fn expire(&mut self, before_ms: i64) {
        self.0.retain(|_, each| each.seen_ms > before_ms);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Drops the oldest announcements beyond `max`.
    pub(crate) fn keep_newest(&mut self, max: usize) {
        let surplus = self.0.len().saturating_sub(max);
        let seen = self.0.iter().map(|(id, each)| (each.seen_ms, *id));
        if surplus > 0
            && let Some(cut) = oldest(seen.collect(), surplus)
        {
            self.0.retain(|id, each| (each.seen_ms, *id) > cut);
        }
        debug_assert!(self.0.len() <= max, "more are kept than allowed");
    }
}
