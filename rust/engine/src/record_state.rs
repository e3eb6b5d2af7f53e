//! The states of a record and the answers that a consumer may give (KIP-932, "In-flight records").

/// The state of a record in a share partition, with the number that is persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RecordState {
    /// May be delivered, for the first time or again.
    Available = 0,
    /// Leased to a member under an acquisition lock.
    Acquired = 1,
    /// Accepted by a consumer; terminal.
    Acknowledged = 2,
    /// Rejected or given up, and waiting for its dead letter; archived then (KIP-1191).
    Archiving = 3,
    /// Rejected, given up at the delivery limit, or gone from the log; terminal.
    Archived = 4,
}

impl RecordState {
    /// The state with this persisted number; `None` for an unknown number.
    pub fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::Available),
            1 => Some(Self::Acquired),
            2 => Some(Self::Acknowledged),
            3 => Some(Self::Archiving),
            4 => Some(Self::Archived),
            _ => None,
        }
    }

    /// The number that is persisted.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Whether no transition leaves this state.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Acknowledged | Self::Archived)
    }
}

/// What a consumer answers for an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AckType {
    /// The offset holds no record.
    Gap = 0,
    /// Processed.
    Accept = 1,
    /// Deliver it again.
    Release = 2,
    /// Never deliver it again.
    Reject = 3,
    /// Still working: the lock starts anew.
    Renew = 4,
}

impl AckType {
    /// The type with this number in the protocol; `None` for an unknown number.
    pub fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::Gap),
            1 => Some(Self::Accept),
            2 => Some(Self::Release),
            3 => Some(Self::Reject),
            4 => Some(Self::Renew),
            _ => None,
        }
    }

    /// The state that the answer asks for; `None` for a renewal.
    pub fn target(self) -> Option<RecordState> {
        use RecordState::{Acknowledged, Archived, Available};
        // a table, as answers come in no order that a CPU could guess
        const TARGETS: [Option<RecordState>; 5] = [
            Some(Archived),
            Some(Acknowledged),
            Some(Available),
            Some(Archived),
            None,
        ];
        TARGETS[self as usize]
    }
}
