//! Refusals: errors of the engine. A refused request changes nothing, except that an acknowledgement keeps the renewals
//! before the refused batch: their locks have restarted.

use std::fmt;

use crate::offset::Offset;
use crate::record_state::RecordState;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The record is not acquired by this member.
    NotOwner {
        /// The first such offset.
        offset: Offset,
    },
    /// The record is not acquired: it may have been acknowledged or released, or its lock has expired.
    NotAcquired {
        /// The first such offset.
        offset: Offset,
        /// The state of the record.
        state: RecordState,
    },
    /// A state change of the record is being written.
    Pending {
        /// The first such offset.
        offset: Offset,
    },
    /// The batch lies before all in-flight records.
    NotInFlight {
        /// First offset of the batch.
        first: Offset,
        /// Last offset of the batch.
        last: Offset,
    },
    /// Renewals are disabled for the group.
    RenewDisabled,
    /// The batch ends after the last offset ever acquired.
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
    /// An acknowledge type unknown to the protocol.
    UnknownAckType {
        /// The type as sent.
        id: u8,
    },
    /// Neither one acknowledge type for the batch nor one per offset.
    AckTypeCount {
        /// First offset of the batch.
        first: Offset,
        /// Last offset of the batch.
        last: Offset,
        /// The number of types sent.
        types: usize,
    },
    /// Invalid persisted state: an unknown record state, or ranges out of order or before the start offset.
    CorruptState {
        /// First offset of the state batch.
        first: Offset,
        /// Last offset of the state batch.
        last: Offset,
    },
    /// No write with this ID is open.
    UnknownWrite {
        /// The given ID.
        id: u64,
    },
}

/// The Kafka error code of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// `INVALID_RECORD_STATE`.
    InvalidRecordState,
    /// `INVALID_REQUEST`.
    InvalidRequest,
}

impl Refusal {
    /// Returns the Kafka error code.
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
                write!(f, "offset {last} is after the last in-flight offset, {end}")
            }
            Self::EmptyBatch { first, last } => {
                write!(f, "the batch {first}-{last} ends before it starts")
            }
            Self::UnknownAckType { id } => {
                write!(f, "unknown acknowledge type {id}; must be 0 to 4")
            }
            Self::AckTypeCount { first, last, types } => {
                write!(
                    f,
                    "{types} acknowledge types for offsets {first}-{last}; must be one, or one per offset"
                )
            }
            Self::CorruptState { first, last } => {
                write!(
                    f,
                    "state batch {first}-{last} is invalid or overlaps the batch before it"
                )
            }
            Self::UnknownWrite { id } => write!(f, "write {id} is not open"),
        }
    }
}

impl std::error::Error for Refusal {}
