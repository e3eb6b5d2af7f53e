//! Dead letters: rejected, expired and repeatedly failed records wait for their dead-letter records before they are
//! archived (KIP-1191).

use std::convert::Infallible;

use super::write::{StateBatch, Write};
use super::{Config, Partition};
use crate::inflight::Cell;
use crate::offset::{Offset, OffsetRange};
use crate::record_state::RecordState;

/// Why a record becomes a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterCause {
    /// A member rejected it.
    Rejected,
    /// It was returned at its delivery limit.
    DeliveryLimit,
    /// Its time to live ended before it was delivered or while it was acquired.
    Expired,
}

/// Neighboring records that each wait for a dead-letter record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// First offset.
    pub first: Offset,
    /// Last offset, included.
    pub last: Offset,
    /// How often the records were delivered.
    pub delivery_count: u16,
    /// The cause; guessed from the delivery count after a load, as it is not persisted.
    pub cause: DeadLetterCause,
}

/// Dead letters due and not taken yet.
#[derive(Debug, Default)]
pub(super) struct DeadLetters {
    due: Vec<DeadLetter>,
    /// Expired records whose write is open.
    expired: Vec<OffsetRange>,
}

impl DeadLetters {
    fn push(&mut self, range: OffsetRange, delivery_count: u16, cause: DeadLetterCause) {
        debug_assert!(!range.is_empty(), "an empty range");
        let OffsetRange { first, last } = range;
        match self.due.last_mut() {
            Some(before)
                if before.last + 1 == first
                    && (before.delivery_count, before.cause) == (delivery_count, cause) =>
            {
                before.last = last;
            }
            _ => self.due.push(DeadLetter {
                first,
                last,
                delivery_count,
                cause,
            }),
        }
    }

    /// The transition of a piece is durable.
    #[inline]
    pub(super) fn committed(&mut self, piece: OffsetRange, cell: Cell) {
        debug_assert!(cell.is_pending(), "already ended");
        if cell.state() == RecordState::Archiving {
            let cause = if cell.is_rejected() {
                DeadLetterCause::Rejected
            } else {
                DeadLetterCause::DeliveryLimit
            };
            self.push(piece, cell.delivery_count(), cause);
        }
    }

    /// The write that is about to begin archives these records because they expired.
    pub(super) fn note_expired(&mut self, piece: OffsetRange) {
        debug_assert!(!piece.is_empty(), "nothing expires");
        self.expired.push(piece);
    }

    /// The write of expired locks or records has ended. Its batches are ascending.
    pub(super) fn expired(&mut self, batches: &[StateBatch]) {
        debug_assert!(batches.is_sorted_by_key(|batch| batch.first));
        let mut noted = std::mem::take(&mut self.expired);
        noted.sort_unstable_by_key(|piece| piece.first);
        let mut noted = noted.into_iter().peekable();
        for batch in batches {
            if batch.state != RecordState::Archiving {
                continue;
            }
            let range = OffsetRange::new(batch.first, batch.last);
            while let Some(other) = noted.next_if(|piece| piece.first < range.first) {
                self.expired.push(other);
            }
            let mut first = range.first;
            while let Some(piece) = noted.next_if(|piece| piece.last <= range.last) {
                let before = OffsetRange::new(first, piece.first - 1);
                if !before.is_empty() {
                    self.given_up(before, batch.delivery_count);
                }
                debug_assert!(first <= piece.first, "two dead letters for one record");
                self.push(piece, batch.delivery_count, DeadLetterCause::Expired);
                first = piece.last + 1;
            }
            let rest = OffsetRange::new(first, range.last);
            if !rest.is_empty() {
                self.given_up(rest, batch.delivery_count);
            }
        }
        self.expired.extend(noted);
    }

    /// Records are free and at their delivery limit.
    pub(super) fn given_up(&mut self, piece: OffsetRange, delivery_count: u16) {
        self.push(piece, delivery_count, DeadLetterCause::DeliveryLimit);
    }

    /// The loaded state holds records whose dead letter is due.
    pub(super) fn found(&mut self, batch: &StateBatch, config: &Config) {
        assert_eq!(batch.state, RecordState::Archiving, "no letter is due");
        let cause = if batch.delivery_count >= config.max_delivery_count {
            DeadLetterCause::DeliveryLimit
        } else {
            DeadLetterCause::Rejected
        };
        self.push(
            OffsetRange::new(batch.first, batch.last),
            batch.delivery_count,
            cause,
        );
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.due.capacity() * size_of::<DeadLetter>()
            + self.expired.capacity() * size_of::<OffsetRange>()
    }
}

impl Partition {
    /// The dead letters due and not taken yet, oldest first.
    pub fn dead_letters(&self) -> &[DeadLetter] {
        &self.dead_letters.due
    }

    /// Takes the dead letters that became due since the last call, oldest first.
    ///
    /// Each stays due until [`finish_archiving`](Self::finish_archiving) is called for it; reloading the partition
    /// returns it again.
    pub fn take_dead_letters(&mut self) -> Vec<DeadLetter> {
        std::mem::take(&mut self.dead_letters.due)
    }

    /// The dead letters of `first..=last` are written, or never will be: archive the records that waited for them.
    ///
    /// The records are archived at once and for good, whether the write succeeds or not; if it fails, a dead letter may
    /// be written twice after a reload. The start offset moves when the write has ended, either way.
    pub fn finish_archiving(&mut self, first: Offset, last: Offset) -> Option<Write<'_>> {
        let (start, settled) = (self.start, self.complete);
        let mark = self.writes.mark();
        let Self {
            map,
            complete,
            overtaken,
            writes,
            ..
        } = self;
        // the caller's numbers are unchecked; no record has a negative offset
        let range = OffsetRange::new(first.max(0), last);
        let Ok(()) = map.rewrite(range, |piece, cell| {
            if cell.state() != RecordState::Archiving || cell.is_pending() {
                return Ok::<_, Infallible>(cell);
            }
            if piece.first < start {
                piece.last = piece.last.min(start - 1);
                overtaken.push(*piece);
            } else {
                *complete += piece.count();
            }
            writes.push(mark, *piece, RecordState::Archived, cell.delivery_count());
            Ok(Cell::free(RecordState::Archived, cell.delivery_count()))
        });
        debug_assert!(settled <= self.complete, "what is settled stays so");
        debug_assert_eq!(self.start, start, "it moves when the write has ended");
        self.begin_write(mark, start, true)
    }
}
