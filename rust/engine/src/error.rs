//! Refusals: the engine's answers to requests that it does not carry out. The state is then unchanged, except that an
//! acknowledgement keeps the renewals that precede what it was refused for: their locks have started anew.

use std::fmt;

use crate::offset::Offset;
use crate::record_state::RecordState;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The record is leased to another member, or to none.
    NotOwner {
        /// The first offset it was found at.
        offset: Offset,
    },
    /// The record is not leased: it may have been settled, released, or its lock has run out.
    NotAcquired {
        /// The first offset it was found at.
        offset: Offset,
        /// The state of the record.
        state: RecordState,
    },
    /// A change of the record's state is being written.
    Pending {
        /// The first offset it was found at.
        offset: Offset,
    },
    /// The batch lies before everything in flight.
    NotInFlight {
        /// First offset of the batch.
        first: Offset,
        /// Last offset of the batch.
        last: Offset,
    },
    /// Renewals are switched off for the group.
    RenewDisabled,
    /// The batch ends after everything that was ever acquired.
    PastEnd {
        /// Last offset of the batch.
        last: Offset,
        /// Highest offset in flight.
        end: Offset,
    },
    /// The batch ends before it starts.
    EmptyBatch {
        /// First offset of the batch.
        first: Offset,
        /// Last offset of the batch.
        last: Offset,
    },
    /// An acknowledge type that the protocol doesn't know.
    UnknownAckType {
        /// The number that was sent.
        id: u8,
    },
    /// Neither one acknowledge type nor one per offset.
    AckTypeCount {
        /// First offset of the batch.
        first: Offset,
        /// Last offset of the batch.
        last: Offset,
        /// How many types were sent.
        types: usize,
    },
    /// Impossible persisted state: unknown states, ranges out of order or before the start offset.
    CorruptState {
        /// First offset of the state batch.
        first: Offset,
        /// Last offset of the state batch.
        last: Offset,
    },
    /// No write with this number is open.
    UnknownWrite {
        /// The number that was given.
        id: u64,
    },
}

/// The kind of error that a client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// `INVALID_RECORD_STATE`.
    InvalidRecordState,
    /// `INVALID_REQUEST`.
    InvalidRequest,
}

impl Refusal {
    /// The kind of error that a client sees.
    pub fn kind(self) -> RefusalKind {
        match self {
            Self::NotOwner { .. }
            | Self::NotAcquired { .. }
            | Self::Pending { .. }
            | Self::NotInFlight { .. }
            | Self::RenewDisabled => RefusalKind::InvalidRecordState,
            _ => RefusalKind::InvalidRequest,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotOwner { offset } => write!(f, "offset {offset} is not leased to this member"),
            Self::NotAcquired { offset, state } => {
                write!(f, "offset {offset} is not acquired but {state:?}")
            }
            Self::Pending { offset } => write!(f, "a change of offset {offset} is being written"),
            Self::NotInFlight { first, last } => {
                write!(f, "offsets {first}-{last} are not in flight")
            }
            Self::RenewDisabled => {
                write!(f, "renewing acquisition locks is not enabled for the group")
            }
            Self::PastEnd { last, end } => {
                write!(f, "offset {last} lies behind the last one in flight, {end}")
            }
            Self::EmptyBatch { first, last } => {
                write!(f, "the batch {first}-{last} ends before it starts")
            }
            Self::UnknownAckType { id } => write!(f, "{id} is no acknowledge type; 0 to 4 are"),
            Self::AckTypeCount { first, last, types } => {
                write!(
                    f,
                    "{types} acknowledge types for offsets {first}-{last}; there must be one, or one an offset"
                )
            }
            Self::CorruptState { first, last } => {
                write!(
                    f,
                    "state batch {first}-{last} cannot follow what came before"
                )
            }
            Self::UnknownWrite { id } => write!(f, "write {id} is not open"),
        }
    }
}

impl std::error::Error for Refusal {}
