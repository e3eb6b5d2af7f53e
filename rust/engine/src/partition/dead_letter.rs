//! Dead letters: records that are rejected or given up wait for their letters before they are archived (KIP-1191).

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
    /// It came back at its delivery limit.
    DeliveryLimit,
    /// It was not delivered, or came back, after its time to live.
    Expired,
}

/// Neighbouring records that each wait for a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// First offset.
    pub first: Offset,
    /// Last offset, included.
    pub last: Offset,
    /// How often the records were delivered.
    pub delivery_count: u16,
    /// Why; guessed from the delivery count if the state was loaded, as persisted state does not tell.
    pub cause: DeadLetterCause,
}

/// The letters that are due and have not been taken yet.
#[derive(Debug, Default)]
pub(super) struct DeadLetters {
    due: Vec<DeadLetter>,
    /// Expired records whose write is open.
    expired: Vec<OffsetRange>,
}

impl DeadLetters {
    fn push(&mut self, range: OffsetRange, delivery_count: u16, cause: DeadLetterCause) {
        debug_assert!(!range.is_empty(), "a letter about nothing");
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
        debug_assert!(cell.is_pending(), "what has ended already");
        if cell.state() == RecordState::Archiving {
            let cause = if cell.is_rejected() {
                DeadLetterCause::Rejected
            } else {
                DeadLetterCause::DeliveryLimit
            };
            self.push(piece, cell.delivery_count(), cause);
        }
    }

    /// The write that is about to begin gives these records up because they have expired.
    pub(super) fn note_expired(&mut self, piece: OffsetRange) {
        debug_assert!(!piece.is_empty(), "nothing expires");
        self.expired.push(piece);
    }

    /// The write of locks that ran out, or of records that expired, has ended. Its batches ascend.
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
                debug_assert!(first <= piece.first, "two letters for one record");
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

    /// Loaded state holds records whose letter is due.
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
    /// The letters that are due and have not been taken yet, in the order in which they became due.
    pub fn dead_letters(&self) -> &[DeadLetter] {
        &self.dead_letters.due
    }

    /// Takes the letters that have become due since the last call, in the order in which they became due.
    ///
    /// Each stays due until [`finish_archiving`](Self::finish_archiving) is called for it; a partition that is loaded
    /// again returns it again.
    pub fn take_dead_letters(&mut self) -> Vec<DeadLetter> {
        std::mem::take(&mut self.dead_letters.due)
    }

    /// The letters of `first..=last` are written, or never will be: what waited for them is archived.
    ///
    /// The records are archived at once and stay so, whether the write succeeds or not; if it fails, a letter may be
    /// written twice, after the state is loaded again. The start offset moves when the write has ended, either way.
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
        // a caller may ask for any numbers; no record has a negative offset
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
