//! Record states and acknowledge types (KIP-932, "In-flight records").

/// The state of a record in a share partition, with its persisted number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RecordState {
    /// May be delivered, for the first time or again.
    Available = 0,
    /// Acquired by a member under an acquisition lock.
    Acquired = 1,
    /// Accepted by a consumer; terminal.
    Acknowledged = 2,
    /// Rejected or undeliverable, and waiting for its dead-letter record; then archived (KIP-1191).
    Archiving = 3,
    /// Rejected, undeliverable, or gone from the log; terminal.
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

    /// The persisted number.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Whether no transition leaves this state.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Acknowledged | Self::Archived)
    }
}

/// A consumer's acknowledgement of an offset.
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
    /// Still processing: the lock restarts.
    Renew = 4,
}

impl AckType {
    /// The type with this protocol number; `None` for an unknown number.
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

    /// The requested state; `None` for a renewal.
    pub fn target(self) -> Option<RecordState> {
        use RecordState::{Acknowledged, Archived, Available};
        // a table, as the order of types is unpredictable
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
