//! Acknowledge: accept, release, reject or renew records that a member holds (KIP-932, "Acknowledging records").

use std::hint::select_unpredictable;

use super::member::MemberId;
use super::write::Write;
use super::writes::Mark;
use super::{Partition, Side};
use crate::error::Refusal;
use crate::inflight::Cell;
use crate::offset::{Offset, OffsetRange};
use crate::record_state::{AckType, RecordState};

/// One batch of acknowledgements.
#[derive(Clone, Copy, Debug)]
pub struct AckBatch<'a> {
    /// First offset.
    pub first: Offset,
    /// Last offset, included.
    pub last: Offset,
    /// Acknowledge types by protocol number: one for all offsets, or one per offset.
    pub types: &'a [u8],
}

impl AckBatch<'_> {
    fn check(&self) -> Result<(), Refusal> {
        let &Self { first, last, types } = self;
        if last < first {
            return Err(Refusal::EmptyBatch { first, last });
        }
        if types.len() != 1 && last.checked_sub(first) != Some(types.len() as i64 - 1) {
            return Err(Refusal::AckTypeCount {
                first,
                last,
                types: types.len(),
            });
        }
        match types.iter().find(|&&id| AckType::from_id(id).is_none()) {
            Some(&id) => Err(Refusal::UnknownAckType { id }),
            None => Ok(()),
        }
    }

    /// The type of a piece's first offset; cuts the piece to the offsets of that type.
    fn type_of(&self, piece: &mut OffsetRange) -> Result<AckType, Refusal> {
        debug_assert!(
            self.first <= piece.first && piece.last <= self.last && !piece.is_empty(),
            "{piece:?} is no part of {self:?}"
        );
        if let &[id] = self.types {
            return ack_type(id);
        }
        let types =
            &self.types[(piece.first - self.first) as usize..=(piece.last - self.first) as usize];
        let alike = types.iter().take_while(|&&id| id == types[0]).count();
        piece.last = piece.first + alike as i64 - 1;
        debug_assert!(alike > 0, "a piece has a first offset");
        ack_type(types[0])
    }
}

/// Why a member cannot acknowledge a record.
#[cold]
fn refusal(offset: Offset, cell: Cell) -> Refusal {
    let state = cell.state();
    if cell.is_pending() {
        Refusal::Pending { offset }
    } else if state != RecordState::Acquired {
        Refusal::NotAcquired { offset, state }
    } else {
        Refusal::NotOwner { offset }
    }
}

fn ack_type(id: u8) -> Result<AckType, Refusal> {
    AckType::from_id(id).ok_or(Refusal::UnknownAckType { id })
}

impl Partition {
    /// Accepts, releases, rejects or renews records that `member` holds: all of them or, if the request is refused,
    /// only the renewals before the refused batch, as in Apache Kafka. Offsets before the start offset are skipped.
    pub fn acknowledge(
        &mut self,
        now_ms: i64,
        member: &str,
        batches: &[AckBatch<'_>],
    ) -> Result<Option<Write<'_>>, Refusal> {
        let (start, complete) = (self.start, self.complete);
        let member = self.leases.member(member);
        let mark = self.writes.mark();
        for batch in batches {
            if let Err(refusal) = self.acknowledge_batch(now_ms, member, batch, mark) {
                self.give_up(mark);
                debug_assert_eq!(self.complete, complete, "what is refused settles nothing");
                return Err(refusal);
            }
        }
        debug_assert_eq!(self.start, start, "it moves when the write has ended");
        debug_assert!(complete <= self.complete, "what is settled stays so");
        Ok(self.begin_write(mark, start, false))
    }

    /// Checks that the last offset is in flight, and that something is at or before the first.
    fn check_in_flight(&self, batch: &AckBatch<'_>, asked: OffsetRange) -> Result<(), Refusal> {
        let &AckBatch { first, last, .. } = batch;
        if self
            .map
            .first_offset()
            .is_none_or(|lowest| asked.first < lowest)
        {
            return Err(Refusal::NotInFlight { first, last });
        }
        if self.map.at(last).is_none() {
            return Err(Refusal::PastEnd {
                last,
                end: self.end,
            });
        }
        Ok(())
    }

    fn acknowledge_batch(
        &mut self,
        now_ms: i64,
        member: Option<MemberId>,
        batch: &AckBatch<'_>,
        mark: Mark,
    ) -> Result<(), Refusal> {
        batch.check()?;
        let &AckBatch { first, last, .. } = batch;
        if last < self.start {
            return Ok(());
        }
        let asked = OffsetRange::new(first.max(self.start), last);
        let at = self.map.seek(asked.first);
        let in_one_run = self
            .map
            .get(at)
            .is_some_and(|run| run.first <= asked.first && last <= run.last);
        if !in_one_run {
            self.check_in_flight(batch, asked)?;
        }
        let side = Side::of(self);
        let Self {
            map,
            leases,
            complete,
            config,
            writes,
            ..
        } = self;
        map.rewrite_from(at, asked, |piece, cell| {
            if !cell.is_acquired() || Some(leases.owner(cell.lease())) != member {
                return Err(refusal(piece.first, cell));
            }
            debug_assert!(piece.first >= side.start, "what is passed over");
            let kind = batch.type_of(piece)?;
            let Some(target) = kind.target() else {
                if !config.renew_enabled {
                    return Err(Refusal::RenewDisabled);
                }
                let deadline_ms = now_ms.saturating_add(config.lock_ms);
                let lease = leases.renew(cell.lease(), *piece, now_ms, deadline_ms);
                debug_assert_eq!(
                    Some(leases.owner(lease)),
                    member,
                    "a renewal changes no owner"
                );
                return Ok(Cell::acquired(cell.delivery_count(), lease));
            };
            let count = cell.delivery_count();
            if kind == AckType::Reject && side.dead_letters {
                writes.push(mark, *piece, RecordState::Archiving, count);
                return Ok(cell.rejected());
            }
            let given_back = side.given_back(*piece, count);
            let state = select_unpredictable(kind == AckType::Release, given_back, target);
            *complete += i64::from(state.is_terminal()) * piece.length();
            writes.push(mark, *piece, state, count);
            Ok(cell.begun(state))
        })
    }
}
